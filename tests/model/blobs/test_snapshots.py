"""Taking snapshots: what they keep, what they share, and what they cost."""

from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs import snapshots
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.lease import Action, LeaseRequest
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason
from kyanite.rules.tiers import ARCHIVE
from kyanite.values import LeaseId
from tests.model.blobs.store import BlobStore, blob, refused, run

LEASE = LeaseId("1" * 36)


def test_a_snapshot_is_the_blob_as_it_was(store: BlobStore) -> None:
    first = store.put("b", b"first", metadata={"a": "1"})
    at = store.snapshot("b")
    store.put("b", b"second")
    kept = store.record("b", at)
    assert (store.read("b", at), kept.metadata, kept.etag) == (b"first", {"a": "1"}, first.etag)
    assert at > first.modified_at
    store.check_nothing_leaks()


def test_a_snapshot_with_metadata_of_its_own_has_an_etag_of_its_own(store: BlobStore) -> None:
    first = store.put("b", metadata={"a": "1"})
    at = store.snapshot("b", {"b": "2"})
    assert store.record("b", at).metadata == {"b": "2"}
    assert store.record("b", at).etag != first.etag
    assert store.record("b") == first


def test_a_lease_does_not_prevent_it_and_is_not_kept(store: BlobStore) -> None:
    store.put("b")
    acquire = LeaseRequest(Action.ACQUIRE, proposed_id=LEASE, seconds=-1)
    run(blobs.lease(store.engine, blob("b"), acquire, NONE))
    assert store.record("b", store.snapshot("b")).lease == NO_LEASE
    run(snapshots.take(store.engine, blob("b"), {}, AccessConditions(lease_id=LEASE)))
    with refused(Reason.LEASE_ID_MISMATCH):
        run(snapshots.take(store.engine, blob("b"), {}, AccessConditions(lease_id=LeaseId("2" * 36))))


def test_refusals(store: BlobStore) -> None:
    with refused(Reason.BLOB_NOT_FOUND):
        store.snapshot("b")
    store.stage("b", b"1")
    with refused(Reason.BLOB_NOT_FOUND):
        store.snapshot("b")
    store.put("b", tier=ARCHIVE)
    with refused(Reason.BLOB_ARCHIVED):
        store.snapshot("b")
    store.put("c")
    with refused(Reason.CONDITION_NOT_MET):
        run(snapshots.take(store.engine, blob("c"), {}, AccessConditions(Conditions(if_match=("0x1",)))))
    assert store.rows(b"v") == []


def test_content_is_shared_until_it_changes(store: BlobStore) -> None:
    store.put_pages("b", 100 * 512)
    for number in range(0, 100, 2):
        store.write("b", number * 512, bytes([number]) * 512)
    before = store.read("b")
    at = store.snapshot("b")
    assert store.cost < 12, "a snapshot costs the same whatever the blob holds"
    store.write("b", 0, b"x" * 512)
    assert store.cost < 20
    store.maintain()
    assert store.read("b", at) == before
    assert store.read("b") == b"x" * 512 + before[512:]
    store.delete("b", at)
    store.maintain()
    assert store.read("b") == b"x" * 512 + before[512:]
    store.check_nothing_leaks()


def test_instants_of_snapshots_ascend(store: BlobStore) -> None:
    store.put("b")
    instants = [run(snapshots.take(store.engine, blob("b"), {}, UNCONDITIONAL))[0] for _ in range(20)]
    assert instants == sorted(set(instants))
