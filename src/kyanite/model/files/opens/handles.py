"""Open handles: which clients have a file or directory open, what for, and which ranges of it they have locked.

    H  share, file                            the file, while it has handles: its location, whether it is to be deleted
    H  share, file, handle                    each of its handles: the process that serves it, share mode, locks
    O  share, directory, first handle, file   under every directory above the file, the root included
    Q  owner, share, file, handle             the handles that one process serves, to be closed when it is dead
    M  share, directory, name                 while the file is to be deleted, for listings

The functions here work inside a transaction. Their callers run it with ``durable=False``, since handles end with the
process that serves them, unless it also changes the file. A directory with anything open below it cannot be renamed,
so the ``O`` rows and the path stay true; a rename of an open file or directory rewrites its own rows only, however many
handles it has. ``docs/decisions/0031-open-handles.md`` has the reasons.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import grants, watches
from kyanite.model.files.opens.grants import Grant
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import ROOT_ID, Found, Location, Tree
from kyanite.model.records import encode
from kyanite.rules import byte_locks, leases, share_modes
from kyanite.rules.byte_locks import Lock, Range
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Open, Rights
from kyanite.values import Instant

HANDLES_MAX = 2000
"""Of one file or directory: Azure's limit, which also bounds the rows that a check of share modes reads."""

LOCKS_MAX = 1000
"""Of one handle, since its row contains them."""

LOCKS_OF_FILE_MAX = 4000
"""Of all handles of a file: every READ and WRITE compares its range with all of them."""

CLOSED = b"handles closed "
"""The topic, followed by the share id in decimal, of handles that were closed by another than their client."""

DISCONNECTED = bytes(OWNER_BYTES - 8)
"""What the owner of a durable handle begins with whose client has lost its connection; its own id follows. No process
has such an id, since those begin with the time."""


def changed_topic(share_id: int, file_id: int) -> bytes:
    """Notified when a request that waits for other handles of the file may go on: one was closed or has unlocked a
    range, or a client has answered the break of an oplock."""
    return b"open file %d %d" % (share_id, file_id)


