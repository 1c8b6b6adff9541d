"""Which keys a filter allows: a region of the plane of partition keys and row keys, and its key ranges in order.

A *set* of texts is a sorted tuple of half-open intervals between positions. The position ``v`` is just before the text
v, in the order of ``edm.ordinal``, and ``v\\0`` is just after it: no key contains a character below 32. A *region* is a
sorted tuple of rectangles, each an interval of partition keys with the set of row keys allowed there. Union,
intersection and complement of regions are regions, so a filter over keys alone, of any shape, becomes one region.

Comparisons with other properties allow every key. A region is *exact* if it says all that the filter says: then the
entities in it need not be tested.
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

MAX_INTERVALS = 2000
"""A region of more intervals costs more than it saves: then all entities are tested."""


class Rectangle(NamedTuple):
    low: bytes
    high: bytes
    rows: Set


Rectangles = tuple[Rectangle, ...]
P = TypeVar("P", bound=tuple[Any, ...])
"""A rectangle or an interval: both begin with two positions."""


class Region(NamedTuple):
    rectangles: Rectangles
    exact: bool


EVERYTHING = Region((Rectangle(BOTTOM, TOP, ALL),), True)
NOTHING = Region((), True)
UNKNOWN = Region(EVERYTHING.rectangles, False)


class KeyRange(NamedTuple):
    """A range of keys (after the table's id) to read in order, and the set of row keys wanted in it."""

    low: bytes
    high: bytes
    rows: Set


def region_of(wanted: Filter) -> Region:
    """The smallest region known to contain every key that the filter allows."""
    match wanted:
        case Comparison():
            return _comparison(wanted)
        case Constant():
            return EVERYTHING if wanted.value else NOTHING
        case Not():
            inner = region_of(wanted.inner)
            return Region(_complement(inner.rectangles), True) if inner.exact else UNKNOWN
        case And():
            return _joined([region_of(part) for part in wanted.parts], _intersection)
        case Or():
            return _joined([region_of(part) for part in wanted.parts], _union)


def key_ranges_of(rectangles: Rectangles) -> list[KeyRange]:
    """The key ranges of a region in order, neighbours joined."""
    key_ranges: list[KeyRange] = []
    for rectangle in rectangles:
        for key_range in _key_ranges(rectangle):
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
    """The range of keys that a shared access signature allows."""
    if keys is None:
        return BOTTOM, TOP
    low = BOTTOM
    if keys.start_partition is not None:
        low = b"%b\0%b" % (ordinal(keys.start_partition), ordinal(keys.start_row or ""))
    if keys.end_partition is None:
        return low, TOP
    end = ordinal(keys.end_partition)
    return low, end + b"\1" if keys.end_row is None else b"%b\0%b\0" % (end, ordinal(keys.end_row))


def _key_ranges(rectangle: Rectangle) -> list[KeyRange]:
    if rectangle.high == rectangle.low + b"\0":
        partition = rectangle.low + b"\0"
        return [
            KeyRange(partition + low, _first_key(rectangle.high) if high == TOP else partition + high, ALL)
            for low, high in rectangle.rows
        ]
    return [KeyRange(_first_key(rectangle.low), _first_key(rectangle.high), rectangle.rows)]


def _first_key(position: bytes) -> bytes:
    """Where the keys of the partitions after a position begin."""
    if position == TOP:
        return TOP
    return position[:-1] + b"\1" if position.endswith(b"\0") else position + b"\0"


def _comparison(wanted: Comparison) -> Region:
    if wanted.name not in (PARTITION_KEY, ROW_KEY):
        return UNKNOWN
    literal = wanted.literal
    if literal.type is not EdmType.STRING:
        # Keys are texts. A value of another type is different, and neither more nor less.
        return EVERYTHING if wanted.operator is Operator.NE else NOTHING
    text = str(literal.value)
    if any(character < " " for character in text):
        return UNKNOWN
    keys = _SETS[wanted.operator](ordinal(text))
    if wanted.name == ROW_KEY:
        return Region((Rectangle(BOTTOM, TOP, keys),), True)
    return Region(tuple(Rectangle(low, high, ALL) for low, high in keys), True)


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


def _complement(rectangles: Rectangles) -> Rectangles:
    return _combined(EVERYTHING.rectangles, rectangles, _without)


def _joined(regions: list[Region], operation: Operation) -> Region:
    """Combine neighbours, then the results, and so on: the cost must not grow with the square of a filter's length."""
    while len(regions) > 1:
        pairs = [_pair(*two, operation) for two in zip(regions[::2], regions[1::2], strict=False)]
        regions = pairs + regions[len(pairs) * 2 :]
    return regions[0]


def _pair(one: Region, other: Region, operation: Operation) -> Region:
    rectangles = _combined(one.rectangles, other.rectangles, operation)
    if sum(len(rectangle.rows) for rectangle in rectangles) > MAX_INTERVALS:
        return UNKNOWN
    return Region(rectangles, one.exact and other.exact)


def _combined(one: Rectangles, other: Rectangles, operation: Operation) -> Rectangles:
    """Cut the partition keys wherever a rectangle begins or ends, and combine the row keys in between."""
    found: list[Rectangle] = []
    for low, high, rectangle, other_rectangle in _cut(one, other):
        rows = _combined_sets(
            rectangle.rows if rectangle else NONE,
            other_rectangle.rows if other_rectangle else NONE,
            operation,
        )
        if rows and found and found[-1].high == low and found[-1].rows == rows:
            found[-1] = Rectangle(found[-1].low, high, rows)
        elif rows:
            found.append(Rectangle(low, high, rows))
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


def _cut(one: Sequence[P], other: Sequence[P]) -> Iterator[tuple[bytes, bytes, P | None, P | None]]:
    """The ranges between all beginnings and ends, each with the items of both sequences that cover it."""
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
