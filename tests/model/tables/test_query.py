"""Queries: every filter finds exactly what it means, in order and page by page, and reads no more than it must."""

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar, cast
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kyanite.edm import SasKeyRange
from kyanite.engine.api import Engine, Snapshot
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.tables import entity, query, table
from kyanite.model.tables.change import Change
from kyanite.model.tables.query import MAX_BYTES, MAX_COST, EntityPage, Query
from kyanite.model.tables.table import TableKey
from kyanite.rules.entities import Act
from kyanite.values import Instant
from kyanite.wire.edm import decode_entity
from kyanite.wire.odata import decode_filter
from tests.model.tables.world import (
    COMPARISONS,
    ENTITIES,
    FILTERS,
    KEY_CHARACTERS,
    KEY_FILTERS,
    KEYS,
    STRING,
    Entity,
    Typed,
    in_order,
    is_true_of,
    written,
)
from tests.profiles import examples

T = TypeVar("T")
TABLE = TableKey("acme", "Things")


async def filled(entities: Sequence[Entity]) -> MemoryEngine:
    engine = MemoryEngine()
    await table.create(engine, TABLE)
    for each in entities:
        await insert(engine, each.as_json())
    return engine


async def insert(engine: Engine, body: bytes) -> None:
    partition_key, row_key, properties = decode_entity(body)
    assert partition_key is not None
    assert row_key is not None
    await entity.apply(engine, TABLE, [Change(Act.INSERT, partition_key, row_key, properties)])


async def find_all(
    engine: Engine, text: str, limit: int = 1000, within: SasKeyRange | None = None
) -> list[Any]:
    """All pages of a query, and how the entities in them are called."""
    plan = query.plan(decode_filter(text))
    found: list[Any] = []
    first: tuple[str, str] | None = None
    for _ in range(200):
        page = await query.query(engine, TABLE, Query(plan, first, within, limit))
        assert len(page.texts) <= limit
        found += [json.loads(each) for each in page.texts]
        first = page.next_keys
        if first is None:
            return [(each["PartitionKey"], each["RowKey"]) for each in found]
    raise AssertionError("the pages do not end")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, as none does on the memory engine."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("it waits")


def keys_of(entities: Sequence[Entity]) -> list[tuple[str, str]]:
    return [(each.partition_key, each.row_key) for each in entities]


@settings(max_examples=examples(150))
@given(ENTITIES, FILTERS | COMPARISONS, st.integers(1, 5), st.sampled_from([1, 2, 3, MAX_COST]))
def test_a_filter_finds_what_it_means(entities: list[Entity], wanted: Any, limit: int, max_cost: int) -> None:
    """However few entities a page may have, and however few it may look at."""
    engine = at_once(filled(entities))
    expected = [each for each in in_order(entities) if is_true_of(wanted, each)]
    with patch.object(query, "MAX_COST", max_cost):
        assert at_once(find_all(engine, written(wanted), limit)) == keys_of(expected)


@given(ENTITIES, KEY_FILTERS)
def test_a_filter_over_keys_alone_looks_at_no_entity(entities: list[Entity], wanted: Any) -> None:
    plan = query.plan(decode_filter(written(wanted)))
    assert plan.matches is None
    engine = at_once(filled(entities))
    expected = [each for each in in_order(entities) if is_true_of(wanted, each)]
    assert at_once(find_all(engine, written(wanted))) == keys_of(expected)


@given(ENTITIES, FILTERS, st.tuples(KEYS, KEYS, KEYS, KEYS))
def test_a_token_shows_its_range_only(
    entities: list[Entity], wanted: Any, ends: tuple[str, str, str, str]
) -> None:
    shared = SasKeyRange(*ends)
    inside = ("and", _from(ends[0], ends[1]), _to(ends[2], ends[3]))
    expected = [each for each in in_order(entities) if is_true_of(("and", inside, wanted), each)]
    engine = at_once(filled(entities))
    assert at_once(find_all(engine, written(wanted), within=shared)) == keys_of(expected)


