"""Blobs of any kind: metadata and headers, leases and tiers, in transactions."""

import pytest

from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.lease import Action, LeaseRequest, Outcome
from kyanite.model.records import HttpHeaders
from kyanite.rules import leases
from kyanite.rules.leases import State
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason
from kyanite.rules.tiers import ARCHIVE
from kyanite.values import LeaseId
from tests.model.blobs.store import BlobStore, blob, refused, run

LEASE = LeaseId("1" * 36)
OTHER = LeaseId("2" * 36)


def act(store: BlobStore, action: Action, **fields: object) -> Outcome:
    request = LeaseRequest(action, **fields)  # type: ignore[arg-type]
    return run(blobs.lease(store.engine, blob("b"), request, NONE))[1]


def state(store: BlobStore) -> State:
    return leases.state_of(store.record("b").lease, store.now)


def test_metadata_and_headers_change_the_etag_and_nothing_else(store: BlobStore) -> None:
    before = store.put("b", b"kept", metadata={"a": "1"})
    after = run(blobs.set_metadata(store.engine, blob("b"), {"b": "2"}, UNCONDITIONAL))
    assert (after.metadata, after.http) == ({"b": "2"}, before.http)
    assert after.modified_at > before.modified_at
    headers = HttpHeaders(content_type="text/html")
    last = run(blobs.set_http_headers(store.engine, blob("b"), headers, UNCONDITIONAL))
    assert (last.metadata, last.http) == ({"b": "2"}, headers)
    assert store.record("b") == last
    assert store.read("b") == b"kept"


def test_a_change_that_is_refused_is_not_made(store: BlobStore) -> None:
    before = store.put("b")
    stale = AccessConditions(Conditions(if_match=("0x1",)))
    with refused(Reason.CONDITION_NOT_MET):
        run(blobs.set_metadata(store.engine, blob("b"), {"a": "1"}, stale))
    act(store, Action.ACQUIRE, proposed_id=LEASE, seconds=15)
    with refused(Reason.LEASE_ID_MISSING):
        run(blobs.set_metadata(store.engine, blob("b"), {"a": "1"}, UNCONDITIONAL))
    assert store.record("b").metadata == {}
    assert store.record("b").etag == before.etag


def test_a_lease_from_acquire_to_release(store: BlobStore) -> None:
    before = store.put("b")
    act(store, Action.ACQUIRE, proposed_id=LEASE, seconds=15)
    assert state(store) is State.LEASED
    with refused(Reason.LEASE_ALREADY_PRESENT):
        act(store, Action.ACQUIRE, proposed_id=OTHER, seconds=15)
    act(store, Action.CHANGE, lease_id=LEASE, proposed_id=OTHER)
    with refused(Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION):
        act(store, Action.RENEW, lease_id=LEASE)
    store.wait(14)
    act(store, Action.RENEW, lease_id=OTHER)
    store.wait(14)
    assert state(store) is State.LEASED
    act(store, Action.RELEASE, lease_id=OTHER)
    assert state(store) is State.AVAILABLE
    assert store.record("b").etag == before.etag


def test_a_lease_expires_by_itself(store: BlobStore) -> None:
    store.put("b")
    act(store, Action.ACQUIRE, proposed_id=LEASE, seconds=15)
    rows = store.rows()
    store.wait(16)
    assert state(store) is State.EXPIRED
    assert store.rows() == rows
    store.put("b", b"anyone may write now")


def test_a_break_takes_the_time_that_it_says(store: BlobStore) -> None:
    store.put("b")
    act(store, Action.ACQUIRE, proposed_id=LEASE, seconds=-1)
    assert act(store, Action.BREAK, period=10).seconds_left == 10
    assert state(store) is State.BREAKING
    with refused(Reason.LEASE_ID_MISSING):
        store.put("b")
    store.wait(11)
    assert state(store) is State.BROKEN
    store.put("b")


def test_conditions_of_a_lease_action(store: BlobStore) -> None:
    store.put("b")
    acquire = LeaseRequest(Action.ACQUIRE, proposed_id=LEASE, seconds=15)
    with refused(Reason.CONDITION_NOT_MET):
        run(blobs.lease(store.engine, blob("b"), acquire, Conditions(if_match=("0x1",))))
    assert state(store) is State.AVAILABLE
    with refused(Reason.BLOB_NOT_FOUND):
        run(blobs.lease(store.engine, blob("none"), acquire, NONE))


def set_tier(store: BlobStore, name: str, tier: str, priority: str = "", at: object = None) -> bool:
    return run(blobs.set_tier(store.engine, blob(name, at), tier, priority, UNCONDITIONAL))  # type: ignore[arg-type]


def test_a_tier_changes_neither_the_etag_nor_the_bytes(store: BlobStore) -> None:
    before = store.put("b", b"kept")
    store.wait(5)
    assert set_tier(store, "b", "Cool") is False
    after = store.record("b")
    assert (after.tier, after.etag) == ("Cool", before.etag)
    assert after.tier_changed_at is not None
    assert after.tier_changed_at > before.modified_at
    assert store.read("b") == b"kept"


def test_leaving_archive_is_pending_for_a_while(store: BlobStore) -> None:
    store.put("b", b"kept")
    set_tier(store, "b", ARCHIVE)
    with refused(Reason.BLOB_ARCHIVED):
        store.read("b")
    assert set_tier(store, "b", "Hot", "High") is True
    with refused(Reason.BLOB_BEING_REHYDRATED):
        store.read("b")
    store.wait(16 * 3600)
    assert store.read("b") == b"kept"


def test_a_snapshot_can_be_archived_and_not_brought_back(store: BlobStore) -> None:
    store.put("b", b"kept")
    at = store.snapshot("b")
    set_tier(store, "b", ARCHIVE, at=at)
    assert store.read("b") == b"kept"
    with refused(Reason.BLOB_ARCHIVED):
        store.read("b", at)
    with refused(Reason.BLOB_ARCHIVED):
        set_tier(store, "b", "Hot", at=at)


@pytest.mark.parametrize("kind", ["append", "pages"])
def test_only_block_blobs_have_tiers(store: BlobStore, kind: str) -> None:
    store.put_append("append")
    store.put_pages("pages", 512)
    with refused(Reason.TIER_NOT_SUPPORTED):
        set_tier(store, kind, "Cool")


def test_reading_under_conditions(store: BlobStore) -> None:
    record = store.put("b")
    same = AccessConditions(Conditions(if_none_match=(record.etag,)))
    with refused(Reason.NOT_MODIFIED):
        run(blobs.get_properties(store.engine, blob("b"), same))
    with refused(Reason.LEASE_NOT_PRESENT):
        run(blobs.get_properties(store.engine, blob("b"), AccessConditions(lease_id=LEASE)))
    assert run(blobs.get_properties(store.engine, blob("b"), UNCONDITIONAL)).record == record
