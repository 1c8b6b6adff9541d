"""Copies: by reference, of blobs of any kind and of snapshots."""

from typing import Any

import pytest

from kyanite.model.blobs import append_blob, copy
from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.blobs.copy import CopyRequest, PutFromRequest
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.history import INLINE_MAX
from kyanite.model.blobs.records import BLOCK_BLOB, PAGE_BLOB, BlobRecord
from kyanite.model.lease import Action, LeaseRequest
from kyanite.model.records import HttpHeaders
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason
from kyanite.rules.tiers import ARCHIVE
from kyanite.values import Instant, LeaseId
from tests.model.blobs.store import HTTP, BlobStore, blob, refused, run

LEASE = LeaseId("1" * 36)


def copy_blob(
    store: BlobStore,
    source: str,
    to: str,
    *,
    snapshot: Instant | None = None,
    conditions: Conditions = NONE,
    access_conditions: AccessConditions = UNCONDITIONAL,
    may_overwrite: bool = True,
    **fields: Any,
) -> BlobRecord:
    fields = {"copy_id": "id", "metadata": {}, **fields}
    request = CopyRequest(blob(source, snapshot), "http://here/source", conditions, **fields)
    return run(copy.copy(store.engine, blob(to), request, access_conditions, may_overwrite=may_overwrite))


def test_a_copy_shares_the_bytes_and_outlives_its_source(store: BlobStore) -> None:
    store.put("a", store.extents(*[b"<%d>" % number for number in range(9)]), metadata={"a": "1"})
    expected = store.read("a")
    made = copy_blob(store, "a", "b")
    assert store.cost < 20, "a copy costs the same whatever the size"
    assert made.copy is not None
    assert (made.copy.source, made.copy.length) == ("http://here/source", len(expected))
    assert (made.metadata, made.http) == ({"a": "1"}, HTTP)
    store.delete("a")
    store.maintain()
    assert store.read("b") == expected
    store.check_nothing_leaks()


def test_a_copy_of_a_small_blob_has_a_body_of_its_own(store: BlobStore) -> None:
    store.put("a", b"small")
    copy_blob(store, "a", "b", metadata={"b": "2"})
    store.put("a", b"other")
    assert (store.read("b"), store.record("b").metadata) == (b"small", {"b": "2"})
    store.check_nothing_leaks()


def test_a_block_blob_of_pages_reaches_its_end(store: BlobStore) -> None:
    """Verification takes a block blob whose content ends too early for a damaged one."""
    store.put_pages("a", 4096)
    for written in ((), (512,), (512, 2048, 3072)):
        for offset in written:
            store.write("a", offset, b"x" * 512)
        request = PutFromRequest(blob("a"), NONE, HttpHeaders(), False, {})
        made = run(copy.put_from(store.engine, blob("b"), request, UNCONDITIONAL, may_overwrite=True))
        assert (made.kind, made.length, made.content.intervals[-1].end) == (BLOCK_BLOB, 4096, 4096)
        assert store.read("b") == store.read("a")
    store.delete("b")
    store.delete("a")
    store.check_nothing_leaks()


def test_a_copy_of_a_snapshot_onto_its_blob(store: BlobStore) -> None:
    store.put_pages("a", 1024)
    store.write("a", 0, b"x" * 512)
    at = store.snapshot("a")
    store.write("a", 0, b"y" * 1024)
    copy_blob(store, "a", "a", snapshot=at)
    assert store.read("a") == b"x" * 512 + bytes(512)
    assert store.record("a").kind == PAGE_BLOB
    store.check_nothing_leaks()


def test_deleted_snapshots_cannot_be_copied(store: BlobStore) -> None:
    store.put("a")
    instants = [store.snapshot("a") for _ in range(INLINE_MAX + 1)]
    store.delete("a", snapshots=Snapshots.ONLY)
    with refused(Reason.COPY_SOURCE_NOT_FOUND):
        copy_blob(store, "a", "b", snapshot=instants[0])
    assert not store.exists("b")


