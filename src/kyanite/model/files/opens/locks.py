"""Byte-range locks: taking and releasing them by LOCK requests. The locks of a handle are part of its row.

The functions here work inside a transaction that needs no sync. They return refusals, because the row of the handle
remembers which requests were carried out, and which were not.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.files.opens import caching, handles, open_files
from kyanite.model.files.opens.waits import Wait
from kyanite.model.records import encode
from kyanite.rules import byte_locks, lock_sequences
from kyanite.rules.byte_locks import Lock, LockRequest, Range, UnlockRequest
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused

LOCKS_MAX = 1000
"""Of one handle, since its row contains them."""

LOCKS_OF_FILE_MAX = 4000
"""Of all handles of a file: every READ and WRITE compares its range with all of them."""


class LockSequence(NamedTuple):
    """Tells a request that is repeated from a new one."""

    slot: int
    number: int


class LockedFile(NamedTuple):
    """The handle that locks, and the file that it has open."""

    share_id: int
    file_id: int
    handle_id: int


def lock(
    tx: Transaction, file: LockedFile, request: LockRequest, sequence: LockSequence
) -> Wait | Reason | None:
    """Take all the locks, or none. A request that may wait does so, for however long other locks are in its way."""
    if _is_repeated(tx, file, sequence):
        return None
    opened = open_files.load_open_file(tx, file.share_id, file.file_id)
    if opened is not None and opened.unwritten not in (0, file.handle_id):
        handles.want_flush(tx, file.share_id, opened)
        return Wait(open_files.changed_topic(file.share_id, file.file_id))
    try:
        take(tx, file, request.locks)
    except Refused as refused:
        _remember(tx, file, sequence, is_done=False)
        is_locked = refused.reason is Reason.LOCK_NOT_GRANTED
        if is_locked and request.may_wait:
            return Wait(open_files.changed_topic(file.share_id, file.file_id))
        return refused.reason
    _remember(tx, file, sequence, is_done=True)
    _break_grants(tx, file)
    return None


def unlock(tx: Transaction, file: LockedFile, request: UnlockRequest, sequence: LockSequence) -> bool:
    """Unlock the ranges, up to the first that the handle has not locked; whether those were all. Requests that wait
    for them are notified."""
    if _is_repeated(tx, file, sequence):
        return True
    unlocked = release(tx, file, request.ranges)
    if unlocked:
        tx.notify(open_files.changed_topic(file.share_id, file.file_id))
    is_done = unlocked == len(request.ranges)
    _remember(tx, file, sequence, is_done=is_done and request.is_valid)
    return is_done


def take(tx: Transaction, file: LockedFile, new: Sequence[Lock]) -> None:
    """Take all of these locks for a handle, or none."""
    handle = open_files.load_handle(tx, *file)
    if len(handle.locks) + len(new) > LOCKS_MAX:
        raise Refused(Reason.LOCK_LIMIT_REACHED)
    present = open_files.load(tx, file.share_id, file.file_id)
    assert present is not None, "A handle has no open file."
    locks = [each for one in present[1] for each in one.locks]
    if len(locks) + len(new) > LOCKS_OF_FILE_MAX:
        raise Refused(Reason.LOCK_LIMIT_REACHED)
    byte_locks.lock_all(locks, new)
    tx.put(keys.handle(*file), encode(replace(handle, locks=(*handle.locks, *new))))


def release(tx: Transaction, file: LockedFile, ranges: Sequence[Range]) -> int:
    """Unlock the ranges in their order, up to the first that the handle has not locked; how many were unlocked."""
    handle = open_files.load_handle(tx, *file)
    left, unlocked = byte_locks.unlock(handle.locks, ranges)
    tx.put(keys.handle(*file), encode(replace(handle, locks=left)))
    return unlocked


def _is_repeated(tx: Transaction, file: LockedFile, sequence: LockSequence) -> bool:
    numbers = open_files.load_handle(tx, *file).lock_sequences
    return lock_sequences.is_repeated(numbers, *sequence)


def _remember(tx: Transaction, file: LockedFile, sequence: LockSequence, *, is_done: bool) -> None:
    if not lock_sequences.is_counted(sequence.slot):
        return
    handle = open_files.load_handle(tx, *file)
    number = sequence.number if is_done else None
    numbers = lock_sequences.remembered(handle.lock_sequences, sequence.slot, number)
    if numbers != handle.lock_sequences:
        tx.put(keys.handle(*file), encode(replace(handle, lock_sequences=numbers)))


def _break_grants(tx: Transaction, file: LockedFile) -> None:
    """What is locked must be read from the server: take from other clients what they cache of it."""
    present = open_files.load(tx, file.share_id, file.file_id)
    if present is not None and present[0].grants:
        own = next(each.caching_key for each in present[1] if each.id == file.handle_id)
        caching.break_grants(tx, file.share_id, present, Event.LOCK, own)
