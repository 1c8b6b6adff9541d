"""What is damaged in a store: bytes of extents, and rows that cannot be read."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kyanite.model import keys
from kyanite.model.content.intervals import Interval
from kyanite.model.verification.extent_check import Span
from kyanite.model.verification.pages import Unreadable


class Damage:
    """Damaged extents by their keys, with what is damaged of each, and ranges of rows."""

    def __init__(self, extents: Mapping[bytes, Sequence[Span]], rows: Iterable[Unreadable]) -> None:
        self.extents = extents
        self.rows = sorted(rows)
        self._starts = [each.start for each in self.rows]

    def __bool__(self) -> bool:
        return bool(self.extents or self.rows)

    def row_at(self, key: bytes) -> Unreadable | None:
        """The damaged range that this key is in."""
        index = bisect_right(self._starts, key) - 1
        return self.rows[index] if index >= 0 and key < self.rows[index].end else None

    def has_rows_of(self, letter: bytes) -> bool:
        return any(True for _ in self.rows_between(letter, keys.after(letter)))

    def spans_of(self, interval: Interval) -> Iterator[tuple[bytes, Span]]:
        """The damaged bytes of an interval, as offsets of the content, and the key of what is damaged."""
        if interval.extent is not None:
            key = keys.extent(interval.extent.segment, interval.extent.start)
            shift = interval.offset - interval.skip
            for span in self._spans_of_extent(key, interval.extent.length):
                start, end = max(span.start + shift, interval.offset), min(span.end + shift, interval.end)
                if start < end:
                    yield key, Span(start, end)
        elif interval.body and (row := self.row_at(keys.body(interval.body))) is not None:
            yield row.subject, Span(interval.offset, interval.end)

    def _spans_of_extent(self, key: bytes, length: int) -> Sequence[Span]:
        """Without its row nothing is known of an extent, so it counts as damaged as a whole."""
        return [Span(0, length)] if self.row_at(key) is not None else self.extents.get(key, ())

    def rows_between(self, start: bytes, end: bytes) -> Iterator[Unreadable]:
        for row in self.rows:
            if row.start < end and row.end > start:
                yield row
