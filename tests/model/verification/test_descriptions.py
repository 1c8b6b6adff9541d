"""Damage is described by the names of what it hurts, however the bytes are referred to."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import pytest
from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.extents.api import Extent
from kyanite.model import keys, settings
from kyanite.model.blobs import container, rows
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.content import content
from kyanite.model.content.content import Content
from kyanite.model.files import deleted_shares, file, links, share_snapshots
from kyanite.model.files.entry import DIRECTORY
from kyanite.model.files.file import NewFile, RangeWrite
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename, rename
from kyanite.model.files.share import decode_share
from kyanite.model.queues import message, queue
from kyanite.model.queues.message import NewMessage
from kyanite.model.queues.queue import QueueKey
from kyanite.model.records import HttpHeaders
from kyanite.model.tables import entity, table
from kyanite.model.tables.change import Change
from kyanite.model.tables.table import TableKey
from kyanite.model.verification import hurt
from kyanite.model.verification.damage import Damage
from kyanite.model.verification.descriptions import descriptions
from kyanite.model.verification.extent_check import Span
from kyanite.model.verification.pages import Unreadable, range_of
from kyanite.rules.entities import Act
from kyanite.rules.preconditions import NONE
from kyanite.service_properties import Retention, ServiceProperties
from kyanite.slices import next_slice
from kyanite.values import iso_text
from tests.model.blobs.store import CONTAINER, BlobStore, blob
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, FileShare, path_of
from tests.model.verification.damaged_view import DamagedView

LONG = 20_000
"""So long that bytes are not in the row of a message."""


@pytest.fixture
def store() -> BlobStore:
    return BlobStore()


def key_of(extent: Extent) -> bytes:
    return keys.extent(extent.segment, extent.start)


def described(
    store: BlobStore,
    extents: Mapping[bytes, Sequence[Span]] | None = None,
    damaged: Collection[bytes | Unreadable] = (),
    *,
    knows_keys: bool = True,
) -> list[str]:
    """What damage hurts, without the names of the damaged extents and rows."""
    ranges = [range_of(row) if isinstance(row, bytes) else row for row in damaged]
    unreadable = [key for key in store.rows() if any(each.start <= key < each.end for each in ranges)]
    engine = DamagedView(store.engine, unreadable, knows_keys=knows_keys)
    spent: list[int] = []

    async def spend(count: int) -> None:
        spent.append(count)
        await next_slice()

    async def texts() -> list[str]:
        damage = Damage(extents or {}, ranges)
        return [each.text.partition(" (extent")[0] async for each in descriptions(engine, damage, spend)]

    store.wait(1)  # So that all layers are older than the search.
    found = outcome(texts())
    assert spent, "A search without pauses."
    return sorted(each.removesuffix(".") for each in found)


# Blobs


def test_a_blob_with_a_short_list(store: BlobStore) -> None:
    first, second = store.extents(b"a" * 1000, b"b" * 2000)
    store.put("photos/a.jpg", (first, second))
    store.put("other", store.extents(b"c" * 1000))
    assert described(store, {key_of(second): [Span(0, 2000)]}) == [
        "blob acme/box/photos/a.jpg: 2000 bytes from 1000 are damaged"
    ]


def test_the_extent_is_named(store: BlobStore) -> None:
    (extent,) = store.extents(b"a" * 1000)
    store.put("a", (extent,))

    async def texts() -> list[str]:
        damage = Damage({key_of(extent): [Span(10, 20)]}, [])
        return [each.text async for each in descriptions(store.engine, damage, _no_pause)]

    assert outcome(texts()) == [f"blob acme/box/a: 10 bytes from 10 are damaged ({extent})."]


async def _no_pause(_count: int) -> None:
    await next_slice()


def test_only_the_damaged_part_of_an_extent_counts(store: BlobStore) -> None:
    """Pages are parts of the extents that were written."""
    store.put_pages("pages", 8192)
    store.write("pages", 0, b"a" * 4096)
    (extent,) = store.extents(b"b" * 8192)
    store.put("block", (extent,))
    damaged = {key_of(extent): [Span(0, 512), Span(1024, 1536)]}
    assert described(store, damaged) == [
        "blob acme/box/block: 512 bytes from 0 are damaged",
        "blob acme/box/block: 512 bytes from 1024 are damaged",
    ]


def committed_blob(store: BlobStore, name: str, count: int = 8) -> list[Extent]:
    """A blob of so many blocks of 1000 bytes, each an extent, in a layer."""
    ids = [b"%08d" % number for number in range(count)]
    extents = []
    for block_id in ids:
        (extent,) = store.extents(block_id * 125)
        store.stage(name, block_id, (extent,))
        extents.append(extent)
    store.commit(name, *ids)
    assert store.record(name).content.layer
    return extents


def test_a_blob_with_a_layer(store: BlobStore) -> None:
    extents = committed_blob(store, "layered")
    committed_blob(store, "other")
    damaged = {key_of(extents[3]): [Span(100, 300)], key_of(extents[7]): [Span(0, 1000)]}
    assert described(store, damaged) == [
        "blob acme/box/layered: 1000 bytes from 7000 are damaged",
        "blob acme/box/layered: 200 bytes from 3100 are damaged",
    ]


def page_blob_with_snapshot(store: BlobStore) -> tuple[list[Extent], str]:
    """Eight pages from extents, a snapshot, and then a write over the first page, in a layer on top."""
    store.put_pages("pages", 8 * 512)
    extents = []
    for number in range(8):
        (extent,) = store.extents(bytes([number]) * 512)
        extents.append(extent)
        outcome(store.engine.run(partial(write_page, number=number, extent=extent)))
    assert store.record("pages").content.layer
    snapshot_at = store.snapshot("pages")
    store.write("pages", 0, b"x" * 512)
    assert store.record("pages").content.layer != store.record("pages", snapshot_at).content.layer
    return extents, iso_text(snapshot_at)


def write_page(tx: Transaction, number: int, extent: Extent) -> None:
    key, record = rows.load(tx, blob("pages"))
    written = content.write(tx, record.content, number * 512, [extent])
    rows.save(tx, key, replace(record, content=written))


def test_a_layer_below_and_a_snapshot(store: BlobStore) -> None:
    extents, snapshot_at = page_blob_with_snapshot(store)
    assert described(store, {key_of(extents[5]): [Span(0, 512)]}) == [
        "blob acme/box/pages, snapshot " + snapshot_at + ": 512 bytes from 2560 are damaged",
        "blob acme/box/pages: 512 bytes from 2560 are damaged",
    ]


def test_what_a_layer_hides_is_not_hurt(store: BlobStore) -> None:
    extents, snapshot_at = page_blob_with_snapshot(store)
    assert described(store, {key_of(extents[0]): [Span(0, 512)]}) == [
        "blob acme/box/pages, snapshot " + snapshot_at + ": 512 bytes from 0 are damaged",
    ]


def test_a_layer_that_is_made_during_the_search(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers are read first, so a layer that was put on top since then is new."""
    extents, _ = page_blob_with_snapshot(store)
    find = hurt._hurt_layers

    async def find_and_write(engine: Engine, damage: Damage, spend: hurt.Spend) -> dict[int, list[Span]]:
        found = await find(engine, damage, spend)
        store.wait(1)
        store.snapshot("pages")
        store.write("pages", 512, b"y" * 512)
        return found

    monkeypatch.setattr(hurt, "_hurt_layers", find_and_write)
    assert "blob acme/box/pages: 512 bytes from 2560 are damaged" in described(
        store, {key_of(extents[5]): [Span(0, 512)]}
    )


