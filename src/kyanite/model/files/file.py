"""Files: creating, describing, writing, leasing and deleting them.

Each operation is two functions. One acts on a file that was found, inside a transaction, for an actor: a REST request
or an SMB handle (``actors.py``). The other finds the file by its path and does so for a REST request in a transaction
of its own. All check in this order: the file exists, no open handle forbids it, it is not read-only, the caller has
its lease.
"""

from collections.abc import Awaitable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Scope, Snapshot, Transaction
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.files import tree, usage
from kyanite.model.files.actors import Actor, FileUse, RestActor
from kyanite.model.files.entry import FILE, Entry
from kyanite.model.files.opens import caching, handles
from kyanite.model.files.properties import SmbProperties, changed, new_entry
from kyanite.model.files.tree import FilePath, Found, Location
from kyanite.model.lease import Action, LeaseRequest, Outcome, act
from kyanite.model.records import CopyState, HttpHeaders
from kyanite.rules import leases
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused, TotalLength
from kyanite.rules.share_modes import EVERYTHING, Rights
from kyanite.values import Instant, LeaseId

BLOCK = 512
"""Cleared ranges become holes by whole blocks, and ranges are listed in blocks."""


class NewFile(msgspec.Struct, frozen=True, gc=False):
    """A file as a client requests it."""

    length: int
    http: HttpHeaders
    metadata: dict[str, str]
    properties: SmbProperties
    payload: bytes | tuple[Extent, ...] = b""
    """Its first bytes; the rest is zeros."""


class FileChange(msgspec.Struct, frozen=True, gc=False):
    """What Set File Properties changes; None is left as it is."""

    http: HttpHeaders | None
    length: int | None
    properties: SmbProperties


class RangeWrite(msgspec.Struct, frozen=True, gc=False):
    offset: int
    length: int
    payload: bytes | tuple[Extent, ...] | None
    """None to clear the range."""
    keeps_last_write: bool = False


class FileAtInstant(msgspec.Struct, frozen=True, gc=False):
    """A file as it was at an instant, and the id of its directory."""

    entry: Entry
    parent_id: int
    at: Instant

    @property
    def length(self) -> int:
        return self.entry.length

    @property
    def content(self) -> Content:
        return self.entry.content


def create(
    engine: Engine, path: FilePath, new_file: NewFile, lease_id: LeaseId | None, *, may_overwrite: bool
) -> Awaitable[FileAtInstant]:
    """Make the file, or replace the one at this path, which keeps its id and a lease that the writer has."""

    def body(tx: Transaction) -> FileAtInstant:
        location, old = tree.find(tx, path, tree.open_path(tx, path, with_root=True))
        made = content.create(tx, new_file.payload)
        entry = put(tx, location, old, RestActor(lease_id), new_file, made, may_overwrite=may_overwrite)
        return FileAtInstant(entry, location.directory_id, tx.now)

    return engine.run(body, scope_of(path))


def put(
    tx: Transaction,
    location: Location,
    old: Entry | None,
    actor: Actor,
    new_file: NewFile,
    made: Content,
    *,
    may_overwrite: bool = True,
    ignores_read_only: bool = False,
    copy: CopyState | None = None,
) -> Entry:
    """Store a new file with this content. It takes the place of ``old``: the same file, with its id and names."""
    if old is None:
        file_id, lease, old_length = tx.new_id(), actor.check_lease(NO_LEASE, tx.now), 0
    else:
        if old.is_directory:
            raise Refused(Reason.PATH_TYPE_MISMATCH)
        use = FileUse(Rights.WRITE | Rights.DELETE, length=max(old.length, 1), event=Event.OVERWRITE)
        actor.prepare(tx, location.tree.id, old.id, use)
        if not may_overwrite:
            raise Refused(Reason.PERMISSION_MISMATCH)
        if is_read_only(old.attributes) and not ignores_read_only:
            raise Refused(Reason.READ_ONLY_ATTRIBUTE)
        file_id, lease, old_length = old.id, actor.check_lease(old.lease, tx.now), old.length
        tree.discard(tx, location, old)
        if old.name != location.name:  # The case of its letters changes.
            handles.follow_rename(tx, old, location)
    usage.change(tx, location.tree.share, file_id, new_file.length - old_length)
    parent = tree.parent_of(tx, location)
    entry = new_entry(
        tx, location, parent, new_file.properties, kind=FILE, entry_id=file_id, metadata=new_file.metadata
    )
    entry = replace(entry, length=new_file.length, content=made, http=new_file.http, lease=lease, copy=copy)
    if old is not None:
        entry = replace(entry, links=old.links, former=old.former, named_at=old.named_at)
    return tree.save(tx, location, entry)


