"""Append blobs: offsets, conditions on them, the limit of blocks, and the seal."""

import pytest

from kyanite.model.blobs import append_blob
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.rules.refusals import Reason
from tests.model.blobs.store import BlobStore, blob, refused, run


def test_blocks_follow_one_another(store: BlobStore) -> None:
    made = store.put_append("b")
    lengths = [store.append("b", data).length for data in (b"one", b"two!", b"3")]
    assert lengths == [3, 7, 8]
    assert store.read("b") == b"onetwo!3"
    record = store.record("b")
    assert (record.appended, record.created_at) == (3, made.created_at)
    assert record.modified_at > made.modified_at
    store.check_nothing_leaks()


@pytest.mark.parametrize(
    ("position", "max_size", "reason"),
    [
        (2, None, Reason.APPEND_POSITION_CONDITION_NOT_MET),
        (4, None, Reason.APPEND_POSITION_CONDITION_NOT_MET),
        (None, 5, Reason.MAX_BLOB_SIZE_CONDITION_NOT_MET),
        (3, 6, None),
    ],
)
def test_conditions(
    store: BlobStore, position: int | None, max_size: int | None, reason: Reason | None
) -> None:
    store.put_append("b")
    store.append("b", b"one")
    if reason is None:
        store.append("b", b"two", position=position, max_size=max_size)
        return
    with refused(reason):
        store.append("b", b"two", position=position, max_size=max_size)
    assert store.read("b") == b"one"


def test_only_append_blobs_take_blocks(store: BlobStore) -> None:
    store.put("b")
    with refused(Reason.INVALID_BLOB_TYPE):
        store.append("b", b"x")
    with refused(Reason.BLOB_NOT_FOUND):
        store.append("none", b"x")


def test_the_number_of_blocks_is_limited(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_blob, "MAX_BLOCKS", 2)
    store.put_append("b")
    store.append("b", b"1")
    store.append("b", b"2")
    with refused(Reason.BLOCK_COUNT_EXCEEDS_LIMIT):
        store.append("b", b"3")


def test_a_seal_is_for_ever_and_can_be_repeated(store: BlobStore) -> None:
    store.put_append("b")
    store.append("b", b"one")
    with refused(Reason.APPEND_POSITION_CONDITION_NOT_MET):
        run(append_blob.seal(store.engine, blob("b"), 2, UNCONDITIONAL))
    sealed = run(append_blob.seal(store.engine, blob("b"), 3, UNCONDITIONAL))
    assert sealed.is_sealed
    assert run(append_blob.seal(store.engine, blob("b"), None, UNCONDITIONAL)) == sealed
    with refused(Reason.BLOB_IS_SEALED):
        store.append("b", b"two")


def test_an_append_costs_the_same_in_a_long_blob(store: BlobStore) -> None:
    store.put_append("b")
    costs = []
    for _ in range(600):
        store.append("b", b"0123456789")
        costs.append(store.cost)
    assert max(costs[500:]) <= max(costs[50:100])
    assert max(costs) < 20
    assert store.read("b") == b"0123456789" * 600
