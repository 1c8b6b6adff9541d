"""Where the bytes of a blob or file are.

A ``Content`` is the part of a record that says where the bytes are: in one inline body, in a short list of intervals,
or in a layer. It has no length: what is not stored reads as zeros, and the record says where the blob ends. All
functions work on a transaction or a snapshot and touch no file. Each costs the same whatever the size.

A function that changes content returns the new value, which the caller stores in its record. The old value must not be
used again. ``docs/decisions/0002-content-in-extents-and-layers.md`` says why it is laid out like this.
"""

from collections.abc import Iterator, Sequence
from itertools import filterfalse
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.extents.api import PACK_MAX, Extent
from kyanite.model import keys
from kyanite.model.content import interval_rows, layers, references
from kyanite.model.content.intervals import ENDLESS, Interval, clip, cut, lay_out
from kyanite.model.content.layer_view import LayerView
from kyanite.model.content.records import NO_CONTENT, Content
from kyanite.model.content.references import Source
from kyanite.model.records import Value

__all__ = [
    "INLINE_MAX",
    "NO_CONTENT",
    "PACK_MAX",
    "Content",
    "Copied",
    "ExtentPart",
    "PlanPart",
    "ReadPlan",
    "Zeros",
    "clear",
    "copy",
    "covered",
    "create",
    "drop",
    "read_plan",
    "share",
    "share_to_end",
    "truncate",
    "visible",
    "write",
]

INLINE_MAX: Final = 16 * 1024
"""A body up to this size is stored in the engine. It costs one commit and no file."""

SHORT_MAX = 4
"""Up to this many intervals are stored in the record itself."""

_SPLICE_ROWS_MAX = 8
"""A splice that overlaps more rows than this goes into a new layer, and compaction does the rest."""

_PLAN_PARTS = 300
_PLAN_INLINE_BYTES: Final = 1024 * 1024
_PLAN_INTERVALS = 1_000
"""A plan ends after this many intervals, holes included."""

_is_hole: Final = attrgetter("is_hole")


class Zeros(NamedTuple):
    length: int


class ExtentPart(NamedTuple):
    """Bytes of an extent."""

    extent: Extent
    offset: int
    length: int


PlanPart = Zeros | ExtentPart | bytes


class ReadPlan(Value, frozen=True):
    """Where the bytes of a range come from, in order."""

    parts: list[PlanPart]
    end: int
    """How far the plan goes: not to the end of the range if it would become too long."""


class Copied(NamedTuple):
    content: Content
    length: int
    """How many bytes were copied."""
    intervals: int
    """What that cost."""


# Whole contents


def create(tx: Transaction, payload: bytes | Sequence[Extent], *, tag: bytes = b"") -> Content:
    """New content. With a tag it is one block: a list of intervals, however many, to be composed into a blob."""
    if isinstance(payload, bytes) and not tag:
        if not payload:
            return NO_CONTENT
        return Content(body=_store_body(tx, payload))
    intervals = _store(tx, payload, 0, tag)
    return Content(intervals=tuple(intervals)) if tag else listed(tx, intervals)


def share(tx: Transaction, content: Content) -> Content:
    """The same bytes for one more record: a snapshot or a copy."""
    if content.body:
        return Content(body=_store_body(tx, _load_body(tx, content.body)))
    if content.layer:
        layers.share(tx, content.layer)
    else:
        references.add(tx, content.intervals)
    return content


def share_to_end(tx: Transaction, content: Content, length: int) -> Content:
    """The same for a record whose content ends where it ends: a block blob. Zeros at the end become a hole.

    The content of a page blob or file may end before, because nothing was written there.
    """
    shared = share(tx, content)
    if shared.layer:
        return shared
    intervals = short_list(tx, shared)
    end = intervals[-1].end if intervals else 0
    return shared if end >= length else listed(tx, [*intervals, Interval(end, length - end)])