def test_a_staged_block(store: BlobStore) -> None:
    extents = store.extents(b"a" * 100)
    store.stage("new/blob", b"block-01", extents)
    assert described(store, {key_of(extents[0]): [Span(50, 60)]}) == [
        "staged block YmxvY2stMDE= of blob acme/box/new/blob: 10 bytes from 50 are damaged"
    ]


def test_an_append_blob(store: BlobStore) -> None:
    store.put_append("log")
    for _ in range(6):
        store.append("log", b"line" * 100)
    bodies = store.rows(b"b")
    assert len(bodies) == 6
    assert described(store, damaged=[bodies[4]]) == [
        f"blob acme/box/log: 400 bytes from 1600 are damaged (inline body {keys.id_of(bodies[4])})"
    ]


def test_an_inline_body(store: BlobStore) -> None:
    store.put("small", b"x" * 100)
    store.put("other", b"y" * 100)
    body = keys.body(store.record("small").content.body)
    assert described(store, damaged=[body]) == [
        f"blob acme/box/small: 100 bytes from 0 are damaged (inline body {keys.id_of(body)})"
    ]


def test_a_range_of_bodies(store: BlobStore) -> None:
    """Which of them are damaged is not known, so all of them may be."""
    for name in ("a", "b", "c", "d"):
        store.put(name, b"x" * 100)
        store.wait(1)
    bodies = store.rows(b"b")
    found = described(store, damaged=[Unreadable(bodies[1], bodies[3])], knows_keys=False)
    assert [each.partition(" (")[0] for each in found] == [
        "blob acme/box/b: 100 bytes from 0 are damaged",
        "blob acme/box/c: 100 bytes from 0 are damaged",
    ]


