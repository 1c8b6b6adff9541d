"""Open files and directories, and the handles that clients have of them: the rows, and how they are found.

    H  share, file                            the file, while it has handles: its location, whether it is to be deleted
    H  share, file, handle                    each of its handles: the process that serves it, share mode, locks
    O  share, directory, first handle, file   under every directory above the file, the root included
    Q  owner, share, file, handle             the handles that one process serves, to be closed when it is dead
    M  share, directory, name                 while the file is to be deleted, for listings

``handles.py`` opens and closes, ``delete_marks.py`` marks for deletion, ``locks.py`` locks ranges.
``docs/decisions/0031-open-handles.md`` has the reasons.
"""

from collections.abc import Sequence

from kyanite.engine.api import Snapshot
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.opens.records import (
    Handle,
    NamedHandle,
    OpenFile,
    OpenHandles,
    decode_handle,
    decode_named_handle,
    decode_open_file,
)
from kyanite.model.files.tree import Found, Location, Tree
from kyanite.rules import share_modes
from kyanite.rules.byte_locks import Lock, LockFacts
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import HandleFacts, Open, OpenFileFacts

HANDLES_MAX = 2000
"""Of one file or directory: Azure's limit, which also bounds the rows that a check of share modes reads."""


def changed_topic(share_id: int, file_id: int) -> bytes:
    """Notified when a request that waits for other handles of the file may go on: one was closed or has unlocked a
    range, or a client has answered the break of an oplock."""
    return b"open file %d %d" % (share_id, file_id)


def sharing_violation(handles: Sequence[Handle], wanted: Open) -> Refused:
    """The refusal of what the share mode of one of these handles forbids."""
    held = next(each for each in handles if share_modes.conflict((each.open,), wanted))
    facts = HandleFacts(held.open, held.client_ip, held.opened_at, wanted)
    return Refused(Reason.SHARING_VIOLATION, facts=facts)


def delete_pending(opened: OpenFile) -> Refused:
    return Refused(Reason.DELETE_PENDING, facts=OpenFileFacts(opened.path, opened.handle_count))


def lock_conflict(handles: Sequence[Handle], lock: Lock, start: int, length: int) -> Refused:
    """The refusal of a read or write that the lock of one of these handles forbids."""
    client = next((each.client_ip for each in handles if each.id == lock.handle), "")
    return Refused(Reason.FILE_LOCK_CONFLICT, facts=LockFacts(lock, start, length, client))


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


def find_by_guid(snap: Snapshot, client_guid: bytes, create_guid: bytes) -> "NamedHandle | None":
    """The handle that a client has made with this guid, if it is still there."""
    stored = snap.get(keys.create_guid(client_guid, create_guid))
    return None if stored is None else decode_named_handle(stored)
