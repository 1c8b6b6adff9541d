"""Staged blocks: replaced, limited, expired after a week, and purged."""

import pytest

from kyanite.model import keys
from kyanite.model.blobs import listing, staged_blocks
from kyanite.model.blobs.listed_rows import ListedParts
from kyanite.model.blobs.listing import BlobListing
from kyanite.model.maintenance import staging_areas
from kyanite.rules.refusals import Reason
from kyanite.values import LeaseId
from tests.model.blobs.store import CONTAINER, WEEK, BlobStore, refused, run


def listed(store: BlobStore) -> list[str]:
    page = run(listing.list_blobs(store.engine, CONTAINER, BlobListing(parts=ListedParts(uncommitted=True))))
    return [item.name for item in page.items]


def test_a_block_replaces_the_staged_one_of_the_same_id(store: BlobStore) -> None:
    store.stage("b", b"1", store.extents(b"old"))
    store.stage("b", b"1", store.extents(b"new"))
    store.stage("b", b"2", b"two")
    assert store.blocks("b") == ([], [b"1", b"2"])
    store.maintain()
    assert [bytes(data) for data in store.segments.data.values()] == [b"new"]
    store.commit("b", b"1", b"2")
    assert store.read("b") == b"newtwo"
    store.check_nothing_leaks()


def test_the_blob_itself_does_not_change(store: BlobStore) -> None:
    before = store.put("b", b"committed")
    store.stage("b", b"1")
    assert store.record("b") == before
    assert store.read("b") == b"committed"


def test_refusals(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.stage("b", b"1")
    with refused(Reason.INVALID_BLOB_OR_BLOCK):
        store.stage("b", b"22")
    with refused(Reason.LEASE_NOT_PRESENT):
        store.stage("b", b"2", lease_id=LeaseId("1" * 36))
    store.put_append("append")
    with refused(Reason.INVALID_BLOB_TYPE):
        store.stage("append", b"1")
    monkeypatch.setattr(staged_blocks, "MAX_STAGED_BLOCKS", 1)
    store.stage("b", b"1", b"a block that is there may be replaced")
    with refused(Reason.BLOCK_COUNT_EXCEEDS_LIMIT):
        store.stage("b", b"2")
    assert store.blocks("b") == ([], [b"1"])


def test_an_area_expires_a_week_after_its_last_block(store: BlobStore) -> None:
    store.stage("b", b"1")
    store.wait(WEEK - 1)
    store.stage("b", b"2")
    store.wait(WEEK - 1)
    assert store.blocks("b") == ([], [b"1", b"2"])
    assert listed(store) == ["b"]
    store.wait(1)
    with refused(Reason.BLOB_NOT_FOUND):
        store.blocks("b")
    assert listed(store) == [], "what does not exist is not listed"
    with refused(Reason.INVALID_BLOCK_LIST):
        store.commit("b", b"1")
    with refused(Reason.BLOB_NOT_FOUND):
        store.delete("b")


def test_staging_anew_abandons_the_expired_area(store: BlobStore) -> None:
    store.stage("b", b"old", store.extents(b"x" * 100))
    store.wait(WEEK + 1)
    store.stage("b", b"1", b"another length of id")
    assert store.blocks("b") == ([], [b"1"])
    store.maintain()
    assert len(store.rows(b"j")) == 1
    assert store.segments.data == {}
    store.commit("b", b"1")
    assert store.read("b") == b"another length of id"
    store.check_nothing_leaks()


def test_expired_areas_are_purged_in_the_background(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging_areas, "ROWS_PER_STEP", 10)
    for number in range(25):
        store.stage(f"old-{number:02}", b"1", store.extents(b"x" * 100))
        store.stage(f"old-{number:02}", b"2")
    store.wait(WEEK + 1)
    store.stage("young", b"1", store.extents(b"kept"))
    assert store.maintain() < 60
    assert listed(store) == ["young"]
    assert (len(store.rows(keys.STAGINGS)), len(store.rows(b"j"))) == (1, 1)
    assert len(store.segments.data) == 1
    store.commit("young", b"1")
    assert store.read("young") == b"kept"
    store.check_nothing_leaks()


def test_an_area_that_was_used_again_is_not_purged(store: BlobStore) -> None:
    """Between the read that finds it expired and the transaction that abandons it, a block may come."""
    store.stage("b", b"1")
    store.wait(WEEK + 1)
    found, _ = run(store.engine.read(lambda snap: staging_areas.find_expired(snap, b"")))
    assert len(found) == 1
    store.stage("b", b"2")
    run(store.engine.run(lambda tx: staging_areas.remove_expired(tx, found)))
    store.maintain()
    assert store.blocks("b") == ([], [b"2"])


def test_abandoning_costs_the_same_however_many_blocks_there_are(store: BlobStore) -> None:
    costs = []
    for number in (1, 1000):
        for each in range(number):
            store.stage("b", b"%04d" % each)
        store.put("b", b"x")
        costs.append(store.cost)
    assert costs[1] <= costs[0] + 2
    store.check_nothing_leaks()
