"""Put Blob in transactions: what it creates, what it replaces, what it refuses and then leaves alone."""

import pytest

from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.blobs.records import APPEND_BLOB, PAGE_BLOB
from kyanite.model.lease import Action, LeaseRequest
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason
from kyanite.rules.tiers import ARCHIVE
from kyanite.values import LeaseId
from tests.model.blobs.store import BlobStore, blob, refused, run
from tests.model.counted import unlimited

LEASE = LeaseId("1" * 36)
OTHER = LeaseId("2" * 36)
ABSENT = AccessConditions(Conditions(if_none_match=("*",)))


def acquire(store: BlobStore, name: str) -> None:
    run(
        blobs.lease(
            store.engine, blob(name), LeaseRequest(Action.ACQUIRE, proposed_id=LEASE, seconds=60), NONE
        )
    )


@pytest.mark.parametrize("size", [0, 1, 16 * 1024])
def test_inline_bytes(store: BlobStore, size: int) -> None:
    record = store.put("b", b"x" * size, metadata={"a": "1"})
    assert store.read("b") == b"x" * size
    assert (record.length, record.metadata) == (size, {"a": "1"})
    assert record.modified_at == record.created_at
    assert store.record("b") == record
    store.check_nothing_leaks()


def test_many_extents(store: BlobStore) -> None:
    bodies = [bytes([65 + number]) * 10 for number in range(9)]
    store.put("b", store.extents(*bodies))
    assert store.read("b") == b"".join(bodies)
    store.check_nothing_leaks()


def test_replacing_keeps_the_creation_time_and_nothing_else(store: BlobStore) -> None:
    first = store.put("b", b"1", metadata={"a": "1"}, tier="Cool")
    store.wait(5)
    second = store.put("b", b"22")
    assert second.created_at == first.created_at < second.modified_at
    assert (second.metadata, second.tier, second.tier_changed_at) == ({}, "", None)


@pytest.mark.parametrize("kind", [APPEND_BLOB, PAGE_BLOB])
def test_a_blob_of_any_kind_is_replaced(store: BlobStore, kind: int) -> None:
    store.put("b", b"", kind=kind)
    store.put("b", b"block")
    assert store.read("b") == b"block"


def test_a_lease_that_the_request_names_stays_in_force(store: BlobStore) -> None:
    store.put("b")
    acquire(store, "b")
    assert store.put("b", b"new", AccessConditions(lease_id=LEASE)).lease.id == LEASE
    store.wait(61)
    assert store.put("b", b"newer").lease == NO_LEASE


@pytest.mark.parametrize(
    ("access_conditions", "reason"),
    [
        (UNCONDITIONAL, Reason.LEASE_ID_MISSING),
        (AccessConditions(lease_id=OTHER), Reason.LEASE_ID_MISMATCH),
        (ABSENT, Reason.BLOB_ALREADY_EXISTS),
        (AccessConditions(Conditions(if_match=("0x1",)), LEASE), Reason.CONDITION_NOT_MET),
    ],
)
def test_a_refused_write_leaves_everything_as_it_was(
    store: BlobStore, access_conditions: AccessConditions, reason: Reason
) -> None:
    before = store.put("b", b"kept")
    store.stage("b", b"1")
    acquire(store, "b")
    rows = store.rows()
    with refused(reason):
        store.put("b", b"new", access_conditions)
    assert store.rows() == rows
    assert store.read("b") == b"kept"
    assert store.record("b").modified_at == before.modified_at
    assert store.blocks("b") == ([], [b"1"])


def test_overwriting_can_be_forbidden(store: BlobStore) -> None:
    store.put("b", may_overwrite=False)
    with refused(Reason.UNAUTHORIZED_BLOB_OVERWRITE):
        store.put("b", may_overwrite=False)


def test_an_archived_blob_is_not_replaced(store: BlobStore) -> None:
    store.put("b", tier=ARCHIVE)
    with refused(Reason.BLOB_ARCHIVED):
        store.put("b", b"new")


def test_a_lease_cannot_be_named_where_there_is_no_blob(store: BlobStore) -> None:
    with refused(Reason.LEASE_NOT_PRESENT):
        store.put("b", b"new", AccessConditions(lease_id=LEASE))
    assert not store.exists("b")


def test_it_costs_the_same_whatever_is_replaced(store: BlobStore) -> None:
    """The bytes, blocks and snapshots that a blob has are given back later."""
    store.put("b", store.extents(*[b"." for _ in range(1000)]))
    store.put("b", b"x")
    costs = [store.cost]
    with unlimited():
        store.put("b", store.extents(*[b"." for _ in range(5000)]))
    for number in range(200):
        store.stage("b", b"%04d" % number)
    for _ in range(200):
        store.snapshot("b")
    store.put("b", b"x")
    assert store.cost <= costs[0] + 5
    store.check_nothing_leaks()
