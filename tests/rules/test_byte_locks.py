"""Byte-range locks: cases by hand, and locks at random against a map of the file that was written apart from them.

The map knows no ranges. It notes on every byte who locks it, on every seam between two bytes who locks both of them,
and where the locks without bytes are.
"""

from collections import defaultdict
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kyanite.rules.byte_locks import (
    Element,
    Lock,
    LockRequest,
    Range,
    UnlockRequest,
    conflict,
    lock_all,
    lock_conflict,
    request_of,
    unlock,
)
from kyanite.rules.refusals import Reason, Refused
from tests.profiles import examples

MINE, OTHER = 1, 2
LAST = 2**64 - 1


@pytest.mark.parametrize(
    ("is_exclusive", "owner", "reads", "writes"),
    [
        (True, MINE, True, True),
        (True, OTHER, False, False),
        (False, MINE, True, False),
        (False, OTHER, True, False),
    ],
)
def test_who_may_do_what_in_a_locked_range(is_exclusive: bool, owner: int, reads: bool, writes: bool) -> None:
    lock = Lock(10, 5, is_exclusive, owner)
    assert conflict([lock], 12, 1, writes=False, handle=MINE) == (None if reads else lock)
    assert conflict([lock], 12, 1, writes=True, handle=MINE) == (None if writes else lock)


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_who_has_no_handle_owns_no_lock(is_exclusive: bool) -> None:
    lock = Lock(10, 5, is_exclusive, MINE)
    assert conflict([lock], 12, 1, writes=True) == lock
    assert conflict([lock], 12, 1, writes=False) == (lock if is_exclusive else None)


@pytest.mark.parametrize(
    ("start", "length", "meets"),
    [
        (0, 10, False),
        (0, 11, True),
        (9, 1, False),
        (10, 1, True),
        (14, 1, True),
        (15, 1, False),
        (12, 1, True),
        (0, 100, True),
        (10, 0, False),
        (11, 0, True),
        (14, 0, True),
        (15, 0, False),
        (0, 0, False),
    ],
)
def test_where_a_lock_reaches(start: int, length: int, meets: bool) -> None:
    lock = Lock(10, 5, True, OTHER)
    assert (conflict([lock], start, length, writes=False) == lock) is meets


@pytest.mark.parametrize(
    ("at", "start", "length", "meets"),
    [
        (5, 0, 5, False),
        (5, 0, 6, True),
        (5, 5, 5, False),
        (5, 4, 2, True),
        (5, 5, 0, False),
        (0, 0, 9, False),
    ],
)
def test_a_lock_without_bytes(at: int, start: int, length: int, meets: bool) -> None:
    lock = Lock(at, 0, True, OTHER)
    assert (conflict([lock], start, length, writes=False) == lock) is meets


def test_a_lock_on_the_last_byte_there_can_be() -> None:
    lock = Lock(LAST, 1, True, OTHER)
    assert conflict([lock], LAST, 1, writes=False) == lock
    assert conflict([lock], 0, LAST, writes=True) is None
    assert conflict([Lock(0, LAST, True, OTHER)], LAST, 1, writes=True) is None


@pytest.mark.parametrize(
    ("held_is_exclusive", "owner", "new_is_exclusive", "is_granted"),
    [
        (True, MINE, True, False),
        (True, MINE, False, True),
        (True, OTHER, True, False),
        (True, OTHER, False, False),
        (False, MINE, True, False),
        (False, MINE, False, True),
        (False, OTHER, True, False),
        (False, OTHER, False, True),
    ],
)
def test_a_lock_over_a_lock(
    held_is_exclusive: bool, owner: int, new_is_exclusive: bool, is_granted: bool
) -> None:
    held = Lock(0, 4, held_is_exclusive, owner)
    assert lock_conflict([held], Lock(3, 4, new_is_exclusive, MINE)) == (None if is_granted else held)
    assert lock_conflict([held], Lock(4, 4, new_is_exclusive, MINE)) is None


def test_the_first_conflict_is_returned() -> None:
    away, shared, exclusive = Lock(50, 5, True, OTHER), Lock(0, 9, False, OTHER), Lock(9, 9, True, OTHER)
    assert conflict([away, shared, exclusive], 0, 20, writes=True) == shared
    assert conflict([away, shared, exclusive], 0, 20, writes=False) == exclusive
    assert conflict([], 0, 20, writes=True) is None


SHARE, EXCLUDE, UNLOCK, FAIL = 0x1, 0x2, 0x4, 0x10


