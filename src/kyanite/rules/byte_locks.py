"""Byte-range locks. An exclusive lock keeps others from reading and writing its range, a shared one from writing it.

A lock belongs to the handle that took it. A range without bytes lies between two bytes: it conflicts with ranges that
have bytes on both sides of it, and with no other range without bytes (MS-FSA 2.1.4.10).
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntFlag
from itertools import accumulate
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


class LockFacts(NamedTuple):
    """The lock that forbids something, and what that was."""

    lock: Lock
    start: int
    length: int
    client: str = ""
    """The address of the client that has the lock, if it is known."""


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
    """Check that all the new locks of a request, which are of one handle, can be taken, one after the other;
    otherwise it takes none."""
    present = list(locks) if len(new) <= 1 else _Sorted(locks, new[0].handle)
    for count, lock in enumerate(new):
        if lock.length and lock.start + lock.length > RANGE_END_MAX:
            raise Refused(Reason.INVALID_LOCK_RANGE)
        before = (
            new[:count] if lock.is_exclusive else ()
        )  # A handle's own locks forbid it exclusive ones only.
        if lock_conflict(before, lock) is not None or _conflicts(present, lock):
            raise Refused(Reason.LOCK_NOT_GRANTED)


def _conflicts(present: "list[Lock] | _Sorted", new: Lock) -> bool:
    if isinstance(present, list):
        return lock_conflict(present, new) is not None
    return present.conflicts(new)


class _Ends:
    """Ranges by their starts, and the greatest end up to each of them: whether one overlaps takes one search."""

    def __init__(self, locks: Iterable[Lock]) -> None:
        ordered = sorted(locks)
        self._starts = [lock.start for lock in ordered]
        self._ends = list(accumulate((lock.start + lock.length for lock in ordered), max))

    def overlap(self, start: int, end: int) -> bool:
        before = bisect_left(self._starts, end)
        return before > 0 and self._ends[before - 1] > start


class _Sorted:
    """The locks of a file, for a request with many new ones of one handle."""

    def __init__(self, locks: Iterable[Lock], handle: int) -> None:
        every = list(locks)
        self._all = _Ends(every)
        self._exclusive_of_others = _Ends(
            lock for lock in every if lock.is_exclusive and lock.handle != handle
        )

    def conflicts(self, new: Lock) -> bool:
        forbidding = self._all if new.is_exclusive else self._exclusive_of_others
        return forbidding.overlap(new.start, new.start + new.length)


def unlock(own: Sequence[Lock], ranges: Sequence[Range]) -> Unlocked:
    """Remove one lock of the handle for each range: an exclusive one before shared ones, as Windows does.

    The first range that is not locked ends it; what was unlocked before stays unlocked.
    """
    positions: dict[tuple[int, int], deque[int]] = {}
    for position, lock in sorted(enumerate(own), key=lambda each: not each[1].is_exclusive):
        positions.setdefault(lock[:2], deque()).append(position)
    gone: set[int] = set()
    for wanted in ranges:
        equal = positions.get(wanted)
        if not equal:
            break
        gone.add(equal.popleft())
    left = tuple(lock for position, lock in enumerate(own) if position not in gone)
    return Unlocked(left, len(gone))