def test_a_record_and_its_snapshot(store: BlobStore) -> None:
    store.put("a", b"x")
    snapshot_at = iso_text(store.snapshot("a"))
    assert described(store, damaged=[*store.rows(b"n"), *store.rows(b"v")]) == [
        f"blob acme/box/a, snapshot {snapshot_at}: its record is damaged",
        "blob acme/box/a: its record is damaged",
    ]


def test_a_container(store: BlobStore) -> None:
    (extent,) = store.extents(b"1")
    store.put("a", (extent,))
    (row,) = store.rows(b"c")
    container_id = keys.id_of(store.rows(b"n")[0])
    assert described(store, {key_of(extent): [Span(0, 1)]}, [row]) == [
        f"blob (container {container_id}, whose name cannot be read)/a: 1 bytes from 0 are damaged",
        "container acme/box: its record is damaged",
    ]


def test_what_was_deleted_has_no_name(store: BlobStore) -> None:
    extents = store.extents(b"1" * 10)
    store.put("a", extents)
    outcome(container.delete(store.engine, CONTAINER, NONE, None))
    assert described(store, {key_of(extents[0]): [Span(0, 10)]}) == []


def test_deleted_snapshots_have_no_name(store: BlobStore) -> None:
    extents = store.extents(b"1" * 10)
    store.put("a", extents)
    for _ in range(70):
        store.wait(1)
        store.snapshot("a")
    store.delete("a", snapshots=Snapshots.INCLUDE)
    assert len(store.rows(b"v")) == 70
    assert described(store, {key_of(extents[0]): [Span(0, 10)]}) == []


def test_versions_and_deleted_blobs(store: BlobStore) -> None:
    store.keep(versioning=True, days=7)
    extents = store.extents(b"1" * 10)
    first = store.put("a", extents)
    store.put("a", b"2")
    assert first.version_at is not None
    version = f"blob acme/box/a, version {iso_text(first.version_at)}: 10 bytes from 0 are damaged"
    damage = {key_of(extents[0]): [Span(0, 10)]}
    assert described(store, damage) == [version]
    store.delete("a", version=first.version_at)
    assert described(store, damage) == [f"deleted {version}"]
    store.wait(8 * 24 * 3600)
    assert described(store, damage) == [], "it is gone, though not purged"


def test_a_deleted_base_blob_and_a_deleted_snapshot(store: BlobStore) -> None:
    store.keep(days=7)
    extents = store.extents(b"1" * 10)
    store.put("a", extents)
    snapshot_at = iso_text(store.snapshot("a"))
    store.delete("a", snapshots=Snapshots.INCLUDE)
    damage = {key_of(extents[0]): [Span(0, 10)]}
    assert sorted(described(store, damage)) == [
        f"deleted blob acme/box/a, snapshot {snapshot_at}: 10 bytes from 0 are damaged",
        "deleted blob acme/box/a: 10 bytes from 0 are damaged",
    ]
    assert sorted(described(store, damaged=store.rows(b"X"))) == [
        f"deleted blob acme/box/a, snapshot {snapshot_at}: its record is damaged",
        "deleted blob acme/box/a: its record is damaged",
    ]
    store.wait(8 * 24 * 3600)
    assert described(store, damage) == []


def test_an_interval_row(store: BlobStore) -> None:
    """A list of 150 blocks is three rows: what is after the damaged one can still be read."""
    committed_blob(store, "long", 150)
    store.maintain()
    stored = store.rows(b"r")
    assert len(stored) == 3
    (found,) = described(store, damaged=[stored[1]])
    assert found.startswith("blob acme/box/long: 64000 bytes from 64000 are damaged (interval row ")
    (found,) = described(store, damaged=[stored[2]])
    assert found.startswith("blob acme/box/long: 22000 bytes from 128000 are damaged (interval row ")


def test_a_layer_head(store: BlobStore) -> None:
    extents, snapshot_at = page_blob_with_snapshot(store)
    lower, upper = store.rows(b"l")
    (found,) = described(store, damaged=[upper])
    assert found.startswith("blob acme/box/pages: 4096 bytes from 0 are damaged (layer ")
    found, other = described(store, {key_of(extents[3]): [Span(0, 512)]}, damaged=[lower])
    assert found.startswith(
        f"blob acme/box/pages, snapshot {snapshot_at}: 4096 bytes from 0 are damaged (layer "
    )
    assert other.startswith("blob acme/box/pages: 4096 bytes from 0 are damaged (layer ")


