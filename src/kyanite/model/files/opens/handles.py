"""Opening and closing handles, and what an open handle forbids.

The functions here work inside a transaction. Their callers run it with ``durable=False``, since handles end with the
process that serves them, unless it also changes the file. A directory with anything open below it cannot be renamed,
so the ``O`` rows and the path stay true; a rename of an open file or directory rewrites its own rows only, however many
handles it has.
"""

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import delete_marks, grants, watches
from kyanite.model.files.opens.open_files import (
    HANDLES_MAX,
    changed_topic,
    delete_pending,
    find,
    find_by_guid,
    load,
    load_handle,
    load_open_file,
    sharing_violation,
)
from kyanite.model.files.opens.records import (
    Handle,
    NamedHandle,
    OpenFile,
    OpenHandles,
    decode_handle,
    decode_open_file,
)
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import ROOT_ID, Found, Location, Tree
from kyanite.model.records import encode
from kyanite.rules import leases, share_modes
from kyanite.rules.lease_records import LeaseFacts
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Open, OpenFileFacts, Rights
from kyanite.values import Instant

CLOSED = b"handles closed "
"""The topic, followed by the share id in decimal, of handles that were closed by another than their client."""


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


def open_handle(tx: Transaction, found: Found, request: HandleRequest) -> Handle:
    """Open what was found by its path; refused when another handle, a lease or a pending delete forbids it."""
    location, entry = found
    if request.deletes_on_close and entry.id == ROOT_ID:
        raise Refused(Reason.ACCESS_DENIED)
    present = load(tx, location.tree.id, entry.id)
    if present is not None and present[0].is_delete_pending:
        raise delete_pending(present[0])
    check_sharing(present, Open(request.access, request.share))
    check_leased(entry, request.access, tx.now)
    opened, handle = new_handle(tx, found, present, request)
    save(tx, location.tree.id, opened, handle)
    return handle


def check_sharing(present: OpenHandles | None, new: Open) -> None:
    """Refuse an open that the share mode of another handle forbids, or whose own share mode forbids another."""
    if present is not None and is_forbidden(present, new):
        raise sharing_violation(present[1], new)


def is_forbidden(present: OpenHandles, new: Open) -> bool:
    return share_modes.conflict((each.open for each in present[1]), new) is not None


def check_leased(entry: Entry, access: Rights, now: Instant) -> None:
    """A lease of REST lets SMB clients only read."""
    if access & _CHANGES and leases.is_locked(entry.lease, now):
        raise Refused(Reason.SHARING_VIOLATION, facts=LeaseFacts(entry.lease, None, now))


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
        opened = delete_marks.marked(tx, share_tree, opened)
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


def check_not_pending(snap: Snapshot, share_id: int, file_id: int) -> OpenFile | None:
    opened = load_open_file(snap, share_id, file_id)
    if opened is not None and opened.is_delete_pending:
        raise delete_pending(opened)
    return opened


def check_unopened(snap: Snapshot, share_id: int, file_id: int, reason: Reason) -> None:
    """Refuse, for this reason, to delete what has any handle at all."""
    opened = load_open_file(snap, share_id, file_id)
    if opened is not None:
        facts = OpenFileFacts(opened.path, opened.handle_count)
        raise Refused(Reason.DELETE_PENDING if opened.is_delete_pending else reason, facts=facts)


def follow_rename(tx: Transaction, entry: Entry, target: Location) -> None:
    """Let the handles of a renamed entry, if it has any, follow it to its new location."""
    share_id = target.tree.id
    opened = load_open_file(tx, share_id, entry.id)
    if opened is None:
        return
    there = _open_file_at(target, entry, opened.first_handle_id)
    moved = replace(opened, above=there.above, folded_name=there.folded_name, path=there.path)
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
