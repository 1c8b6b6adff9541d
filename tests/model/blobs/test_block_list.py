"""Block lists: which block an entry means, what a refused list leaves, and what stays of the blob."""

import random

import pytest

from kyanite.model.blobs import long_block_list
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.block_list import From, NewBlockList
from kyanite.model.blobs.records import BlobRecord
from kyanite.rules.refusals import Reason
from tests.model.blobs.store import HTTP, PIN, BlobStore, blob, refused, run


def commit(store: BlobStore, *entries: tuple[From, bytes]) -> BlobRecord:
    new_list = NewBlockList(list(entries), HTTP, {"a": "1"})
    return run(
        long_block_list.put_block_list(
            store.engine, blob("b"), new_list, UNCONDITIONAL, may_overwrite=True, pin=PIN
        )
    )


@pytest.fixture
def both(store: BlobStore) -> BlobStore:
    """Block 1 is committed and staged anew, block 2 is committed only, block 3 is staged only."""
    store.stage("b", b"1", b"[old 1]")
    store.stage("b", b"2", b"[2]")
    store.commit("b", b"1", b"2")
    store.stage("b", b"1", b"[new 1]")
    store.stage("b", b"3", b"[3]")
    return store


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ((From.LATEST, b"1"), b"[new 1]"),
        ((From.COMMITTED, b"1"), b"[old 1]"),
        ((From.UNCOMMITTED, b"1"), b"[new 1]"),
        ((From.LATEST, b"2"), b"[2]"),
        ((From.COMMITTED, b"2"), b"[2]"),
        ((From.UNCOMMITTED, b"2"), None),
        ((From.LATEST, b"3"), b"[3]"),
        ((From.COMMITTED, b"3"), None),
        ((From.UNCOMMITTED, b"3"), b"[3]"),
        ((From.LATEST, b"4"), None),
    ],
)
def test_where_an_entry_finds_its_block(
    both: BlobStore, entry: tuple[From, bytes], expected: bytes | None
) -> None:
    if expected is not None:
        commit(both, entry)
        assert both.read("b") == expected
        assert both.blocks("b") == ([entry[1]], [])
        both.check_nothing_leaks()
        return
    rows = both.rows()
    with refused(Reason.INVALID_BLOCK_LIST):
        commit(both, (From.LATEST, b"1"), entry)
    assert both.rows() == rows
    assert both.read("b") == b"[old 1][2]"
    assert both.blocks("b") == ([b"1", b"2"], [b"1", b"3"])


def test_a_block_may_be_in_the_list_more_than_once(both: BlobStore) -> None:
    commit(both, (From.COMMITTED, b"1"), (From.LATEST, b"1"), (From.COMMITTED, b"1"), (From.LATEST, b"3"))
    assert both.read("b") == b"[old 1][new 1][old 1][3]"
    both.check_nothing_leaks()


def test_a_list_that_is_not_of_a_block_blob(store: BlobStore) -> None:
    store.put_append("b")
    with refused(Reason.INVALID_BLOB_TYPE):
        commit(store)
    with refused(Reason.INVALID_BLOB_TYPE):
        store.blocks("b")
    with refused(Reason.BLOB_NOT_FOUND):
        store.blocks("none")


def test_a_blob_that_was_put_whole_has_no_blocks(store: BlobStore) -> None:
    store.put("b", b"whole")
    assert store.blocks("b") == ([], [])


def test_a_snapshot_keeps_its_blocks(store: BlobStore) -> None:
    for number in range(9):
        store.stage("b", b"%d" % number, store.extents(b"<%d>" % number))
    store.commit("b", *(b"%d" % number for number in range(9)))
    at = store.snapshot("b")
    store.commit("b", b"8")
    store.maintain()
    assert store.blocks("b", at) == ([b"%d" % number for number in range(9)], [])
    assert store.read("b", at) == b"".join(b"<%d>" % number for number in range(9))
    assert store.read("b") == b"<8>"
    store.check_nothing_leaks()


@pytest.mark.parametrize("seed", range(5))
def test_lists_against_a_dictionary(store: BlobStore, seed: int) -> None:
    """Random blocks and lists; the oracle keeps the committed list and the staged blocks as plain values."""
    chance = random.Random(seed)
    committed: list[tuple[bytes, bytes]] = []
    staged: dict[bytes, bytes] = {}
    for step in range(60):
        if chance.random() < 0.6:
            block_id, data = b"%02d" % chance.randrange(12), b"%d," % step * chance.randrange(1, 4)
            store.stage("b", block_id, data if chance.random() < 0.5 else store.extents(data))
            staged[block_id] = data
            continue
        entries = [
            (chance.choice(list(From)), b"%02d" % chance.randrange(12)) for _ in range(chance.randrange(9))
        ]
        by_id = dict(committed)
        choice = []
        for source, block_id in entries:
            candidates = {
                From.COMMITTED: [by_id],
                From.UNCOMMITTED: [staged],
                From.LATEST: [staged, by_id],
            }[source]
            choice.append(next((each[block_id] for each in candidates if block_id in each), None))
        if None in choice:
            with refused(Reason.INVALID_BLOCK_LIST):
                commit(store, *entries)
            continue
        commit(store, *entries)
        committed = [(block_id, data or b"") for (_, block_id), data in zip(entries, choice, strict=True)]
        staged = {}
        assert store.read("b") == b"".join(data for _, data in committed)
        assert store.blocks("b")[0] == [block_id for block_id, _ in committed]
    store.check_nothing_leaks()
