"""Which parts of a content hold data, and which have changed since another content of the same descent.

Get Page Ranges and List Ranges are answered from here, a page at a time: each function gives at most
``limit`` ranges and the offset at which the next page begins, or None. A page also ends when it has looked at
very many intervals, so the first range of the next one may touch the last of this one.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain
from typing import NamedTuple

from kyanite.engine.api import Snapshot
from kyanite.model.content import Content, visible
from kyanite.model.interval import Interval
from kyanite.model.stack import Stack, layers

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


def data_ranges(snapshot: Snapshot, content: Content, start: int, end: int, *, limit: int) -> Page:
    """Where there is data."""
    pieces = visible(snapshot, content, start, end)
    return _page((_Stretch(piece.offset, piece.end, False, True) for piece in pieces), limit)


def changed_ranges(
    snapshot: Snapshot, old: Content, new: Content, start: int, end: int, *, limit: int
) -> Page:
    """What was written or cleared between two contents that come from one.

    A write counts as a change even if it wrote the same bytes. What both see in a layer that they share is
    not looked at.
    """
    suspects = _suspects(snapshot, old, new, start, end)
    compared = (_compare(snapshot, old, new, first, last) for first, last in suspects)
    return _page(chain.from_iterable(compared), limit)


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
    snapshot: Snapshot, old: Content, new: Content, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """The parts of the range in which the two may differ: those covered above the layer that both have."""
    of_old = set(layers(snapshot, old.layer))
    common = next((each for each in layers(snapshot, new.layer) if each in of_old), 0)
    if not common:
        yield start, end
        return
    tops = [content.layer for content in (old, new) if content.layer != common]
    stacks = [Stack(snapshot, top, until=common).intervals(start, end) for top in tops]
    covered_from = covered_to = start
    for interval in merge(*stacks, key=lambda interval: interval.offset):
        if interval.offset > covered_to:
            if covered_to > covered_from:
                yield covered_from, covered_to
            covered_from = interval.offset
        covered_to = max(covered_to, interval.end)
    if covered_to > covered_from:
        yield covered_from, covered_to


def _compare(snapshot: Snapshot, old: Content, new: Content, start: int, end: int) -> Iterator[_Stretch]:
    before, after = _Side(snapshot, old, start, end), _Side(snapshot, new, start, end)
    while start < end:
        was, bound = before.at(start)
        now, other_bound = after.at(start)
        bound = min(bound, other_bound)
        is_changed = not _is_same(was, now)
        yield _Stretch(start, bound, now is None, is_changed)
        start = bound


class _Side:
    """One of the two contents that are compared, looked at from left to right."""

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
