"""The table of tasks: marks in turn, walks at intervals, and every task in bounded steps."""

from collections import Counter

import pytest

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.blobs import container
from kyanite.model.maintenance.tasks import TASKS, Expiring, Marked, step_of
from kyanite.rules.preconditions import NONE
from kyanite.values import Instant
from tests.model.blobs.store import CONTAINER, BlobStore
from tests.model.content.world import outcome

PREFIX = b"~"


def test_no_prefix_has_two_tasks() -> None:
    prefixes = Counter(task.prefix for task in TASKS if isinstance(task, Marked))
    assert set(prefixes.values()) == {1}
    assert {keys.DELETED_CONTAINERS, keys.HISTORY_CHANGES, keys.ABANDONED_STAGINGS} <= prefixes.keys()


def test_marks_are_worked_on_one_after_the_other() -> None:
    engine = MemoryEngine()
    worked: list[bytes] = []
    left = {b"~a": 3, b"~b": 1, b"~c": 2}

    def work(tx: Transaction, mark: bytes) -> None:
        worked.append(mark)
        left[mark] -= 1
        if not left[mark]:
            tx.delete(mark)

    def mark_all(tx: Transaction) -> None:
        for mark in left:
            tx.put(mark, b"")

    outcome(engine.run(mark_all))
    step = step_of(engine, Marked(PREFIX, work))
    while outcome(step()):
        pass
    assert worked == [b"~a", b"~b", b"~c", b"~a", b"~c", b"~a"]
    outcome(engine.run(lambda tx: tx.put(b"~a", b"")))
    left[b"~a"] = 1
    assert outcome(step())
    assert not outcome(step())


def test_a_walk_reads_all_pages_and_then_rests() -> None:
    now = Instant(10_000_000)
    engine = MemoryEngine(clock=lambda: now)
    pages = {b"": ([b"1", b"2"], b"next"), b"next": ([], b"last"), b"last": ([b"3"], b"")}
    removed: list[list[bytes]] = []

    def find(_: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
        return pages[start]

    step = step_of(engine, Expiring(60, find, lambda tx, found: removed.append(found)))
    assert [outcome(step()) for _ in range(5)] == [True, True, True, False, False]
    assert removed == [[b"1", b"2"], [b"3"]]
    now = Instant(now + 61 * 10_000_000)
    assert outcome(step())
    assert removed[2:] == [[b"1", b"2"]]


@pytest.mark.parametrize("number", [500, 1500])
def test_a_deleted_container_goes_in_bounded_steps(number: int) -> None:
    store = BlobStore()
    for each in range(number):
        store.put(f"{each}", store.extents(b"x") if each % 50 == 0 else b"inline")
        if each % 5 == 0:
            store.snapshot(f"{each}")
            store.stage(f"{each}-staged", b"1")
    outcome(container.delete(store.engine, CONTAINER, NONE, None))
    assert store.cost < 10
    outcome(container.create(store.engine, CONTAINER, metadata={}, public_access=""))
    assert not store.exists("0"), "the name is free, and empty"
    assert store.maintain() < 1000
    store.check_nothing_leaks()
