"""Open handles: who has a file or directory open, what for, and which ranges of it are locked.

They are rows by share and file, written without a sync by the process that serves their clients, and they carry the
id of that process: when it is dead, the background closes what it held (``dead_processes.py``). Every REST operation
on a file asks here, in its own transaction, as if it opened the file and shared everything
(``check_virtual_open``).
"""

from collections.abc import Callable

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.rules import byte_locks, share_modes
from kyanite.rules.byte_locks import Lock
from kyanite.rules.file_names import fold
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import EVERYTHING, Open, Rights
from kyanite.values import Instant

CLOSED = b"handles closed "
"""The topic, followed by the share id in decimal, that rings when handles are closed from outside."""


class Handle(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored: fields are only ever added at the end."""

    id: int
    owner: bytes
    """The process that serves it, as the extents know it."""
    access: int
    share: int
    path: str
    file_id: int
    parent_id: int
    session_id: int
    client_ip: str
    opened_at: Instant
    is_delete_pending: bool = False
    locks: tuple[Lock, ...] = ()

    @property
    def open(self) -> Open:
        return Open(Rights(self.access), Rights(self.share))


encode: Callable[[object], bytes] = msgspec.msgpack.Encoder().encode
decode: Callable[[bytes], Handle] = msgspec.msgpack.Decoder(Handle).decode


def handles_of(snap: Snapshot, share_id: int, file_id: int) -> list[Handle]:
    base = keys.handles(share_id, file_id)
    return [decode(value) for _, value in snap.scan(base, keys.after(base))]


def close(tx: Transaction, key: bytes, held: Handle) -> None:
    """Close a handle from outside. Its locks go with it; a file that was to be deleted with it stays."""
    tx.delete(key)
    share_id = keys.share_of_handle(key)
    if held.is_delete_pending:
        name = fold(held.path.rpartition("/")[2])
        tx.delete(keys.pending_delete(share_id, held.parent_id, name))
    tx.notify(CLOSED + str(share_id).encode())


def check_virtual_open(
    snap: Snapshot,
    share_id: int,
    file_id: int,
    access: Rights,
    *,
    start: int = 0,
    length: int = 0,
    share: Rights = EVERYTHING,
) -> None:
    """Refuse what an open handle stands against: a pending delete, its share mode, or a lock on the range."""
    held = handles_of(snap, share_id, file_id)
    if not held:
        return
    check_not_pending(held)
    if share_modes.conflict((each.open for each in held), Open(access, share)):
        raise Refused(Reason.SHARING_VIOLATION)
    if length:
        locks = [lock for each in held for lock in each.locks]
        if byte_locks.conflict(locks, start, length, writes=bool(access & Rights.WRITE)):
            raise Refused(Reason.FILE_LOCK_CONFLICT)


def check_unopened(snap: Snapshot, share_id: int, file_id: int, reason: Reason) -> None:
    """Refuse, for this reason, what needs that nobody has it open at all: deleting it."""
    held = handles_of(snap, share_id, file_id)
    if held:
        check_not_pending(held)
        raise Refused(reason)


def check_not_pending(held: list[Handle]) -> None:
    if any(each.is_delete_pending for each in held):
        raise Refused(Reason.DELETE_PENDING)


def pending_names(snap: Snapshot, share_id: int, directory_id: int) -> frozenset[str]:
    """The folded names of what is in a directory and about to be deleted, which listings leave out."""
    base = keys.pending_deletes(share_id, directory_id)
    return frozenset(key[len(base) :].decode() for key, _ in snap.scan(base, keys.after(base)))


def check_none_inside(snap: Snapshot, share_id: int, directory: str) -> None:
    """Refuse to move a directory in which something is open."""
    within = fold(f"{directory}/")
    base = keys.handles_of_share(share_id)
    for _, value in snap.scan(base, keys.after(base)):
        if fold(decode(value).path).startswith(within):
            raise Refused(Reason.SHARING_VIOLATION)
