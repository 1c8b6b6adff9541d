"""What lies where in a blob or file.

A ``Content`` is the part of a record that says where the bytes are: in one inline body, or in a short list of
intervals. It knows no length: what is not stored reads as zeros, and where a blob ends is its record's business.
All functions work on a transaction or a snapshot and touch no file.

How this is laid out, and why, is told in ``docs/decisions/0002-content-in-extents-and-layers.md``.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from kyanite.engine import keys
from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.extents import PACK_MAX, Extent
from kyanite.model import references
from kyanite.model.interval import Interval, clip, lay_out

__all__ = [
    "INLINE_MAX",
    "NO_CONTENT",
    "PACK_MAX",
    "Content",
    "Part",
    "Piece",
    "Plan",
    "Zeros",
    "create",
    "drop",
    "read_plan",
]

INLINE_MAX = 16 * 1024
"""Up to this size a body is kept in the engine and costs one commit and no file."""

BODIES_PER_TRANSACTION = 8

_PLAN_PIECES = 4096
_PLAN_INLINE_BYTES = 4 * 1024 * 1024


class Content(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Where the bytes of one blob or file are. Stored: fields are only ever added at the end.

    At most one of the fields is set; none, when all is zeros.
    """

    body: int = 0
    """The number of an inline body that nothing else refers to, and that begins at offset 0."""
    intervals: tuple[Interval, ...] = ()


NO_CONTENT = Content()


class Zeros(NamedTuple):
    length: int


class Part(NamedTuple):
    """Bytes of an extent."""

    extent: Extent
    offset: int
    length: int


Piece = Zeros | Part | bytes


class Plan(NamedTuple):
    """Where the bytes of a range come from, in order."""

    pieces: list[Piece]
    end: int
    """How far the plan goes. Short of what was asked for when it would have become too long."""


def create(tx: Transaction, payload: bytes | Sequence[Extent], *, nth: int = 0) -> Content:
    """New content. A transaction that makes more than one says which one this is, below BODIES_PER_TRANSACTION."""
    if isinstance(payload, bytes):
        if not payload:
            return NO_CONTENT
        number = _number(tx, nth)
        tx.put(keys.body(number), payload)
        return Content(body=number)
    references.begin(tx, payload)
    return Content(intervals=tuple(lay_out(payload, 0)))


def drop(tx: Transaction, content: Content) -> None:
    """Nothing refers to this content any more."""
    if content.body:
        tx.delete(keys.body(content.body))
    elif content.intervals:
        references.drop(tx, content.intervals)


def read_plan(snapshot: Snapshot, content: Content, offset: int, length: int) -> Plan:
    """How to read the range. Whoever reads extents by it has pinned them before the snapshot was taken."""
    if content.body:
        return Plan([_whole_body(snapshot, content.body, offset, length)], offset + length)
    pieces: list[Piece] = []
    at, end, inline_bytes = offset, offset + length, 0
    for interval in _walk(content, offset, end):
        if len(pieces) >= _PLAN_PIECES or inline_bytes >= _PLAN_INLINE_BYTES:
            return Plan(pieces, at)
        if interval.offset > at:
            pieces.append(Zeros(interval.offset - at))
        pieces.append(_piece(snapshot, interval))
        inline_bytes += interval.length if interval.body else 0
        at = interval.end
    if at < end:
        pieces.append(Zeros(end - at))
    return Plan(pieces, end)


def _walk(content: Content, start: int, end: int) -> Iterator[Interval]:
    """What is stored within the range, clipped to it."""
    for interval in content.intervals:
        if interval.offset < end and interval.end > start and not interval.is_hole:
            yield clip(interval, start, end)


def _piece(snapshot: Snapshot, interval: Interval) -> Piece:
    if interval.extent is not None:
        return Part(interval.extent, interval.skip, interval.length)
    return _stored_body(snapshot, interval.body)[interval.skip : interval.skip + interval.length]


def _whole_body(snapshot: Snapshot, number: int, offset: int, length: int) -> bytes:
    data = _stored_body(snapshot, number)
    if offset == 0 and length == len(data):
        return data
    return data[offset : offset + length].ljust(length, b"\0")


def _stored_body(snapshot: Snapshot, number: int) -> bytes:
    data = snapshot.get(keys.body(number))
    assert data is not None, "Content refers to an inline body that is not there."
    return data


def _number(tx: Transaction, nth: int) -> int:
    """A number for a new body or layer. Instants of transactions are unique, so this is."""
    if not 0 <= nth < BODIES_PER_TRANSACTION:
        raise ValueError("Too many contents in one transaction.")
    return tx.now * BODIES_PER_TRANSACTION + nth
