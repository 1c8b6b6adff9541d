"""WRITEs on their way to the disk, in one queue per open file of this worker.

The bytes of a WRITE go to the extents as soon as it arrives, so the next ones are received and written while the disk
syncs. When the first of the queue are on disk, one transaction refers to all of them, in the order of arrival, and
then all of them are answered. The transaction checks each: one that is refused discards its extents, the others stand.
Short ones are part of the transaction and need no extent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from kyanite.engine.api import EngineBusy, EngineFull, Snapshot, Transaction
from kyanite.extents.api import Extent, Extents
from kyanite.model.accounts import Store
from kyanite.model.content.content import INLINE_MAX, PACK_MAX
from kyanite.model.files.opens import data
from kyanite.model.files.opens.data import HandleWrite, Payload
from kyanite.model.files.tree import Tree
from kyanite.rules.refusals import Reason, Refused

_GROUP_COUNT = 256
_GROUP_EXTENTS = 1024
"""The largest group of WRITEs of one transaction."""


class WriteTarget(NamedTuple):
    """The file that a handle has open."""

    store: Store
    load_tree: Callable[[Snapshot], Tree]
    share_id: int
    file_id: int


class NewWrite(NamedTuple):
    """A WRITE as it arrives, with at least one byte. The data must not change until it is done."""

    handle_id: int
    offset: int
    data: memoryview
    keeps_last_write: bool = False
    keeps_change: bool = False


class PendingWrites:
    """The WRITEs of one open that are not answered yet. Whoever reads, flushes or closes it waits for them."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: set[asyncio.Future[None]] = set()

    def add(self, write: "asyncio.Future[None]") -> None:
        self._pending.add(write)
        write.add_done_callback(self._pending.discard)

    async def drained(self) -> None:
        """Wait until every WRITE that has arrived by now is committed or refused."""
        if self._pending:
            await asyncio.wait(list(self._pending))


class _Write:
    """One WRITE in the queue. ``payload`` is None until its bytes are on disk, ``error`` says why they never will."""

    __slots__ = ("done", "error", "new", "payload")

    def __init__(self, new: NewWrite, done: "asyncio.Future[None]") -> None:
        self.new = new
        self.done = done
        self.payload: Payload | None = None
        self.error: Exception | None = None

    @property
    def is_ready(self) -> bool:
        return self.payload is not None or self.error is not None


class WriteQueues:
    """The queues of one worker."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, int, int], _FileQueue] = {}
        self._storing: set[asyncio.Task[None]] = set()

    def write(self, target: WriteTarget, new: NewWrite) -> "asyncio.Future[None]":
        """Write. The future is done when that is durable, or has the exception that refuses it. It must not be
        cancelled. WRITEs of one file are ordered by these calls.
        """
        key = (id(target.store), target.share_id, target.file_id)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _FileQueue(target, on_empty=lambda: self._queues.pop(key))
        write = _Write(new, asyncio.get_running_loop().create_future())
        write.done.add_done_callback(_mark_retrieved)
        queue.append(write)
        if len(new.data) <= INLINE_MAX:
            write.payload = bytes(new.data)
            queue.commit_ready()
        else:
            storing = asyncio.ensure_future(_store(queue, write))
            self._storing.add(storing)
            storing.add_done_callback(self._storing.discard)
        return write.done


class _FileQueue:
    """The WRITEs of one file, and at most one transaction at a time that commits the first of them."""

    def __init__(self, target: WriteTarget, on_empty: Callable[[], object]) -> None:
        self.target = target
        self._on_empty = on_empty
        self._waiting: deque[_Write] = deque()
        self._committing: asyncio.Task[None] | None = None

    def append(self, write: _Write) -> None:
        self._waiting.append(write)

    def commit_ready(self) -> None:
        if self._committing is None and self._waiting[0].is_ready:
            self._committing = asyncio.ensure_future(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            while group := self._next_group():
                await self._commit([write for write in group if write.error is None])
        finally:
            self._committing = None
            if not self._waiting:
                self._on_empty()

    def _next_group(self) -> list[_Write]:
        """Remove the first that are ready. Those that could not be stored are answered."""
        group: list[_Write] = []
        extents = 0
        for write in takewhile(lambda each: each.is_ready, self._waiting):
            extents += len(write.payload) if isinstance(write.payload, tuple) else 0
            if group and (len(group) == _GROUP_COUNT or extents > _GROUP_EXTENTS):
                break
            group.append(write)
        for write in group:
            self._waiting.popleft()
            if write.error is not None:
                write.done.set_exception(write.error)
        return group

    async def _commit(self, group: Sequence[_Write]) -> None:
        if not group:
            return
        writes = [
            HandleWrite(
                each.new.handle_id,
                each.new.offset,
                len(each.new.data),
                each.payload or b"",
                each.new.keeps_last_write,
                each.new.keeps_change,
            )
            for each in group
        ]
        target = self.target

        def body(tx: Transaction) -> list[Reason | None]:
            return data.write_all(tx, target.load_tree(tx), target.file_id, writes)

        extents = target.store.extents
        try:
            refusals = await target.store.engine.run(body)
        except (Refused, EngineBusy, EngineFull) as error:
            for each in group:
                each.done.set_exception(error)
            await extents.discard([extent for each in group for extent in _extents_of(each)])
        except Exception as error:  # The outcome may be unknown: the extents are left alone.
            for each in group:
                each.done.set_exception(error)
        else:
            await _finish(extents, group, refusals)


async def _store(queue: _FileQueue, write: _Write) -> None:
    """Bring the bytes of a WRITE to the disk, in pieces."""
    extents = queue.target.store.extents
    data = write.new.data
    pieces = [data[at : at + PACK_MAX] for at in range(0, len(data), PACK_MAX)]
    outcomes = await asyncio.gather(*map(extents.put, pieces), return_exceptions=True)
    stored = tuple(each for each in outcomes if isinstance(each, Extent))
    errors = [each for each in outcomes if isinstance(each, Exception)]
    if errors:
        write.error = errors[0]
    else:
        write.payload = stored
    queue.commit_ready()
    if errors:
        await extents.discard(stored)


async def _finish(extents: Extents, group: Sequence[_Write], refusals: Sequence[Reason | None]) -> None:
    discarded: list[Extent] = []
    for write, reason in zip(group, refusals, strict=True):
        if reason is None:
            extents.commit(_extents_of(write))
            write.done.set_result(None)
        else:
            discarded += _extents_of(write)
            write.done.set_exception(Refused(reason))
    if discarded:
        await extents.discard(discarded)


def _extents_of(write: _Write) -> tuple[Extent, ...]:
    return write.payload if isinstance(write.payload, tuple) else ()


def _mark_retrieved(done: "asyncio.Future[None]") -> None:
    """The client may have gone, and nothing else looks at the error."""
    if not done.cancelled():
        done.exception()
