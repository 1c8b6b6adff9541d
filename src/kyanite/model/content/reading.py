"""Reading the bytes of a blob or file: the version that was there when the reading began, however long it takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model.content import pinned_reads
from kyanite.model.content.content import Content, Plan, read_plan
from kyanite.rules.refusals import Reason, Refused, TotalLength
from kyanite.values import Instant


class Readable(Protocol):
    """A record of something that has bytes."""

    @property
    def length(self) -> int: ...

    @property
    def content(self) -> Content: ...


R = TypeVar("R", bound=Readable)


class Reading(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """What is to be read: from byte ``first`` to byte ``last`` or the end, or the whole, which may be empty."""

    load: Callable[[Snapshot], R]
    """Finds the record, or refuses to."""
    first: int = 0
    last: int | None = None
    is_whole: bool = True


class Opened(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """A blob or file as it was when its reading began, and where the bytes that were asked for are."""

    record: R
    at: Instant
    offset: int
    length: int
    plan: Plan

    @property
    def is_planned_whole(self) -> bool:
        """Whether the plan goes to the end. Otherwise it has to be opened again, and held."""
        return self.plan.end >= self.offset + self.length


def open_once(engine: Engine, request: Reading[R]) -> Awaitable[Opened[R]]:
    """Begin to read. The caller has pinned the extents before."""

    def body(snap: Snapshot) -> Opened[R]:
        return _open(snap, request)

    return engine.read(body)


def open_held(engine: Engine, request: Reading[R], owner: bytes, number: int) -> Awaitable[Opened[R]]:
    """Begin to read something so finely divided that it takes several plans: its content is held meanwhile."""

    def body(tx: Transaction) -> Opened[R]:
        opened = _open(tx, request)
        pinned_reads.take(tx, opened.record.content, owner, number)
        return opened

    return engine.run(body, durable=False)


def let_go(engine: Engine, owner: bytes, number: int) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        pinned_reads.release(tx, owner, number)

    return engine.run(body, durable=False)


def _open(snap: Snapshot, request: Reading[R]) -> Opened[R]:
    record = request.load(snap)
    total = record.length
    if request.is_whole:
        return Opened(record, snap.now, 0, total, read_plan(snap, record.content, 0, total))
    if request.first >= total:
        raise Refused(Reason.INVALID_RANGE, TotalLength(total))
    length = total - request.first if request.last is None else min(request.last + 1, total) - request.first
    return Opened(
        record, snap.now, request.first, length, read_plan(snap, record.content, request.first, length)
    )
