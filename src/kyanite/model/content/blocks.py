"""Content made of blocks. A block is a number of intervals, the first of which has the tag of the block.

A staged block is content of its own (``content.create`` with a tag). Committing a list moves the intervals of its
blocks into the content of the blob. The bytes stay where they are, and only the references that differ are counted.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Snapshot, Steps, Transaction
from kyanite.model.content import interval_rows, layers, references
from kyanite.model.content.content import Content, drop, listed, short_list, visible
from kyanite.model.content.intervals import ENDLESS, Interval
from kyanite.model.content.layers import Head
from kyanite.model.content.references import Source
from kyanite.model.content.spread import Run

_REWRITTEN_ROWS_MAX = 16
_INTERVALS_PER_STEP = 250


class Block(NamedTuple):
    tag: bytes
    intervals: tuple[Interval, ...]

    @property
    def length(self) -> int:
        return sum(interval.length for interval in self.intervals)


def blocks_of(snapshot: Snapshot, content: Content) -> Iterator[Block]:
    """The blocks of a content in order. Content that was not made of blocks is one block without a tag."""
    block: list[Interval] = []
    for interval in visible(snapshot, content, 0, ENDLESS):
        if interval.tag and block:
            yield Block(block[0].tag, tuple(block))
            block = []
        block.append(interval)
    if block:
        yield Block(block[0].tag, tuple(block))


def runs_of(snapshot: Snapshot, content: Content, length: int) -> Steps[list[Run]]:
    """Where the blocks of a content of this length are. What is in none is a run without a tag."""
    begins: list[tuple[int, bytes]] = []
    for count, interval in enumerate(visible(snapshot, content, 0, ENDLESS), 1):
        if interval.tag:
            begins.append((interval.offset, interval.tag))
        if count % _INTERVALS_PER_STEP == 0:
            yield
    if not begins or begins[0][0] > 0:
        begins.insert(0, (0, b""))
    ends = [offset for offset, _ in begins[1:]] + [length]
    return [Run(offset, end - offset, tag) for (offset, tag), end in zip(begins, ends, strict=True)]


def compose(tx: Transaction, old: Content, staged: Iterable[Content], blocks: Sequence[Block]) -> Content:
    """Content that is exactly these blocks, each from ``blocks_of(old)`` or from the staged contents.

    The old content and all staged ones are dropped, whether their blocks are in the list or not.
    """
    intervals = list(laid_out(blocks))
    differences = references.count({}, intervals, 1)
    for content in staged:
        references.count(differences, short_list(tx, content), -1)
    rewritten = _rewrite(tx, old.layer, intervals, differences) if old.layer else None
    if rewritten is not None:
        composed = rewritten
    else:
        if old.layer:
            drop(tx, old)
        else:
            references.count(differences, short_list(tx, old), -1)
        composed = listed(tx, intervals)
    references.change(tx, differences)
    return composed


def _is_own(head: Head) -> bool:
    """Whether the layer belongs to one record alone, with nothing below."""
    return head.records == 1 and not head.uppers and not head.below


def _rewrite(
    tx: Transaction, layer_id: int, intervals: Sequence[Interval], differences: dict[Source, int]
) -> Content | None:
    """Write the intervals in place of those of the layer, if nothing else needs it and it is short."""
    if not _is_own(layers.load(tx, layer_id)):
        return None
    loaded = list(interval_rows.scan(tx, layer_id, limit=_REWRITTEN_ROWS_MAX + 1))
    if len(loaded) > _REWRITTEN_ROWS_MAX:
        return None
    for row in loaded:
        references.count(differences, row.intervals, -1)
    interval_rows.store(tx, layer_id, loaded, intervals, fill=True)
    return Content(layer=layer_id)


def laid_out(blocks: Iterable[Block], offset: int = 0) -> Iterator[Interval]:
    """The intervals of the blocks, one after the other from this offset on."""
    for block in blocks:
        tag = block.tag
        for interval in block.intervals:
            yield msgspec.structs.replace(interval, offset=offset, tag=tag)
            offset += interval.length
            tag = b""