def drop(tx: Transaction, content: Content) -> None:
    """Remove the references of a record that is deleted or gets other content."""
    if content.body:
        tx.delete(keys.body(content.body))
    elif content.layer:
        layers.drop(tx, content.layer)
    elif content.intervals:
        references.drop(tx, content.intervals)


def listed(tx: Transaction, intervals: Sequence[Interval]) -> Content:
    """Content of these intervals. Their references are counted already."""
    if len(intervals) <= SHORT_MAX:
        return Content(intervals=tuple(intervals))
    number = tx.new_id()
    layers.create(tx, number, intervals)
    return Content(layer=number)


def short_list(snapshot: Snapshot, content: Content) -> list[Interval]:
    """The intervals of content that has no layer."""
    if content.body:
        return [Interval(0, len(_load_body(snapshot, content.body)), body=content.body)]
    return list(content.intervals)


# Splices


def write(
    tx: Transaction,
    content: Content,
    offset: int,
    payload: bytes | Sequence[Extent],
    *,
    tag: bytes = b"",
) -> Content:
    """Write these bytes at the offset, in place of what is there."""
    new = _store(tx, payload, offset, tag)
    return _splice(tx, content, offset, new[-1].end, new) if new else content


def clear(tx: Transaction, content: Content, offset: int, length: int) -> Content:
    """Make this range read as zeros and take no space."""
    return _splice(tx, content, offset, offset + length, [Interval(offset, length)]) if length else content


def truncate(tx: Transaction, content: Content, length: int) -> Content:
    """Make everything from this offset on read as zeros, also if the blob grows again."""
    return clear(tx, content, length, ENDLESS - length)


def copy(
    tx: Transaction, content: Content, offset: int, source: Content, start: int, length: int, *, limit: int
) -> Copied:
    """Let the range at the offset be the same bytes as a range of the source, by reference. Holes are copied, too.

    The source may be the same content. A range that has more than ``limit`` intervals is copied in part.
    """
    if source.body:
        payload = _load_body(tx, source.body)[start : start + length]
        content = clear(tx, content, offset + len(payload), length - len(payload))
        return Copied(write(tx, content, offset, payload), length, 1)
    new: list[Interval] = []
    at, end = start, start + length
    for interval in visible(tx, source, start, end):
        if len(new) >= limit:
            end = at
            break
        if interval.offset > at:
            new.append(Interval(at, interval.offset - at))
        new.append(interval)
        at = interval.end
    if at < end:
        new.append(Interval(at, end - at))
    references.add(tx, new)
    moved = [msgspec.structs.replace(each, offset=each.offset - start + offset, tag=b"") for each in new]
    return Copied(_splice(tx, content, offset, offset + end - start, moved), end - start, len(new))


def _splice(tx: Transaction, content: Content, start: int, end: int, new: list[Interval]) -> Content:
    """Replace the range by the new intervals: data whose references are counted already, and holes."""
    differences: dict[Source, int] = {}
    references.count(differences, new, -1)
    if content.layer:
        content = _splice_layer(tx, content.layer, start, end, new, differences)
    else:
        content = _splice_list(tx, content, start, end, new, differences)
    references.change(tx, differences)
    return content


def _splice_list(
    tx: Transaction,
    content: Content,
    start: int,
    end: int,
    new: list[Interval],
    differences: dict[Source, int],
) -> Content:
    new = _without_holes(new)
    parts = cut(short_list(tx, content), start, end)
    references.count(differences, parts.touched, -1)
    references.count(differences, parts.remains, 1)
    references.count(differences, new, 1)
    return listed(tx, [*parts.before, *new, *parts.behind])


def _splice_layer(
    tx: Transaction,
    layer_id: int,
    start: int,
    end: int,
    new: list[Interval],
    differences: dict[Source, int],
) -> Content:
    head = layers.load(tx, layer_id)
    is_shared = head.records > 1 or head.uppers > 0
    loaded = [] if is_shared else interval_rows.load(tx, layer_id, start, end, limit=_SPLICE_ROWS_MAX + 1)
    if is_shared or len(loaded) > _SPLICE_ROWS_MAX:
        loaded, layer_id, below = [], tx.new_id(), layer_id
        head = layers.put_on_top(tx, below, layer_id)
    if not head.below:
        new = _without_holes(new)
    interval_rows.replace(tx, layer_id, loaded, start, end, new, differences)
    return Content(layer=layer_id)