class Handle(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored: fields are only ever added at the end."""

    id: int
    owner: bytes
    """The process that serves the client, by its id in the membership."""
    access: int
    share: int
    session_id: int
    client_ip: str
    opened_at: Instant
    deletes_on_close: bool = False
    """Closing this handle marks the file for deletion."""
    locks: tuple[Lock, ...] = ()
    granted: int = 0
    """The access mask that its client was granted."""
    options: int = 0
    """The options that its client opened it with."""
    client_guid: bytes = b""
    client_name: str = ""
    lease_key: bytes = b""
    """The lease key that its client opened it with, if it did."""
    is_watching: bool = False
    """Whether it watches the directory that it has open."""
    lock_sequences: bytes = b""
    """Which LOCK requests were carried out: see ``rules/lock_sequences.py``."""
    durable_seconds: int = 0
    """How long it stays when its client has lost its connection; 0 if it is not durable."""
    create_guid: bytes = b""
    """By which its client tells a repeated CREATE from a new one."""
    action: int = 1
    """What the CREATE did."""
    disconnected_at: Instant | None = None
    reconnected_at: Instant | None = None

    @property
    def open(self) -> Open:
        return Open(Rights(self.access), Rights(self.share))

    @property
    def is_connected(self) -> bool:
        return not self.owner.startswith(DISCONNECTED)

    @property
    def caching_key(self) -> bytes:
        """The key of what it may cache."""
        if self.lease_key:
            return grants.key_of_lease(self.client_guid, self.lease_key)
        return grants.key_of_oplock(self.id)


class OpenFile(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A file or directory with open handles. Stored: fields are only ever added at the end."""

    file_id: int
    first_handle_id: int
    """The handle that opened it first, closed or not: open files are listed in this order."""
    above: tuple[int, ...]
    """The ids of the directories above it, from the root to the one that contains it; none for the root itself."""
    folded_name: str
    path: str
    """As List Handles returns it."""
    handle_count: int
    is_delete_pending: bool = False
    grants: tuple[Grant, ...] = ()
    """What clients may cache of it."""
    unwritten: int = 0
    """The handle with WRITEs that were answered and are not committed yet, if there is one: see
    ``write_behind.py``."""
    is_flush_wanted: bool = False
    """Whether others wait for these WRITEs."""
    flushed_at: Instant = Instant(0)
    """When others that had waited for such WRITEs could go on."""

    @property
    def directory_id(self) -> int:
        return self.above[-1] if self.above else ROOT_ID


class HandleRequest(msgspec.Struct, frozen=True, gc=False):
    """What a client opens a file with."""

    owner: bytes
    access: Rights
    share: Rights
    session_id: int
    client_ip: str
    deletes_on_close: bool = False
    granted: int = 0
    options: int = 0
    client_guid: bytes = b""
    client_name: str = ""
    lease_key: bytes = b""


class NamedHandle(NamedTuple):
    """Where the handle is that a client has given a create guid."""

    share_id: int
    file_id: int
    handle_id: int


decode_named_handle: Callable[[bytes], NamedHandle] = msgspec.msgpack.Decoder(NamedHandle).decode
decode_handle: Callable[[bytes], Handle] = msgspec.msgpack.Decoder(Handle).decode
decode_open_file: Callable[[bytes], OpenFile] = msgspec.msgpack.Decoder(OpenFile).decode


def load_open_file(snap: Snapshot, share_id: int, file_id: int) -> OpenFile | None:
    stored = snap.get(keys.handles(share_id, file_id))
    return None if stored is None else decode_open_file(stored)


def load(snap: Snapshot, share_id: int, file_id: int) -> "OpenHandles | None":
    """A file with all of its handles; None when it has none."""
    base = keys.handles(share_id, file_id)
    rows = snap.scan(base, keys.after(base), limit=HANDLES_MAX + 1)
    for _, first in rows:
        return decode_open_file(first), [decode_handle(value) for _, value in rows]
    return None


def load_handle(snap: Snapshot, share_id: int, file_id: int, handle_id: int) -> Handle:
    """One handle; refused when it was closed, by its client or from outside."""
    handle = find_handle(snap, share_id, file_id, handle_id)
    if handle is None:
        raise Refused(Reason.HANDLE_CLOSED)
    return handle


def find_handle(snap: Snapshot, share_id: int, file_id: int, handle_id: int) -> Handle | None:
    stored = snap.get(keys.handle(share_id, file_id, handle_id))
    return None if stored is None else decode_handle(stored)


def find(snap: Snapshot, share_tree: Tree, file_id: int) -> Found:
    """The file that a handle has open, wherever it is now."""
    opened = load_open_file(snap, share_tree.id, file_id)
    if opened is None:
        raise Refused(Reason.HANDLE_CLOSED)
    return find_opened(snap, share_tree, opened)


def find_opened(snap: Snapshot, share_tree: Tree, opened: OpenFile) -> Found:
    """The same when its row is read already."""
    location, entry = tree.look_up(snap, Location(share_tree, opened.directory_id, opened.folded_name))
    assert entry is not None, "A file is open and not where its handles say."
    return Found(location._replace(name=entry.name, opened=opened), entry)


# --- Opening and closing


OpenHandles = tuple[OpenFile, list[Handle]]
"""A file with all of its handles."""


def open_handle(tx: Transaction, found: Found, request: HandleRequest) -> Handle:
    """Open what was found by its path; refused when another handle, a lease or a pending delete forbids it."""
    location, entry = found
    if request.deletes_on_close and entry.id == ROOT_ID:
        raise Refused(Reason.ACCESS_DENIED)
    present = load(tx, location.tree.id, entry.id)
    if present is not None and present[0].is_delete_pending:
        raise Refused(Reason.DELETE_PENDING)
    check_sharing(present, Open(request.access, request.share))
    check_leased(entry, request.access, tx.now)
    opened, handle = new_handle(tx, found, present, request)
    save(tx, location.tree.id, opened, handle)
    return handle


def check_sharing(present: OpenHandles | None, new: Open) -> None:
    """Refuse an open that the share mode of another handle forbids, or whose own share mode forbids another."""
    if present is not None and is_forbidden(present, new):
        raise Refused(Reason.SHARING_VIOLATION)


def is_forbidden(present: OpenHandles, new: Open) -> bool:
    return share_modes.conflict((each.open for each in present[1]), new) is not None


def check_leased(entry: Entry, access: Rights, now: Instant) -> None:
    """A lease of REST lets SMB clients only read."""
    if access & _CHANGES and leases.is_locked(entry.lease, now):
        raise Refused(Reason.SHARING_VIOLATION)


_CHANGES = Rights.WRITE | Rights.DELETE


def new_handle(
    tx: Transaction, found: Found, present: OpenHandles | None, request: HandleRequest
) -> tuple[OpenFile, Handle]:
    """A new handle of the file, beside those that are present, to be saved with the open file."""
    location, entry = found
    handle_id = tx.new_id()
    if present is None:
        opened = _open_file_at(location._replace(name=entry.name), entry, handle_id)
        save_above(tx, location.tree.id, opened)
    else:
        opened = present[0]
        if opened.handle_count >= HANDLES_MAX:
            raise Refused(Reason.HANDLE_LIMIT_REACHED)
    handle = Handle(
        handle_id,
        request.owner,
        request.access.value,
        request.share.value,
        request.session_id,
        request.client_ip,
        tx.now,
        request.deletes_on_close,
        (),
        request.granted,
        request.options,
        request.client_guid,
        request.client_name,
        request.lease_key,
    )
    return replace(opened, handle_count=opened.handle_count + 1), handle


def close_handle(tx: Transaction, share_tree: Tree, file_id: int, handle_id: int) -> bool:
    """Close a handle as its client does. The last handle of a file that is marked for deletion deletes it: True."""
    handle = load_handle(tx, share_tree.id, file_id, handle_id)
    opened = load_open_file(tx, share_tree.id, file_id)
    assert opened is not None, "A handle has no open file."
    if handle.locks:
        tx.notify(changed_topic(share_tree.id, file_id))
    deletes = opened.is_delete_pending or handle.deletes_on_close
    if not deletes:
        _release(tx, share_tree.id, opened, handle)
        return False
    location, entry = find(tx, share_tree, file_id)
    if entry.is_directory and not tree.is_empty(tx, share_tree.id, file_id):
        _release(tx, share_tree.id, opened, handle)
        return False
    if not opened.is_delete_pending:
        opened = _marked(tx, share_tree, opened)
    if _release(tx, share_tree.id, opened, handle) is not None:
        return False
    tree.remove(tx, location, entry)
    return True


def deletes_at_close(snap: Snapshot, share_id: int, file_id: int, handle_id: int) -> bool:
    """Whether closing this handle may delete the file."""
    opened = load_open_file(snap, share_id, file_id)
    if opened is None or opened.handle_count > 1:
        return False
    return opened.is_delete_pending or load_handle(snap, share_id, file_id, handle_id).deletes_on_close


def force_close(tx: Transaction, share_id: int, opened: OpenFile, handle: Handle) -> OpenFile | None:
    """Close a handle without its client. Its locks end with it, but it deletes no file; what is left of the file's
    handles."""
    tx.notify(CLOSED + str(share_id).encode())
    tx.notify(changed_topic(share_id, opened.file_id))
    if handle.is_watching:
        watches.closed(tx, share_id, handle.id)
    return _release(tx, share_id, opened, handle)


def close_handles_of_owner(tx: Transaction, owner: bytes, limit: int = 100) -> bool:
    """Close some handles that a dead process served; False when it has none left."""
    base = keys.handles_of_owner(owner)
    rows = list(tx.scan(base, keys.after(base), limit=limit))
    for key, _ in rows:
        share_id, file_id, handle_id = keys.parts_of_handle_of_owner(key)
        opened = load_open_file(tx, share_id, file_id)
        if opened is None:  # Its share was deleted and is being purged.
            tx.delete(keys.handle(share_id, file_id, handle_id))
            tx.delete(key)
        else:
            force_close(tx, share_id, opened, load_handle(tx, share_id, file_id, handle_id))
    return grants.delete_messages(tx, owner, limit) or bool(rows)


def purge_share(tx: Transaction, share_id: int, limit: int) -> int:
    """Remove some of the handles of a share that was deleted, with all their rows; how many rows were found."""
    base = keys.handles_of_share(share_id)
    rows = list(tx.scan(base, keys.after(base), limit=limit))
    for key, value in rows:
        tx.delete(key)
        if len(key) > len(base) + 8:
            file_id = int.from_bytes(key[len(base) : len(base) + 8], "big")
            handle = decode_handle(value)
            tx.delete(keys.handle_of_owner(handle.owner, share_id, file_id, handle.id))
            if handle.create_guid:
                _delete_guid(tx, handle)
        else:
            grants.delete_lease_keys(tx, decode_open_file(value).grants)
    return len(rows)


def save(tx: Transaction, share_id: int, opened: OpenFile, handle: Handle) -> None:
    """Store a new handle and the file that it opens."""
    tx.put(keys.handles(share_id, opened.file_id), encode(opened))
    tx.put(keys.handle(share_id, opened.file_id, handle.id), encode(handle))
    tx.put(keys.handle_of_owner(handle.owner, share_id, opened.file_id, handle.id), b"")
    if handle.create_guid:
        named = NamedHandle(share_id, opened.file_id, handle.id)
        tx.put(keys.create_guid(handle.client_guid, handle.create_guid), encode(named))


def find_by_guid(snap: Snapshot, client_guid: bytes, create_guid: bytes) -> "NamedHandle | None":
    """The handle that a client has made with this guid, if it is still there."""
    stored = snap.get(keys.create_guid(client_guid, create_guid))
    return None if stored is None else decode_named_handle(stored)


def check_guid(snap: Snapshot, client_guid: bytes, create_guid: bytes) -> None:
    if find_by_guid(snap, client_guid, create_guid) is not None:
        raise Refused(Reason.CREATE_GUID_IN_USE)


def _delete_guid(tx: Transaction, handle: Handle) -> None:
    """Unless a later handle has the guid now."""
    named = find_by_guid(tx, handle.client_guid, handle.create_guid)
    if named is not None and named.handle_id == handle.id:
        tx.delete(keys.create_guid(handle.client_guid, handle.create_guid))


def _open_file_at(location: Location, entry: Entry, first_handle_id: int) -> OpenFile:
    """An open file without handles yet."""
    if entry.id == ROOT_ID:
        return OpenFile(ROOT_ID, first_handle_id, (), "", "", 0)
    above = (ROOT_ID, *(each.id for each in location.above))
    assert above[-1] == location.directory_id, "The path to this location was not read."
    path = "/".join((*(each.name for each in location.above), location.name))
    return OpenFile(entry.id, first_handle_id, above, location.tree.fold(location.name), path, 0)


def save_above(tx: Transaction, share_id: int, opened: OpenFile) -> None:
    for directory_id in opened.above:
        tx.put(keys.open_entry(share_id, directory_id, opened.first_handle_id, opened.file_id), b"")


def _delete_above(tx: Transaction, share_id: int, opened: OpenFile) -> None:
    for directory_id in opened.above:
        tx.delete(keys.open_entry(share_id, directory_id, opened.first_handle_id, opened.file_id))


def _release(tx: Transaction, share_id: int, opened: OpenFile, handle: Handle) -> OpenFile | None:
    """Remove a handle, and with the last one everything that is known of the open file."""
    file_id = opened.file_id
    tx.delete(keys.handle(share_id, file_id, handle.id))
    tx.delete(keys.handle_of_owner(handle.owner, share_id, file_id, handle.id))
    if handle.create_guid:
        _delete_guid(tx, handle)
    if opened.grants or handle.locks:
        tx.notify(changed_topic(share_id, file_id))
        opened = replace(opened, grants=grants.released(tx, opened.grants, handle.caching_key))
    if handle.is_watching:
        watches.end(tx, share_id)
    if opened.unwritten == handle.id:
        tx.notify(changed_topic(share_id, file_id))
        opened = replace(opened, unwritten=0, is_flush_wanted=False)
    if opened.handle_count > 1:
        opened = replace(opened, handle_count=opened.handle_count - 1)
        tx.put(keys.handles(share_id, file_id), encode(opened))
        return opened
    tx.delete(keys.handles(share_id, file_id))
    _delete_above(tx, share_id, opened)
    if opened.is_delete_pending:
        tx.delete(keys.pending_delete(share_id, opened.directory_id, opened.folded_name))
    return None


def watch(tx: Transaction, key: ShareKey, share_tree: Tree, file_id: int, handle_id: int) -> int:
    """Watch the directory that a handle has open; the number of the first change that the watch is about."""
    handle = load_handle(tx, share_tree.id, file_id, handle_id)
    if not handle.is_watching:
        tx.put(keys.handle(share_tree.id, file_id, handle_id), encode(replace(handle, is_watching=True)))
        watches.begin(tx, key, share_tree.share)
    return watches.next_number(tx, share_tree.id)


# --- Deleting what is open


def mark_for_deletion(tx: Transaction, found: Found) -> None:
    """Let a file or an empty directory be deleted with its last handle. Until then it cannot be opened again."""
    location, entry = found
    share_id = location.tree.id
    opened = load_open_file(tx, share_id, entry.id)
    if opened is None:
        raise Refused(Reason.HANDLE_CLOSED)
    if entry.id == ROOT_ID:
        raise Refused(Reason.ACCESS_DENIED)
    if is_read_only(entry.attributes):
        raise Refused(Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)
    if entry.is_directory:
        tree.check_empty(tx, share_id, entry.id)
    tx.put(keys.handles(share_id, entry.id), encode(_marked(tx, location.tree, opened)))


def _marked(tx: Transaction, share_tree: Tree, opened: OpenFile) -> OpenFile:
    tx.put(keys.pending_delete(share_tree.id, opened.directory_id, opened.folded_name), b"")
    if share_tree.share.is_watched:
        watches.marked_for_deletion(tx, share_tree.id, opened.file_id)
    return replace(opened, is_delete_pending=True)


def clear_deletion_mark(tx: Transaction, share_id: int, file_id: int) -> None:
    """Take the mark back, through whichever handle."""
    opened = load_open_file(tx, share_id, file_id)
    if opened is not None and opened.is_delete_pending:
        tx.put(keys.handles(share_id, file_id), encode(replace(opened, is_delete_pending=False)))
        tx.delete(keys.pending_delete(share_id, opened.directory_id, opened.folded_name))


def pending_names(snap: Snapshot, share_id: int, directory_id: int, first: bytes, end: bytes) -> set[bytes]:
    """The folded names of entries that are marked for deletion, which REST listings omit; those of one page only."""
    base = keys.pending_deletes(share_id, directory_id)
    return {key[len(base) :] for key, _ in snap.scan(base + first, base + end)}


# --- What an open handle forbids


def check_not_pending(snap: Snapshot, share_id: int, file_id: int) -> OpenFile | None:
    opened = load_open_file(snap, share_id, file_id)
    if opened is not None and opened.is_delete_pending:
        raise Refused(Reason.DELETE_PENDING)
    return opened


def check_unopened(snap: Snapshot, share_id: int, file_id: int, reason: Reason) -> None:
    """Refuse, for this reason, to delete what has any handle at all."""
    opened = load_open_file(snap, share_id, file_id)
    if opened is not None:
        raise Refused(Reason.DELETE_PENDING if opened.is_delete_pending else reason)


def follow_rename(tx: Transaction, entry: Entry, target: Location) -> None:
    """Let the handles of a renamed entry, if it has any, follow it to its new location."""
    share_id = target.tree.id
    opened = load_open_file(tx, share_id, entry.id)
    if opened is None:
        return
    moved = replace(
        _open_file_at(target, entry, opened.first_handle_id),
        handle_count=opened.handle_count,
        is_delete_pending=opened.is_delete_pending,
        grants=opened.grants,
    )
    if opened.is_delete_pending:
        tx.delete(keys.pending_delete(share_id, opened.directory_id, opened.folded_name))
        tx.put(keys.pending_delete(share_id, moved.directory_id, moved.folded_name), b"")
    if moved.above != opened.above:
        _delete_above(tx, share_id, opened)
        save_above(tx, share_id, moved)
    tx.put(keys.handles(share_id, entry.id), encode(moved))


def want_flush(tx: Transaction, share_id: int, opened: OpenFile) -> None:
    """Let the process with unwritten WRITEs know that others wait for them."""
    if not opened.is_flush_wanted:
        tx.put(keys.handles(share_id, opened.file_id), encode(replace(opened, is_flush_wanted=True)))


# --- Locks


def lock(tx: Transaction, share_id: int, file_id: int, handle_id: int, new: Sequence[Lock]) -> None:
    """Take all of these locks for a handle, or none."""
    handle = load_handle(tx, share_id, file_id, handle_id)
    if len(handle.locks) + len(new) > LOCKS_MAX:
        raise Refused(Reason.LOCK_LIMIT_REACHED)
    present = load(tx, share_id, file_id)
    assert present is not None, "A handle has no open file."
    locks = [each for one in present[1] for each in one.locks]
    if len(locks) + len(new) > LOCKS_OF_FILE_MAX:
        raise Refused(Reason.LOCK_LIMIT_REACHED)
    byte_locks.lock_all(locks, new)
    locked = replace(handle, locks=(*handle.locks, *new))
    tx.put(keys.handle(share_id, file_id, handle_id), encode(locked))


def unlock(tx: Transaction, share_id: int, file_id: int, handle_id: int, ranges: Sequence[Range]) -> int:
    """Unlock the ranges in their order, up to the first that the handle has not locked; how many were unlocked."""
    handle = load_handle(tx, share_id, file_id, handle_id)
    left, unlocked = byte_locks.unlock(handle.locks, ranges)
    tx.put(keys.handle(share_id, file_id, handle_id), encode(replace(handle, locks=left)))
    return unlocked