def test_rows_whose_keys_are_not_known(store: BlobStore) -> None:
    for name in "abcde":
        store.put(name, b"x")
    stored = store.rows(b"n")
    found = described(store, damaged=[Unreadable(stored[1] + b"\0", stored[4])], knows_keys=False)
    assert found == ["blob acme/box/b: what follows it cannot be read"]


def test_of_many_spans_some_are_joined(store: BlobStore) -> None:
    (extent,) = store.extents(b"x" * 10_000)
    store.put("a", (extent,))
    spans = [Span(start, start + 10) for start in range(0, 10_000, 100)]
    found = described(store, {key_of(extent): spans})
    assert len(found) == hurt.SPANS_MAX
    damaged = [re.fullmatch(r"blob acme/box/a: (\d+) bytes from (\d+) are damaged", each) for each in found]
    ranges = [range(int(each[2]), int(each[2]) + int(each[1])) for each in damaged if each is not None]
    assert all(any(span.start in each and span.end - 1 in each for each in ranges) for span in spans)


# Queues and tables


def test_a_message_with_a_long_text(store: BlobStore) -> None:
    key = QueueKey("acme", "orders")
    outcome(queue.create(store.engine, key, {}))
    for number in range(2):
        new = NewMessage(f"id-{number}", "x" * LONG, 0, None, b"secret")
        outcome(message.put(store.engine, key, new, process=b"process"))
    bodies = store.rows(b"b")
    assert described(store, damaged=[bodies[1]]) == [
        f"message acme/orders/id-1: it is damaged (inline body {keys.id_of(bodies[1])})"
    ]
    found, _ = store.rows(b"m")
    (text,) = described(store, damaged=[found])
    assert text.startswith("message acme/orders/(put at 20")


def test_an_entity(store: BlobStore) -> None:
    key = TableKey("acme", "People")
    outcome(table.create(store.engine, key))
    outcome(entity.apply(store.engine, key, [Change(Act.INSERT, "Köln", "1\U0001f600", {"Age": 1})]))
    outcome(entity.apply(store.engine, key, [Change(Act.INSERT, "Köln", "2", {"Age": 1})]))
    first, _ = sorted(store.rows(b"w"))
    assert described(store, damaged=[first]) == [
        "entity acme/people('Köln', '1\U0001f600'): its record is damaged"
    ]


def test_a_part_of_an_entity(store: BlobStore) -> None:
    key = TableKey("acme", "large")
    outcome(table.create(store.engine, key))
    control = "\u0001" * 30_000
    properties = {f"P{number}": control for number in range(10)}
    outcome(entity.apply(store.engine, key, [Change(Act.INSERT, "p", "large", properties)]))
    outcome(entity.apply(store.engine, key, [Change(Act.INSERT, "p", "small", {})]))
    part, _ = store.rows(b"o")
    (found,) = described(store, damaged=[part])
    assert found.startswith("entity acme/large('p', 'large'): it is damaged (part of an entity ")


# Files


class Files(FileShare):
    """With files whose bytes are extents."""

    def __init__(self, store: BlobStore, protocol: str = "SMB") -> None:
        super().__init__(store.engine, protocol)
        self._store = store

    def make(self, path: str, length: int = 1000) -> Extent:
        (extent,) = self._store.extents(b"x" * length)
        new_file = NewFile(length, HttpHeaders(), {}, SmbProperties(), (extent,))
        outcome(file.create(self.engine, path_of(path), new_file, None, may_overwrite=True))
        return extent

    def take_snapshot(self) -> str:
        self._store.wait(1)
        snapshot_at, _ = outcome(share_snapshots.take(self.engine, SHARE, {}))
        self._store.wait(1)
        return iso_text(snapshot_at)


def whole(extent: Extent) -> dict[bytes, list[Span]]:
    return {key_of(extent): [Span(0, extent.length)]}


def test_a_file_and_its_path(store: BlobStore) -> None:
    share = Files(store)
    for path in ("Docs", "Docs/2026", "Other", "Docs/2026/März"):
        share.make_directory(path)
    at_root, deep = share.make("root.txt"), share.make("Docs/2026/März/Brief.txt")
    assert described(store, whole(at_root)) == [
        "file acme/share/root.txt: 1000 bytes from 0 are damaged",
    ]
    assert described(store, whole(deep)) == [
        "file acme/share/Docs/2026/März/Brief.txt: 1000 bytes from 0 are damaged",
    ]


