"""Tags below HTTP: what sets, keeps and drops them, what they cost, and that the index agrees with the records."""

import random
from contextlib import suppress
from functools import partial

import pytest

from kyanite.model import keys
from kyanite.model.blobs import container, copy, put, tag_index, tags
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.copy import CopyRequest, PutFromRequest
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.records import APPEND_BLOB, BLOCK_BLOB, PAGE_BLOB, decode_blob
from kyanite.model.blobs.rows import NAME_AT, BlobKey
from kyanite.model.maintenance.deleted_containers import ROWS_PER_STEP
from kyanite.model.records import HttpHeaders
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tag_expressions import decode_condition
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.values import Instant
from tests.model.blobs.store import CONTAINER, HTTP, BlobStore, blob, refused, run
from tests.model.counted import unlimited

RED: Tags = (("colour", "red"),)
BOTH: Tags = (("colour", "red"), ("size", "10"))


def put_tagged(store: BlobStore, name: str, given: Tags = NO_TAGS, kind: int = BLOCK_BLOB) -> None:
    new = NewBlob(b"", 0, HTTP, {}, kind=kind, tags=given)
    run(put.put(store.engine, blob(name), new, UNCONDITIONAL, may_overwrite=True))


def set_tags(
    store: BlobStore,
    name: str,
    given: Tags,
    access_conditions: AccessConditions = UNCONDITIONAL,
    snapshot: Instant | None = None,
) -> None:
    run(tags.set_tags(store.engine, blob(name, snapshot), given, access_conditions))


def if_tags(text: str) -> AccessConditions:
    return AccessConditions(Conditions(if_tags=decode_condition(text)))


def indexed(store: BlobStore) -> list[tuple[str, str, str]]:
    """The blobs and tags in the index."""
    postings = [keys.parts_of_posting(key) for key in store.rows(b"Gacme\0")]
    return sorted((name, key, value) for _, key, value, _, name in postings)


def check_index(store: BlobStore) -> None:
    """The index has exactly the tags of the base blobs."""
    with unlimited():
        found = run(store.engine.read(lambda snap: list(snap.scan(b"n", b"o"))))
    expected = [(key[NAME_AT:].decode(), *tag) for key, value in found for tag in decode_blob(value).tags]
    assert indexed(store) == sorted(expected)


@pytest.mark.parametrize("kind", [BLOCK_BLOB, PAGE_BLOB, APPEND_BLOB])
def test_a_blob_is_created_with_tags(store: BlobStore, kind: int) -> None:
    put_tagged(store, "b", BOTH, kind)
    assert store.record("b").tags == BOTH
    assert indexed(store) == [("b", "colour", "red"), ("b", "size", "10")]
    store.check_nothing_leaks()


def test_an_overwrite_replaces_the_tags(store: BlobStore) -> None:
    put_tagged(store, "b", BOTH)
    put_tagged(store, "b", RED)
    assert indexed(store) == [("b", "colour", "red")]
    store.put("b")
    assert store.record("b").tags == NO_TAGS
    assert indexed(store) == []
    put_tagged(store, "b", RED)
    store.stage("b", b"1")
    store.commit("b", b"1")
    assert indexed(store) == []
    store.check_nothing_leaks()


def test_setting_tags_changes_neither_the_etag_nor_the_bytes(store: BlobStore) -> None:
    store.put("b", b"data")
    before = store.record("b")
    store.wait(5)
    set_tags(store, "b", BOTH)
    after = store.record("b")
    assert (after.etag, after.modified_at, after.tags) == (before.etag, before.modified_at, BOTH)
    assert store.read("b") == b"data"
    assert run(tags.get(store.engine, blob("b"), UNCONDITIONAL)) == BOTH
    set_tags(store, "b", (("size", "11"),))
    assert indexed(store) == [("b", "size", "11")]
    set_tags(store, "b", NO_TAGS)
    assert indexed(store) == []
    store.check_nothing_leaks()


def test_a_change_of_anything_else_keeps_the_tags(store: BlobStore) -> None:
    put_tagged(store, "b", RED, APPEND_BLOB)
    store.append("b", b"more")
    assert store.record("b").tags == RED
    check_index(store)


def test_a_snapshot_has_tags_of_its_own(store: BlobStore) -> None:
    put_tagged(store, "b", RED)
    at = store.snapshot("b")
    store.wait(1)
    set_tags(store, "b", BOTH)
    assert store.record("b", at).tags == RED
    set_tags(store, "b", (("size", "1"),), snapshot=at)
    assert run(tags.get(store.engine, blob("b", at), UNCONDITIONAL)) == (("size", "1"),)
    assert store.record("b").tags == BOTH
    check_index(store)
    store.delete("b", snapshots=Snapshots.INCLUDE)
    assert indexed(store) == []
    store.check_nothing_leaks()


def test_what_does_not_exist_has_no_tags(store: BlobStore) -> None:
    with refused(Reason.BLOB_NOT_FOUND):
        set_tags(store, "b", RED)
    with refused(Reason.BLOB_NOT_FOUND):
        run(tags.get(store.engine, blob("b"), UNCONDITIONAL))