def _without_holes(intervals: list[Interval]) -> list[Interval]:
    """A hole has to be stored only where it hides a lower layer."""
    return [interval for interval in intervals if not interval.is_hole]


# Reading


def covered(snapshot: Snapshot, content: Content, start: int, end: int) -> Iterator[Interval]:
    """The data and the stored holes in the range, clipped to it and in order. The gaps between are zeros too."""
    if content.layer:
        return LayerView(snapshot, content.layer).intervals(start, end)
    short = short_list(snapshot, content)
    return iter([clip(each, start, end) for each in short if each.offset < end and each.end > start])


def visible(snapshot: Snapshot, content: Content, start: int, end: int) -> Iterator[Interval]:
    """The data in the range, clipped to it and in order. The gaps between are zeros."""
    return filterfalse(_is_hole, covered(snapshot, content, start, end))


def read_plan(snapshot: Snapshot, content: Content, offset: int, length: int) -> ReadPlan:
    """How to read the range. A caller that reads extents by the plan has pinned them before it took the snapshot.

    A plan that would get too long ends early (``ReadPlan.end``). To read on in another snapshot, the content has to be
    pinned, because it may change: see ``reading.py``.
    """
    if content.body:
        data = _body_range(snapshot, content.body, offset, length)
        parts: list[PlanPart] = [data] if data else []
        if len(data) < length:  # What is behind the body may be very long, so it is no bytes here.
            parts.append(Zeros(length - len(data)))
        return ReadPlan(parts, offset + length)
    parts = []
    at, end, inline_bytes = offset, offset + length, 0
    for count, interval in enumerate(covered(snapshot, content, offset, end)):
        is_full = count >= _PLAN_INTERVALS or len(parts) >= _PLAN_PARTS or inline_bytes >= _PLAN_INLINE_BYTES
        if interval.extent is None and not interval.body and not is_full:
            continue  # A hole.
        if interval.offset > at:
            parts.append(Zeros(interval.offset - at))
        if is_full:
            return ReadPlan(parts, interval.offset)
        at = interval.end
        if interval.extent is not None:
            parts.append(ExtentPart(interval.extent, interval.skip, interval.length))
        else:
            parts.append(_body_range(snapshot, interval.body, interval.skip, interval.length))
            inline_bytes += interval.length
    if at < end:
        parts.append(Zeros(end - at))
    return ReadPlan(parts, end)


# Inline bodies


def _store(tx: Transaction, payload: bytes | Sequence[Extent], offset: int, tag: bytes) -> list[Interval]:
    """Store new bytes. The intervals that are returned are the only reference to them."""
    if not isinstance(payload, bytes):
        references.begin(tx, payload)
        return lay_out(payload, offset, tag)
    if not payload:
        return []
    return [Interval(offset, len(payload), body=_store_body(tx, payload), tag=tag)]


def store(tx: Transaction, payload: bytes | Sequence[Extent]) -> list[Interval]:
    """New bytes that are not part of a content yet. The intervals that are returned are the only reference to them."""
    return _store(tx, payload, 0, b"")


def _store_body(tx: Transaction, data: bytes) -> int:
    number = tx.new_id()
    tx.put(keys.body(number), data)
    return number


def _load_body(snapshot: Snapshot, number: int) -> bytes:
    data = snapshot.get(keys.body(number))
    assert data is not None, "Content refers to an inline body that is not there."
    return data


def _body_range(snapshot: Snapshot, number: int, offset: int, length: int) -> bytes:
    data = _load_body(snapshot, number)
    if offset == 0 and length == len(data):
        return data
    return data[offset : offset + length]
