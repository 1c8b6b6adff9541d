"""Files: made, described, written, leased and deleted. Each function is one transaction.

Every one of them asks, in this order: is it there and a file, does an open handle stand against it, is it read-only,
is it leased to somebody else.
"""

from collections.abc import Awaitable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Scope, Snapshot, Transaction
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.content.content import Content
from kyanite.model.files import handles, tree, usage
from kyanite.model.files.entry import FILE, Entry
from kyanite.model.files.properties import SmbProperties, changed, new_entry
from kyanite.model.files.tree import FilePath, Location
from kyanite.model.lease import Action, LeaseRequest, Outcome, act
from kyanite.model.records import HttpHeaders
from kyanite.rules import leases
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.leases import NO_LEASE
from kyanite.rules.refusals import Reason, Refused, TotalLength
from kyanite.rules.share_modes import EVERYTHING, Rights
from kyanite.values import Instant, LeaseId

BLOCK = 512
"""What is cleared becomes a hole by whole blocks, and ranges are listed by them."""


class NewFile(msgspec.Struct, frozen=True, gc=False):
    """A file as a client wants it to be."""

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
    """Make the file, or replace the one that is there; its id stays then, and a lease that the writer holds."""

    def body(tx: Transaction) -> FileAtInstant:
        location = tree.location_of(tx, tree.open_tree(tx, path.share), path.names)
        location, there = tree.look_up(tx, location)
        parent = tree.parent_of(tx, location)
        file_id, lease, old_length = tx.now, NO_LEASE, 0
        if there is None:
            leases.check_write(NO_LEASE, lease_id, tx.now)
        else:
            lease = check_replaceable(tx, location, there, lease_id, may_overwrite=may_overwrite)
            tree.give_up(tx, location, there)
            file_id, old_length = Instant(there.id), there.length
        usage.change(tx, location.tree.share, file_id, new_file.length - old_length)
        entry = new_entry(
            tx, location, parent, new_file.properties, kind=FILE, entry_id=file_id, metadata=new_file.metadata
        )
        entry = replace(
            entry,
            length=new_file.length,
            content=content.create(tx, new_file.payload),
            http=new_file.http,
            lease=lease,
        )
        entry = tree.save(tx, location, in_place_of(there, entry))
        return FileAtInstant(entry, location.directory_id, tx.now)

    return engine.run(body, scope_of(path))


def check_replaceable(
    tx: Transaction,
    location: Location,
    there: Entry,
    lease_id: LeaseId | None,
    *,
    may_overwrite: bool = True,
    ignores_read_only: bool = False,
) -> leases.Lease:
    """Whether a file may be replaced by another, and the lease that stays on it."""
    if there.is_directory:
        raise Refused(Reason.PATH_TYPE_MISMATCH)
    handles.check_virtual_open(
        tx, location.tree.id, there.id, Rights.WRITE | Rights.DELETE, length=max(there.length, 1)
    )
    if not may_overwrite:
        raise Refused(Reason.PERMISSION_MISMATCH)
    if is_read_only(there.attributes) and not ignores_read_only:
        raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    return leases.check_write(there.lease, lease_id, tx.now)


def in_place_of(there: Entry | None, entry: Entry) -> Entry:
    """A file made anew is the same file: it has the names it had, and snapshots show it where they did."""
    if there is None:
        return entry
    return replace(entry, links=there.links, former=there.former, placed_at=there.placed_at)


def load_for_read(
    snap: Snapshot,
    path: FilePath,
    lease_id: LeaseId | None,
    access: Rights = Rights.READ,
    *,
    start: int = 0,
    length: int = 0,
) -> tuple[Location, Entry]:
    load = tree.load if access else tree.load_to_see
    location, entry = load(snap, path, FILE)
    if location.tree.at is None:
        handles.check_virtual_open(snap, location.tree.id, entry.id, access, start=start, length=length)
    if lease_id is not None:
        leases.check_read(entry.lease, lease_id, snap.now)
    return location, entry


