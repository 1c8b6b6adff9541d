"""Versions of blobs: which requests make one, what each keeps, and what all of a name have in common."""

from collections.abc import Callable

import pytest

from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs import copy, delete, snapshots
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.blobs.copy import CopyRequest, PutFromRequest
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.listed_rows import ListedParts
from kyanite.model.blobs.records import APPEND_BLOB, PAGE_BLOB, BlobRecord
from kyanite.model.lease import Action, LeaseRequest
from kyanite.model.records import HttpHeaders
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason
from kyanite.rules.tiers import ARCHIVE
from kyanite.values import Instant, LeaseId
from tests.model.blobs.store import BlobStore, blob, refused, run

LEASE = LeaseId("1" * 36)


@pytest.fixture
def store() -> BlobStore:
    store = BlobStore()
    store.keep(versioning=True)
    return store


def state_of(store: BlobStore, name: str = "b") -> str:
    """The state of a name, by what clients can see."""
    items = [item for item in store.listed(ListedParts(versions=True)) if item.name == name]
    base = [item.record for item in items if item.record is not None and not item.record.is_previous]
    if base:
        return "U" if base[0].version_at is None else "C"
    return "P" if items else "-"


def previous(store: BlobStore, name: str = "b") -> list[Instant]:
    found = [item.record for item in store.listed(ListedParts(versions=True)) if item.name == name]
    return [each.version_at for each in found if each is not None and each.is_previous and each.version_at]


def put_state(store: BlobStore, state: str) -> None:
    if state == "U":
        store.keep(versioning=False)
        store.put("b", b"0")
    elif state in "CP":
        store.keep(versioning=True)
        store.put("b", b"0")
    if state == "P":
        store.delete("b")


def copy_of(store: BlobStore, version: Instant | None = None, to: str = "b", source: str = "s") -> BlobRecord:
    request = CopyRequest(blob(source, None, version), "http://h/s", NONE, "id", {})
    return run(copy.copy(store.engine, blob(to), request, UNCONDITIONAL, may_overwrite=True))


def put_from(store: BlobStore) -> BlobRecord:
    request = PutFromRequest(blob("s"), NONE, HttpHeaders(), copies_headers=True, metadata={})
    return run(copy.put_from(store.engine, blob("b"), request, UNCONDITIONAL, may_overwrite=True))


def put_block_list(store: BlobStore) -> BlobRecord:
    store.stage("b", b"1")
    return store.commit("b", b"1")


CREATING: dict[str, Callable[[BlobStore], BlobRecord]] = {
    "Put Blob": lambda store: store.put("b", b"1"),
    "Put Block List": put_block_list,
    "Copy Blob": copy_of,
    "Put Blob From URL": put_from,
}


@pytest.mark.parametrize("operation", CREATING)
@pytest.mark.parametrize("switch", [True, False], ids=["on", "off"])
@pytest.mark.parametrize("state", ["-", "U", "C", "P"])
def test_writes_that_create_or_replace(store: BlobStore, state: str, switch: bool, operation: str) -> None:
    store.put("s", b"source")
    put_state(store, state)
    before, former = previous(store), store.record("b") if state in "UC" else None
    store.keep(versioning=switch)
    written = CREATING[operation](store)
    assert state_of(store) == ("C" if switch else "U")
    assert (written.version_at is not None) is switch
    assert store.record("b") == written
    kept = [] if former is None or (state == "U" and not switch) else [former.version_at or former.created_at]
    assert previous(store) == before + kept
    if kept:
        assert store.read("b", version=kept[0]) == b"0"
        assert written.created_at == written.modified_at, "a new version has a creation time of its own"
        assert former is not None
        assert store.record("b", version=kept[0]).etag == former.etag
    elif former is not None:
        assert written.created_at == former.created_at
    assert store.verify() == []
    store.check_nothing_leaks()


