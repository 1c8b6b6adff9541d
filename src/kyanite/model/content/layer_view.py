"""The layer view: what a layer and the layers below it show together."""

from collections.abc import Iterator

from kyanite.engine.api import Snapshot
from kyanite.model.content import interval_rows
from kyanite.model.content import layers as layer
from kyanite.model.content.interval_rows import IntervalRow
from kyanite.model.content.intervals import Interval, clip


class LayerView:
    """The layers from one downwards, in one snapshot. A lower one is read only where those above it have gaps."""

    def __init__(self, snapshot: Snapshot, top: int, *, until: int = 0) -> None:
        """Down to the lowest layer, or down to the one above the layer ``until``."""
        self._snapshot = snapshot
        self._until = until
        self._top = top
        self._cursors: list[_Cursor] = []

    def intervals(self, start: int, end: int) -> Iterator[Interval]:
        """What covers the range, holes included, in order and clipped to it."""
        at = start
        while at < end:
            bound = end
            for cursor in self._downwards():
                interval = cursor.seek(at)
                if interval is None:
                    continue
                if interval.offset <= at:
                    visible = clip(interval, at, bound)
                    yield visible
                    at = visible.end
                    break
                bound = min(bound, interval.offset)
            else:
                at = bound

    def _downwards(self) -> "Iterator[_Cursor]":
        cursors = self._cursors
        if not cursors:
            cursors.append(_Cursor(self._snapshot, self._top))
        level = 0
        while True:
            yield cursors[level]
            level += 1
            if level == len(cursors):
                below = cursors[-1].below
                if below in (0, self._until):
                    return
                cursors.append(_Cursor(self._snapshot, below))


def layers(snapshot: Snapshot, top: int) -> Iterator[int]:
    """The ids of the layers from one downwards."""
    while top:
        yield top
        top = layer.load(snapshot, top).below


class _Cursor:
    """An offset in one layer that only moves forward. Rows in between are skipped."""

    __slots__ = ("_below", "_index", "_intervals", "_layer", "_rows", "_snapshot")

    def __init__(self, snapshot: Snapshot, layer_id: int) -> None:
        self._snapshot = snapshot
        self._layer = layer_id
        self._below: int | None = None
        self._rows: Iterator[IntervalRow] | None = None
        self._intervals: list[Interval] = []
        self._index = 0

    @property
    def below(self) -> int:
        if self._below is None:
            self._below = layer.load(self._snapshot, self._layer).below
        return self._below

    def seek(self, at: int) -> Interval | None:
        """The first interval that ends after this offset: the one that covers it, or the next."""
        while True:
            intervals = self._intervals
            while self._index < len(intervals):
                interval = intervals[self._index]
                if interval.end > at:
                    return interval
                self._index += 1
            if not self._next_row(at):
                return None

    def _next_row(self, at: int) -> bool:
        row = next(self._rows, None) if self._rows is not None else self._jump(at)
        if row is not None and row.intervals[-1].end <= at:
            row = self._jump(at)
        self._intervals = [] if row is None else row.intervals
        self._index = 0
        return row is not None

    def _jump(self, at: int) -> IntervalRow | None:
        """The row that covers the offset, or the first after it."""
        self._rows = interval_rows.scan(self._snapshot, self._layer, at + 1)
        for row in interval_rows.load(self._snapshot, self._layer, at, at, limit=0):
            if row.intervals[-1].end > at:
                return row
        return next(self._rows, None)
