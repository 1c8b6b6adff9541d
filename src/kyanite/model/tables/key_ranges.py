"""Which keys a filter allows: a region of the plane of partition keys and row keys, and its key ranges in order.

A *set* of texts is a sorted tuple of half-open intervals between positions. The position ``v`` is just before the text
v, in the order of ``edm.ordinal``, and ``v\\0`` is just after it: no key contains a character below 32. A *region* is a
sorted tuple of rectangles, each an interval of partition keys with the set of row keys allowed there. Union,
intersection and complement of regions are regions, so a filter over keys alone, of any shape, becomes one region.

Comparisons with other properties allow every key. A region is *exact* if it says all that the filter says: then the
entities in it need not be tested.

Making a region is bounded, however long the filter: a region may have so many intervals, and combining regions may take
so many steps. Beyond that it is widened, to one that contains it and costs nothing to find.
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
"""Of a region. One of more intervals costs more than it saves."""
MAX_STEPS = 50_000
"""Of combining all regions of a filter: well above what a filter of MAX_INTERVALS keys takes, and some tens of
milliseconds."""


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


def region_of(wanted: Filter) -> tuple[Region, Filter | None]:
    """The smallest region known to contain every key that the filter allows, and the test that is left for entities.

    Of a conjunction only the parts are left that are not about keys alone, unless the region had to be widened.
    """
    builder = _Builder()
    if not isinstance(wanted, And):
        region = builder.region_of(wanted)
        return region, None if region.exact else wanted
    regions = [builder.region_of(part) for part in wanted.parts]
    region = builder.joined(regions, INTERSECTION)
    if region.exact:
        return region, None
    if builder.is_widened:
        return region, wanted
    parts = tuple(part for part, each in zip(wanted.parts, regions, strict=True) if not each.exact)
    return region, parts[0] if len(parts) == 1 else And(parts)


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


class Operation(NamedTuple):
    """On sets: what one item in either yields, and the results that need no look at the items."""

    of_items: Callable[[bool, bool], bool]
    at_once: Callable[[Set, Set], Set | None]


def _intersected(one: Set, other: Set) -> Set | None:
    if not one or other == ALL or one is other:
        return one
    return other if not other or one == ALL else None


def _united(one: Set, other: Set) -> Set | None:
    if not other or one == ALL or one is other:
        return one
    return other if not one or other == ALL else None


def _subtracted(one: Set, other: Set) -> Set | None:
    if not one or not other:
        return one
    return NONE if other == ALL or one is other else None


INTERSECTION = Operation(lambda one, other: one and other, _intersected)
UNION = Operation(lambda one, other: one or other, _united)
DIFFERENCE = Operation(lambda one, other: one and not other, _subtracted)


class _TooLarge(Exception):
    """A region has too many intervals, or making regions has taken too many steps."""


class _Builder:
    """Makes the regions of one filter, in MAX_STEPS steps at the most."""

    def __init__(self) -> None:
        self._steps_left = MAX_STEPS
        self.is_widened = False
        """Whether a region is larger than its parts say."""

    def region_of(self, wanted: Filter) -> Region:
        match wanted:
            case Comparison():
                return _comparison(wanted)
            case Constant():
                return EVERYTHING if wanted.value else NOTHING
            case Not():
                inner = self.region_of(wanted.inner)
                return self._pair(EVERYTHING, inner, DIFFERENCE) if inner.exact else UNKNOWN
            case And():
                return self.joined([self.region_of(part) for part in wanted.parts], INTERSECTION)
            case Or():
                return self.joined([self.region_of(part) for part in wanted.parts], UNION)

    def joined(self, regions: list[Region], operation: Operation) -> Region:
        """Combine neighbours, then the results, and so on: the regions grow evenly."""
        while len(regions) > 1:
            pairs = [self._pair(*two, operation) for two in zip(regions[::2], regions[1::2], strict=False)]
            regions = pairs + regions[len(pairs) * 2 :]
        return regions[0]

    def _pair(self, one: Region, other: Region, operation: Operation) -> Region:
        try:
            rectangles = self._combined(one.rectangles, other.rectangles, operation)
        except _TooLarge:
            self.is_widened = True
            return Region(_widened(one.rectangles, other.rectangles, operation), False)
        return Region(rectangles, one.exact and other.exact)

    def _combined(self, one: Rectangles, other: Rectangles, operation: Operation) -> Rectangles:
        """Cut the partition keys wherever a rectangle begins or ends, and combine the row keys in between."""
        self._take_steps(len(one) + len(other))
        found: list[Rectangle] = []
        intervals = 0
        for low, high, rectangle, other_rectangle in _cut(one, other):
            rows = self._combined_sets(
                rectangle.rows if rectangle else NONE,
                other_rectangle.rows if other_rectangle else NONE,
                operation,
            )
            if rows and found and found[-1].high == low and found[-1].rows == rows:
                found[-1] = Rectangle(found[-1].low, high, rows)
            elif rows:
                found.append(Rectangle(low, high, rows))
                intervals += len(rows)
                if intervals > MAX_INTERVALS:
                    raise _TooLarge
        return tuple(found)

    def _combined_sets(self, one: Set, other: Set, operation: Operation) -> Set:
        at_once = operation.at_once(one, other)
        if at_once is not None:
            return at_once
        self._take_steps(len(one) + len(other))
        found: list[Interval] = []
        for low, high, interval, other_interval in _cut(one, other):
            if not operation.of_items(interval is not None, other_interval is not None):
                continue
            if found and found[-1][1] == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
        return tuple(found)

    def _take_steps(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise _TooLarge


def _widened(one: Rectangles, other: Rectangles, operation: Operation) -> Rectangles:
    """A region that contains the result of an operation: for an intersection, an operand that bounds the partitions."""
    if operation is UNION:
        ends = [(each[0].low, each[-1].high) for each in (one, other) if each]
        return (Rectangle(min(ends)[0], max(high for _, high in ends), ALL),) if ends else ()
    is_other_better = operation is INTERSECTION and _bounds_partitions(other) and not _bounds_partitions(one)
    return other if is_other_better else one


def _bounds_partitions(rectangles: Rectangles) -> bool:
    return not rectangles or rectangles[0].low != BOTTOM or rectangles[-1].high != TOP


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
