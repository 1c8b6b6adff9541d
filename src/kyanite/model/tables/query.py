"""Queries over the entities of a table: a page at a time, each page of one snapshot.

A filter is compiled once to a plan: the key ranges to read, and the test that is left for each entity in them. Where
only some row keys of many partitions are wanted, the query is a skip scan: it reads a few unwanted rows and then seeks
the next wanted one. So large partitions cost little, and small ones no more than reading on.

A page ends when it is full or has reached a limit of cost: it may be short or empty and still have a next page.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Iterator

import msgspec

from kyanite.edm import And, Filter, Not, Or, SasKeyRange, text_of_ordinal
from kyanite.engine.api import Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.tables import stored_entity, table
from kyanite.model.tables.filter import Predicate, compile_filter
from kyanite.model.tables.key_ranges import (
    ALL,
    EVERYTHING,
    KeyRange,
    Set,
    bounds_of,
    key_ranges_of,
    region_of,
)
from kyanite.model.tables.table import TableKey

MAX_ENTITIES = 1000
MAX_COST = 5000
"""Of the rows of a page, each of which costs at least 1."""
MAX_BYTES = 4 * 1024 * 1024

_UNWANTED_BEFORE_SEEK = 8
"""How many unwanted rows to read before seeking the next wanted one. A seek costs about that much."""

_COMPARISONS_PER_COST = 16
_COST_PER_STEP = 200
_SEEK_COST = 4
_COST_OF_BYTES = 10
"""As a power of two: a KiB costs as much as a row."""


class Plan(msgspec.Struct, frozen=True):
    key_ranges: tuple[KeyRange, ...]
    matches: Predicate | None
    """The test for each entity in the key ranges; None when all of them match."""
    row_cost: int = 1
    """What one entity costs. Long filters cost more."""


class Query(msgspec.Struct, frozen=True):
    """A page of entities: by which plan, from where, within which bounds, and how many."""

    plan: Plan
    first: tuple[str, str] | None = None
    """The keys at which the page begins."""
    within: SasKeyRange | None = None
    limit: int = MAX_ENTITIES
    """With 0 the page is empty and the last: there would be no progress."""


class EntityPage(msgspec.Struct, frozen=True):
    table_name: str
    texts: list[bytes]
    next_keys: tuple[str, str] | None
    """Where the next page begins, or None when this was the last."""


def plan(wanted: Filter | None) -> Plan:
    if wanted is None:
        return Plan(tuple(key_ranges_of(EVERYTHING.rectangles)), None)
    region, remaining = region_of(wanted)
    key_ranges = tuple(key_ranges_of(region.rectangles))
    if remaining is None:
        return Plan(key_ranges, None)
    return Plan(key_ranges, compile_filter(remaining), 1 + _comparisons(remaining) // _COMPARISONS_PER_COST)


def _comparisons(wanted: Filter) -> int:
    match wanted:
        case And() | Or():
            return sum(_comparisons(part) for part in wanted.parts)
        case Not():
            return _comparisons(wanted.inner)
        case _:
            return 1


def query(engine: Engine, key: TableKey, page: Query) -> Awaitable[EntityPage]:
    plan = page.plan
    low, high = bounds_of(page.within)
    if page.first is not None:
        low = max(low, keys.entity(*page.first))
    if plan.matches is None and len(plan.key_ranges) == 1 and plan.key_ranges[0].rows == ALL:
        return _next_rows(
            engine, key, page.limit, max(plan.key_ranges[0].low, low), min(plan.key_ranges[0].high, high)
        )
    return _filtered(engine, key, page, low, high)


def _next_rows(engine: Engine, key: TableKey, limit: int, low: bytes, high: bytes) -> Awaitable[EntityPage]:
    """A page that is nothing but the next rows, a thousand at most. It is read in one step."""

    def body(snap: Snapshot) -> EntityPage:
        record = table.load(snap, key)
        if limit == 0 or low >= high:
            return EntityPage(record.name, [], None)
        base = keys.entities(record.id)
        # One row more than fits gives the keys at which the next page begins.
        rows = list(snap.scan(base + low, base + high, limit=limit + 1))
        texts = [row for _, row in rows[:limit]]
        end = len(texts)
        if sum(map(len, texts)) > MAX_BYTES or {text[0] for text in texts} != {_BRACE}:
            size = 0
            for number, row in enumerate(texts):
                if size >= MAX_BYTES:
                    end = number
                    break
                texts[number] = stored_entity.whole(snap, record.id, row)
                size += len(texts[number])
        return EntityPage(record.name, texts[:end], _keys_of(rows[end][0], base) if end < len(rows) else None)

    return engine.read(body)


def _filtered(engine: Engine, key: TableKey, page: Query, low: bytes, high: bytes) -> Awaitable[EntityPage]:
    """A page of the rows that match, out of the key ranges of the plan."""
    matches, row_cost, key_ranges = page.plan.matches, page.plan.row_cost, page.plan.key_ranges

    def body(snap: Snapshot) -> Steps[EntityPage]:
        record = table.load(snap, key)
        if page.limit == 0:
            return EntityPage(record.name, [], None)
        base = keys.entities(record.id)
        texts: list[bytes] = []
        cost = size = spent = 0
        for key_range in key_ranges:
            spent += _SEEK_COST
            # One row more than fits gives the keys at which the next page begins.
            most = page.limit - len(texts) if matches is None else (MAX_COST - cost) // row_cost + 1
            start, end = max(key_range.low, low), min(key_range.high, high)
            for entity_key, row in _rows(snap, base, start, end, key_range.rows, most + 1):
                is_over = cost >= MAX_COST or size >= MAX_BYTES or row is _LIMIT
                if is_over or len(texts) >= page.limit:
                    return EntityPage(record.name, texts, _keys_of(entity_key, base))
                cost += row_cost
                spent += row_cost + (len(row) >> _COST_OF_BYTES)
                if spent >= _COST_PER_STEP:
                    spent = 0
                    yield
                if not row:
                    continue
                text = row
                if row[0] != _BRACE:
                    text = stored_entity.whole(snap, record.id, row)
                    spent += len(text) >> _COST_OF_BYTES
                size += len(text)
                if matches is None or matches(text):
                    texts.append(text)
        return EntityPage(record.name, texts, None)

    return engine.read_in_steps(body)


_BRACE = b"{"[0]
_UNWANTED = b""
_LIMIT = b"limit"
"""In place of the values of unwanted rows, and of the row at which the page must end: too many bytes were skipped."""


def _rows(
    snap: Snapshot, base: bytes, low: bytes, high: bytes, rows: Set, limit: int
) -> Iterator[tuple[bytes, bytes]]:
    if low >= high:
        return iter(())
    if rows == ALL:
        return snap.scan(base + low, base + high, limit=limit)
    return _skip(snap, base, base + low, base + high, rows)


def _skip(snap: Snapshot, base: bytes, low: bytes, high: bytes, rows: Set) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a range whose row keys are in the set, and the unwanted rows that were read, without their values."""
    starts = [interval[0] for interval in rows]
    unwanted_bytes = 0
    position: bytes | None = low
    while position is not None:
        start, position = position, None
        unwanted = 0
        for found in snap.scan(start, high):
            partition, _, row_key = found[0][len(base) :].partition(b"\0")
            nearest = bisect_right(starts, row_key) - 1
            if nearest >= 0 and row_key < rows[nearest][1]:
                unwanted = 0
                yield found
                continue
            unwanted_bytes += len(found[1])
            yield found[0], _LIMIT if unwanted_bytes > MAX_BYTES else _UNWANTED
            unwanted += 1
            if unwanted > _UNWANTED_BEFORE_SEEK:
                following = starts[nearest + 1] if nearest + 1 < len(starts) else None
                position = base + partition + (b"\1" if following is None else b"\0" + following)
                break


def _keys_of(entity_key: bytes, base: bytes) -> tuple[str, str]:
    partition, _, row_key = entity_key[len(base) :].partition(b"\0")
    return text_of_ordinal(partition), text_of_ordinal(row_key)
