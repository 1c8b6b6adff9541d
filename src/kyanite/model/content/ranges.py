"""Which parts of a content hold data, and which have changed between versions of a content.

Get Page Ranges and List Ranges are answered from here, a page at a time: each function returns at most ``limit`` ranges
and the offset at which the next page begins, or None. A page is read in steps. It also ends after reading very many
intervals, so the first range of the next page may touch the last of this one.

With a ``block``, ranges consist of whole blocks of that size, except at the ends of the requested range: a block in
which any byte holds data is data, and a block in which any byte has changed has changed.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, pairwise
from typing import NamedTuple

from kyanite.engine.api import Snapshot, Steps
from kyanite.model.content.content import Content, covered
from kyanite.model.content.intervals import Interval
from kyanite.model.content.layer_view import LayerView, layers

_INTERVALS_MAX = 20_000
_COST_PER_STEP = 100
_INTERVALS_TOGETHER = 100
_LAYERS_PER_STEP = 200
_VERSION_COST = 2
"""What one of several versions costs, in intervals of a single one."""


class Range(NamedTuple):
    """Bytes from ``start`` up to ``end``. In a comparison: data that is new, or what was cleared."""

    start: int
    end: int
    is_clear: bool = False


class RangePage(NamedTuple):
    ranges: list[Range]
    next_start: int | None


class _Compared(NamedTuple):
    """A part of the range that was read, and whether it holds data or has changed."""

    start: int
    end: int
    is_clear: bool
    is_found: bool


def data_ranges(
    snapshot: Snapshot, content: Content, start: int, end: int, *, limit: int, block: int = 1
) -> Steps[RangePage]:
    """Where there is data."""
    intervals = covered(snapshot, content, _floor(start, block), _ceiling(end, block))
    parts = (_Compared(each.offset, each.end, each.is_hole, not each.is_hole) for each in intervals)
    return _page(_clipped(_by_blocks(parts, block), start, end), limit, cost=1)


def changed_ranges(
    snapshot: Snapshot, versions: Sequence[Content], start: int, end: int, *, limit: int, block: int = 1
) -> Steps[RangePage]:
    """What was written or cleared between the first and the last of these versions, the oldest first.

    A write counts as a change even if it wrote the same bytes. So does data that was written and cleared again, if a
    version in between has it. A layer that all versions share is not read.
    """
    common = yield from _common_layer(snapshot, versions)
    suspects = _suspects(snapshot, versions, common, _floor(start, block), _ceiling(end, block), block)
    compared = chain.from_iterable(_compare(snapshot, versions, first, last) for first, last in suspects)
    parts = _clipped(_by_blocks(compared, block), start, end)
    return (yield from _page(parts, limit, cost=_VERSION_COST * len(versions)))


def _floor(offset: int, block: int) -> int:
    return offset // block * block


def _ceiling(offset: int, block: int) -> int:
    return -(-offset // block) * block


def _by_blocks(parts: Iterable[_Compared], block: int) -> Iterator[_Compared]:
    """The same by whole blocks. Parts of one block are combined."""
    block_so_far: _Compared | None = None
    for part in parts if block == 1 else chain.from_iterable(_blocks(each, block) for each in parts):
        if block_so_far is not None and block_so_far.start == part.start:
            is_clear = block_so_far.is_clear and part.is_clear
            block_so_far = _Compared(part.start, part.end, is_clear, block_so_far.is_found or part.is_found)
            continue
        if block_so_far is not None:
            yield block_so_far
        block_so_far = part
    if block_so_far is not None:
        yield block_so_far


def _blocks(part: _Compared, block: int) -> Iterator[_Compared]:
    """The blocks that a part touches: the first, the last and those between."""
    first, last = _floor(part.start, block), _ceiling(part.end, block)
    bounds = sorted({first, first + block, last - block, last})
    for start, end in pairwise(bounds):
        yield part._replace(start=start, end=end)


def _clipped(parts: Iterable[_Compared], start: int, end: int) -> Iterator[_Compared]:
    for each in parts:
        first, last = max(each.start, start), min(each.end, end)
        if first < last:
            yield each._replace(start=first, end=last)


def _page(parts: Iterable[_Compared], limit: int, *, cost: int) -> Steps[RangePage]:
    """Join parts of one kind that touch. Each part has this cost."""
    ranges: list[Range] = []
    per_step = max(_COST_PER_STEP // cost, 1)
    for count, (start, end, is_clear, is_found) in enumerate(parts):
        if count >= _INTERVALS_MAX:
            return RangePage(ranges, start)
        if count % per_step == per_step - 1:
            yield
        if not is_found:
            continue
        last = ranges[-1] if ranges else None
        if last is not None and last.end == start and last.is_clear == is_clear:
            ranges[-1] = Range(last.start, end, is_clear)
        elif len(ranges) == limit:
            return RangePage(ranges, start)
        else:
            ranges.append(Range(start, end, is_clear))
    return RangePage(ranges, None)


def _suspects(
    snapshot: Snapshot, versions: Sequence[Content], common: int, start: int, end: int, block: int
) -> Iterator[tuple[int, int]]:
    """The parts of the range in which versions may differ: those covered by layers above the common one.

    Long ones come in several parts, because the intervals that they consist of have to be read first.
    """
    if not common:
        yield start, end
        return
    tops = [content.layer for content in versions if content.layer != common]
    views = [LayerView(snapshot, top, until=common).intervals(start, end) for top in tops]
    covered_from = covered_to = start
    intervals = merge(*views, key=lambda interval: interval.offset)
    for count, interval in enumerate(intervals, 1):
        offset = _floor(interval.offset, block)
        if offset > covered_to:
            if covered_to > covered_from:
                yield covered_from, covered_to
            covered_from = offset
        covered_to = max(covered_to, _ceiling(interval.end, block))
        if count % _INTERVALS_TOGETHER == 0:
            yield covered_from, covered_to
            covered_from = covered_to
    if covered_to > covered_from:
        yield covered_from, covered_to


def _common_layer(snapshot: Snapshot, versions: Sequence[Content]) -> Steps[int]:
    """The highest layer that is part of every version; 0 when there is none."""
    *others, last = versions
    shared: list[set[int]] = []
    loaded = 0
    for content in others:
        shared.append(set(layers(snapshot, content.layer)))
        loaded += len(shared[-1])
        if loaded >= _LAYERS_PER_STEP:
            loaded = 0
            yield
    return next((each for each in layers(snapshot, last.layer) if all(each in found for found in shared)), 0)


def _compare(snapshot: Snapshot, versions: Sequence[Content], start: int, end: int) -> Iterator[_Compared]:
    sides = [_Side(snapshot, content, start, end) for content in versions]
    while start < end:
        found = [side.at(start) for side in sides]
        bound = min(until for _, until in found)
        is_changed = any(not _is_same(was, now) for (was, _), (now, _) in pairwise(found))
        yield _Compared(start, bound, found[-1][0] is None, is_changed)
        start = bound


class _Side:
    """One of the contents that are compared, read from left to right."""

    def __init__(self, snapshot: Snapshot, content: Content, start: int, end: int) -> None:
        self._intervals = covered(snapshot, content, start, end)
        self._interval = next(self._intervals, None)
        self._end = end

    def at(self, offset: int) -> tuple[Interval | None, int]:
        """The data at this offset, if any, and the offset up to which that is so."""
        while self._interval is not None and self._interval.end <= offset:
            self._interval = next(self._intervals, None)
        if self._interval is None:
            return None, self._end
        if self._interval.offset > offset:
            return None, self._interval.offset
        return None if self._interval.is_hole else self._interval, self._interval.end


def _is_same(was: Interval | None, now: Interval | None) -> bool:
    """Whether two intervals at one offset are the same bytes of the same source."""
    if was is None or now is None:
        return was is now
    if was.skip - was.offset != now.skip - now.offset:
        return False
    return was.extent == now.extent and was.body == now.body
