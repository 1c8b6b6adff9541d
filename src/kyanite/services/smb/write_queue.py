"""WRITEs on their way to the disk, in one queue per open file of this worker.

The bytes of a WRITE go to the extents as soon as it arrives, so the next ones are received and written while the disk
syncs. When the first of the queue are on disk, one transaction refers to all of them, in the order of arrival, and
then all of them are answered. The transaction checks each: one that is refused discards its extents, the others stand.
Short ones are part of the transaction and need no extent.

A server that promises durability at FLUSH only answers a WRITE as soon as a file has its bytes. Nothing else changes:
no transaction refers to bytes that were not synced. ``model/files/opens/write_behind.py`` says how others wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain, takewhile
from typing import Any, NamedTuple

from kyanite.engine.api import EngineBusy, EngineError, EngineFull, Snapshot, Transaction
from kyanite.extents.api import Extent, Extents
from kyanite.model.accounts import Store
from kyanite.model.content.content import INLINE_MAX, PACK_MAX
from kyanite.model.files.opens import data, write_behind
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.model.files.opens.data import HandleWrite, Written
from kyanite.model.files.opens.waits import after_breaks
from kyanite.model.files.tree import Tree
from kyanite.rules.refusals import Refused
from kyanite.services.smb.pending_write import NewWrite, PendingWrite

_GROUP_COUNT = 256
_GROUP_EXTENTS = 1024
"""The largest group of WRITEs of one transaction."""
_FLUSH_SECONDS = 35.0
"""How long a transaction waits for another process to commit what that has answered."""


class WriteTarget(NamedTuple):
    """The file that a handle has open."""

    store: Store
    load_tree: Callable[[Snapshot], Tree]
    share_id: int
    file_id: int


class WriteQueues:
    """The queues of one worker."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, int, int], FileQueue] = {}

    def write(self, target: WriteTarget, new: NewWrite) -> PendingWrite:
        """Write. WRITEs of one file are ordered by these calls."""
        key = (id(target.store), target.share_id, target.file_id)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = FileQueue(target, on_empty=lambda: self._queues.pop(key))
        return queue.append(new)


