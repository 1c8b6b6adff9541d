"""Byte-range locks: an exclusive one keeps others from reading and writing its range, a shared one from writing it.

A range without bytes lies between two of them: it meets the ranges that have bytes on both sides of it, and no other
range without bytes (MS-FSA 2.1.4.10).
"""

from collections.abc import Iterable
from typing import NamedTuple


class Lock(NamedTuple):
    start: int
    length: int
    is_exclusive: bool
    handle: int
    """Whose lock it is."""


def conflict(
    locks: Iterable[Lock], start: int, length: int, *, writes: bool, handle: int | None = None
) -> Lock | None:
    """The first lock that stands against reading or writing the range. A handle's own exclusive locks do not; its
    shared ones keep even itself from writing."""
    for lock in locks:
        overlaps = lock.start < start + length and start < lock.start + lock.length
        if not overlaps or (lock.is_exclusive and lock.handle == handle):
            continue
        if writes or lock.is_exclusive:
            return lock
    return None


def lock_conflict(locks: Iterable[Lock], new: Lock) -> Lock | None:
    """The first lock that stands against taking a new one. An exclusive one suffers no other, not even of its own
    handle; a shared one may lie over exclusive ones of its own handle."""
    owner = None if new.is_exclusive else new.handle
    return conflict(locks, new.start, new.length, writes=new.is_exclusive, handle=owner)