def empty(tx: Transaction, found: Found, attributes: int) -> Entry:
    """Let a file begin anew for an SMB client that overwrites it. It keeps its id, its name, when it was created, its
    security descriptor and what only REST knows of it. Locks of other handles do not matter."""
    location, old = found
    tree.discard(tx, location, old)
    usage.change(tx, location.tree.share, old.id, -old.length)
    entry = replace(
        old,
        length=0,
        content=NO_CONTENT,
        attributes=attributes,
        modified_at=tx.now,
        last_write_at=tx.now,
        changed_at=tx.now,
        lease=leases.check_write(old.lease, None, tx.now),
        copy=None,
    )
    return tree.save(tx, location, entry)


def load_for_read(
    snap: Snapshot,
    path: FilePath,
    lease_id: LeaseId | None,
    access: Rights = Rights.READ,
    *,
    start: int = 0,
    length: int = 0,
) -> Found:
    """A file that a REST request may read: these bytes of it, or without access, only its properties."""
    found = (tree.load if access else tree.load_for_properties)(snap, path, FILE)
    if found.location.tree.at is None:
        check_readable(snap, found, RestActor(lease_id), access, start=start, length=length)
    if lease_id is not None:
        leases.check_read(found.entry.lease, lease_id, snap.now)
    return found


def check_readable(
    snap: Snapshot,
    found: Found,
    actor: Actor,
    access: Rights = Rights.READ,
    *,
    start: int = 0,
    length: int = 0,
) -> None:
    """Whether the actor may read these bytes of a file now."""
    use = FileUse(access, start, length, event=Event.OPEN)
    actor.check(snap, found.location.tree.id, found.entry.id, use)


def _writable(
    tx: Transaction,
    found: Found,
    actor: Actor,
    *,
    start: int = 0,
    length: int = 0,
    event: Event = Event.WRITE,
    checks_read_only: bool = True,
) -> Entry:
    """The entry of a file that the actor may write, free to be changed."""
    location, entry = found
    actor.prepare(tx, location.tree.share.id, entry.id, FileUse(Rights.WRITE, start, length, event=event))
    if checks_read_only and actor.obeys_read_only and is_read_only(entry.attributes):
        raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    lease = actor.check_lease(entry.lease, tx.now)
    entry = tree.preserve_for_snapshots(tx, location, entry)
    return entry if lease is entry.lease else replace(entry, lease=lease)


def get_properties(engine: Engine, path: FilePath, lease_id: LeaseId | None) -> Awaitable[FileAtInstant]:
    """Its properties and metadata."""

    def body(snap: Snapshot) -> FileAtInstant:
        location, entry = load_for_read(snap, path, lease_id, Rights.NONE)
        return FileAtInstant(entry, location.directory_id, snap.now)

    return engine.read(body)


def write_range(
    engine: Engine, path: FilePath, request: RangeWrite, lease_id: LeaseId | None
) -> Awaitable[Entry]:
    def body(tx: Transaction) -> Entry:
        return write(tx, tree.load(tx, path, FILE), RestActor(lease_id), request)

    return engine.run(body, scope_of(path))


def write(tx: Transaction, found: Found, actor: Actor, request: RangeWrite) -> Entry:
    """Write or clear a range within the file's length."""
    entry = _writable(tx, found, actor, start=request.offset, length=request.length)
    if request.offset + request.length > entry.length:
        raise Refused(Reason.INVALID_RANGE, TotalLength(entry.length))
    if request.payload is None:
        written = _cleared(tx, entry.content, request.offset, request.length)
    else:
        written = content.write(tx, entry.content, request.offset, request.payload)
    entry = replace(
        entry,
        content=written,
        written_at=tx.now,
        modified_at=tx.now,
        changed_at=tx.now,
        last_write_at=entry.last_write_at if request.keeps_last_write else tx.now,
    )
    return tree.save(tx, found.location, entry)