def load_for_write(
    tx: Transaction,
    path: FilePath,
    lease_id: LeaseId | None,
    *,
    start: int = 0,
    length: int = 0,
    checks_read_only: bool = True,
) -> tuple[Location, Entry]:
    """The place and the entry of a file, free to be changed."""
    location, entry = tree.load(tx, path, FILE)
    handles.check_virtual_open(tx, location.tree.id, entry.id, Rights.WRITE, start=start, length=length)
    if checks_read_only and is_read_only(entry.attributes):
        raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    lease = leases.check_write(entry.lease, lease_id, tx.now)
    entry = tree.preserve_for_snapshots(tx, location, entry)
    return location, entry if lease is entry.lease else replace(entry, lease=lease)


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
        location, entry = load_for_write(tx, path, lease_id, start=request.offset, length=request.length)
        if request.offset + request.length > entry.length:
            raise Refused(Reason.INVALID_RANGE, TotalLength(entry.length))
        return tree.save(tx, location, written(tx, entry, request))

    return engine.run(body, scope_of(path))


def written(tx: Transaction, entry: Entry, request: RangeWrite) -> Entry:
    if request.payload is None:
        new = cleared(tx, entry.content, request.offset, request.length)
    else:
        new = content.write(tx, entry.content, request.offset, request.payload)
    return replace(
        entry,
        content=new,
        modified_at=tx.now,
        changed_at=tx.now,
        last_write_at=entry.last_write_at if request.keeps_last_write else tx.now,
    )


def cleared(tx: Transaction, old: Content, start: int, length: int) -> Content:
    """Zeros in the range: whole blocks become holes, and what is left at its edges is written."""
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
        location, entry = load_for_write(tx, path, lease_id, checks_read_only=False)
        resized = entry if request.length is None else _resized(tx, location, entry, request.length)
        resized = changed(tx, location.tree.id, resized, request.properties)
        if request.http is not None:
            resized = replace(resized, http=request.http)
        return FileAtInstant(tree.save(tx, location, resized), location.directory_id, tx.now)

    return engine.run(body, scope_of(path))


def _resized(tx: Transaction, location: Location, entry: Entry, length: int) -> Entry:
    """What a file grows by reads as zeros, also where it had bytes before it shrank."""
    if length == entry.length:
        return entry
    if is_read_only(entry.attributes):
        raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    handles.check_virtual_open(
        tx,
        location.tree.id,
        entry.id,
        Rights.WRITE,
        start=min(length, entry.length),
        length=abs(length - entry.length),
    )
    usage.change(tx, location.tree.share, entry.id, length - entry.length)
    kept = content.truncate(tx, entry.content, length) if length < entry.length else entry.content
    return replace(entry, length=length, content=kept, last_write_at=tx.now)


def set_metadata(
    engine: Engine, path: FilePath, metadata: dict[str, str], lease_id: LeaseId | None
) -> Awaitable[Entry]:
    def body(tx: Transaction) -> Entry:
        location, entry = load_for_write(tx, path, lease_id)
        entry = replace(entry, metadata=metadata, modified_at=tx.now, changed_at=tx.now)
        return tree.save(tx, location, entry)

    return engine.run(body, scope_of(path))


def lease(engine: Engine, path: FilePath, request: LeaseRequest) -> Awaitable[tuple[Entry, Outcome]]:
    """A lease is like an open handle that does everything and lets others read. The article on locks says that it
    needs to write and to delete, but its table refuses one beside any handle that does not share reading too."""

    def body(tx: Transaction) -> tuple[Entry, Outcome]:
        location, entry = tree.load(tx, path, FILE)
        if request.action is Action.ACQUIRE:
            handles.check_virtual_open(tx, location.tree.id, entry.id, EVERYTHING, share=Rights.READ)
        else:
            handles.check_virtual_open(tx, location.tree.id, entry.id, Rights.NONE)
        outcome = act(entry.lease, request, tx.now)
        leased = replace(tree.preserve_for_snapshots(tx, location, entry), lease=outcome.lease)
        return tree.save(tx, location, leased), outcome

    return engine.run(body, scope_of(path))


def delete(engine: Engine, path: FilePath, lease_id: LeaseId | None) -> Awaitable[None]:
    """At once and for good: nothing is left pending, so nobody may have it open."""

    def body(tx: Transaction) -> None:
        location, entry = tree.load(tx, path, None)
        if entry.is_directory:
            raise Refused(Reason.PATH_TYPE_MISMATCH)
        handles.check_unopened(tx, location.tree.id, entry.id, Reason.SHARING_VIOLATION)
        if is_read_only(entry.attributes):
            raise Refused(Reason.READ_ONLY_ATTRIBUTE)
        leases.check_write(entry.lease, lease_id, tx.now)
        tree.remove(tx, location, entry)

    return engine.run(body, scope_of(path))


def scope_of(path: FilePath) -> Scope:
    return keys.path_scope(path.share.account, path.share.name, path.names)
