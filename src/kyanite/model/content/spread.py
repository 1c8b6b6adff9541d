"""Content from bytes that came as one sequence: a copy from another store. It has its holes, or its blocks, again.

Few runs become content in the transaction that makes the copy. Many, or long ones, come in *portions*: the bytes of
each are stored by a transaction of their own, which adds them to a layer that nothing refers to but a pinned read of
this process. At last the copy takes the layer over. If it is refused, or the process dies, the pinned read is released
and the layer goes with all it has.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from kyanite.engine.api import EngineBusy, Transaction
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.content import content, layers, reading, references
from kyanite.model.content.content import Content
from kyanite.model.content.intervals import Interval, clip

RUNS_MAX = 500
"""So many stretches of bytes between zeros may be apart; beyond that the zeros between neighbours are copied."""
PORTION_RUNS = 500
PORTION_BYTES = 24 << 30
"""400 extents, so that a transaction touches well below 2,000 rows."""


class Run(NamedTuple):
    """A stretch of bytes between zeros, or a block."""

    offset: int
    length: int
    tag: bytes = b""
    """The id of the block."""


class ReceivedRuns(msgspec.Struct, frozen=True):
    """The bytes of all runs, one after the other, which are stored and not referred to yet."""

    payload: bytes | Sequence[Extent]
    runs: Sequence[Run]


class PreparedLayer(msgspec.Struct, frozen=True):
    """The runs up to an offset, in a layer of a pinned read; at last all of them."""

    layer: int
    owner: bytes
    number: int
    end: int = 0


NewContent = ReceivedRuns | PreparedLayer


def joined(runs: Sequence[Run]) -> list[Run]:
    """The same bytes in at most RUNS_MAX runs, with zeros of the gaps between those that were joined."""
    found = list(runs)
    while len(found) > RUNS_MAX:
        pairs = zip(found[::2], found[1::2], strict=False)
        last = found[-1:] if len(found) % 2 else []
        found = [Run(first.offset, second.offset + second.length - first.offset) for first, second in pairs]
        found += last
    return found


def portions(runs: Iterable[Run], bytes_max: int = PORTION_BYTES) -> Iterator[list[Run]]:
    """The same runs, as many at a time as one transaction takes. Longer ones are divided."""
    found: list[Run] = []
    room = bytes_max
    for offset, length, tag in runs:
        while length > room:
            if room:
                found.append(Run(offset, room, tag))
                offset, length, tag = offset + room, length - room, b""
            yield found
            found, room = [], bytes_max
        found.append(Run(offset, length, tag))
        room -= length
        if len(found) == PORTION_RUNS:
            yield found
            found, room = [], bytes_max
    if found:
        yield found


def create(tx: Transaction, new: NewContent) -> Content:
    """The content of a copy. What is between the runs are zeros."""
    if isinstance(new, PreparedLayer):
        _check_kept(tx, new)
        reading.forget_pin(tx, new.owner, new.number)
        return Content(layer=new.layer)
    runs = new.runs
    if not runs or (len(runs) == 1 and runs[0].offset == 0 and not runs[0].tag):
        return content.create(tx, new.payload)
    return content.listed(tx, _stored(tx, new))


def begin(tx: Transaction, owner: bytes, number: int) -> PreparedLayer:
    """An empty layer, for runs that come in portions."""
    layer = tx.new_id()
    layers.create(tx, layer, [])
    reading.keep_pin(tx, owner, number, layer)
    return PreparedLayer(layer, owner, number)


def extend(tx: Transaction, prepared: PreparedLayer, portion: ReceivedRuns) -> PreparedLayer:
    """Add a portion behind those before it."""
    _check_kept(tx, prepared)
    intervals = _stored(tx, portion)
    layers.extend(tx, prepared.layer, intervals)
    return msgspec.structs.replace(prepared, end=intervals[-1].end)


def _check_kept(tx: Transaction, prepared: PreparedLayer) -> None:
    is_pinned = tx.get(keys.pinned_read(prepared.owner, prepared.number)) is not None
    if not is_pinned or not layers.reaches(tx, prepared.layer, prepared.end):
        raise EngineBusy("a part of the copy was lost before the copy was complete")


def _stored(tx: Transaction, new: ReceivedRuns) -> list[Interval]:
    stored = content.store(tx, new.payload)
    intervals = list(_spread(stored, new.runs))
    references.change(tx, references.count(references.count({}, stored, -1), intervals, 1))
    return intervals


def _spread(stored: Sequence[Interval], runs: Iterable[Run]) -> Iterator[Interval]:
    at = index = 0
    for offset, length, tag in runs:
        end = at + length
        while index < len(stored) and stored[index].offset < end:
            part = clip(stored[index], at, end)
            yield Interval(part.offset - at + offset, part.length, part.skip, part.extent, part.body, tag)
            tag = b""
            if stored[index].end > end:
                break
            index += 1
        at = end
