"""Block lists that are too long for one transaction: no step is long, and each is there entirely or not at all."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kyanite.engine.api import EngineBusy, EngineError
from kyanite.model.blobs import block_list, long_block_list
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.block_list import ENTRIES_AT_ONCE, From, NewBlockList
from kyanite.model.blobs.long_block_list import Pin
from kyanite.model.blobs.records import BlobRecord
from kyanite.rules.refusals import Reason
from tests.model.blobs.store import HTTP, PIN, BlobStore, blob, refused, run

ROWS_MAX = 2_000
MANY = ENTRIES_AT_ONCE + 700


def ids(count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(count)]


def stage_many(store: BlobStore, count: int, word: bytes = b"") -> None:
    for block_id in ids(count):
        store.stage("b", block_id, word + block_id)


def commit_later(
    store: BlobStore, *block_ids: bytes, pin: Pin = PIN, source: From = From.LATEST
) -> Coroutine[Any, Any, BlobRecord]:
    new_list = NewBlockList([(source, block_id) for block_id in block_ids], HTTP, {"a": "1"})
    return long_block_list.put_block_list(
        store.engine, blob("b"), new_list, UNCONDITIONAL, may_overwrite=True, pin=pin
    )


def test_the_longest_lists_take_no_long_step(store: BlobStore) -> None:
    """50,000 blocks are committed and the most that can be are staged."""
    stage_many(store, 50_000)
    first = len(store.engine.costs)
    committed = store.commit("b", *ids(50_000))
    assert committed.length == 300_000
    assert max(store.engine.costs[first:]) <= ROWS_MAX
    assert len(store.engine.costs) - first > 100
    store.commit("b", *reversed(ids(50_000)))
    found = run(block_list.get_block_list(store.engine, blob("b"), UNCONDITIONAL))
    assert [each.id for each in found.committed] == ids(50_000)[::-1]
    with refused(Reason.INVALID_BLOCK_LIST):
        store.commit("b", *(b"unknown-%d" % number for number in range(50_000)))
    store.commit("b", ids(50_000)[7])
    assert store.read("b") == b"000007"
    assert store.maintain() <= ROWS_MAX
    assert max(store.engine.costs[first:]) <= ROWS_MAX
    store.check_nothing_leaks()


def test_all_staged_blocks_are_listed_in_short_steps(store: BlobStore) -> None:
    stage_many(store, 100_000)
    with refused(Reason.BLOCK_COUNT_EXCEEDS_LIMIT):
        store.stage("b", b"100000")
    first = len(store.engine.costs)
    found = run(block_list.get_block_list(store.engine, blob("b"), UNCONDITIONAL))
    assert [each.id for each in found.uncommitted] == ids(100_000)
    assert max(store.engine.costs[first:]) <= ROWS_MAX


@pytest.mark.parametrize("source", From)
@pytest.mark.parametrize("is_snapshotted", [False, True])
def test_a_long_list_is_what_a_short_one_is(store: BlobStore, source: From, is_snapshotted: bool) -> None:
    stage_many(store, MANY, b"old ")
    store.commit("b", *ids(MANY))
    if is_snapshotted:
        store.snapshot("b")
    stage_many(store, MANY, b"new ")
    chosen = [*ids(MANY)[::-1], *ids(5)]
    store.commit("b", *chosen, source=source)
    word = b"old " if source is From.COMMITTED else b"new "
    assert store.read("b") == b"".join(word + block_id for block_id in chosen)
    assert store.blocks("b") == (chosen, [])
    store.maintain()
    assert store.read("b") == b"".join(word + block_id for block_id in chosen)
    store.check_nothing_leaks()


def test_a_refused_list_leaves_everything_as_it_was(store: BlobStore) -> None:
    stage_many(store, MANY)
    rows = store.rows()
    with refused(Reason.INVALID_BLOCK_LIST):
        store.commit("b", *ids(MANY), b"999999")
    assert store.rows() == rows


Change = Callable[[BlobStore], object]
CHANGES: dict[str, Change] = {
    "stage": lambda store: store.stage("b", b"000001", b"newer"),
    "commit": lambda store: store.commit("b", b"000003"),
    "put": lambda store: store.put("b", b"other"),
}


@pytest.mark.parametrize("after_steps", [1, 2, 5, 8])
@pytest.mark.parametrize("name", CHANGES)
def test_what_others_do_meanwhile_comes_before(store: BlobStore, name: str, after_steps: int) -> None:
    """The list is then judged by what the other client has left."""
    stage_many(store, MANY)
    progress = _Steps(store, after_steps, CHANGES[name])

    async def commit() -> BlobRecord:
        return await commit_later(store, *ids(MANY))

    if name == "stage":
        progress.run(commit)
        assert store.read("b").startswith(b"000000newer000002")
    else:
        with refused(Reason.INVALID_BLOCK_LIST):
            progress.run(commit)
        assert store.read("b") == (b"000003" if name == "commit" else b"other")
    assert progress.is_done
    store.check_nothing_leaks()


def test_a_blob_that_keeps_changing_is_busy(store: BlobStore) -> None:
    stage_many(store, MANY)
    progress = _Steps(store, 3, CHANGES["stage"], every=True)
    with pytest.raises(EngineBusy):
        progress.run(lambda: commit_later(store, *ids(MANY)))
    assert store.blocks("b") == ([], ids(MANY))
    store.check_nothing_leaks()


@pytest.mark.parametrize("after_steps", [3, 5, 8, 17])
def test_a_part_that_a_failover_has_lost_is_made_again(store: BlobStore, after_steps: int) -> None:
    """The transactions that prepare a list do not wait for the disk."""
    stage_many(store, MANY)

    def lose(store: BlobStore) -> None:
        last = max(key for key in store.rows() if key.startswith(b"r"))
        run(store.engine.run(lambda tx: tx.delete(last)))

    progress = _Steps(store, after_steps, lose)
    progress.run(lambda: commit_later(store, *ids(MANY)))
    assert progress.is_done
    assert store.read("b") == b"".join(ids(MANY))


@pytest.mark.parametrize("after_steps", [1, 2, 5, 8])
def test_a_client_that_leaves_leaves_nothing_behind(store: BlobStore, after_steps: int) -> None:
    stage_many(store, MANY)

    def leave(_: BlobStore) -> None:
        raise _Left

    with pytest.raises(_Left):
        _Steps(store, after_steps, leave).run(lambda: commit_later(store, *ids(MANY)))
    assert not store.exists("b")
    assert store.blocks("b") == ([], ids(MANY))
    store.check_nothing_leaks()


class _Left(EngineError):
    """Stands for whatever ends a request."""


class _Steps:
    """Lets something happen before a transaction of a request."""

    def __init__(self, store: BlobStore, number: int, change: Change, *, every: bool = False) -> None:
        self._store = store
        self._left = self._number = number
        self._change = change
        self._every = every
        self.is_done = False

    def run(self, request: Callable[[], Coroutine[Any, Any, BlobRecord]]) -> None:
        engine_run = self._store.engine.run

        def run_after_change(*args: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self._store.engine.run = engine_run  # type: ignore[method-assign]
                self.is_done = True
                if self._every:
                    self._left = self._number
                    self._change(self._store)
                    self._store.engine.run = run_after_change  # type: ignore[method-assign]
                else:
                    self._change(self._store)
            return engine_run(*args, **options)

        self._store.engine.run = run_after_change  # type: ignore[method-assign]
        try:
            run(request())
        finally:
            self._store.engine.run = engine_run  # type: ignore[method-assign]
