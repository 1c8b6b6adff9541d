"""Page blobs: writes, clears, sizes, sequence numbers, and ranges since a snapshot."""

import pytest

from kyanite.model.blobs import page_blob
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.history import INLINE_MAX
from kyanite.model.blobs.page_blob import PageBlobChange, PageWrite, SequenceCondition
from kyanite.rules.refusals import Reason
from kyanite.rules.sequence_numbers import Action, Change
from kyanite.values import Instant
from tests.model.blobs.store import BlobStore, blob, refused, run

PAGE = 512


def ranges(
    store: BlobStore, *, since: Instant | None = None, snapshot: Instant | None = None, limit: int = 100
) -> list[tuple[int, int, bool]]:
    found = run(
        page_blob.page_ranges(
            store.engine, blob("b", snapshot), UNCONDITIONAL, first=0, last=None, limit=limit, since=since
        )
    )
    return [tuple(each) for each in found.page.ranges]  # type: ignore[misc]


def clear(store: BlobStore, offset: int, length: int) -> None:
    run(page_blob.write(store.engine, blob("b"), PageWrite(offset, length, None), UNCONDITIONAL))


def test_pages_are_written_and_cleared_at_any_offset(store: BlobStore) -> None:
    store.put_pages("b", 8 * PAGE)
    store.write("b", 2 * PAGE, b"a" * 3 * PAGE)
    store.write("b", 3 * PAGE, b"b" * PAGE)
    clear(store, 4 * PAGE, PAGE)
    expected = bytes(2 * PAGE) + b"a" * PAGE + b"b" * PAGE + bytes(4 * PAGE)
    assert store.read("b") == expected
    assert ranges(store) == [(2 * PAGE, 4 * PAGE, False)]
    store.check_nothing_leaks()


def test_nothing_is_written_beyond_the_end(store: BlobStore) -> None:
    store.put_pages("b", PAGE)
    with refused(Reason.INVALID_PAGE_RANGE):
        store.write("b", PAGE, b"x" * PAGE)
    store.put("block")
    with refused(Reason.INVALID_BLOB_TYPE):
        store.write("block", 0, b"x" * PAGE)


def test_a_blob_that_shrinks_and_grows_again_reads_as_zeros(store: BlobStore) -> None:
    store.put_pages("b", 4 * PAGE)
    store.write("b", 0, b"x" * 4 * PAGE)
    for length in (PAGE, 3 * PAGE):
        run(page_blob.change(store.engine, blob("b"), PageBlobChange(length=length), UNCONDITIONAL))
    assert store.read("b") == b"x" * PAGE + bytes(2 * PAGE)


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        (SequenceCondition(le=6), False),
        (SequenceCondition(le=7), True),
        (SequenceCondition(lt=7), False),
        (SequenceCondition(lt=8), True),
        (SequenceCondition(eq=6), False),
        (SequenceCondition(eq=7), True),
    ],
)
def test_sequence_numbers(store: BlobStore, condition: SequenceCondition, is_met: bool) -> None:
    store.put_pages("b", PAGE)
    to_six = PageBlobChange(sequence=Change(Action.UPDATE, 6))
    run(page_blob.change(store.engine, blob("b"), to_six, UNCONDITIONAL))
    step = PageBlobChange(sequence=Change(Action.INCREMENT))
    assert run(page_blob.change(store.engine, blob("b"), step, UNCONDITIONAL)).sequence_number == 7
    request = PageWrite(0, PAGE, b"x" * PAGE, condition)
    if is_met:
        run(page_blob.write(store.engine, blob("b"), request, UNCONDITIONAL))
        return
    with refused(Reason.SEQUENCE_NUMBER_CONDITION_NOT_MET):
        run(page_blob.write(store.engine, blob("b"), request, UNCONDITIONAL))
    assert store.read("b") == bytes(PAGE)


def test_what_changed_since_a_snapshot(store: BlobStore) -> None:
    store.put_pages("b", 8 * PAGE)
    store.write("b", 0, b"a" * 2 * PAGE)
    first = store.snapshot("b")
    store.write("b", 4 * PAGE, b"b" * PAGE)
    second = store.snapshot("b")
    clear(store, 0, PAGE)
    assert ranges(store, since=first) == [(0, PAGE, True), (4 * PAGE, 5 * PAGE, False)]
    assert ranges(store, since=second) == [(0, PAGE, True)]
    assert ranges(store, since=first, snapshot=second) == [(4 * PAGE, 5 * PAGE, False)]
    with refused(Reason.PREVIOUS_SNAPSHOT_NEWER):
        ranges(store, since=second, snapshot=first)


def test_a_deleted_snapshot_cannot_be_compared_with(store: BlobStore) -> None:
    store.put_pages("b", PAGE)
    at = [store.snapshot("b") for _ in range(INLINE_MAX + 1)]
    store.delete("b", snapshots=Snapshots.ONLY)
    later = store.snapshot("b")
    for each in (at[0], at[-1], Instant(later - 1)):
        with refused(Reason.PREVIOUS_SNAPSHOT_NOT_FOUND):
            ranges(store, since=each)
    assert ranges(store, since=later) == []


def test_a_write_costs_the_same_in_a_blob_of_many_ranges(store: BlobStore) -> None:
    store.put_pages("b", 10_000 * PAGE)
    costs = []
    for number in range(800):
        store.write("b", number * 2 * PAGE, b"x" * PAGE)
        costs.append(store.cost)
    assert max(costs[700:]) <= max(costs[100:200])
    assert max(costs) < 25
