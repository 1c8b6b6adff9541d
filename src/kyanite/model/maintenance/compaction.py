"""Compaction of layers: purging a layer that nothing refers to, and folding layers into one.

Every step is one transaction of bounded size. It finds in the store how far the work has come, and leaves all contents
with exactly the bytes that they had before. So it does not matter which process takes a step, how often, how many
processes do at the same time, or where they stop.

*Folding* lets a layer take over the layer below it, from left to right: the intervals from there go into its gaps. If
nothing else needs the layer below they are moved, otherwise they are copied. When all is lower over, the layer is put
onto the next layer down. A layer below that is itself being folded may receive intervals at an offset that was passed
already. Its count of rewrites shows that, and the work begins again from the left.
"""

from collections.abc import Sequence
from itertools import islice

import msgspec

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.content import interval_rows, references
from kyanite.model.content import layers as layer
from kyanite.model.content.interval_rows import IntervalRow
from kyanite.model.content.intervals import ENDLESS, Interval, clip, cut, gaps
from kyanite.model.content.layer_view import layers
from kyanite.model.content.layers import DEPTH_MAX, Head, PendingCompaction, Task
from kyanite.model.content.references import Source

ROWS_PER_STEP = 8
"""Each has up to 64 intervals, and giving one up may take three rows."""


def step(tx: Transaction, mark: bytes) -> None:
    """Do a bounded part of the work that is pending on one layer."""
    stored = tx.get(mark)
    if stored is None:
        return
    layer_id, pending = keys.id_of(mark), layer.decode_pending_compaction(stored)
    if pending.task is Task.PURGE:
        _purge(tx, layer_id)
    else:
        _fold(tx, layer_id, pending)


def _purge(tx: Transaction, layer_id: int) -> None:
    some = list(interval_rows.scan(tx, layer_id, limit=ROWS_PER_STEP))
    references.drop(tx, (interval for row in some for interval in row.intervals))
    for row in some:
        tx.delete(row.key)
    if len(some) == ROWS_PER_STEP:
        return
    below = layer.load(tx, layer_id).below
    if below:
        layer.leave(tx, below, layer_id)
    tx.delete(keys.layer(layer_id))
    tx.delete(keys.pending_compaction(layer_id))


def _fold(tx: Transaction, layer_id: int, pending: PendingCompaction) -> None:
    head = layer.load(tx, layer_id)
    if not _is_worthwhile(tx, head, pending):
        tx.delete(keys.pending_compaction(layer_id))
        return
    if tx.get(keys.pending_compaction(head.below)) is not None:
        return  # Work on the layer below comes first.
    lower = layer.load(tx, head.below)
    if (pending.below, pending.rewrites) != (head.below, lower.rewrites):
        pending = PendingCompaction(pending.task, head.below, lower.rewrites)
    head = msgspec.structs.replace(head, rewrites=head.rewrites + 1)
    end = _take_over(tx, layer_id, head.below, pending.cursor, moves=_is_needed_once(lower))
    if end < ENDLESS:
        tx.put(keys.layer(layer_id), layer.encode(head))
        tx.put(
            keys.pending_compaction(layer_id),
            layer.encode(msgspec.structs.replace(pending, cursor=end)),
        )
    else:
        _put_lower(tx, layer_id, head, lower)
        tx.put(
            keys.pending_compaction(layer_id),
            layer.encode(PendingCompaction(pending.task, lower.below)),
        )


def _is_worthwhile(tx: Transaction, head: Head, pending: PendingCompaction) -> bool:
    if not head.below:
        return False
    if _is_needed_once(layer.load(tx, head.below)):
        return True
    is_begun = pending.below != 0
    return pending.task is Task.FLATTEN and (is_begun or _is_deep(tx, head.below))


def _is_deep(tx: Transaction, top: int) -> bool:
    return next(islice(layers(tx, top), DEPTH_MAX, None), None) is not None


def _is_needed_once(lower: Head) -> bool:
    return lower.records == 0 and lower.uppers == 1


def _take_over(tx: Transaction, layer_id: int, below: int, start: int, *, moves: bool) -> int:
    """Fill the gaps from the start on with what is below, for a bounded number of rows. Returns how far."""
    theirs = interval_rows.load(tx, below, start, ENDLESS, limit=ROWS_PER_STEP)
    end = _end_of(theirs)
    mine = interval_rows.load(tx, layer_id, start, end, limit=ROWS_PER_STEP)
    end = min(end, _end_of(mine))
    own = cut(_intervals(mine), start, end).inside
    lower = cut(_intervals(theirs), start, end).inside
    differences: dict[Source, int] = {}
    interval_rows.replace(tx, layer_id, mine, start, end, _fill(own, lower, start, end), differences)
    if moves:
        interval_rows.replace(tx, below, theirs, start, end, [], differences)
    references.change(tx, differences)
    return end


def _end_of(loaded: Sequence[IntervalRow]) -> int:
    """Up to where these rows are complete: if there may be more of them, only to the end of the last."""
    return loaded[-1].intervals[-1].end if len(loaded) >= ROWS_PER_STEP else ENDLESS


def _intervals(loaded: Sequence[IntervalRow]) -> list[Interval]:
    return [interval for row in loaded for interval in row.intervals]


def _fill(own: list[Interval], lower: list[Interval], start: int, end: int) -> list[Interval]:
    """The own intervals, and in their gaps those from below."""
    filled = list(own)
    first = 0
    for gap_start, gap_end in gaps(own, start, end):
        while first < len(lower) and lower[first].end <= gap_start:
            first += 1
        index = first
        while index < len(lower) and lower[index].offset < gap_end:
            filled.append(clip(lower[index], gap_start, gap_end))
            index += 1
    return sorted(filled, key=lambda interval: interval.offset)


def _put_lower(tx: Transaction, layer_id: int, head: Head, lower: Head) -> None:
    """Put the layer onto what the one below it lay on."""
    if lower.below:
        tx.put(keys.edge(lower.below, layer_id), b"")
        layer.save(tx, lower.below, layer.change(layer.load(tx, lower.below), uppers=1))
    layer.leave(tx, head.below, layer_id)
    head = msgspec.structs.replace(head, below=lower.below, depth=lower.depth)
    tx.put(keys.layer(layer_id), layer.encode(head))