def _cleared(tx: Transaction, old: Content, start: int, length: int) -> Content:
    """Zeros in the range: whole blocks become holes, and the edges of the range are written."""
    end = start + length
    first, last = -(-start // BLOCK) * BLOCK, end // BLOCK * BLOCK
    if first >= last:
        return content.write(tx, old, start, bytes(length))
    old = content.write(tx, old, start, bytes(first - start))
    old = content.write(tx, old, last, bytes(end - last))
    return content.clear(tx, old, first, last - first)


def set_properties(
    engine: Engine, path: FilePath, request: FileChange, lease_id: LeaseId | None
) -> Awaitable[FileAtInstant]:
    def body(tx: Transaction) -> FileAtInstant:
        found = tree.load(tx, path, FILE)
        entry = change(tx, found, RestActor(lease_id), request)
        return FileAtInstant(entry, found.location.directory_id, tx.now)

    return engine.run(body, scope_of(path))


def change(tx: Transaction, found: Found, actor: Actor, request: FileChange) -> Entry:
    """Change length, headers and properties of a file."""
    location = found.location
    entry = _writable(tx, found, actor, event=Event.OVERWRITE, checks_read_only=False)
    if request.length is not None and request.length != entry.length:
        entry = _resized(tx, Found(location, entry), actor, request.length)
    entry = changed(tx, location.tree.id, entry, request.properties)
    if request.http is not None:
        entry = replace(entry, http=request.http)
    return tree.save(tx, location, entry)


def resize(tx: Transaction, found: Found, actor: Actor, length: int) -> Entry:
    """Change nothing but the length, and the instants that go with it."""
    entry = _writable(tx, found, actor)
    if length != entry.length:
        entry = _resized(tx, Found(found.location, entry), actor, length)
    return tree.save(tx, found.location, replace(entry, modified_at=tx.now, changed_at=tx.now))


def _resized(tx: Transaction, found: Found, actor: Actor, length: int) -> Entry:
    """The bytes by which a file grows read as zeros, also where it had bytes before it shrank."""
    location, entry = found
    if actor.obeys_read_only and is_read_only(entry.attributes):
        raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    use = FileUse(Rights.WRITE, min(length, entry.length), abs(length - entry.length), event=Event.WRITE)
    actor.prepare(tx, location.tree.id, entry.id, use)
    usage.change(tx, location.tree.share, entry.id, length - entry.length)
    kept = content.truncate(tx, entry.content, length) if length < entry.length else entry.content
    return replace(entry, length=length, content=kept, last_write_at=tx.now)


def set_metadata(
    engine: Engine, path: FilePath, metadata: dict[str, str], lease_id: LeaseId | None
) -> Awaitable[Entry]:
    def body(tx: Transaction) -> Entry:
        return change_metadata(tx, tree.load(tx, path, FILE), RestActor(lease_id), metadata)

    return engine.run(body, scope_of(path))


def change_metadata(tx: Transaction, found: Found, actor: Actor, metadata: dict[str, str]) -> Entry:
    entry = _writable(tx, found, actor, event=Event.OVERWRITE)
    entry = replace(entry, metadata=metadata, modified_at=tx.now, changed_at=tx.now)
    return tree.save(tx, found.location, entry)


def lease(engine: Engine, path: FilePath, request: LeaseRequest) -> Awaitable[tuple[Entry, Outcome]]:
    def body(tx: Transaction) -> tuple[Entry, Outcome]:
        return change_lease(tx, tree.load(tx, path, FILE), RestActor(), request)

    return engine.run(body, scope_of(path))


def change_lease(tx: Transaction, found: Found, actor: Actor, request: LeaseRequest) -> tuple[Entry, Outcome]:
    """A lease is like an open handle that does everything and allows others to read. The article on locks says that
    acquiring one needs write and delete access, but its table also refuses one beside a handle that does not share
    reading."""
    location, entry = found
    if request.action is Action.ACQUIRE:
        use = FileUse(EVERYTHING, share=Rights.READ, event=Event.OPEN)
        actor.prepare(tx, location.tree.id, entry.id, use)
    else:
        actor.check(tx, location.tree.id, entry.id, FileUse(Rights.NONE))
    outcome = act(entry.lease, request, tx.now)
    leased = replace(tree.preserve_for_snapshots(tx, location, entry), lease=outcome.lease)
    return tree.save(tx, location, leased), outcome


def delete(engine: Engine, path: FilePath, lease_id: LeaseId | None) -> Awaitable[None]:
    """Over REST a file is deleted immediately, so it must not be open. An SMB client marks it for deletion and closes
    its handle (``handles.py``)."""

    def body(tx: Transaction) -> None:
        location, entry = tree.load(tx, path, None)
        if entry.is_directory:
            raise Refused(Reason.PATH_TYPE_MISMATCH)
        caching.check_unopened(tx, location.tree.id, entry.id)
        if is_read_only(entry.attributes):
            raise Refused(Reason.READ_ONLY_ATTRIBUTE)
        leases.check_write(entry.lease, lease_id, tx.now)
        tree.remove(tx, location, entry)

    return engine.run(body, scope_of(path))


def scope_of(path: FilePath) -> Scope:
    return keys.path_scope(path.share.account, path.share.name, path.names)
