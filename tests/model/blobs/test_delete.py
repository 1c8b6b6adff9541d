"""Delete Blob: with, without and only the snapshots, in one bounded transaction."""

import pytest

from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs import delete
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.history import INLINE_MAX
from kyanite.model.lease import Action, LeaseRequest
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason
from kyanite.values import Instant, LeaseId
from tests.model.blobs.store import BlobStore, blob, refused, run

LEASE = LeaseId("1" * 36)


def test_a_blob_without_snapshots(store: BlobStore) -> None:
    store.put("b", store.extents(b"x"))
    store.delete("b")
    assert not store.exists("b")
    with refused(Reason.BLOB_NOT_FOUND):
        store.delete("b")
    store.check_nothing_leaks()


def test_a_blob_with_snapshots_is_deleted_with_them_or_not_at_all(store: BlobStore) -> None:
    store.put("b")
    at = store.snapshot("b")
    with refused(Reason.SNAPSHOTS_PRESENT):
        store.delete("b")
    assert store.exists("b")
    store.delete("b", snapshots=Snapshots.INCLUDE)
    assert not store.exists("b")
    assert not store.exists("b", at)


def test_the_snapshots_only(store: BlobStore) -> None:
    store.put("b")
    at = store.snapshot("b")
    store.delete("b", snapshots=Snapshots.ONLY)
    assert store.exists("b")
    assert not store.exists("b", at)
    store.delete("b", snapshots=Snapshots.ONLY)
    store.delete("b")


def test_one_snapshot(store: BlobStore) -> None:
    store.put("b")
    first, second = store.snapshot("b"), store.snapshot("b")
    store.delete("b", first)
    assert (store.exists("b", first), store.exists("b", second), store.exists("b")) == (False, True, True)


def test_a_blob_that_is_only_staged(store: BlobStore) -> None:
    store.stage("b", b"1", store.extents(b"x"))
    store.delete("b")
    with refused(Reason.BLOB_NOT_FOUND):
        store.blocks("b")
    store.check_nothing_leaks()


@pytest.mark.parametrize("snapshots", list(Snapshots))
def test_conditions_and_leases_are_checked_first(store: BlobStore, snapshots: Snapshots) -> None:
    store.put("b")
    at = store.snapshot("b")
    changed = AccessConditions(Conditions(if_match=("0x1",)))
    with refused(Reason.CONDITION_NOT_MET):
        store.delete("b", snapshots=snapshots, access_conditions=changed)
    run(
        blobs.lease(
            store.engine, blob("b"), LeaseRequest(Action.ACQUIRE, proposed_id=LEASE, seconds=-1), NONE
        )
    )
    with refused(Reason.LEASE_ID_MISSING):
        store.delete("b", snapshots=snapshots)
    assert store.exists("b")
    assert store.exists("b", at)


def test_conditions_on_when_the_tier_was_chosen(store: BlobStore) -> None:
    store.put("b", tier="Cool")
    store.wait(10)
    chosen_at = store.record("b").tier_changed_at
    assert chosen_at is not None
    late = Conditions(if_modified_since=Instant(chosen_at + 1))
    with refused(Reason.CONDITION_NOT_MET):
        run(delete.delete(store.engine, blob("b"), UNCONDITIONAL, tier_times=late))
    early = Conditions(if_modified_since=Instant(chosen_at - 20_000_000))
    run(delete.delete(store.engine, blob("b"), UNCONDITIONAL, tier_times=early))
    assert not store.exists("b")


@pytest.mark.parametrize("snapshots", list(Snapshots))
def test_the_transaction_does_not_grow_with_the_snapshots(store: BlobStore, snapshots: Snapshots) -> None:
    costs = []
    for number in (INLINE_MAX + 1, 20 * INLINE_MAX):
        store.put("b", store.extents(b"x" * 10))
        for _ in range(number):
            store.snapshot("b")
        if snapshots is Snapshots.REFUSE:
            with refused(Reason.SNAPSHOTS_PRESENT):
                store.delete("b", snapshots=snapshots)
        else:
            store.delete("b", snapshots=snapshots)
        costs.append(store.cost)
    assert costs[1] <= costs[0] + 1
    assert max(costs) < 2 * INLINE_MAX
    assert store.maintain() < 2000, "rows of one step of maintenance"
    store.check_nothing_leaks()


def test_few_snapshots_are_deleted_by_the_transaction_itself(store: BlobStore) -> None:
    store.put("b", store.extents(b"x" * 10))
    for _ in range(INLINE_MAX):
        store.snapshot("b")
    store.delete("b", snapshots=Snapshots.INCLUDE)
    assert store.rows(b"v") == store.rows(b"p") == []
    assert store.cost < 8 * INLINE_MAX