@pytest.mark.parametrize(("given", "expected"), [(NO_TAGS, NO_TAGS), (BOTH, BOTH), (None, RED)])
def test_the_tags_of_a_copy(store: BlobStore, given: Tags | None, expected: Tags) -> None:
    put_tagged(store, "source", RED)
    request = CopyRequest(blob("source"), "url", NONE, "id", {}, is_synchronous=True, tags=given)
    run(copy.copy(store.engine, blob("copy"), request, UNCONDITIONAL, may_overwrite=True))
    put_from = PutFromRequest(
        blob("source"), NONE, HttpHeaders(), copies_headers=True, metadata={}, tags=given
    )
    run(copy.put_from(store.engine, blob("new"), put_from, UNCONDITIONAL, may_overwrite=True))
    assert store.record("copy").tags == store.record("new").tags == expected
    check_index(store)
    store.check_nothing_leaks()


def test_conditions_on_tags(store: BlobStore) -> None:
    put_tagged(store, "b", RED)
    met, unmet = if_tags("colour = 'red'"), if_tags("colour <> 'red'")
    set_tags(store, "b", BOTH, met)
    assert run(tags.get(store.engine, blob("b"), met)) == BOTH
    for request in (
        partial(set_tags, store, "b", RED, unmet),
        lambda: run(tags.get(store.engine, blob("b"), unmet)),
        partial(store.put, "b", b"x", unmet),
        partial(store.put, "new", b"x", met),
        partial(store.delete, "b", access_conditions=unmet),
    ):
        with refused(Reason.CONDITION_NOT_MET):
            request()
    assert store.record("b").tags == BOTH
    assert not store.exists("new")


def test_purging_a_container_purges_its_part_of_the_index(store: BlobStore) -> None:
    other = ContainerKey("acme", "other")
    run(container.create(store.engine, other, metadata={}, public_access=""))
    ten: Tags = tuple((f"key{number}", "value") for number in range(10))
    new = NewBlob(b"", 0, HTTP, {}, tags=ten)
    for number in range(3 * ROWS_PER_STEP):
        put_tagged(store, f"b{number}", ten)
    run(put.put(store.engine, BlobKey(other, "kept"), new, UNCONDITIONAL, may_overwrite=True))
    run(container.delete(store.engine, CONTAINER, NONE, None))
    most = store.maintain()
    assert most <= 2_000
    assert indexed(store) == [("kept", *tag) for tag in ten]
    assert len(store.rows(b"G\0")) == len(store.rows(b"n")) == 1


def test_a_rename_of_a_container_is_a_row(store: BlobStore) -> None:
    put_tagged(store, "b", RED)
    (key,) = store.rows(b"G\0")
    new = ContainerKey("acme", "new-name")
    run(store.engine.run(lambda tx: tag_index.rename(tx, int.from_bytes(key[2:], "big"), new)))
    assert run(store.engine.read(lambda snap: snap.get(key))) == b"acme\0new-name"
    run(store.engine.run(lambda tx: tag_index.rename(tx, 5, new)))
    assert store.rows(b"G\0") == [key]


def test_tags_cost_a_row_each_and_nothing_when_there_are_none(store: BlobStore) -> None:
    store.put("plain")
    store.put("plain")
    without = store.cost
    put_tagged(store, "b", BOTH)
    put_tagged(store, "b", BOTH)
    assert store.cost <= without
    put_tagged(store, "b", (("colour", "red"), ("size", "11")))
    assert store.cost <= without + 3


@pytest.mark.parametrize("versioning", [False, True])
@pytest.mark.parametrize("days", [None, 1])
def test_the_index_follows_whatever_happens(store: BlobStore, versioning: bool, days: int | None) -> None:
    """Also what accounts keep of deleted and overwritten blobs, and whether they do, changes meanwhile."""
    chance = random.Random(14)
    choices: list[Tags] = [NO_TAGS, RED, BOTH, (("colour", "blue"),), (("size", "1"), ("x", ""))]
    if versioning or days:
        store.keep(versioning=versioning, days=days)
    for step in range(400):
        name, given = chance.choice("abc"), chance.choice(choices)
        exists = store.exists(name)
        store.wait(chance.choice((1, 1, 1, 20_000)))
        match chance.randrange(9):
            case 0:
                put_tagged(store, name, given)
            case 1 if exists:
                set_tags(store, name, given)
            case 2 if exists:
                store.delete(name, snapshots=Snapshots.INCLUDE)
            case 3 if exists:
                store.snapshot(name)
            case 4:
                store.stage(name, b"block")
                store.commit(name, b"block")
            case 5 if exists:
                request = CopyRequest(blob(name), "url", NONE, f"id{step}", {}, tags=None)
                run(copy.copy(store.engine, blob("d"), request, UNCONDITIONAL, may_overwrite=True))
            case 6:
                with suppress(Refused):
                    store.undelete(name)
            case 7 if exists:
                store.set_metadata(name, step=str(step))
            case 8 if days and chance.random() < 0.2:
                store.keep(versioning=versioning and chance.random() < 0.5, days=chance.choice((None, days)))
            case _:
                continue
        check_index(store)
    assert store.verify() == []
    store.check_nothing_leaks()