def test_refusals_leave_the_target_alone(store: BlobStore) -> None:
    store.put("a", b"source")
    store.put("b", b"kept")
    with refused(Reason.COPY_SOURCE_NOT_FOUND):
        copy_blob(store, "none", "b")
    with refused(Reason.SOURCE_CONDITION_NOT_MET):
        copy_blob(store, "a", "b", conditions=Conditions(if_match=("0x1",)))
    with refused(Reason.COPY_SOURCE_TOO_LARGE):
        copy_blob(store, "a", "b", max_length=3)
    with refused(Reason.UNAUTHORIZED_BLOB_OVERWRITE):
        copy_blob(store, "a", "b", may_overwrite=False)
    with refused(Reason.INVALID_BLOB_TYPE):
        copy_blob(store, "a", "b", seals=True)
    with refused(Reason.LEASE_NOT_PRESENT):
        copy_blob(store, "a", "b", source_lease_id=LEASE)
    store.put_append("append")
    with refused(Reason.INVALID_BLOB_TYPE):
        copy_blob(store, "append", "b")
    with refused(Reason.TIER_NOT_SUPPORTED):
        copy_blob(store, "append", "c", tier="Cool")
    assert store.read("b") == b"kept"


@pytest.mark.parametrize(
    ("is_synchronous", "seconds", "is_allowed"), [(False, 60, False), (True, 60, True), (False, -1, True)]
)
def test_an_asynchronous_copy_needs_an_infinite_lease(
    store: BlobStore, is_synchronous: bool, seconds: int, is_allowed: bool
) -> None:
    store.put("a", b"source")
    store.put("b", b"kept")
    acquire = LeaseRequest(Action.ACQUIRE, proposed_id=LEASE, seconds=seconds)
    run(blobs.lease(store.engine, blob("b"), acquire, NONE))
    named = AccessConditions(lease_id=LEASE)
    if is_allowed:
        made = copy_blob(store, "a", "b", access_conditions=named, is_synchronous=is_synchronous)
        assert made.lease.id == LEASE
        return
    with refused(Reason.INFINITE_LEASE_DURATION_REQUIRED):
        copy_blob(store, "a", "b", access_conditions=named, is_synchronous=is_synchronous)


def test_the_copy_of_an_archived_blob_waits_for_its_bytes(store: BlobStore) -> None:
    store.put("a", b"kept", tier=ARCHIVE)
    with refused(Reason.COPY_SOURCE_NOT_AVAILABLE):
        copy_blob(store, "a", "b", tier="Hot", is_synchronous=True)
    made = copy_blob(store, "a", "b", tier="Hot")
    assert made.rehydration is not None
    with refused(Reason.BLOB_BEING_REHYDRATED):
        store.read("b")
    store.wait(16 * 3600)
    assert store.read("b") == b"kept"


def test_a_seal_is_copied_unless_the_request_says_otherwise(store: BlobStore) -> None:
    store.put_append("a")
    store.append("a", b"one")
    run(append_blob.seal(store.engine, blob("a"), None, UNCONDITIONAL))
    assert copy_blob(store, "a", "b").is_sealed
    assert not copy_blob(store, "a", "c", seals=False).is_sealed
    assert store.append("c", b"two").length == 6


@pytest.mark.parametrize("copies_headers", [True, False])
def test_put_from_makes_a_block_blob_of_any_source(store: BlobStore, copies_headers: bool) -> None:
    store.put_append("a")
    store.append("a", b"appended")
    store.put_pages("b", 512)
    own = HttpHeaders(cache_control="no-cache")
    request = PutFromRequest(blob("a"), NONE, own, copies_headers, {})
    made = run(copy.put_from(store.engine, blob("b"), request, UNCONDITIONAL, may_overwrite=True))
    assert (made.kind, made.copy, store.read("b")) == (BLOCK_BLOB, None, b"appended")
    assert made.http.cache_control == "no-cache"
    assert made.http.content_type == (HTTP.content_type if copies_headers else "application/octet-stream")
    store.check_nothing_leaks()


def test_no_copy_can_be_aborted(store: BlobStore) -> None:
    store.put("a")
    copy_blob(store, "a", "b")
    for name, copy_id, reason in (
        ("none", "id", Reason.BLOB_NOT_FOUND),
        ("a", "id", Reason.NO_PENDING_COPY_OPERATION),
        ("b", "id", Reason.NO_PENDING_COPY_OPERATION),
        ("b", "other", Reason.COPY_ID_MISMATCH),
    ):
        with refused(reason):
            run(copy.abort(store.engine, blob(name), copy_id, UNCONDITIONAL))
