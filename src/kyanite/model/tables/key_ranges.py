"""Which keys a filter allows: a region of the plane of partition keys and row keys, and how to visit it in order.

A *set* of texts is a sorted tuple of half-open intervals between positions. The position ``v`` is just before the text
v, in the order of ``edm.ordinal``, and ``v\\0`` is just behind it: no key holds a character below 32. A *region* is a
sorted tuple of bands, each an interval of partition keys with the set of row keys allowed there. Union, intersection
and complement of regions are regions, so a filter over keys alone, of whatever shape, becomes exactly one region.

Comparisons with other properties allow every key. Whether the region says all that the filter says is its *exactness*:
an exact region needs no look at the entities.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from kyanite.edm import (
    PARTITION_KEY,
    ROW_KEY,
    And,
    Comparison,
    Constant,
    EdmType,
    Filter,
    Not,
    Operator,
    Or,
    SasKeyRange,
    ordinal,
)

Interval = tuple[bytes, bytes]
Set = tuple[Interval, ...]

BOTTOM, TOP = b"", b"\xff"
ALL: Set = ((BOTTOM, TOP),)
NONE: Set = ()

MAX_PIECES = 2000
"""A region of more pieces is not worth having: then everything is looked at."""


class KeyBand(NamedTuple):
    low: bytes
    high: bytes
    rows: Set


Bands = tuple[KeyBand, ...]
B = TypeVar("B", bound=tuple[Any, ...])
"""A band or an interval: both begin with two positions."""


class Region(NamedTuple):
    bands: Bands
    exact: bool


EVERYTHING = Region((KeyBand(BOTTOM, TOP, ALL),), True)
NOTHING = Region((), True)
UNKNOWN = Region(EVERYTHING.bands, False)


class KeyRange(NamedTuple):
    """A stretch of keys (behind the table's id) to be read in order; of its rows only those in the set are meant."""

    low: bytes
    high: bytes
    rows: Set


def region_of(wanted: Filter) -> Region:
    """The smallest region known to hold every key that the filter allows."""
    match wanted:
        case Comparison():
            return _comparison(wanted)
        case Constant():
            return EVERYTHING if wanted.holds else NOTHING
        case Not():
            inner = region_of(wanted.inner)
            return Region(_complement(inner.bands), True) if inner.exact else UNKNOWN
        case And():
            return _joined([region_of(part) for part in wanted.parts], _intersection)
        case Or():
            return _joined([region_of(part) for part in wanted.parts], _union)


def key_ranges_of(bands: Bands) -> list[KeyRange]:
    """How to visit a region in the order of its keys, neighbours joined."""
    key_ranges: list[KeyRange] = []
    for band in bands:
        for key_range in _key_ranges(band):
            if (
                key_ranges
                and key_ranges[-1].high == key_range.low
                and key_ranges[-1].rows == key_range.rows == ALL
            ):
                key_ranges[-1] = KeyRange(key_ranges[-1].low, key_range.high, ALL)
            else:
                key_ranges.append(key_range)
    return key_ranges


def bounds_of(keys: SasKeyRange | None) -> Interval:
    """The stretch of keys that a token opens."""
    if keys is None:
        return BOTTOM, TOP
    low = BOTTOM
    if keys.start_partition is not None:
        low = b"%b\0%b" % (ordinal(keys.start_partition), ordinal(keys.start_row or ""))
    if keys.end_partition is None:
        return low, TOP
    end = ordinal(keys.end_partition)
    return low, end + b"\1" if keys.end_row is None else b"%b\0%b\0" % (end, ordinal(keys.end_row))


def _key_ranges(band: KeyBand) -> list[KeyRange]:
    if band.high == band.low + b"\0":
        partition = band.low + b"\0"
        return [
            KeyRange(partition + low, _first_key(band.high) if high == TOP else partition + high, ALL)
            for low, high in band.rows
        ]
    return [KeyRange(_first_key(band.low), _first_key(band.high), band.rows)]


def _first_key(position: bytes) -> bytes:
    """Where the keys of the partitions behind a position begin."""
    if position == TOP:
        return TOP
    return position[:-1] + b"\1" if position.endswith(b"\0") else position + b"\0"


def _comparison(wanted: Comparison) -> Region:
    if wanted.name not in (PARTITION_KEY, ROW_KEY):
        return UNKNOWN
    literal = wanted.literal
    if literal.type is not EdmType.STRING:
        # Keys are texts. What is of another type differs, and is neither more nor less.
        return EVERYTHING if wanted.operator is Operator.NE else NOTHING
    text = str(literal.value)
    if any(character < " " for character in text):
        return UNKNOWN
    keys = _SETS[wanted.operator](ordinal(text))
    if wanted.name == ROW_KEY:
        return Region((KeyBand(BOTTOM, TOP, keys),), True)
    return Region(tuple(KeyBand(low, high, ALL) for low, high in keys), True)


def _between(low: bytes, high: bytes) -> Set:
    return ((low, high),) if low < high else NONE


_SETS: dict[Operator, Callable[[bytes], Set]] = {
    Operator.EQ: lambda text: _between(text, text + b"\0"),
    Operator.NE: lambda text: _between(BOTTOM, text) + _between(text + b"\0", TOP),
    Operator.GT: lambda text: _between(text + b"\0", TOP),
    Operator.GE: lambda text: _between(text, TOP),
    Operator.LT: lambda text: _between(BOTTOM, text),
    Operator.LE: lambda text: _between(BOTTOM, text + b"\0"),
}

Operation = Callable[[bool, bool], bool]


def _intersection(one: bool, other: bool) -> bool:
    return one and other


def _union(one: bool, other: bool) -> bool:
    return one or other


def _without(one: bool, other: bool) -> bool:
    return one and not other


def _complement(bands: Bands) -> Bands:
    return _combined(EVERYTHING.bands, bands, _without)


def _joined(regions: list[Region], operation: Operation) -> Region:
    """Combine neighbours, then the results, and so on: long filters must not cost the square of their length."""
    while len(regions) > 1:
        pairs = [_pair(*two, operation) for two in zip(regions[::2], regions[1::2], strict=False)]
        regions = pairs + regions[len(pairs) * 2 :]
    return regions[0]


def _pair(one: Region, other: Region, operation: Operation) -> Region:
    bands = _combined(one.bands, other.bands, operation)
    if sum(len(band.rows) for band in bands) > MAX_PIECES:
        return UNKNOWN
    return Region(bands, one.exact and other.exact)


def _combined(one: Bands, other: Bands, operation: Operation) -> Bands:
    """Cut the partition keys wherever either region begins or ends a band, and combine the rows in between."""
    found: list[KeyBand] = []
    for low, high, band, other_band in _cut(one, other):
        rows = _combined_sets(band.rows if band else NONE, other_band.rows if other_band else NONE, operation)
        if rows and found and found[-1].high == low and found[-1].rows == rows:
            found[-1] = KeyBand(found[-1].low, high, rows)
        elif rows:
            found.append(KeyBand(low, high, rows))
    return tuple(found)


def _combined_sets(one: Set, other: Set, operation: Operation) -> Set:
    found: list[Interval] = []
    for low, high, interval, other_interval in _cut(one, other):
        if not operation(interval is not None, other_interval is not None):
            continue
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def _cut(one: Sequence[B], other: Sequence[B]) -> Iterator[tuple[bytes, bytes, B | None, B | None]]:
    """The stretches between all beginnings and ends, each with what of the one and the other is there."""
    cuts = sorted({position for each in (*one, *other) for position in each[:2]})
    at = other_at = 0
    for low, high in pairwise(cuts):
        while at < len(one) and one[at][1] <= low:
            at += 1
        while other_at < len(other) and other[other_at][1] <= low:
            other_at += 1
        here = one[at] if at < len(one) and one[at][0] <= low else None
        there = other[other_at] if other_at < len(other) and other[other_at][0] <= low else None
        yield low, high, here, there