@pytest.mark.parametrize("state", ["-", "U", "C", "P"])
@pytest.mark.parametrize("switch", [True, False], ids=["on", "off"])
def test_set_metadata_and_snapshots_make_versions_too(store: BlobStore, state: str, switch: bool) -> None:
    for operation in ("metadata", "snapshot"):
        put_state(store, state)
        store.keep(versioning=switch)
        before = previous(store)
        if state in "-P":
            with refused(Reason.BLOB_NOT_FOUND):
                store.set_metadata("b", a="1")
            with refused(Reason.BLOB_NOT_FOUND):
                store.snapshot("b")
            continue
        former = store.record("b")
        if operation == "metadata":
            written = store.set_metadata("b", a="1")
            assert written.etag != former.etag
        else:
            snapshot = run(snapshots.take(store.engine, blob("b"), {}, UNCONDITIONAL))
            written = store.record("b")
            assert snapshot.version_at == written.version_at
            assert written.etag == former.etag
            assert store.read("b", snapshot.at) == b"0"
            assert store.record("b", snapshot.at).version_at is None
        if switch or former.version_at is not None:
            assert previous(store) == [*before, former.version_at or former.created_at]
            assert state_of(store) == ("C" if switch else "U")
        else:
            assert previous(store) == before
            assert state_of(store) == "U"
        assert store.read("b") == b"0"
        store.keep(versioning=False)
        store.delete("b", snapshots=Snapshots.INCLUDE)
        for at in previous(store):
            store.delete("b", version=at)
    assert store.verify() == []
    store.check_nothing_leaks()


def test_other_writes_change_the_blob_itself(store: BlobStore) -> None:
    page = store.put_pages("p", 1024)
    store.write("p", 0, b"x" * 512)
    append = store.put_append("a")
    store.append("a", b"more")
    block = store.put("b")
    run(blobs.set_http_headers(store.engine, blob("b"), HttpHeaders("text/html"), UNCONDITIONAL))
    run(blobs.set_tier(store.engine, blob("b"), "Cool", "", UNCONDITIONAL))
    store.stage("b", b"1")
    run(
        blobs.lease(
            store.engine, blob("b"), LeaseRequest(Action.ACQUIRE, proposed_id=LEASE, seconds=-1), NONE
        )
    )
    for name, first in (("p", page), ("a", append), ("b", block)):
        assert store.record(name).version_at == first.version_at
    assert store.record("b").etag != block.etag
    assert store.rows(b"E") == []


@pytest.mark.parametrize("state", ["-", "U", "C", "P"])
@pytest.mark.parametrize("switch", [True, False], ids=["on", "off"])
def test_delete(store: BlobStore, state: str, switch: bool) -> None:
    put_state(store, state)
    store.keep(versioning=switch)
    before = previous(store)
    if state in "-P":
        with refused(Reason.BLOB_NOT_FOUND):
            store.delete("b")
        return
    former = store.record("b")
    is_kept = switch or state == "C"
    assert store.delete("b") is not is_kept
    assert state_of(store) == ("P" if is_kept else "-")
    assert previous(store) == before + ([former.version_at or former.created_at] if is_kept else [])
    assert store.verify() == []
    store.check_nothing_leaks()


def test_the_current_version_is_found_by_its_id(store: BlobStore) -> None:
    first, second = store.put("b", b"1"), store.put("b", b"2")
    assert store.read("b", version=first.version_at) == b"1"
    assert store.read("b", version=second.version_at) == b"2"
    assert not store.record("b", version=second.version_at).is_previous
    assert store.record("b", version=first.version_at).is_previous
    assert second.version_at is not None
    assert not store.exists("b", version=Instant(second.version_at + 1))


def test_deleting_versions(store: BlobStore) -> None:
    first, second = store.put("b", store.extents(b"1" * 30_000)), store.put("b", b"2")
    with refused(Reason.CURRENT_VERSION):
        store.delete("b", version=second.version_at)
    assert store.delete("b", version=first.version_at)
    assert not store.exists("b", version=first.version_at)
    with refused(Reason.BLOB_NOT_FOUND):
        store.delete("b", version=first.version_at)
    store.delete("b")
    assert store.delete("b", version=second.version_at), "of a name in state P every version can be deleted"
    assert state_of(store) == "-"
    store.check_nothing_leaks()


def test_conditions_and_leases_are_those_of_the_version(store: BlobStore) -> None:
    first = store.put("b", b"1")
    acquire = LeaseRequest(Action.ACQUIRE, proposed_id=LEASE, seconds=-1)
    run(blobs.lease(store.engine, blob("b"), acquire, NONE))
    second = store.put("b", b"2", AccessConditions(lease_id=LEASE))
    assert store.record("b", version=first.version_at).lease == NO_LEASE
    for etag, is_met in ((first.etag, True), (second.etag, False)):
        access_conditions = AccessConditions(Conditions(if_match=(etag,)), LeaseId("2" * 36))
        reading = blobs.get_properties(store.engine, blob("b", None, first.version_at), access_conditions)
        if is_met:
            assert run(reading).record.etag == first.etag
        else:
            with refused(Reason.CONDITION_NOT_MET):
                run(reading)
    with refused(Reason.CONDITION_NOT_MET):
        store.delete(
            "b",
            version=first.version_at,
            access_conditions=AccessConditions(Conditions(if_match=(second.etag,))),
        )
    assert store.delete("b", version=first.version_at)


