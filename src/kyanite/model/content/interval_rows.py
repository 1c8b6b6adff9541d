"""The intervals of one layer, as rows: a row has up to ROW_MAX intervals and is keyed by the offset of the first.

A splice reads the row in which it begins and those it overlaps, and writes back what has changed. So it costs the same
in a layer of ten intervals and of a million, and a list of 50,000 blocks is 800 rows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content.intervals import Interval, cut
from kyanite.model.content.references import Source, count

ROW_MAX = 64

_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], list[Interval]] = msgspec.msgpack.Decoder(list[Interval]).decode


class IntervalRow(NamedTuple):
    key: bytes
    value: bytes
    intervals: list[Interval]


def load(snapshot: Snapshot, layer: int, start: int, end: int, *, limit: int) -> list[IntervalRow]:
    """The row that begins at the start or before it, and at most ``limit`` more that begin within the range."""
    after_start = keys.interval_row(layer, start + 1)
    rows = list(snapshot.scan(keys.interval_row(layer, 0), after_start, reverse=True, limit=1))
    if end > start + 1 and limit:
        rows += snapshot.scan(after_start, keys.interval_row(layer, end), limit=limit)
    return [IntervalRow(key, value, _decode(value)) for key, value in rows]


def scan(
    snapshot: Snapshot, layer: int, start: int = 0, *, limit: int | None = None
) -> Iterator[IntervalRow]:
    """The rows that begin at the start or after it, in order, lazily."""
    for key, value in snapshot.scan(
        keys.interval_row(layer, start), keys.after(keys.interval_rows(layer)), limit=limit
    ):
        yield IntervalRow(key, value, _decode(value))


def replace(
    tx: Transaction,
    layer: int,
    loaded: Sequence[IntervalRow],
    start: int,
    end: int,
    new: Sequence[Interval],
    differences: dict[Source, int],
) -> None:
    """Replace all intervals in the range by the new ones. ``loaded`` are all rows of the range.

    The references that this adds and removes are added to ``differences``, those of the new intervals included.
    """
    parts = cut([interval for row in loaded for interval in row.intervals], start, end)
    count(differences, parts.touched, -1)
    count(differences, parts.remains, 1)
    count(differences, new, 1)
    intervals = [*parts.before, *new, *parts.behind]
    is_last = not parts.behind and (len(intervals) <= ROW_MAX or not _has_more(tx, layer, end))
    store(tx, layer, loaded, intervals, fill=is_last)


def _has_more(snapshot: Snapshot, layer: int, start: int) -> bool:
    return any(True for _ in scan(snapshot, layer, start, limit=1))


def store(
    tx: Transaction, layer: int, loaded: Sequence[IntervalRow], intervals: Sequence[Interval], *, fill: bool
) -> None:
    """Write the intervals in place of the loaded rows, but only the rows that differ.

    With ``fill`` rows are as full as possible, because further intervals will be added at the end. Otherwise they are
    equally long, because the next insertion may be anywhere.
    """
    stored = {row.key: row.value for row in loaded}
    for chunk in _chunks(intervals, fill):
        key, value = keys.interval_row(layer, chunk[0].offset), _encode(chunk)
        if stored.pop(key, None) != value:
            tx.put(key, value)
    for key in stored:
        tx.delete(key)


def _chunks(intervals: Sequence[Interval], fill: bool) -> Iterator[Sequence[Interval]]:
    if not intervals:
        return
    count_of_rows = -(-len(intervals) // ROW_MAX)
    size = ROW_MAX if fill else -(-len(intervals) // count_of_rows)
    for first in range(0, len(intervals), size):
        yield intervals[first : first + size]
