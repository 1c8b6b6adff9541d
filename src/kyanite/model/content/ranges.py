"""Which parts of a content hold data, and which have changed since another content of the same descent.

Get Page Ranges and List Ranges are answered from here, a page at a time: each function gives at most
``limit`` ranges and the offset at which the next page begins, or None. A page also ends when it has looked at
very many intervals, so the first range of the next one may touch the last of this one.

With a ``block`` ranges are told by whole blocks of that size, but for the ends of what was asked for: a block in which
any byte holds data is data, and one in which any byte has changed has changed.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, pairwise
from typing import NamedTuple

from kyanite.engine.api import Snapshot
from kyanite.model.content.content import Content, visible
from kyanite.model.content.intervals import Interval
from kyanite.model.content.layer_view import LayerView, layers

_LOOKED_AT_MAX = 20_000


class Range(NamedTuple):
    """Bytes from ``start`` up to ``end``. In a comparison: data that is new, or what was cleared."""

    start: int
    end: int
    is_clear: bool = False


class Page(NamedTuple):
    ranges: list[Range]
    next_start: int | None


class _Stretch(NamedTuple):
    """A range, or a stretch that was looked at without finding one."""

    start: int
    end: int
    is_clear: bool
    is_found: bool


def data_ranges(
    snapshot: Snapshot, content: Content, start: int, end: int, *, limit: int, block: int = 1
) -> Page:
    """Where there is data."""
    pieces = visible(snapshot, content, _floor(start, block), _ceiling(end, block))
    stretches = (_Stretch(piece.offset, piece.end, False, True) for piece in pieces)
    return _page(_clipped(_by_blocks(stretches, block), start, end), limit)


def changed_ranges(
    snapshot: Snapshot, versions: Sequence[Content], start: int, end: int, *, limit: int, block: int = 1
) -> Page:
    """What was written or cleared between the first and the last of some versions of a content, the oldest first.

    A write counts as a change even if it wrote the same bytes, and so does what was written and cleared again
    if a version in between shows it. What all see in a layer that they share is not looked at.
    """
    suspects = _suspects(snapshot, versions, _floor(start, block), _ceiling(end, block), block)
    compared = chain.from_iterable(_compare(snapshot, versions, first, last) for first, last in suspects)
    return _page(_clipped(_by_blocks(compared, block), start, end), limit)


def _floor(offset: int, block: int) -> int:
    return offset // block * block


def _ceiling(offset: int, block: int) -> int:
    return -(-offset // block) * block


def _by_blocks(stretches: Iterable[_Stretch], block: int) -> Iterator[_Stretch]:
    """The same by whole blocks. What is said of parts of one block is put together."""
    gathered: _Stretch | None = None
    for piece in stretches if block == 1 else chain.from_iterable(_blocks(each, block) for each in stretches):
        if gathered is not None and gathered.start == piece.start:
            is_clear = gathered.is_clear and piece.is_clear
            gathered = _Stretch(piece.start, piece.end, is_clear, gathered.is_found or piece.is_found)
            continue
        if gathered is not None:
            yield gathered
        gathered = piece
    if gathered is not None:
        yield gathered


def _blocks(stretch: _Stretch, block: int) -> Iterator[_Stretch]:
    """The blocks that a stretch touches: the first, the last and what lies between."""
    first, last = _floor(stretch.start, block), _ceiling(stretch.end, block)
    bounds = sorted({first, first + block, last - block, last})
    for start, end in pairwise(bounds):
        yield stretch._replace(start=start, end=end)


def _clipped(stretches: Iterable[_Stretch], start: int, end: int) -> Iterator[_Stretch]:
    for each in stretches:
        if each.start < end and each.end > start:
            yield each._replace(start=max(each.start, start), end=min(each.end, end))


def _page(stretches: Iterable[_Stretch], limit: int) -> Page:
    """Neighbours of a kind are one range."""
    ranges: list[Range] = []
    for looked_at, (start, end, is_clear, is_found) in enumerate(stretches):
        if looked_at >= _LOOKED_AT_MAX:
            return Page(ranges, start)
        if not is_found:
            continue
        last = ranges[-1] if ranges else None
        if last is not None and last.end == start and last.is_clear == is_clear:
            ranges[-1] = Range(last.start, end, is_clear)
        elif len(ranges) == limit:
            return Page(ranges, start)
        else:
            ranges.append(Range(start, end, is_clear))
    return Page(ranges, None)


def _suspects(
    snapshot: Snapshot, versions: Sequence[Content], start: int, end: int, block: int
) -> Iterator[tuple[int, int]]:
    """The parts of the range in which versions may differ: those covered above the layer that all have."""
    common = _common_layer(snapshot, versions)
    if not common:
        yield start, end
        return
    tops = [content.layer for content in versions if content.layer != common]
    views = [LayerView(snapshot, top, until=common).intervals(start, end) for top in tops]
    covered_from = covered_to = start
    for interval in merge(*views, key=lambda interval: interval.offset):
        offset = _floor(interval.offset, block)
        if offset > covered_to:
            if covered_to > covered_from:
                yield covered_from, covered_to
            covered_from = offset
        covered_to = max(covered_to, _ceiling(interval.end, block))
    if covered_to > covered_from:
        yield covered_from, covered_to


def _common_layer(snapshot: Snapshot, versions: Sequence[Content]) -> int:
    """The highest layer that is part of every version; 0 when there is none."""
    *others, last = versions
    shared = [set(layers(snapshot, content.layer)) for content in others]
    return next((each for each in layers(snapshot, last.layer) if all(each in found for found in shared)), 0)


def _compare(snapshot: Snapshot, versions: Sequence[Content], start: int, end: int) -> Iterator[_Stretch]:
    sides = [_Side(snapshot, content, start, end) for content in versions]
    while start < end:
        seen = [side.at(start) for side in sides]
        bound = min(until for _, until in seen)
        is_changed = any(not _is_same(was, now) for (was, _), (now, _) in pairwise(seen))
        yield _Stretch(start, bound, seen[-1][0] is None, is_changed)
        start = bound


class _Side:
    """One of the contents that are compared, looked at from left to right."""

    def __init__(self, snapshot: Snapshot, content: Content, start: int, end: int) -> None:
        self._pieces = visible(snapshot, content, start, end)
        self._piece = next(self._pieces, None)
        self._end = end

    def at(self, offset: int) -> tuple[Interval | None, int]:
        """The data at this offset, if any, and up to where that answer holds."""
        while self._piece is not None and self._piece.end <= offset:
            self._piece = next(self._pieces, None)
        if self._piece is None:
            return None, self._end
        if self._piece.offset > offset:
            return None, self._piece.offset
        return self._piece, self._piece.end


def _is_same(was: Interval | None, now: Interval | None) -> bool:
    """Whether two intervals at one place show the same bytes of the same source."""
    if was is None or now is None:
        return was is now
    if was.skip - was.offset != now.skip - now.offset:
        return False
    return was.extent == now.extent and was.body == now.body
