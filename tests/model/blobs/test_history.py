"""Histories together with the index of tags, with what verification finds, and with lists of older versions."""

from collections.abc import Callable

import pytest

from kyanite.engine.api import EngineBusy, Transaction
from kyanite.model import keys
from kyanite.model.blobs import delete, put, tags
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.history import INLINE_MAX
from kyanite.model.blobs.listed_rows import ListedParts
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.records import PAGE_BLOB
from kyanite.rules.refusals import Reason
from kyanite.rules.soft_delete import MAX_CHANGES
from tests.model.blobs.store import HTTP, BlobStore, blob, refused, run

MANY = INLINE_MAX + 10
DAY = 86_400


def put_tagged(store: BlobStore, value: str) -> None:
    new = NewBlob(b"data", 4, HTTP, {}, tags=(("key", value),))
    run(put.put(store.engine, blob("b"), new, UNCONDITIONAL, may_overwrite=True))


def postings(store: BlobStore) -> list[bytes]:
    return [key for key in store.rows(b"G") if b"key" in key]


def test_only_the_base_blob_is_in_the_index_of_tags(store: BlobStore) -> None:
    store.keep(versioning=True, days=7)
    put_tagged(store, "1")
    first = store.record("b")
    put_tagged(store, "2")
    assert [b"2" in key for key in postings(store)] == [True]
    assert store.record("b", version=first.version_at).tags == (("key", "1"),)
    run(tags.set_tags(store.engine, blob("b", None, first.version_at), (("key", "3"),), UNCONDITIONAL))
    assert run(tags.get(store.engine, blob("b", None, first.version_at), UNCONDITIONAL)) == (("key", "3"),)
    assert len(postings(store)) == 1
    store.delete("b")
    assert postings(store) == []
    assert store.verify() == []
    store.check_nothing_leaks()


def test_a_restored_blob_is_in_the_index_of_tags_again(store: BlobStore) -> None:
    store.keep(days=7)
    put_tagged(store, "1")
    store.delete("b")
    assert postings(store) == []
    assert store.verify() == []
    store.undelete("b")
    assert len(postings(store)) == 1
    assert store.verify() == []
    store.check_nothing_leaks()


def make_history(store: BlobStore) -> None:
    store.keep(versioning=True, days=7)
    first = store.put("b")
    store.put("b")
    store.put("b")
    store.delete("b", version=first.version_at)


@pytest.mark.parametrize(
    ("letter", "change", "expected"),
    [
        (b"8", lambda tx, key: tx.delete(key), "when a deleted blob is gone"),
        (b"8", lambda tx, key: tx.put(key, b"1"), "it should be empty"),
        (b"X", lambda tx, key: tx.delete(key), "deleted blob"),
        (b"X", lambda tx, key: tx.put(key, b"1"), "it cannot be decoded"),
        (
            b"E",
            lambda tx, key: tx.put(key[:-1] + b"\x01", tx.get(key)),
            "its version id is not that of its key",
        ),
    ],
)
def test_what_verification_finds(
    store: BlobStore, letter: bytes, change: Callable[[Transaction, bytes], None], expected: str
) -> None:
    make_history(store)
    assert store.verify() == []
    (key,) = store.rows(letter)
    run(store.engine.run(lambda tx: change(tx, key)))
    found = store.verify()
    assert any(expected in each for each in found), found


def test_a_row_that_is_active_and_deleted(store: BlobStore) -> None:
    make_history(store)
    (version,) = store.rows(b"E")
    (deleted,) = store.rows(b"X")

    def body(tx: Transaction) -> None:
        stored = tx.get(version)
        assert stored is not None
        tx.put(keys.restored_from(deleted), stored)

    run(store.engine.run(body))
    assert [each for each in store.verify() if "is there as well" in each]


def test_the_mark_of_older_versions_is_a_change(store: BlobStore) -> None:
    store.put("b")
    deleted = [store.snapshot("b") for _ in range(3)]
    key = keys.blob(store.record_of_container().id, "b")
    run(store.engine.run(lambda tx: tx.put(keys.history_changes_of(key), keys.number(deleted[-1]))))
    kept = store.snapshot("b")
    assert [store.exists("b", at) for at in (*deleted, kept)] == [False, False, False, True]
    assert store.verify() == []
    store.maintain()
    assert len(store.rows(b"v")) == 1
    assert store.rows(b"p") == []


def test_a_full_list_of_changes_has_to_wait(store: BlobStore) -> None:
    store.keep(days=7)
    store.put("b")
    for _ in range(MANY):
        store.snapshot("b")
    for _ in range(MAX_CHANGES // 2):
        store.delete("b", snapshots=Snapshots.ONLY)
        store.undelete("b")
    with pytest.raises(EngineBusy):
        store.delete("b", snapshots=Snapshots.ONLY)
    store.maintain()
    store.delete("b", snapshots=Snapshots.ONLY)
    assert len(store.listed(ListedParts(snapshots=True))) == 1
    store.check_nothing_leaks()


def test_another_type_ends_a_long_history_of_what_was_deleted(store: BlobStore) -> None:
    store.keep(days=7)
    store.put("b")
    for _ in range(MANY):
        store.snapshot("b")
    store.delete("b", snapshots=Snapshots.INCLUDE)
    store.put("b", b"", kind=PAGE_BLOB, length=512)
    assert store.cost < 4 * INLINE_MAX
    everything = ListedParts(snapshots=True, deleted=True)
    assert len(store.listed(everything)) == 1
    store.undelete("b")
    assert len(store.listed(everything)) == 1
    store.maintain()
    assert store.rows(b"X") == store.rows(b"v") == []
    store.check_nothing_leaks()


def test_permanent_delete_needs_the_permission_of_the_account(store: BlobStore) -> None:
    make_history(store)
    (deleted,) = [item for item in store.listed(ListedParts(versions=True, deleted=True)) if item.deletion]
    assert deleted.record is not None
    key = blob("b", None, deleted.record.version_at)
    with refused(Reason.PERMANENT_DELETE_NOT_ALLOWED):
        run(delete.delete_permanently(store.engine, key))
    store.keep(versioning=True, days=7, permanent_delete=True)
    run(delete.delete_permanently(store.engine, key))
    with refused(Reason.BLOB_NOT_FOUND):
        run(delete.delete_permanently(store.engine, key))
    assert store.rows(b"X") == store.rows(b"8") == []
    assert store.verify() == []


def test_the_retention_is_that_of_the_deletion(store: BlobStore) -> None:
    store.keep(days=2)
    store.put("b")
    store.delete("b")
    store.keep(days=1)
    store.put("c")
    store.delete("c")
    store.keep()
    store.wait(1.5 * DAY)
    store.maintain()
    assert [item.name for item in store.listed(ListedParts(deleted=True))] == ["b"]
    store.undelete("b")
    with refused(Reason.BLOB_NOT_FOUND):
        store.undelete("c")
    store.check_nothing_leaks()
