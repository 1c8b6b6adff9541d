"""Work on layers that can wait: taking apart what nobody refers to, and folding layers into one.

Every step is one transaction of bounded size, finds in the engine how far the work has come, and leaves all
contents showing exactly the bytes they showed before. So it does not matter who takes a step, how often, how
many do at once, or where the machine stops.

*Folding* lets a layer take over what it shows of the layer below, from left to right: into its gaps go the
intervals from there. If nothing else needs the layer below they are moved, otherwise they are copied. When
all is taken over, the layer is put onto what the other one lay on. A layer below that is itself taking over
something may receive it at a place that was passed already; its generation tells, and the work begins again
from the left.
"""

from collections.abc import Sequence

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

ROWS_PER_STEP = 16


def step(tx: Transaction, layer_id: int) -> None:
    """Do a bounded part of the chore on this layer, if there is one."""
    stored = tx.get(keys.pending_compaction(layer_id))
    if stored is None:
        return
    pending_compaction = layer.decode_pending_compaction(stored)
    if pending_compaction.task is Task.TAKE_APART:
        _take_apart(tx, layer_id)
    else:
        _fold(tx, layer_id, pending_compaction)


def _take_apart(tx: Transaction, layer_id: int) -> None:
    some = list(interval_rows.scan(tx, layer_id, limit=ROWS_PER_STEP))
    references.drop(tx, (interval for run in some for interval in run.intervals))
    for run in some:
        tx.delete(run.key)
    if len(some) == ROWS_PER_STEP:
        return
    below = layer.load(tx, layer_id).below
    if below:
        layer.leave(tx, below, layer_id)
    tx.delete(keys.layer(layer_id))
    tx.delete(keys.pending_compaction(layer_id))


def _fold(tx: Transaction, layer_id: int, pending_compaction: PendingCompaction) -> None:
    head = layer.load(tx, layer_id)
    if not _is_worthwhile(tx, head, pending_compaction):
        tx.delete(keys.pending_compaction(layer_id))
        return
    if tx.get(keys.pending_compaction(head.below)) is not None:
        return  # The layer below has a chore of its own, which comes first.
    lower = layer.load(tx, head.below)
    if (pending_compaction.below, pending_compaction.message_set_id) != (head.below, lower.message_set_id):
        pending_compaction = PendingCompaction(pending_compaction.task, head.below, lower.message_set_id)
    head = msgspec.structs.replace(head, message_set_id=head.message_set_id + 1)
    end = _take_over(tx, layer_id, head.below, pending_compaction.cursor, moves=_is_needed_once(lower))
    if end < ENDLESS:
        tx.put(keys.layer(layer_id), layer.encode(head))
        tx.put(
            keys.pending_compaction(layer_id),
            layer.encode(msgspec.structs.replace(pending_compaction, cursor=end)),
        )
    else:
        _put_lower(tx, layer_id, head, lower)
        tx.put(
            keys.pending_compaction(layer_id),
            layer.encode(PendingCompaction(pending_compaction.task, lower.below)),
        )


def _is_worthwhile(tx: Transaction, head: Head, pending_compaction: PendingCompaction) -> bool:
    if not head.below:
        return False
    if _is_needed_once(layer.load(tx, head.below)):
        return True
    is_begun = pending_compaction.below != 0
    return pending_compaction.task is Task.FLATTEN and (
        is_begun or sum(1 for _ in layers(tx, head.below)) > DEPTH_MAX
    )


def _is_needed_once(lower: Head) -> bool:
    return lower.records == 0 and lower.uppers == 1


def _take_over(tx: Transaction, layer_id: int, below: int, start: int, *, moves: bool) -> int:
    """Fill the gaps from the start on with what is below, for a bounded number of runs; answers how far."""
    theirs = interval_rows.load(tx, below, start, ENDLESS, limit=ROWS_PER_STEP)
    end = _end_of(theirs)
    mine = interval_rows.load(tx, layer_id, start, end, limit=ROWS_PER_STEP)
    end = min(end, _end_of(mine))
    own = cut(_intervals(mine), start, end).inside
    taken = cut(_intervals(theirs), start, end).inside
    differences: dict[Source, int] = {}
    interval_rows.replace(tx, layer_id, mine, start, end, _fill(own, taken, start, end), differences)
    if moves:
        interval_rows.replace(tx, below, theirs, start, end, [], differences)
    references.change(tx, differences)
    return end


def _end_of(loaded: Sequence[IntervalRow]) -> int:
    """Up to where these runs tell all: if there may be more of them, only to the end of the last."""
    return loaded[-1].intervals[-1].end if len(loaded) >= ROWS_PER_STEP else ENDLESS


def _intervals(loaded: Sequence[IntervalRow]) -> list[Interval]:
    return [interval for run in loaded for interval in run.intervals]


def _fill(own: list[Interval], taken: list[Interval], start: int, end: int) -> list[Interval]:
    """The own intervals, and in their gaps what was taken."""
    filled = list(own)
    first = 0
    for gap_start, gap_end in gaps(own, start, end):
        while first < len(taken) and taken[first].end <= gap_start:
            first += 1
        index = first
        while index < len(taken) and taken[index].offset < gap_end:
            filled.append(clip(taken[index], gap_start, gap_end))
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
