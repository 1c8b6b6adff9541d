"""Layers: sets of intervals that lie on each other, shared by snapshots and copies.

Where a layer has a gap, the layer below it is visible; below the lowest there are zeros. A splice writes only into a
layer that has one record and no layer on it. Otherwise it first puts a new layer on top. So a snapshot is one more
reference whatever the size, and keeps the same bytes for ever.

The head of a layer counts the records and layers that refer to it. A layer without references is marked to be purged.
A layer that only one other layer refers to is marked to be folded into that one, or deleted snapshots would keep their
bytes. Compaction does both in the background.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import interval_rows
from kyanite.model.content.intervals import Interval

DEPTH_MAX = 8
"""A layer with more layers below it is folded with all of them in the background, so that reads stay short."""


class Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is stored about a layer: fields are only ever added at the end."""

    below: int = 0
    """The layer it lies on, or 0."""
    depth: int = 0
    """How many layers were below it when it was made; there may be fewer now."""
    records: int = 1
    """How many records and pinned reads refer to it."""
    uppers: int = 0
    """How many layers lie on it."""
    rewrites: int = 0
    """Counts the steps of compaction that took over intervals from below."""


class Task(IntEnum):
    PURGE = 0
    FOLD = 1
    """Take over the layer below while nothing else refers to that one."""
    FLATTEN = 2
    """Take over all layers below."""


class PendingCompaction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Background work on one layer, and how far it has come. Stored: fields are only ever added at the end."""

    task: Task
    below: int = 0
    rewrites: int = 0
    """Of the layer below. When it changes, the work begins again."""
    cursor: int = 0


encode = msgspec.msgpack.Encoder().encode
decode_head: Callable[[bytes], Head] = msgspec.msgpack.Decoder(Head).decode
decode_pending_compaction: Callable[[bytes], PendingCompaction] = msgspec.msgpack.Decoder(
    PendingCompaction
).decode


def load(snapshot: Snapshot, layer: int) -> Head:
    stored = snapshot.get(keys.layer(layer))
    assert stored is not None, "Something refers to a layer that is not there."
    return decode_head(stored)


def save(tx: Transaction, layer: int, head: Head) -> None:
    """Store the head, and mark the compaction that its references call for."""
    tx.put(keys.layer(layer), encode(head))
    if head.records:
        return
    if not head.uppers:
        tx.put(keys.pending_compaction(layer), encode(PendingCompaction(Task.PURGE)))
    elif head.uppers == 1:
        edges = keys.edges(layer)
        for key, _ in tx.scan(edges, keys.after(edges), limit=1):
            _mark(tx, int.from_bytes(key[len(edges) :], "big"), Task.FOLD)


def create(tx: Transaction, layer: int, intervals: Sequence[Interval]) -> None:
    """Make a layer with none below it, for one record. The references of the intervals are counted already."""
    tx.put(keys.layer(layer), encode(Head()))
    interval_rows.store(tx, layer, [], intervals, fill=True)


def extend(tx: Transaction, layer: int, intervals: Sequence[Interval]) -> None:
    """Add intervals behind those that the layer has, in rows of their own. Their references are counted already."""
    interval_rows.store(tx, layer, [], intervals, fill=True)


def reaches(snapshot: Snapshot, layer: int, end: int) -> bool:
    """Whether the layer has what was added last to it, which ends there. A failover may lose transactions that did not
    wait for the disk, while the process that ran them goes on."""
    if end == 0:
        return True
    rows = interval_rows.load(snapshot, layer, end - 1, end, limit=0)
    return bool(rows) and rows[0].intervals[-1].end == end


def put_on_top(tx: Transaction, below: int, layer: int) -> Head:
    """Put a new, empty layer on another one, for the record that referred to that one."""
    lower = load(tx, below)
    head = Head(below=below, depth=lower.depth + 1)
    tx.put(keys.layer(layer), encode(head))
    tx.put(keys.edge(below, layer), b"")
    if head.depth > DEPTH_MAX:
        _mark(tx, layer, Task.FLATTEN)
    save(tx, below, change(lower, records=-1, uppers=1))
    return head


def share(tx: Transaction, layer: int) -> None:
    """One more record refers to the layer."""
    save(tx, layer, change(load(tx, layer), records=1))


def drop(tx: Transaction, layer: int) -> None:
    """A record no longer refers to the layer."""
    save(tx, layer, change(load(tx, layer), records=-1))


def leave(tx: Transaction, below: int, layer: int) -> None:
    """A layer no longer lies on the one that was below it."""
    tx.delete(keys.edge(below, layer))
    save(tx, below, change(load(tx, below), uppers=-1))


def change(head: Head, *, records: int = 0, uppers: int = 0) -> Head:
    assert head.records + records >= 0, "A layer was dropped more often than it was referred to."
    return msgspec.structs.replace(head, records=head.records + records, uppers=head.uppers + uppers)


def _mark(tx: Transaction, layer: int, task: Task) -> None:
    """Mark work on a layer, unless work that includes it is marked already."""
    stored = tx.get(keys.pending_compaction(layer))
    if stored is None or Task.PURGE < decode_pending_compaction(stored).task < task:
        tx.put(keys.pending_compaction(layer), encode(PendingCompaction(task)))