def _from(partition_key: str, row_key: str) -> Any:
    same = ("and", ("eq", "PartitionKey", _text(partition_key)), ("ge", "RowKey", _text(row_key)))
    return ("or", ("gt", "PartitionKey", _text(partition_key)), same)


def _to(partition_key: str, row_key: str) -> Any:
    same = ("and", ("eq", "PartitionKey", _text(partition_key)), ("le", "RowKey", _text(row_key)))
    return ("or", ("lt", "PartitionKey", _text(partition_key)), same)


def _text(text: str) -> Typed:
    return Typed(STRING, text)


def test_the_keys_that_are_tried_are_in_another_order_as_code_points() -> None:
    assert sorted(KEY_CHARACTERS) != sorted(KEY_CHARACTERS, key=lambda text: text.encode("utf-16-be"))


# How much is read


class Watched:
    """An engine that counts the rows its readers scan."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.rows = 0

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        return self._engine.read(lambda snap: body(_WatchedSnapshot(snap, self)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _WatchedSnapshot:
    def __init__(self, snap: Snapshot, watched: Watched) -> None:
        self._snap = snap
        self._watched = watched

    @property
    def now(self) -> Instant:
        return self._snap.now

    def get(self, key: bytes) -> bytes | None:
        return self._snap.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._snap.get_many(keys)

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        for row in self._snap.scan(start, end, reverse=reverse, limit=limit):
            self._watched.rows += 1
            yield row

    def scan_groups(
        self, start: bytes, end: bytes, *, inside: int, delimiter: bytes, limit: int
    ) -> Iterator[tuple[bytes, bytes]]:
        return self._snap.scan_groups(start, end, inside=inside, delimiter=delimiter, limit=limit)

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        return self._snap.without_checksum(start, end)


async def twenty_partitions() -> Watched:
    engine = MemoryEngine()
    await table.create(engine, TABLE)
    for partition in range(20):
        for first in range(0, 200, 100):
            changes = [
                Change(Act.INSERT, f"p{partition:02}", f"r{row:03}", {"n": row})
                for row in range(first, first + 100)
            ]
            await entity.apply(engine, TABLE, changes)
    return Watched(engine)


@pytest.mark.parametrize(
    ("text", "found", "most"),
    [
        ("PartitionKey eq 'p07' and RowKey eq 'r050'", 1, 1),
        ("PartitionKey eq 'p07'", 200, 200),
        ("PartitionKey eq 'p07' and n eq 5", 1, 200),
        ("n eq 5 and PartitionKey eq 'p07' and RowKey lt 'r010'", 1, 10),
        ("PartitionKey eq 'p07' and RowKey ge 'r190'", 10, 10),
        ("PartitionKey ge 'p18'", 400, 400),
        ("PartitionKey gt 'p05' and PartitionKey lt 'p07'", 200, 200),
        ("not (PartitionKey lt 'p19')", 200, 200),
        ("PartitionKey eq 'p03' or PartitionKey eq 'p17'", 400, 400),
        ("(PartitionKey eq 'p03' and n lt 2) or (PartitionKey eq 'p17' and n lt 3)", 5, 400),
        ("PartitionKey eq 'p03' and (RowKey eq 'r001' or RowKey eq 'r150')", 2, 2),
        ("PartitionKey gt 'p19' or (PartitionKey eq 'p19' and RowKey gt 'r197')", 2, 2),
        # A row of every partition: sought in each, with a few rows read over.
        ("RowKey eq 'r150'", 20, 20 * 20),
        ("RowKey ge 'r198'", 40, 20 * 20),
        ("RowKey eq 'r010' or RowKey eq 'r180'", 40, 20 * 30),
        ("PartitionKey ge 'p10' and RowKey eq 'r150' and n eq 150", 10, 10 * 20),
        # Nothing can match.
        ("PartitionKey eq 5", 0, 0),
        ("PartitionKey eq 'p01' and PartitionKey eq 'p02'", 0, 0),
        ("RowKey gt 'r5' and RowKey lt 'r4' and n eq 1", 0, 0),
        ("false", 0, 0),
    ],
)
async def test_keys_are_sought_and_not_scanned(text: str, found: int, most: int) -> None:
    watched = await twenty_partitions()
    assert len(await find_all(watched, text)) == found
    assert watched.rows <= most


async def test_a_page_ends_when_it_has_cost_enough() -> None:
    watched = await twenty_partitions()
    plan = query.plan(decode_filter(" or ".join(["n eq -1"] * 200)))
    page = await query.query(watched, TABLE, Query(plan))
    assert page.texts == []
    assert page.next_keys is not None
    assert watched.rows < MAX_COST / 10


async def test_a_page_ends_when_it_is_large() -> None:
    engine = MemoryEngine()
    await table.create(engine, TABLE)
    properties = {f"t{number}": "x" * 30_000 for number in range(16)}
    for row in range(40):
        await entity.apply(engine, TABLE, [Change(Act.INSERT, "p", f"{row:02}", properties)])
    page: EntityPage = await query.query(engine, TABLE, Query(query.plan(None)))
    assert 0 < len(page.texts) < 40
    assert sum(map(len, page.texts)) < MAX_BYTES + 1024 * 1024
    assert len(await find_all(engine, "")) == 40
    # Large ones that are only read over count as well.
    request = Query(query.plan(decode_filter("RowKey eq '00' or RowKey eq '39'")))
    page = await query.query(engine, TABLE, request)
    assert len(await find_all(engine, "RowKey eq '00' or RowKey eq '39'")) == 2
    request = Query(query.plan(decode_filter("PartitionKey ge 'a' and RowKey eq 'x'")))
    for row in range(300):
        await entity.apply(engine, TABLE, [Change(Act.INSERT, f"q{row}", "large", {"t": "x" * 15_000})])
    await insert(engine, b'{"PartitionKey":"z","RowKey":"x"}')
    page = await query.query(engine, TABLE, request)
    assert page.next_keys is not None
    assert await find_all(engine, "PartitionKey ge 'a' and RowKey eq 'x'") == [("z", "x")]


async def test_a_page_is_one_snapshot_and_goes_on_at_a_key() -> None:
    engine = MemoryEngine()
    await table.create(engine, TABLE)
    for row in ("a", "c", "e"):
        await insert(engine, json.dumps({"PartitionKey": "p", "RowKey": row}).encode())
    request = Query(query.plan(None), limit=2)
    page = await query.query(engine, TABLE, request)
    assert page.next_keys == ("p", "e")
    await insert(engine, b'{"PartitionKey":"p","RowKey":"b"}')
    await insert(engine, b'{"PartitionKey":"p","RowKey":"f"}')
    rest = await query.query(engine, TABLE, Query(request.plan, page.next_keys))
    assert [json.loads(text)["RowKey"] for text in rest.texts] == ["e", "f"]


WRITTEN_AT = Instant(639_259_820_000_000_010)
"""One microsecond past a full second: its text ends in a zero that a client would leave out."""
TIME = "datetime'2026-09-26T01:13:20.000001Z'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Timestamp eq {TIME}", 1),
        (f"Timestamp ne {TIME}", 0),
        (f"Timestamp ge {TIME} and Timestamp le {TIME}", 1),
        (f"Timestamp gt {TIME} or Timestamp lt {TIME}", 0),
        ("Timestamp gt datetime'2026-09-26T01:13:20Z'", 1),
        ("Timestamp lt datetime'2026-09-26T01:13:20.1Z'", 1),
        ("Timestamp lt datetime'2020-01-01T00:00:00Z'", 0),
        ("Timestamp eq '2026-09-26T01:13:20.0000010Z'", 0),
        ("Timestamp ne 5", 1),
    ],
)
async def test_filters_may_name_the_time_of_the_last_change(text: str, expected: int) -> None:
    moments = iter([Instant(WRITTEN_AT - 1), WRITTEN_AT])
    engine = MemoryEngine(clock=lambda: next(moments))
    await table.create(engine, TABLE)
    await insert(engine, b'{"PartitionKey":"p","RowKey":"r"}')
    assert len(await find_all(engine, text)) == expected
