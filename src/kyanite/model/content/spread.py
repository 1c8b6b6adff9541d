"""Content with holes, from bytes that came without them: a copy from another store leaves the zeros out."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kyanite.engine.api import Transaction
from kyanite.extents.api import Extent
from kyanite.model.content import content, references
from kyanite.model.content.content import Content
from kyanite.model.content.intervals import Interval, clip

RUNS_MAX = 500
"""So many stretches of bytes may be apart; beyond that the zeros between neighbours are copied."""


class Run(NamedTuple):
    """A stretch of bytes between zeros."""

    offset: int
    length: int


def joined(runs: Sequence[Run]) -> list[Run]:
    """The same bytes in at most RUNS_MAX runs, with zeros of the gaps between those that were joined."""
    found = list(runs)
    while len(found) > RUNS_MAX:
        pairs = zip(found[::2], found[1::2], strict=False)
        last = found[-1:] if len(found) % 2 else []
        found = [Run(first.offset, second.offset + second.length - first.offset) for first, second in pairs]
        found += last
    return found


def create(tx: Transaction, payload: bytes | Sequence[Extent], runs: Sequence[Run]) -> Content:
    """New content: the payload has the bytes of all runs, one after the other. The rest are zeros."""
    if not runs or (len(runs) == 1 and runs[0].offset == 0):
        return content.create(tx, payload)
    stored = content.store(tx, payload)
    intervals = list(_spread(stored, runs))
    differences = references.count(references.count({}, stored, -1), intervals, 1)
    references.change(tx, differences)
    return content.listed(tx, intervals)


def _spread(stored: Sequence[Interval], runs: Iterable[Run]) -> Iterable[Interval]:
    at = 0
    for offset, length in runs:
        for interval in stored:
            if interval.offset < at + length and interval.end > at:
                part = clip(interval, at, at + length)
                yield Interval(part.offset - at + offset, part.length, part.skip, part.extent, part.body)
        at += length
