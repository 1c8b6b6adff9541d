"""Reading the bytes of a blob or file: the version that was there when the read began, however long it takes.

The caller pins the extents (``Extents.pin``) and then opens the content (``opening.py``), which is one snapshot.
Extents never change, so the plan that it returns can be followed for as long as the pin is kept.

A plan that would be too long ends early, and the rest has to come from later snapshots. A layer of one record is
written in place, so two snapshots of it may differ. Such a reader opens the content again as a *pinned read*: a
transaction that reads the record and counts the reader as one more record of the layer, so that the next write goes
into a new layer on top. The transaction needs no sync, because a pinned read ends with its process. Maintenance
releases the pinned reads of dead processes.

A pin keeps the space of everything that is deleted after it. So a reader that takes long replaces it by a *slow
read*: a row with the extents of its plan, which garbage collection leaves alone. A pinned read needs neither, because
its extents are referred to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec

from kyanite.engine.api import Engine, EngineBusy, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import layers
from kyanite.model.content.content import Content, PlanPart, ReadPlan, read_plan
from kyanite.model.content.opening import Opened, Readable, Reading, open_content
from kyanite.slices import next_slice

_PARTS_PER_SLICE = 100

R = TypeVar("R", bound=Readable)


def open_pinned(engine: Engine, request: Reading[R], owner: bytes, number: int) -> Awaitable[Opened[R]]:
    """Open as a pinned read of this process (``Extents.owner``), under a number that it uses for no other."""

    def body(tx: Transaction) -> Opened[R]:
        opened = open_content(tx, request)
        pin_content(tx, opened.record.content, owner, number)
        return opened

    return engine.run(body, durable=False)


def release_pinned(engine: Engine, owner: bytes, number: int) -> Awaitable[None]:
    return engine.run(partial(release_content, owner=owner, number=number), durable=False)


def pin_content(tx: Transaction, content: Content, owner: bytes, number: int) -> None:
    if content.layer:
        layers.share(tx, content.layer)
        keep_pin(tx, owner, number, content.layer)


def keep_pin(tx: Transaction, owner: bytes, number: int, layer: int) -> None:
    """Make a reference to the layer, which is counted already, one of a pinned read."""
    tx.put(keys.pinned_read(owner, number), _encode(layer))


def forget_pin(tx: Transaction, owner: bytes, number: int) -> None:
    """The reference of a pinned read now belongs to a record."""
    assert tx.get(keys.pinned_read(owner, number)) is not None, "A layer has lost its pinned read."
    tx.delete(keys.pinned_read(owner, number))


def release_content(tx: Transaction, owner: bytes, number: int) -> None:
    """Nothing happens if there is no such pinned read."""
    stored = tx.get(keys.pinned_read(owner, number))
    if stored is not None:
        layers.drop(tx, _decode(stored))
        tx.delete(keys.pinned_read(owner, number))


class KeptExtent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Stored: fields are only ever added at the end."""

    segment: bytes
    start: int
    length: int


def keep_extents(tx: Transaction, owner: bytes, number: int, extents: list[KeptExtent]) -> None:
    """Keep the bytes of these extents for a slow read of this process, which may then release its pin.

    A pin keeps everything that was readable when it was made: a reader that takes long should not have one. Needs no
    sync, because a slow read ends with its process.
    """
    tx.put(keys.slow_read(owner, number), _encode(extents))


def forget_extents(tx: Transaction, owner: bytes, number: int) -> None:
    """The slow read has ended."""
    tx.delete(keys.slow_read(owner, number))


def kept_extents(snap: Snapshot, start: bytes, *, limit: int) -> tuple[set[KeptExtent], bytes]:
    """The extents that some slow reads keep, from a key on, and where the next ones begin; b"" after the last."""
    rows = list(snap.scan(start or keys.SLOW_READS, keys.after(keys.SLOW_READS), limit=limit))
    kept = {extent for _, value in rows for extent in _decode_extents(value)}
    return kept, rows[-1][0] + b"\0" if len(rows) == limit else b""


def check_pinned(snap: Snapshot, owner: bytes, number: int) -> None:
    """Whether the layer of a pinned read is still as it was. Pinning does not wait for the disk, so a failover may lose
    it, while the process that reads goes on."""
    if snap.get(keys.pinned_read(owner, number)) is None:
        raise EngineBusy("a failover has lost the pin of a read")


async def planned_parts(
    engine: Engine, content: Content, plan: ReadPlan, end: int, owner: bytes, number: int | None
) -> AsyncIterator[PlanPart]:
    """The parts of a plan and of those that follow it up to ``end``. If any follow, the content is pinned under this
    number.

    Others are served after some parts, because a client that reads fast never has to be waited for.
    """

    def next_plan(snap: Snapshot) -> ReadPlan:
        assert number is not None, "More is read than one snapshot has, and nothing is pinned."
        check_pinned(snap, owner, number)
        return read_plan(snap, content, at, end - at)

    while True:
        for count, part in enumerate(plan.parts, 1):
            yield part
            if count % _PARTS_PER_SLICE == 0:
                await next_slice()
        at = plan.end
        if at >= end:
            return
        plan = await engine.read(next_plan)


_encode = msgspec.msgpack.Encoder().encode
_decode_extents: Callable[[bytes], list[KeptExtent]] = msgspec.msgpack.Decoder(list[KeptExtent]).decode
_decode: Callable[[bytes], int] = msgspec.msgpack.Decoder(int).decode