def test_the_path_of_a_directory_that_was_moved(store: BlobStore) -> None:
    """Its directory is newer than it is, so that takes a further pass."""
    share = Files(store)
    share.make_directory("old")
    share.make_directory("old/inner")
    extent = share.make("old/inner/file")
    share.make_directory("new")
    outcome(rename(store.engine, path_of("old"), DIRECTORY, Rename(("new", "moved"))))
    assert described(store, whole(extent)) == [
        "file acme/share/new/moved/inner/file: 1000 bytes from 0 are damaged",
    ]


def test_a_path_with_a_directory_that_cannot_be_read(store: BlobStore) -> None:
    share = Files(store)
    share.make_directory("a")
    share.make_directory("a/b")
    extent = share.make("a/b/file")
    stored = [key for key in store.rows(b"N") if key.endswith(b"A")]
    assert described(store, whole(extent), stored) == [
        "file acme/share/(unknown directory)/b/file: 1000 bytes from 0 are damaged",
        "file or directory acme/share/A: its record is damaged",
    ]


def test_a_file_in_a_share_snapshot(store: BlobStore) -> None:
    share = Files(store)
    share.make_directory("a")
    extent = share.make("a/file")
    first = share.take_snapshot()
    assert described(store, whole(extent)) == [
        "file acme/share/a/file (and in 1 snapshot): 1000 bytes from 0 are damaged",
    ]
    second = share.take_snapshot()
    share.make("a/file")
    assert described(store, whole(extent)) == [
        f"file acme/share/a/file, share snapshot {second} (and in 1 other snapshot): "
        "1000 bytes from 0 are damaged",
    ]
    outcome(rename(store.engine, path_of("a"), DIRECTORY, Rename(("0",))))
    assert described(store, whole(extent)) == [
        f"file acme/share/a/file, share snapshot {second} (and in 1 other snapshot): "
        "1000 bytes from 0 are damaged",
    ]
    assert first < second


def test_a_file_with_hard_links(store: BlobStore) -> None:
    share = Files(store, "NFS")
    share.make_directory("a")
    share.make_directory("b")
    extent = share.make("a/file")
    outcome(links.create_hard_link(store.engine, path_of("b/linked"), path_of("a/file"), None))
    assert described(store, whole(extent)) == [
        "file acme/share/a/file: 1000 bytes from 0 are damaged",
        "file acme/share/b/linked: 1000 bytes from 0 are damaged",
    ]


def test_a_file_that_was_written_in_many_ranges(store: BlobStore) -> None:
    share = Files(store)
    share.make_file("large", 10_000)
    extents = []
    for offset in range(0, 10_000, 1000):
        (extent,) = store.extents(b"x" * 1000)
        request = RangeWrite(offset, 1000, (extent,))
        outcome(file.write_range(store.engine, path_of("large"), request, None))
        extents.append(extent)
    assert described(store, whole(extents[6])) == ["file acme/share/large: 1000 bytes from 6000 are damaged"]


def test_a_deleted_share_that_can_be_restored_keeps_its_name(store: BlobStore) -> None:
    share = Files(store)
    extent = share.make("file")
    (row,) = store.rows(b"F")

    def retire(tx: Transaction) -> None:
        deleted_shares.retire(tx, SHARE, decode_share(tx.get(row) or b""), 7)
        tx.delete(row)

    outcome(store.engine.run(retire))
    assert described(store, whole(extent)) == [
        "file acme/share (deleted)/file: 1000 bytes from 0 are damaged"
    ]


def test_a_deleted_container_that_can_be_restored_keeps_its_name(store: BlobStore) -> None:
    (extent,) = store.extents(b"x" * 1000)
    store.put("blob", (extent,))
    change = ServiceProperties(container_retention=Retention(days=7))
    outcome(settings.update(store.engine, "acme", "blob", change))
    outcome(container.delete(store.engine, CONTAINER, NONE, None))
    assert described(store, whole(extent)) == ["blob acme/box (deleted)/blob: 1000 bytes from 0 are damaged"]
    (row,) = store.rows(keys.RETIRED_CONTAINERS)
    assert described(store, damaged=[row]) == ["deleted container acme/box: its record is damaged"]


def test_content_may_be_none(store: BlobStore) -> None:
    store.put("empty", b"")
    assert store.record("empty").content == Content()
    assert described(store, {keys.extent(b"s" * 16, 0): [Span(0, 1)]}) == []
