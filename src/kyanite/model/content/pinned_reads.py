"""Reading content for longer than one snapshot.

A layer that belongs to one record alone is written in place, so two snapshots of it may differ. A reader
whose plan does not fit into one transaction holds the layer: it counts as one more record, and the next write
goes into a new layer on top. Holding and letting go need no sync, because a hold dies with the process that
has it; what a dead process held, the sweeper lets go.

    def body(tx):                                   # with engine.run(..., durable=False)
        record = load(tx, ...)
        hold.take(tx, record.content, owner, number)
        return record, read_plan(tx, record.content, offset, length)

The transaction has to read the record anew: between an earlier snapshot and the hold it may have changed.
"""

from collections.abc import AsyncIterator, Callable
from functools import partial

import msgspec

from kyanite.engine.api import Engine, Transaction
from kyanite.model import keys
from kyanite.model.content import layers
from kyanite.model.content.content import Content, Piece, Plan, read_plan

_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], int] = msgspec.msgpack.Decoder(int).decode


def take(tx: Transaction, content: Content, owner: bytes, number: int) -> None:
    """Hold the content for this owner (``Membership.id``), under a number that it uses for nothing else
    meanwhile."""
    if content.layer:
        layers.share(tx, content.layer)
        tx.put(keys.pinned_read(owner, number), _encode(content.layer))


def release(tx: Transaction, owner: bytes, number: int) -> None:
    """Let go; nothing happens if there is no such hold."""
    stored = tx.get(keys.pinned_read(owner, number))
    if stored is not None:
        layers.drop(tx, _decode(stored))
        tx.delete(keys.pinned_read(owner, number))


async def pieces(engine: Engine, content: Content, plan: Plan, end: int) -> AsyncIterator[Piece]:
    """The pieces of a plan, and then of the plans that follow it. The content is held if there are any."""
    while True:
        for piece in plan.pieces:
            yield piece
        at = plan.end
        if at >= end:
            return
        plan = await engine.read(partial(read_plan, content=content, offset=at, length=end - at))