class FileQueue:
    """The WRITEs of one file, and at most one transaction at a time that commits the first of them."""

    def __init__(self, target: WriteTarget, on_empty: Callable[[], object]) -> None:
        self.target = target
        self._on_empty = on_empty
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[PendingWrite] = deque()
        self._group: Sequence[PendingWrite] = ()
        """Those that are being committed."""
        self._is_committing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._behind = _WriteBehind(self)

    @property
    def uncommitted(self) -> "chain[PendingWrite]":
        return chain(self._group, self._waiting)

    def append(self, new: NewWrite) -> PendingWrite:
        write = PendingWrite(new, self._loop)
        self._waiting.append(write)
        if len(new.data) <= INLINE_MAX:
            write.payload = bytes(new.data)
            self._behind.written(write)
            self._commit_ready()
        else:
            self.start(self._store(write))
        return write

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it beside what waits. The queue stays until it is done."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not self._tasks and not self._waiting:
            self._on_empty()
        if not task.cancelled():
            task.result()

    async def _store(self, write: PendingWrite) -> None:
        """Bring the bytes of a WRITE to the disk, in pieces."""
        extents, body = self.target.store.extents, write.new.data
        pieces = [body[at : at + PACK_MAX] for at in range(0, len(body), PACK_MAX)]
        left = len(pieces)

        def on_written() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._behind.written(write)

        puts = [extents.put(piece, on_written if write.new.may_be_behind else None) for piece in pieces]
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        stored = tuple(each for each in outcomes if isinstance(each, Extent))
        errors = [each for each in outcomes if isinstance(each, Exception)]
        if errors:
            write.error = errors[0]
        else:
            write.payload = stored
        self._commit_ready()
        if errors:
            await extents.discard(stored)

    def _commit_ready(self) -> None:
        if not self._is_committing and self._waiting[0].is_ready:
            self._is_committing = True
            self.start(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            while group := self._next_group():
                await self._commit([write for write in group if write.error is None])
                self._behind.end_if_committed()
        finally:
            self._is_committing = False

    def _next_group(self) -> list[PendingWrite]:
        """Remove the first that are ready. Those that could not be stored are answered."""
        group: list[PendingWrite] = []
        extents = 0
        for write in takewhile(lambda each: each.is_ready, self._waiting):
            extents += len(write.extents)
            if group and (len(group) == _GROUP_COUNT or extents > _GROUP_EXTENTS):
                break
            group.append(write)
        for write in group:
            self._waiting.popleft()
            if write.error is not None:
                write.finish(write.error)
        return group

    async def _commit(self, group: Sequence[PendingWrite]) -> None:
        if not group:
            return
        self._group = group
        extents = self.target.store.extents
        try:
            written = await self._run([each.stored for each in group])
        except (Refused, EngineBusy, EngineFull) as error:
            for each in group:
                each.finish(error)
            await extents.discard([extent for each in group for extent in each.extents])
        except Exception as error:  # The outcome may be unknown: the extents are left alone.
            for each in group:
                each.finish(error)
        else:
            if written.is_flush_wanted:
                self._behind.suspend()
            await _finish(extents, group, written)
        finally:
            self._group = ()

    async def _run(self, writes: Sequence[HandleWrite]) -> Written:
        target = self.target
        engine = target.store.engine

        def body(tx: Transaction) -> Written:
            return data.write_all(tx, target.load_tree(tx), target.file_id, writes)

        try:
            return await engine.run(body)
        except BreakNeeded as needed:
            membership = target.store.membership
            return await after_breaks(engine, membership, needed, lambda: engine.run(body), _FLUSH_SECONDS)


async def _finish(extents: Extents, group: Sequence[PendingWrite], written: Written) -> None:
    discarded: list[Extent] = []
    for write, reason in zip(group, written.refusals, strict=True):
        if reason is None:
            extents.commit(write.extents)
            write.finish(None)
        else:
            discarded += write.extents
            write.finish(Refused(reason))
    if discarded:
        await extents.discard(discarded)


class _WriteBehind:
    """Answers the WRITEs of one handle before they are committed, while the handle is marked.

    Another handle of the file may do so when nothing is left that was answered and not committed.
    """

    def __init__(self, queue: FileQueue) -> None:
        self._queue = queue
        self._handle_id = 0
        self._is_marked = False
        self._is_suspended = False

    def written(self, write: PendingWrite) -> None:
        """A file has the bytes, or they are in memory and few."""
        if not write.new.may_be_behind:
            return
        write.is_written = True
        if not self._handle_id:
            self._handle_id = write.new.handle_id
            self._queue.start(self._mark())
        elif self._is_marked:
            self._answer(write)

    def suspend(self) -> None:
        """Others wait for the file: what is not answered yet is answered when it is committed."""
        self._is_suspended = True

    def end_if_committed(self) -> None:
        """Remove the mark once everything that was answered is committed."""
        if self._is_marked and not any(each.is_behind for each in self._queue.uncommitted):
            handle_id, self._handle_id = self._handle_id, 0
            self._is_marked = self._is_suspended = False
            self._queue.start(self._unmark(handle_id))

    async def _mark(self) -> None:
        """Mark the handle, unless a lock was taken since its WRITEs were checked: from now on others wait."""
        target, handle_id = self._queue.target, self._handle_id
        own = [
            each for each in self._queue.uncommitted if each.is_written and each.new.handle_id == handle_id
        ]

        def body(tx: Transaction) -> bool:
            share_tree, file_id = target.load_tree(tx), target.file_id
            return all(
                data.can_write_behind(tx, share_tree, file_id, handle_id, each.new.offset, len(each.new.data))
                for each in own
            ) and write_behind.begin(tx, target.share_id, file_id, handle_id)

        try:
            self._is_marked = await target.store.engine.run(body, durable=False)
        except (Refused, EngineError):  # The WRITEs will meet the same.
            self._is_marked = False
        if not self._is_marked:
            self._handle_id = 0
            return
        for write in own:
            if not write.done.done():
                self._answer(write)
        self.end_if_committed()

    def _answer(self, write: PendingWrite) -> None:
        if write.new.handle_id == self._handle_id and not self._is_suspended:
            write.answer()

    async def _unmark(self, handle_id: int) -> None:
        target = self._queue.target

        def body(tx: Transaction) -> None:
            write_behind.end(tx, target.share_id, target.file_id, handle_id)

        await target.store.engine.run(body, durable=False)
