"""What requests cost, in rows, for a name with a short history and for one with a long history: the same."""

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.blobs import copy, history, listing
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.copy import CopyRequest
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.listed_rows import ListedParts
from kyanite.model.blobs.listing import BlobListing
from kyanite.model.blobs.records import BlobRecord, decode_blob
from kyanite.model.content.content import NO_CONTENT
from kyanite.model.records import encode
from kyanite.rules.preconditions import NONE
from kyanite.rules.soft_delete import Deletion
from kyanite.values import Instant
from tests.model.blobs.store import CONTAINER, BlobStore, blob, run
from tests.model.counted import unlimited
from tests.profiles import examples

SHORT = 10
LONG = examples(3_000)
"""Sixty thousand in the long profile. Every range of rows is read by seeks, so more make no difference."""


def make(count: int) -> BlobStore:
    """A blob with as many versions and snapshots, and as many of each that are deleted."""
    store = BlobStore()
    store.keep(versioning=True, days=7)
    store.put("a")
    store.put("b")
    store.put("c")

    key = keys.blob(store.record_of_container().id, "b")

    def body(tx: Transaction) -> None:
        stored = tx.get(key)
        assert stored is not None
        record = decode_blob(stored)
        first = record.modified_at - 10 * count
        for number in range(count):
            at = Instant(first + 10 * number)
            version = _changed(record, at)
            tx.put(keys.version_of(key, at), encode(version))
            tx.put(keys.snapshot_of(key, at + 1), encode(_changed(record, None)))
            deletion = Deletion(tx.now, Instant(tx.now + 6 * 864_000_000_000))
            history.keep_deleted(
                tx, keys.deleted_version_of(key, at + 2), _changed(record, Instant(at + 2)), deletion
            )
            history.keep_deleted(tx, keys.deleted_snapshot_of(key, at + 3), _changed(record, None), deletion)

    with unlimited():
        run(store.engine.run(body))
    return store


def _changed(record: BlobRecord, version_at: Instant | None) -> BlobRecord:
    return replace(
        record, content=NO_CONTENT, length=0, version_at=version_at, is_previous=version_at is not None
    )


def first_of(store: BlobStore, letter: bytes) -> Instant:
    with unlimited():
        return history.instant_in(store.rows(letter)[0])


def promote(store: BlobStore) -> None:
    request = CopyRequest(blob("b", None, first_of(store, b"E")), "http://h/b", NONE, "id", {})
    run(copy.copy(store.engine, blob("b"), request, UNCONDITIONAL, may_overwrite=True))


def list_page(store: BlobStore, *, parts: ListedParts, prefix: str = "") -> None:
    request = BlobListing(prefix=prefix, limit=5, parts=parts)
    run(listing.list_blobs(store.engine, CONTAINER, request))


ALL = ListedParts(snapshots=True, versions=True, deleted=True, only_versions=True, uncommitted=True)
REQUESTS: dict[str, Callable[[BlobStore], object]] = {
    "Put Blob": lambda store: store.put("b", b"more"),
    "Set Blob Metadata": lambda store: store.set_metadata("b", a="1"),
    "Snapshot Blob": lambda store: store.snapshot("b"),
    "Get Blob": lambda store: store.read("b"),
    "Get Blob, a version": lambda store: store.record("b", version=first_of(store, b"E")),
    "Get Blob, a snapshot": lambda store: store.record("b", first_of(store, b"v")),
    "Delete Blob, a version": lambda store: store.delete("b", version=first_of(store, b"E")),
    "Delete Blob, a snapshot": lambda store: store.delete("b", first_of(store, b"v")),
    "Delete Blob, with snapshots": lambda store: store.delete("b", snapshots=Snapshots.INCLUDE),
    "Delete Blob, only snapshots": lambda store: store.delete("b", snapshots=Snapshots.ONLY),
    "Undelete Blob": lambda store: store.undelete("b"),
    "Copy Blob, a version onto its blob": promote,
    "List Blobs": partial(list_page, parts=ListedParts()),
    "List Blobs, everything": partial(list_page, parts=ALL),
    "List Blobs, names with versions only": partial(list_page, parts=ListedParts(only_versions=True)),
    "List Blobs, deleted": partial(list_page, parts=ListedParts(deleted=True)),
}


@pytest.fixture(scope="module")
def budget() -> dict[str, int]:
    """What each costs with a short history."""
    costs = {}
    for name, request in REQUESTS.items():
        store = make(SHORT)
        request(store)
        costs[name] = store.cost
    return costs


@pytest.mark.parametrize("name", REQUESTS)
def test_a_long_history_costs_what_a_short_one_does(budget: dict[str, int], name: str) -> None:
    store = make(LONG)
    REQUESTS[name](store)
    assert store.cost <= max(budget[name], 4 * history.INLINE_MAX) + 8
    is_whole_history = name.startswith(("Delete Blob, with", "Delete Blob, only", "Undelete"))
    if not is_whole_history:
        assert store.cost <= budget[name] + 2


def test_changes_of_a_long_history_are_applied_in_small_steps() -> None:
    """And until then every request costs no more, and sees what the change has done."""
    store = make(LONG)
    store.delete("b", snapshots=Snapshots.INCLUDE)
    assert store.cost <= 2 * history.INLINE_MAX
    store.put("b", b"again")
    assert store.cost < 40
    store.delete("b")
    assert store.cost < 60
    store.undelete("b")
    assert store.cost < 4 * history.INLINE_MAX
    assert store.exists("b", first_of(store, b"v"))
    list_page(store, parts=ALL)
    assert max(store.engine.costs[-1:]) < 60
    if LONG <= 3_000:
        assert store.maintain() < 2_000
        assert store.rows(b"p") == store.rows(b"X") == []
        assert len(store.rows(b"v")) == 2 * LONG
        assert store.verify() == []


def test_what_has_expired_is_removed_by_its_index() -> None:
    store = make(300)
    for _ in range(5):
        store.put("c")
    store.wait(8 * 86_400)
    before = len(store.engine.costs)
    assert store.maintain() < 2_000
    assert len(store.engine.costs) > before
    assert store.rows(b"X") == store.rows(b"8") == []
    assert len(store.rows(b"E")) == 300 + 5
    assert store.verify() == []