@pytest.mark.parametrize(
    ("flags", "locks"),
    [
        ([SHARE], LockRequest((Lock(0, 9, False, MINE),), may_wait=True)),
        ([SHARE | FAIL], LockRequest((Lock(0, 9, False, MINE),), may_wait=False)),
        ([EXCLUDE], LockRequest((Lock(0, 9, True, MINE),), may_wait=True)),
        ([EXCLUDE | FAIL], LockRequest((Lock(0, 9, True, MINE),), may_wait=False)),
        (
            [EXCLUDE | FAIL, SHARE | FAIL],
            LockRequest((Lock(0, 9, True, MINE), Lock(10, 9, False, MINE)), may_wait=False),
        ),
        ([EXCLUDE | FAIL, SHARE], None),
        ([EXCLUDE, SHARE | FAIL], None),
        ([SHARE | FAIL, UNLOCK], None),
        ([SHARE | FAIL, 0], None),
        ([0], None),
        ([FAIL], None),
        ([SHARE | EXCLUDE], None),
        ([SHARE | EXCLUDE | FAIL], None),
        ([SHARE | 0x20], None),
        ([UNLOCK | FAIL], None),
        ([UNLOCK | SHARE], None),
        ([UNLOCK], UnlockRequest((Range(0, 9),), is_valid=True)),
        ([UNLOCK, UNLOCK], UnlockRequest((Range(0, 9), Range(10, 9)), is_valid=True)),
        ([UNLOCK, SHARE | FAIL, UNLOCK], UnlockRequest((Range(0, 9),), is_valid=False)),
        ([UNLOCK, UNLOCK | FAIL], UnlockRequest((Range(0, 9),), is_valid=False)),
    ],
)
def test_what_a_list_of_elements_does(flags: list[int], locks: LockRequest | UnlockRequest | None) -> None:
    elements = [Element(10 * index, 9, each) for index, each in enumerate(flags)]
    assert request_of(elements, MINE) == locks


class ByteMap:
    def __init__(self, locks: list[Lock]) -> None:
        self.bytes: defaultdict[int, list[Lock]] = defaultdict(list)
        self.seams: defaultdict[int, list[Lock]] = defaultdict(list)
        """By the byte after the seam."""
        self.points: defaultdict[int, list[Lock]] = defaultdict(list)
        for lock in locks:
            if lock.length == 0:
                self.points[lock.start].append(lock)
            for number in range(lock.length):
                self.bytes[lock.start + number].append(lock)
                if number:
                    self.seams[lock.start + number].append(lock)

    def met(self, start: int, length: int) -> list[Lock]:
        if length == 0:
            return self.seams[start]
        found = list(self.bytes[start])
        for number in range(1, length):
            found += self.bytes[start + number] + self.points[start + number]
        return found

    def may_read(self, start: int, length: int, handle: int | None) -> bool:
        return all(not lock.is_exclusive or lock.handle == handle for lock in self.met(start, length))

    def may_write(self, start: int, length: int, handle: int | None) -> bool:
        return all(lock.is_exclusive and lock.handle == handle for lock in self.met(start, length))

    def may_lock(self, new: Lock) -> bool:
        if new.is_exclusive:
            return not self.met(new.start, new.length)
        return self.may_read(new.start, new.length, new.handle)


class Locks(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.held: list[Lock] = []

    @rule(
        start=st.integers(0, 8),
        length=st.integers(0, 4),
        is_exclusive=st.booleans(),
        handle=st.integers(1, 3),
    )
    def take(self, start: int, length: int, is_exclusive: bool, handle: int) -> None:
        new = Lock(start, length, is_exclusive, handle)
        against = lock_conflict(self.held, new)
        assert (against is None) is ByteMap(self.held).may_lock(new)
        if against is None:
            self.held.append(new)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))

    @rule(handle=st.integers(1, 3))
    def close(self, handle: int) -> None:
        self.held = [lock for lock in self.held if lock.handle != handle]

    @invariant()
    def both_let_the_same_read_and_write(self) -> None:
        by_byte = ByteMap(self.held)
        for start, length, handle in product(range(10), (0, 1, 2, 5), (None, 1, 2)):
            reads = conflict(self.held, start, length, writes=False, handle=handle) is None
            writes = conflict(self.held, start, length, writes=True, handle=handle) is None
            assert reads is by_byte.may_read(start, length, handle), (start, length, handle)
            assert writes is by_byte.may_write(start, length, handle), (start, length, handle)

    @invariant()
    def no_byte_has_an_exclusive_lock_and_one_of_another(self) -> None:
        for locks in ByteMap(self.held).bytes.values():
            if any(lock.is_exclusive for lock in locks):
                assert len({lock.handle for lock in locks}) == 1
                assert sum(lock.is_exclusive for lock in locks) == 1


Locks.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=15)
TestLocks = Locks.TestCase


SHARED, EXCLUSIVE = False, True


