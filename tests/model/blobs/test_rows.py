"""Rows of blobs: what is loaded, what replacing and retiring leaves, and how deleted snapshots are hidden."""

import pytest

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.blobs import rows
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.history import INLINE_MAX
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules.refusals import Reason
from kyanite.values import Instant
from tests.model.blobs.store import BlobStore, blob, refused, run

MANY = INLINE_MAX + 20


def test_a_blob_and_its_snapshots_are_found_by_name_and_instant(store: BlobStore) -> None:
    store.put("b", b"first")
    at = store.snapshot("b")
    store.put("b", b"second")
    assert (store.read("b"), store.read("b", at)) == (b"second", b"first")
    assert not store.exists("b", Instant(at + 1))
    assert not store.exists("a")
    assert not store.exists("bb")


def test_a_blob_of_a_container_that_does_not_exist(store: BlobStore) -> None:
    nowhere = BlobKey(ContainerKey("acme", "none"), "b")
    with refused(Reason.CONTAINER_NOT_FOUND):
        run(store.engine.read(lambda snap: rows.load(snap, nowhere)))
    with refused(Reason.CONTAINER_NOT_FOUND):
        run(store.engine.read(lambda snap: rows.load_name(snap, nowhere)))


def test_replacing_leaves_nothing_of_the_old_blob_but_its_snapshots(store: BlobStore) -> None:
    store.put("b", store.extents(b"old" * 10_000))
    store.stage("b", b"1", store.extents(b"staged" * 10_000))
    store.put("b", b"new")
    store.maintain()
    assert store.segments.data == {}
    assert store.rows(keys.STAGINGS) == store.rows(b"j") == []
    assert store.read("b") == b"new"
    store.check_nothing_leaks()


def test_content_that_the_new_blob_was_made_of_is_not_dropped(store: BlobStore) -> None:
    store.put("b", store.extents(b"kept"))

    def body(tx: Transaction) -> None:
        stored = rows.load_name(tx, blob("b"))
        assert stored.record is not None
        rows.replace(tx, stored, stored.record, drops_content=False)

    run(store.engine.run(body))
    store.maintain()
    assert store.read("b") == b"kept"


@pytest.mark.parametrize("snapshots", [Snapshots.INCLUDE, Snapshots.ONLY])
def test_snapshots_deleted_by_a_mark_are_gone_for_every_function(
    store: BlobStore, snapshots: Snapshots
) -> None:
    store.put("b", store.extents(b"x" * 100))
    deleted = [store.snapshot("b") for _ in range(MANY)]
    store.delete("b", snapshots=snapshots)
    assert len(store.rows(b"v")) == MANY, "these are hidden, not yet deleted"
    store.put("b", b"again")
    kept = store.snapshot("b")
    for _ in range(2):
        assert not any(store.exists("b", at) for at in deleted)
        assert store.read("b", kept) == b"again"
        with refused(Reason.BLOB_NOT_FOUND):
            store.delete("b", deleted[0])
        with refused(Reason.SNAPSHOTS_PRESENT):
            store.delete("b")
        with refused(Reason.BLOB_NOT_FOUND):
            store.blocks("b", deleted[0])
        found = run(
            store.engine.read(lambda snap: rows.snapshots_from(snap, blob("b"), deleted[-1], limit=9))
        )
        assert not found
        store.maintain()
    assert len(store.rows(b"v")) == 1
    assert store.rows(keys.HISTORY_CHANGES) == []
    store.delete("b", kept)
    store.delete("b")
    store.check_nothing_leaks()


def put_with_hidden_snapshots(store: BlobStore) -> None:
    store.put("b")
    for _ in range(MANY):
        store.snapshot("b")
    store.delete("b", snapshots=Snapshots.ONLY)


def test_hidden_snapshots_do_not_count_as_present(store: BlobStore) -> None:
    put_with_hidden_snapshots(store)
    store.delete("b")
    assert not store.exists("b")
    store.check_nothing_leaks()


def test_a_second_mark_covers_the_snapshots_since(store: BlobStore) -> None:
    put_with_hidden_snapshots(store)
    since = [store.snapshot("b") for _ in range(3)]
    store.delete("b", snapshots=Snapshots.ONLY)
    assert not any(store.exists("b", at) for at in since)
    later = store.snapshot("b")
    store.maintain()
    assert store.exists("b", later)
    store.check_nothing_leaks()


def test_marks_are_of_one_name(store: BlobStore) -> None:
    instants = {}
    for name in ("b", "b!", "ba"):
        store.put(name, name.encode())
        instants[name] = [store.snapshot(name) for _ in range(MANY)]
    store.delete("b", snapshots=Snapshots.INCLUDE)
    store.maintain()
    assert len(store.rows(b"v")) == 2 * MANY
    for name in ("b!", "ba"):
        assert all(store.read(name, at) == name.encode() for at in instants[name])


def test_a_mark_of_a_container_that_was_deleted_is_purged_too(store: BlobStore) -> None:
    store.put("b", store.extents(b"x" * 100))
    for _ in range(MANY):
        store.snapshot("b")
    store.delete("b", snapshots=Snapshots.INCLUDE)
    store.check_nothing_leaks()