def test_promotion_is_a_copy_from_a_version(store: BlobStore) -> None:
    first = store.put("b", store.extents(b"1" * 30_000), metadata={"a": "1"})
    store.put("b", b"2")
    store.delete("b")
    promoted = copy_of(store, first.version_at, source="b")
    assert (store.read("b"), promoted.metadata) == (b"1" * 30_000, {"a": "1"})
    assert not promoted.is_previous
    assert promoted.version_at not in (None, first.version_at)
    again = copy_of(store, first.version_at, source="b")
    assert len(previous(store)) == 3
    assert store.record("b") == again
    store.check_nothing_leaks()


def test_a_version_has_a_tier_of_its_own(store: BlobStore) -> None:
    first = store.put("b", b"1")
    store.put("b", b"2")
    run(
        blobs.set_tier(
            store.engine, blob("b", None, first.version_at), ARCHIVE, "", AccessConditions(lease_id=LEASE)
        )
    )
    with refused(Reason.BLOB_ARCHIVED):
        store.read("b", version=first.version_at)
    assert store.read("b") == b"2"
    assert run(blobs.set_tier(store.engine, blob("b", None, first.version_at), "Hot", "", UNCONDITIONAL))
    store.wait(100)
    assert store.read("b", version=first.version_at) == b"1"


def test_all_versions_of_a_name_have_one_type(store: BlobStore) -> None:
    store.put("b")
    with refused(Reason.INVALID_BLOB_TYPE):
        store.put("b", b"", kind=PAGE_BLOB, length=512)
    store.delete("b")
    with refused(Reason.INVALID_BLOB_TYPE):
        store.put("b", b"", kind=APPEND_BLOB)
    store.keep(versioning=False)
    store.put("b")
    with refused(Reason.INVALID_BLOB_TYPE):
        store.put("b", b"", kind=APPEND_BLOB)
    for at in previous(store):
        store.delete("b", version=at)
    store.put("b", b"", kind=APPEND_BLOB)


def test_a_snapshot_of_a_blob_whose_versions_are_kept(store: BlobStore) -> None:
    store.put("b", b"1")
    at = store.snapshot("b")
    with refused(Reason.SNAPSHOTS_PRESENT):
        store.delete("b")
    assert not store.delete("b", snapshots=Snapshots.INCLUDE), "the base blob is kept"
    assert not store.exists("b", at)
    assert state_of(store) == "P"
    store.check_nothing_leaks()


def test_blocks_of_a_version_stay_when_the_list_is_made_of_them(store: BlobStore) -> None:
    for number in range(6):
        store.stage("b", bytes([65 + number]), store.extents(bytes([number]) * 20_000))
    first = store.commit("b", *(bytes([65 + number]) for number in range(6)))
    store.stage("b", b"Z", b"new")
    second = store.commit("b", b"F", b"Z", b"A")
    assert store.read("b") == b"\5" * 20_000 + b"new" + b"\0" * 20_000
    before = b"".join(bytes([number]) * 20_000 for number in range(6))
    assert store.read("b", version=first.version_at) == before
    assert store.verify() == []
    store.maintain()
    assert store.read("b", version=first.version_at) == before
    assert run_blocks(store, first.version_at) == [bytes([65 + number]) for number in range(6)]
    store.delete("b", version=first.version_at)
    store.maintain()
    assert store.read("b", version=second.version_at)[-1:] == b"\0"
    store.check_nothing_leaks()


def run_blocks(store: BlobStore, version: Instant | None) -> list[bytes]:
    from kyanite.model.blobs import block_list

    found = run(block_list.get_block_list(store.engine, blob("b", None, version), UNCONDITIONAL))
    return [each.id for each in found.committed]


def test_undelete_does_not_make_a_version_current(store: BlobStore) -> None:
    store.put("b")
    store.delete("b")
    store.undelete("b")
    assert state_of(store) == "P"
    with refused(Reason.BLOB_NOT_FOUND):
        run(delete.undelete(store.engine, blob("none")))