@pytest.mark.parametrize(
    ("granted", "new", "reason"),
    [
        # description: no locks yet; two that do not overlap; a shared one over an exclusive one of the same request
        ([], [(0, 4, EXCLUSIVE)], None),
        ([], [(0, 4, EXCLUSIVE), (4, 4, EXCLUSIVE)], None),
        ([], [(0, 4, EXCLUSIVE), (0, 4, SHARED)], None),
        ([], [(0, 4, SHARED), (0, 4, SHARED)], None),
        # the second conflicts with the first of the same request
        ([], [(0, 4, EXCLUSIVE), (0, 4, EXCLUSIVE)], Reason.LOCK_NOT_GRANTED),
        ([], [(0, 4, SHARED), (3, 4, EXCLUSIVE)], Reason.LOCK_NOT_GRANTED),
        # with a lock of another handle
        ([(2, 2, EXCLUSIVE, OTHER)], [(0, 2, EXCLUSIVE), (2, 1, SHARED)], Reason.LOCK_NOT_GRANTED),
        ([(2, 2, SHARED, OTHER)], [(0, 2, EXCLUSIVE), (2, 1, SHARED)], None),
        ([(2, 2, SHARED, OTHER)], [(3, 1, EXCLUSIVE)], Reason.LOCK_NOT_GRANTED),
        # with one of its own
        ([(2, 2, EXCLUSIVE, MINE)], [(2, 2, SHARED)], None),
        ([(2, 2, EXCLUSIVE, MINE)], [(2, 2, EXCLUSIVE)], Reason.LOCK_NOT_GRANTED),
        # without bytes: only strictly inside another range
        ([(9, 2, EXCLUSIVE, OTHER)], [(10, 0, EXCLUSIVE)], Reason.LOCK_NOT_GRANTED),
        ([(9, 1, EXCLUSIVE, OTHER)], [(10, 0, EXCLUSIVE)], None),
        ([(10, 0, EXCLUSIVE, OTHER)], [(10, 0, EXCLUSIVE)], None),
        # up to the last byte, and beyond it
        ([], [(LAST, 1, EXCLUSIVE)], None),
        ([], [(0, LAST, EXCLUSIVE), (LAST, 1, EXCLUSIVE)], None),
        ([], [(LAST, 2, EXCLUSIVE)], Reason.INVALID_LOCK_RANGE),
        ([], [(LAST, 0, EXCLUSIVE)], None),
        ([], [(0, 1, EXCLUSIVE), (1, LAST + 1, SHARED)], Reason.INVALID_LOCK_RANGE),
    ],
)
def test_all_locks_of_a_request_are_granted_or_none(
    granted: list[tuple[int, int, bool, int]], new: list[tuple[int, int, bool]], reason: Reason | None
) -> None:
    locks, wanted = [Lock(*each) for each in granted], [Lock(*each, MINE) for each in new]
    if reason is None:
        lock_all(locks, wanted)
        return
    with pytest.raises(Refused) as refusal:
        lock_all(locks, wanted)
    assert refusal.value.reason is reason


@pytest.mark.parametrize(
    ("own", "ranges", "left", "count"),
    [
        ([(0, 4, EXCLUSIVE)], [(0, 4)], [], 1),
        ([(0, 4, EXCLUSIVE)], [(0, 3)], [(0, 4, EXCLUSIVE)], 0),
        ([(0, 4, EXCLUSIVE)], [(1, 3)], [(0, 4, EXCLUSIVE)], 0),
        ([], [(0, 4)], [], 0),
        # Of equal ranges one is unlocked at a time, an exclusive one first.
        ([(0, 4, EXCLUSIVE), (0, 4, SHARED)], [(0, 4)], [(0, 4, SHARED)], 1),
        ([(0, 4, SHARED), (0, 4, SHARED)], [(0, 4), (0, 4)], [], 2),
        # The first range that is not locked ends the request; the earlier ones stay unlocked.
        ([(0, 4, SHARED), (8, 4, SHARED)], [(0, 4), (5, 1), (8, 4)], [(8, 4, SHARED)], 1),
        ([(0, 4, SHARED)], [(0, 4), (0, 4)], [], 1),
        ([(7, 0, EXCLUSIVE), (7, 1, SHARED)], [(7, 0)], [(7, 1, SHARED)], 1),
    ],
)
def test_unlocking(
    own: list[tuple[int, int, bool]],
    ranges: list[tuple[int, int]],
    left: list[tuple[int, int, bool]],
    count: int,
) -> None:
    unlocked = unlock([Lock(*each, MINE) for each in own], [Range(*each) for each in ranges])
    assert unlocked == (tuple(Lock(*each, MINE) for each in left), count)


_LOCKS = st.lists(st.builds(Lock, st.integers(0, 12), st.integers(0, 4), st.booleans(), st.just(MINE)))


def _are_granted_one_by_one(present: list[Lock], new: list[Lock]) -> bool:
    granted = list(present)
    for lock in new:
        if lock_conflict(granted, lock) is not None:
            return False
        granted.append(lock)
    return True


@given(_LOCKS, _LOCKS, st.lists(st.sampled_from([MINE, OTHER])))
def test_many_locks_at_once_are_granted_as_one_by_one(
    present: list[Lock], new: list[Lock], owners: list[int]
) -> None:
    present = [lock._replace(handle=owner) for lock, owner in zip(present, owners, strict=False)]
    try:
        lock_all(present, new)
        is_granted = True
    except Refused:
        is_granted = False
    assert is_granted == _are_granted_one_by_one(present, new)
