"""Byte-range locks. An exclusive lock keeps others from reading and writing its range, a shared one from writing it.

A lock belongs to the handle that took it. A range without bytes lies between two bytes: it conflicts with ranges that
have bytes on both sides of it, and with no other range without bytes (MS-FSA 2.1.4.10).
"""

from collections.abc import Iterable, Sequence
from enum import IntFlag
from typing import NamedTuple

from kyanite.rules.refusals import Reason, Refused

RANGE_END_MAX = 1 << 64
"""A lock may cover every byte that a 64-bit offset can name."""


class Lock(NamedTuple):
    start: int
    length: int
    is_exclusive: bool
    handle: int
    """The id of the handle that took it."""


class Range(NamedTuple):
    """What an unlock names: it must be the range of a lock, byte for byte."""

    start: int
    length: int


class ElementFlags(IntFlag):
    """What one element of a LOCK request wants (MS-SMB2 §2.2.26.1)."""

    SHARED = 0x01
    EXCLUSIVE = 0x02
    UNLOCK = 0x04
    FAIL_IMMEDIATELY = 0x10


class Element(NamedTuple):
    start: int
    length: int
    flags: int


class LockRequest(NamedTuple):
    """Locks to take, all of them or none."""

    locks: tuple[Lock, ...]
    may_wait: bool


class UnlockRequest(NamedTuple):
    """Ranges to unlock, one after the other."""

    ranges: tuple[Range, ...]
    is_valid: bool
    """False if another element follows that is no unlock: the request fails when the ranges are unlocked."""


class Unlocked(NamedTuple):
    locks: tuple[Lock, ...]
    """The locks that the handle has left."""
    unlocked: int
    """How many of the ranges were unlocked, in their order."""


_LOCKS = frozenset({ElementFlags.SHARED, ElementFlags.EXCLUSIVE})


def request_of(elements: Sequence[Element], handle: int) -> LockRequest | UnlockRequest | None:
    """What a LOCK request with at least one element does; None when it must not do anything (MS-SMB2 §3.3.5.14).

    The first element decides whether the request locks or unlocks. Only a single lock may wait.
    """
    if elements[0].flags == ElementFlags.UNLOCK:
        ranges: list[Range] = []
        for start, length, flags in elements:
            if flags != ElementFlags.UNLOCK:
                return UnlockRequest(tuple(ranges), is_valid=False)
            ranges.append(Range(start, length))
        return UnlockRequest(tuple(ranges), is_valid=True)
    locks: list[Lock] = []
    may_wait = False
    for start, length, flags in elements:
        kind = flags & ~int(ElementFlags.FAIL_IMMEDIATELY)
        if kind not in _LOCKS:
            return None
        may_wait = may_wait or kind == flags
        locks.append(Lock(start, length, kind == ElementFlags.EXCLUSIVE, handle))
    return None if may_wait and len(locks) > 1 else LockRequest(tuple(locks), may_wait)


def conflict(
    locks: Iterable[Lock], start: int, length: int, *, writes: bool, handle: int | None = None
) -> Lock | None:
    """The first lock that forbids reading or writing the range. A handle's own exclusive locks do not; its shared
    locks forbid writing even to itself."""
    for lock in locks:
        overlaps = lock.start < start + length and start < lock.start + lock.length
        if not overlaps or (lock.is_exclusive and lock.handle == handle):
            continue
        if writes or lock.is_exclusive:
            return lock
    return None


def lock_conflict(locks: Iterable[Lock], new: Lock) -> Lock | None:
    """The first lock that forbids a new one. An exclusive lock allows no other over it, not even of its own handle;
    a shared lock may lie over exclusive locks of its own handle."""
    owner = None if new.is_exclusive else new.handle
    return conflict(locks, new.start, new.length, writes=new.is_exclusive, handle=owner)


def lock_all(locks: Iterable[Lock], new: Sequence[Lock]) -> None:
    """Check that all the new locks of a request can be taken, one after the other; otherwise it takes none."""
    granted = list(locks)
    for lock in new:
        if lock.length and lock.start + lock.length > RANGE_END_MAX:
            raise Refused(Reason.INVALID_LOCK_RANGE)
        if lock_conflict(granted, lock) is not None:
            raise Refused(Reason.LOCK_NOT_GRANTED)
        granted.append(lock)


def unlock(own: Sequence[Lock], ranges: Sequence[Range]) -> Unlocked:
    """Remove one lock of the handle for each range: an exclusive one before shared ones, as Windows does.

    The first range that is not locked ends it; what was unlocked before stays unlocked.
    """
    left = list(own)
    for count, wanted in enumerate(ranges):
        equal = [lock for lock in left if lock[:2] == wanted]
        if not equal:
            return Unlocked(tuple(left), count)
        left.remove(next((lock for lock in equal if lock.is_exclusive), equal[0]))
    return Unlocked(tuple(left), len(ranges))
