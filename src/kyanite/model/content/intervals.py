"""Intervals: bytes of a content, and where they are stored. Lists of intervals are sorted and never overlap.

Pure functions only. The modules above load a few rows, work on a list in memory and store it again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from kyanite.extents.api import Extent

ENDLESS = 1 << 62
"""Beyond any offset."""


class Interval(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes of an extent or of an inline body, or a hole. Stored: fields are only ever added at the end."""

    offset: int
    length: int
    skip: int = 0
    """Where in the extent or body it begins."""
    extent: Extent | None = None
    body: int = 0
    """The number of an inline body."""
    tag: bytes = b""
    """The id of the block that begins here. An interval without a tag belongs to the block before it."""

    @property
    def end(self) -> int:
        return self.offset + self.length

    @property
    def is_hole(self) -> bool:
        return self.extent is None and not self.body


_offset_of = attrgetter("offset")
_end_of = attrgetter("end")


class Cut(NamedTuple):
    """A list that is split at the ends of a range."""

    before: list[Interval]
    inside: list[Interval]
    behind: list[Interval]
    touched: list[Interval]
    """The intervals of the list that reach into the range, not clipped."""
    remains: list[Interval]
    """The parts of those that are outside the range, and now in ``before`` or ``behind``."""


def clip(interval: Interval, start: int, end: int) -> Interval:
    """The part of the interval within the range. Only a part that still begins with the block keeps the tag."""
    first, last = max(interval.offset, start), min(interval.end, end)
    if first == interval.offset and last == interval.end:
        return interval
    return Interval(
        first,
        last - first,
        interval.skip + first - interval.offset,
        interval.extent,
        interval.body,
        interval.tag if first == interval.offset else b"",
    )


def cut(intervals: list[Interval], start: int, end: int) -> Cut:
    """Split the list. An interval across both ends of the range is split too, and its source is then named twice."""
    first = bisect_right(intervals, start, key=_end_of)
    last = bisect_left(intervals, end, lo=first, key=_offset_of)
    before, touched, behind = intervals[:first], intervals[first:last], intervals[last:]
    inside, remains = list(touched), []
    if touched and touched[-1].end > end:
        remains.append(clip(touched[-1], end, touched[-1].end))
        behind = [*remains, *behind]
        inside[-1] = clip(inside[-1], start, end)
    if touched and touched[0].offset < start:
        remains.append(clip(touched[0], touched[0].offset, start))
        before.append(remains[-1])
        inside[0] = clip(inside[0], start, end)
    return Cut(before, inside, behind, touched, remains)


def gaps(intervals: Iterable[Interval], start: int, end: int) -> list[tuple[int, int]]:
    """The parts of the range that no interval covers, as (start, end)."""
    found = []
    for interval in intervals:
        if interval.offset > start:
            found.append((start, min(interval.offset, end)))
        start = max(start, interval.end)
        if start >= end:
            return found
    found.append((start, end))
    return found


def lay_out(extents: Sequence[Extent], offset: int, tag: bytes = b"") -> list[Interval]:
    """Whole extents, one after the other."""
    intervals = []
    for each in extents:
        # An extent that was just written has its checksums, too.
        extent = Extent(each.segment, each.start, each.length, each.crc64)
        intervals.append(Interval(offset, extent.length, 0, extent, 0, tag))
        offset += extent.length
        tag = b""
    return intervals
