"""Queries over the entities of a table: a page at a time, each page of one snapshot.

A filter is compiled once to a plan: the strips of keys to be read, and what is left to be asked of each entity there.
Strips are sought, not scanned. Where only some row keys of many partitions are meant, a few rows are read over and then
the next one is sought, so that large partitions cost little and small ones no more than reading on.

A page ends when it is full, and also when it has cost enough: it may be short or empty and still go on.
"""

from bisect import bisect_right
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

from kyanite.edm import And, Filter, Not, Or, SasKeyRange, text_of_ordinal
from kyanite.engine.api import Engine, Snapshot
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
MAX_LOOKED_AT = 5000
MAX_BYTES = 4 * 1024 * 1024

_READ_OVER = 8
"""How many rows that are not meant to read before seeking the next one. A seek costs about that much."""


_COMPARISONS_AT_ONE_PRICE = 16


@dataclass(frozen=True, slots=True)
class Plan:
    key_ranges: tuple[KeyRange, ...]
    matches: Predicate | None
    """What is left to be asked of each entity in the strips; None when all of them are meant."""
    row_cost: int = 1
    """How much of what a page may look at one entity uses up. Long filters cost more."""


@dataclass(frozen=True, slots=True)
class Ask:
    """From where on, within which bounds and how many entities of a plan are wanted."""

    plan: Plan
    first: tuple[str, str] | None = None
    """The keys at which the page begins."""
    within: SasKeyRange | None = None
    limit: int = MAX_ENTITIES
    """With 0 the page is empty and the last: nobody can go on by pages of nothing."""


@dataclass(frozen=True, slots=True)
class EntityPage:
    table_name: str
    texts: list[bytes]
    next_keys: tuple[str, str] | None
    """Where the next page begins, or None when this was the last."""


def plan(wanted: Filter | None) -> Plan:
    if wanted is None:
        return Plan(tuple(key_ranges_of(EVERYTHING.bands)), None)
    region = region_of(wanted)
    key_ranges = tuple(key_ranges_of(region.bands))
    if region.exact:
        return Plan(key_ranges, None)
    left = _left_to_ask(wanted)
    return Plan(key_ranges, compile_filter(left), 1 + _comparisons(left) // _COMPARISONS_AT_ONE_PRICE)


def _left_to_ask(wanted: Filter) -> Filter:
    """What the region does not say: of a conjunction, those parts that are not about keys alone."""
    if not isinstance(wanted, And) or region_of(wanted).bands == EVERYTHING.bands:
        return wanted
    parts = tuple(part for part in wanted.parts if not region_of(part).exact)
    return parts[0] if len(parts) == 1 else And(parts)


def _comparisons(wanted: Filter) -> int:
    match wanted:
        case And() | Or():
            return sum(_comparisons(part) for part in wanted.parts)
        case Not():
            return _comparisons(wanted.inner)
        case _:
            return 1


def query(engine: Engine, key: TableKey, request: Ask) -> Awaitable[EntityPage]:
    matches, row_cost = request.plan.matches, request.plan.row_cost
    low, high = bounds_of(request.within)
    if request.first is not None:
        low = max(low, keys.entity(*request.first))

    def body(snap: Snapshot) -> EntityPage:
        record = table.load(snap, key)
        if request.limit == 0:
            return EntityPage(record.name, [], None)
        base = keys.entities(record.id)
        texts: list[bytes] = []
        looked_at = size = 0
        for key_range in request.plan.key_ranges:
            # One row more than can be used shows where the next page begins.
            most = (
                request.limit - len(texts) if matches is None else (MAX_LOOKED_AT - looked_at) // row_cost + 1
            )
            start, end = max(key_range.low, low), min(key_range.high, high)
            for entity_key, row in _rows(snap, base, start, end, key_range.rows, most + 1):
                is_enough = looked_at >= MAX_LOOKED_AT or size >= MAX_BYTES or row is _ENOUGH
                if is_enough or len(texts) >= request.limit:
                    return EntityPage(record.name, texts, _keys_of(entity_key, base))
                looked_at += row_cost
                if not row:
                    continue
                text = row if row[0] == _BRACE else stored_entity.whole(snap, record.id, row)
                size += len(text)
                if matches is None or matches(text):
                    texts.append(text)
        return EntityPage(record.name, texts, None)

    return engine.read(body)


_BRACE = b"{"[0]
_NOT_MEANT = b""
_ENOUGH = b"enough"
"""Stand for the rows that are read over, and for one at which so much has been read over that the page shall end."""


def _rows(
    snap: Snapshot, base: bytes, low: bytes, high: bytes, rows: Set, limit: int
) -> Iterator[tuple[bytes, bytes]]:
    if low >= high:
        return iter(())
    if rows == ALL:
        return snap.scan(base + low, base + high, limit=limit)
    return _skip(snap, base, base + low, base + high, rows)


def _skip(snap: Snapshot, base: bytes, low: bytes, high: bytes, rows: Set) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a stretch whose row keys are in the set, and without their values those that are read over."""
    starts = [interval[0] for interval in rows]
    read_over_bytes = 0
    position: bytes | None = low
    while position is not None:
        start, position = position, None
        read_over = 0
        for found in snap.scan(start, high):
            partition, _, row_key = found[0][len(base) :].partition(b"\0")
            nearest = bisect_right(starts, row_key) - 1
            if nearest >= 0 and row_key < rows[nearest][1]:
                read_over = 0
                yield found
                continue
            read_over_bytes += len(found[1])
            yield found[0], _ENOUGH if read_over_bytes > MAX_BYTES else _NOT_MEANT
            read_over += 1
            if read_over > _READ_OVER:
                following = starts[nearest + 1] if nearest + 1 < len(starts) else None
                position = base + partition + (b"\1" if following is None else b"\0" + following)
                break


def _keys_of(entity_key: bytes, base: bytes) -> tuple[str, str]:
    partition, _, row_key = entity_key[len(base) :].partition(b"\0")
    return text_of_ordinal(partition), text_of_ordinal(row_key)
