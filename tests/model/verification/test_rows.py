"""Verification finds every kind of damage, and nothing in a sound store.

A store with every kind of row is loaded into memory; each test spoils one thing in a copy of it.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
import uvloop
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.clock import wall_clock
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.account_rows import AccountRecord
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord, decode_blob, decode_container
from kyanite.model.blobs.rows import NAME_AT
from kyanite.model.content.content import Content
from kyanite.model.content.intervals import Interval
from kyanite.model.content.layers import Head, decode_head
from kyanite.model.content.references import ExtentRow, decode_extent
from kyanite.model.files.entry import FILE, decode_entry
from kyanite.model.records import encode
from kyanite.model.retired import Retired
from kyanite.model.verification import rows as verification
from kyanite.model.verification.rows import KINDS, check_page, describe_difference
from kyanite.server.store.api import StoreKind
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import prepare
from kyanite.values import Instant
from tests.stores.recorded import unpack

ARCHIVE = Path(__file__).parents[2] / "stores" / "394e107.tar.xz"
Rows = dict[bytes, bytes]
decode_intervals = msgspec.msgpack.Decoder(list[Interval]).decode


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder = tmp_path_factory.mktemp("store")
    unpack(ARCHIVE, folder)
    return uvloop.run(_load(folder))


async def _load(folder: Path) -> Rows:
    engine = factory_of(StoreKind(), folder).open_engine(wall_clock)
    try:
        await prepare(engine, folder, is_testing=None)
        return dict(await engine.read(lambda snap: list(snap.scan(b"", b"\xff"))))
    finally:
        await engine.close()


def findings(rows: Rows) -> list[str]:
    """What verification finds in a store of these rows."""
    return uvloop.run(_findings(rows))


async def _findings(rows: Rows) -> list[str]:
    engine = MemoryEngine()

    def fill(tx: Transaction) -> None:
        for key, value in rows.items():
            tx.put(key, value)

    await engine.run(fill)
    found: list[str] = []
    stated: Counter[bytes] = Counter()
    counted: Counter[bytes] = Counter()
    key: bytes | None = b""
    while key is not None:
        start = key

        def body(snap: Snapshot, start: bytes = start) -> verification.Page:
            return check_page(snap, start)

        page = await engine.read(body)
        key = page.next_key
        found += page.findings
        stated.update(page.stated)
        counted.update(page.counted)
    return found + [
        describe_difference(subject, stated[subject], counted[subject])
        for subject in sorted(stated.keys() | counted.keys())
        if stated[subject] != counted[subject]
    ]


def first(rows: Rows, letter: bytes, matches: Callable[[bytes], bool] = lambda _value: True) -> bytes:
    """The first key of a letter whose value matches."""
    return next(key for key in sorted(rows) if key.startswith(letter) and matches(rows[key]))


def test_a_sound_store(sound: Rows) -> None:
    assert findings(sound) == []


def test_the_store_has_every_kind_of_row(sound: Rows) -> None:
    """But those that version could not write."""
    assert KINDS.keys() - {key[:1] for key in sound} <= {
        b"-",
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
        b"5",
        b"6",
        b"7",
        b"8",
        b"E",
        b"X",
        b"p",
        b"A",
        b"B",
        b"!",
        b"C",
        b"G",
        b"I",
        b"9",
        b"O",
        b"Q",
        b"J",
        b"K",
        b"M",
        b"R",
        b"W",
        b"Y",
        b"Z",
    }


def test_pages_of_any_size_find_the_same(sound: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "PAGE_ROWS", 3)
    assert findings(sound) == []
    damaged = dict(sound)
    key = _second_interval_row(damaged)
    damaged[key] = encode([replace(each, offset=each.offset - 1) for each in decode_intervals(damaged[key])])
    assert [each for each in findings(damaged) if "does not begin where its key says" in each]


@pytest.mark.parametrize("letter", sorted(KINDS), ids=lambda letter: letter.decode())
def test_a_row_that_cannot_be_decoded(letter: bytes, sound: Rows) -> None:
    kind = KINDS[letter]
    if kind.check in (verification._anything, verification._body):
        return  # Any bytes will do; that bodies are as long as they should be is checked by their records.
    damaged = dict(sound)
    key = next((key for key in sound if key.startswith(letter)), letter.ljust(kind.key_bytes, b"\x01"))
    damaged[key] = b"\xff\xfe damaged"
    others = {b"x": "extent", b"l": "layer", b"e": "edge", b"o": "entity"}  # A part is read with its entity.
    name = others.get(letter, kind.name)
    assert any(each.startswith(name) for each in findings(damaged)), findings(damaged)


def test_an_unknown_letter(sound: Rows) -> None:
    assert findings({**sound, b"?what": b""}) == ["unknown row ?what: no record has keys of this letter."]


@pytest.mark.parametrize("letter", [b"d", b"x", b"m", b"h"])
def test_a_key_of_the_wrong_length(letter: bytes, sound: Rows) -> None:
    assert any("the right length" in each for each in findings({**sound, letter + b"short": b""}))


def blob_with(rows: Rows, matches: Callable[[BlobRecord], bool]) -> tuple[bytes, BlobRecord]:
    key = first(rows, b"n", lambda value: matches(decode_blob(value)))
    return key, decode_blob(rows[key])


def test_a_missing_body(sound: Rows) -> None:
    _, record = blob_with(sound, lambda record: record.content.body > 0)
    damaged = dict(sound)
    del damaged[keys.body(record.content.body)]
    assert len(findings(damaged)) == 2
    assert f"inline body {record.content.body}, which it refers to, is not there." in findings(damaged)[0]
    assert findings(damaged)[1] == f"inline body {record.content.body}: 1 references, but it is not there."


@pytest.mark.parametrize("change", [b"", b"and more"])
def test_a_body_of_another_length(change: bytes, sound: Rows) -> None:
    _, record = blob_with(sound, lambda record: record.kind == BLOCK_BLOB and record.content.body > 0)
    damaged = dict(sound)
    body = damaged[keys.body(record.content.body)]
    damaged[keys.body(record.content.body)] = body + change if change else body[:-1]
    (finding,) = findings(damaged)
    assert f"bytes instead of {record.length}" in finding


def tagged(rows: Rows) -> tuple[Rows, bytes, bytes]:
    """A store in which a blob has a tag; the key of the posting, and that of the row for its container."""
    key, record = blob_with(rows, lambda _record: True)
    container_id, name = keys.id_of(key), key[NAME_AT:].decode()
    posting = keys.posting("acme", "colour", "red", container_id, name)
    container = keys.tagged_container(container_id)
    changed = {key: encode(replace(record, tags=(("colour", "red"),))), posting: b"", container: b"acme\0box"}
    return rows | changed, posting, container


def test_tags_that_are_in_the_index(sound: Rows) -> None:
    assert findings(tagged(sound)[0]) == []


def test_a_tag_that_is_not_in_the_index(sound: Rows) -> None:
    damaged, posting, _ = tagged(sound)
    del damaged[posting]
    (finding,) = findings(damaged)
    assert finding.startswith("tag of a blob ")
    assert finding.endswith("colour\\x00red: it is not in the index.")


@pytest.mark.parametrize("changed", ["other blob", "other tag", "other value"])
def test_a_posting_that_no_blob_has(sound: Rows, changed: str) -> None:
    damaged, posting, _ = tagged(sound)
    account, tag_key, value, container_id, name = keys.parts_of_posting(posting)
    extra = {
        "other blob": keys.posting(account, tag_key, value, container_id, name + "x"),
        "other tag": keys.posting(account, "size", value, container_id, name),
        "other value": keys.posting(account, tag_key, "blue", container_id, name),
    }
    (finding,) = findings({**damaged, extra[changed]: b""})
    assert finding.endswith(": the index has it, but the blob does not.")


def test_a_posting_of_another_account(sound: Rows) -> None:
    damaged, posting, container = tagged(sound)
    (finding,) = findings({**damaged, container: b"other\0box"})
    assert finding.startswith("tag of a blob Gacme")
    assert "is of another account" in finding
    del damaged[container]
    (finding,) = findings(damaged)
    assert finding.startswith("tag of a blob Gacme")
    assert "is not there" in finding
    (finding,) = findings({**tagged(sound)[0], posting: b"not empty"})
    assert "it should be empty" in finding


def test_a_file_that_ends_before_its_content(sound: Rows) -> None:
    key = first(sound, b"N", lambda value: bool(decode_entry(value).content.intervals))
    entry = decode_entry(sound[key])
    end = entry.content.intervals[-1].end
    (finding,) = findings({**sound, key: encode(replace(entry, length=end - 1))})
    assert f"its length is {end - 1}, but its content ends at {end}." in finding


def test_a_file_with_a_body_beyond_its_end(sound: Rows) -> None:
    key = first(sound, b"N", lambda value: decode_entry(value).kind == FILE)
    entry = replace(decode_entry(sound[key]), content=Content(body=7), length=3)
    found = findings({**sound, key: encode(entry), keys.body(7): b"four"})
    assert any("inline body 7, which it refers to, has 4 bytes instead of 3." in each for each in found)


def test_a_blob_of_another_length_than_its_intervals(sound: Rows) -> None:
    key, record = blob_with(
        sound, lambda record: record.kind == BLOCK_BLOB and bool(record.content.intervals)
    )
    (finding,) = findings({**sound, key: encode(replace(record, length=record.length + 1))})
    assert f"its length is {record.length + 1}, but its content ends at {record.length}." in finding


def test_content_stored_twice(sound: Rows) -> None:
    key, record = blob_with(sound, lambda record: bool(record.content.intervals))
    content = Content(intervals=record.content.intervals, layer=1)
    assert any(
        "in two places" in each for each in findings({**sound, key: encode(replace(record, content=content))})
    )


def test_a_body_that_no_record_refers_to(sound: Rows) -> None:
    assert findings({**sound, keys.body(7): b"lost"}) == [
        "inline body 7: 1 references by its own count, but 0 in fact."
    ]


def test_a_wrong_count_of_references_to_a_body(sound: Rows) -> None:
    key = first(sound, b"k")
    count = msgspec.msgpack.decode(sound[key])
    (finding,) = findings({**sound, key: encode(count + 1)})
    assert f"{count + 1} references by its own count, but {count} in fact." in finding
    damaged = dict(sound)
    del damaged[key]
    (finding,) = findings(damaged)
    assert f"1 references by its own count, but {count} in fact." in finding


def test_references_to_a_body_that_is_not_there(sound: Rows) -> None:
    assert any("is not there" in each for each in findings({**sound, keys.sharing(7): encode(3)}))


def test_a_count_of_one_is_not_stored(sound: Rows) -> None:
    _, record = blob_with(sound, lambda record: record.content.body > 0)
    (finding,) = findings({**sound, keys.sharing(record.content.body): encode(1)})
    assert "only two or more are counted" in finding


@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_count_of_references_to_an_extent(change: int, sound: Rows) -> None:
    key = first(sound, b"x", lambda value: decode_extent(value).references > 1)
    row = decode_extent(sound[key])
    changed = replace(row, references=row.references + change)
    (finding,) = findings({**sound, key: encode(changed)})
    assert finding.endswith(
        f"{changed.references} references by its own count, but {row.references} in fact."
    )


def test_an_extent_without_references(sound: Rows) -> None:
    key = keys.extent(b"s" * 16, 0)
    (finding,) = findings({**sound, key: encode(ExtentRow(10, 0, 0))})
    assert "should be a freed extent" in finding


def test_a_missing_extent_row(sound: Rows) -> None:
    damaged = dict(sound)
    key = first(sound, b"x", lambda value: decode_extent(value).references == 1)
    del damaged[key]
    found = findings(damaged)
    assert len(found) == 2
    assert "which it refers to, is not there." in found[0]
    assert found[1].endswith("1 references, but it is not there.")


def test_an_extent_row_that_differs_from_its_reference(sound: Rows) -> None:
    key = first(sound, b"x", lambda value: decode_extent(value).references == 1)
    row = decode_extent(sound[key])
    (finding,) = findings({**sound, key: encode(replace(row, crc64=row.crc64 ^ 1))})
    assert "has another length or CRC" in finding


def test_an_interval_beyond_its_extent(sound: Rows) -> None:
    key, record = blob_with(sound, lambda record: any(each.extent for each in record.content.intervals[-1:]))
    *others, last = record.content.intervals
    content = Content(intervals=(*others, replace(last, length=last.length + 1)))
    changed = replace(record, content=content, length=record.length + 1)
    (finding,) = findings({**sound, key: encode(changed)})
    assert "an interval reaches beyond the end of extent" in finding


def test_an_extent_that_is_freed_and_referred_to(sound: Rows) -> None:
    key = first(sound, b"x")
    freed = keys.freed_extent(5, key[1:17], int.from_bytes(key[17:], "big"))
    (finding,) = findings({**sound, freed: encode(10)})
    assert "is still referred to" in finding


def test_an_unneeded_segment_that_is_referred_to(sound: Rows) -> None:
    key = first(sound, b"x")
    (finding,) = findings({**sound, keys.unneeded_segment(5, key[1:17]): b""})
    assert "is still referred to" in finding
    assert findings({**sound, keys.unneeded_segment(5, b"s" * 16): b""}) == []


def layer_where(rows: Rows, matches: Callable[[Head], bool]) -> tuple[bytes, Head]:
    key = first(rows, b"l", lambda value: matches(decode_head(value)))
    return key, decode_head(rows[key])


def test_a_wrong_count_of_records_of_a_layer(sound: Rows) -> None:
    key, head = layer_where(sound, lambda head: head.records > 0)
    (finding,) = findings({**sound, key: encode(replace(head, records=head.records + 1))})
    assert f"{head.records + 1} references by its own count, but {head.records} in fact." in finding


def test_a_wrong_count_of_the_layers_on_a_layer(sound: Rows) -> None:
    key, head = layer_where(sound, lambda head: head.uppers > 0)
    (finding,) = findings({**sound, key: encode(replace(head, uppers=head.uppers + 1))})
    assert f"{head.uppers + 1} layers on it by its own count, but {head.uppers} in fact." in finding


def test_a_pinned_read_counts(sound: Rows) -> None:
    damaged = dict(sound)
    del damaged[first(sound, b"h")]
    (finding,) = findings(damaged)
    assert "references by its own count" in finding


def test_a_missing_layer(sound: Rows) -> None:
    damaged = dict(sound)
    key, _ = layer_where(sound, lambda head: head.records > 0 and not head.uppers and not head.below)
    del damaged[key]
    found = findings(damaged)
    assert any(each.endswith("references, but it is not there.") for each in found)
    assert any(each.startswith("interval row") and "is not there" in each for each in found)


def test_a_missing_edge_and_one_too_many(sound: Rows) -> None:
    damaged = dict(sound)
    del damaged[first(sound, b"e")]
    (finding,) = findings(damaged)
    assert finding.startswith("edge between layers")
    (finding,) = findings({**sound, keys.edge(5, 6): b""})
    assert finding == "edge between layers 5 and 6: 1 edges, but 0 layers say so."


def test_a_layer_that_no_one_needs_and_that_is_not_pending(sound: Rows) -> None:
    (finding,) = findings({**sound, keys.layer(5): encode(Head(records=0))})
    assert finding.startswith("layer 5: pending compaction")
    assert "is not there" in finding


def test_a_deleted_container_and_its_expiry_need_each_other(sound: Rows) -> None:
    record = decode_container(sound[first(sound, b"c")])
    row = keys.retired_container("acme", "old", 1000)
    expiry = keys.expiry(2000, row)
    pair = {row: encode(Retired(record, Instant(1000), Instant(2000))), expiry: b""}
    assert findings(sound | pair) == []
    for left, value in pair.items():
        (finding,) = findings(sound | {left: value})
        assert finding.endswith("which it refers to, is not there.")
    assert len(findings(sound | {row: pair[row], keys.expiry(2001, row): b""})) == 1


def test_a_pending_compaction_of_no_layer(sound: Rows) -> None:
    (finding,) = findings({**sound, keys.pending_compaction(5): sound[first(sound, b"u")]})
    assert "layer 5, which it refers to, is not there." in finding


def _second_interval_row(rows: Rows) -> bytes:
    """An interval row that is not the first of its layer."""
    ordered = sorted(key for key in rows if key.startswith(b"r"))
    return next(key for before, key in pairwise(ordered) if before[:9] == key[:9])


def test_interval_rows_that_overlap(sound: Rows) -> None:
    damaged = dict(sound)
    key = _second_interval_row(sound)
    before = max(each for each in sound if each.startswith(key[:9]) and each < key)
    *others, last = decode_intervals(sound[before])
    longer = Interval(last.offset, int.from_bytes(key[9:], "big") + 1 - last.offset)
    damaged[before] = encode([*others, longer])
    assert any("before the end of the interval row before it" in each for each in findings(damaged))


def test_intervals_out_of_order(sound: Rows) -> None:
    key = first(sound, b"r", lambda value: len(decode_intervals(value)) > 2)
    one, two, *others = decode_intervals(sound[key])
    (finding,) = findings({**sound, key: encode([one, replace(two, offset=one.offset), *others])})
    assert "its intervals are not in order" in finding


def test_an_entity_under_other_keys(sound: Rows) -> None:
    damaged = dict(sound)
    key = first(sound, b"w")
    damaged[key + b"x"] = damaged.pop(key)
    (finding,) = findings(damaged)
    assert "its keys are not those of its row" in finding


def test_a_missing_part_of_an_entity(sound: Rows) -> None:
    damaged = dict(sound)
    del damaged[
        next(key for key in sound if key.startswith(b"o") and keys.deleted_table(_table_of(key)) not in sound)
    ]
    found = findings(damaged)
    assert any(each.startswith("part of an entity") and each.endswith("it is not there.") for each in found)


def test_a_piece_of_no_entity(sound: Rows) -> None:
    assert len(findings({**sound, keys.entity_part(5, 6, 0, 0): b"piece"})) == 1
    deleted = {keys.deleted_table(5): b"", keys.entity_part(5, 6, 0, 0): b"piece"}
    assert findings({**sound, **deleted}) == []


def _table_of(key: bytes) -> int:
    return int.from_bytes(key[1:9], "big")


def test_a_security_descriptor_under_another_key(sound: Rows) -> None:
    key = first(sound, b"P")
    (finding,) = findings({**sound, key: sound[key] + b" "})
    assert "its text is not that of its key" in finding


def test_accounts(sound: Rows) -> None:
    rows = {
        keys.ACCOUNTS: keys.number(5),
        keys.account("acme"): encode(AccountRecord((b"sealed",))),
        keys.account("gone"): encode(AccountRecord(is_removed=True)),
        keys.removed_account("gone"): b"",
    }
    assert findings({**sound, **rows}) == []
    del rows[keys.account("gone")]
    (finding,) = findings({**sound, **rows})
    assert finding == "account A\\x00gone: account Agone, which it refers to, is not there."
    (finding,) = findings({**sound, keys.account("acme"): b"\x91\x05"})
    assert finding.startswith("account Aacme: it cannot be decoded")


def test_a_mark_that_should_be_empty(sound: Rows) -> None:
    (finding,) = findings({**sound, keys.deleted_container(5): b"?"})
    assert "should be empty" in finding


@pytest.mark.interpreted("a compiled module has no docstring")
def test_every_letter_of_the_layout_is_known() -> None:
    documented = {
        line[4:5].encode()
        for line in (keys.__doc__ or "").partition("Letters that are kept")[0].splitlines()
        if line.startswith("    ")
        and line[4:5].strip()
        and line[5:12].strip() == ""
        and line[4:10] != "------"
    }
    assert documented == KINDS.keys()
