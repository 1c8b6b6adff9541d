"""Writes many small bodies into one file. While one batch is synced, the next one is written.

A file of its own would cost a body of 64 KiB two syncs. Here all waiting bodies share one write, and all batches that
were written by then share the next sync. Observers get the bytes while the disk writes them.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple, Protocol

from kyanite.engine.api import EngineError
from kyanite.extents.api import Extent, Observer, WrittenExtent
from kyanite.extents.crc64 import checksums_of
from kyanite.extents.local.file_system import Buffer, failure
from kyanite.extents.local.recent_writes import RecentWrites
from kyanite.extents.local.segment import BLOCK, Segment, aligned

SEGMENT_FULL_BYTES = 256 * 1024 * 1024
_ALLOCATE_BYTES = 16 * 1024 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
_BATCH_COUNT = 256
_BATCHES = 4
"""How many batches may be written or synced at a time."""
_PADDING = memoryview(bytes(BLOCK))


class Segments(Protocol):
    """The segments of this process."""

    def new_segment(self) -> Segment: ...

    def retire(self, segment: Segment) -> "asyncio.Future[None] | None":
        """Seal the segment if it has become idle. Returns the job that does it, if there is one."""

    def orphaned(self, extent: Extent) -> None:
        """Discard an extent whose caller has gone."""


class _PendingWrite(NamedTuple):
    chunks: Sequence[Buffer]
    length: int
    done: "asyncio.Future[WrittenExtent]"
    observers: Sequence[Observer]
    on_written: Callable[[], object] | None


class _Batch:
    """Bodies that are written and synced together. The event loop makes it, then it belongs to a thread."""

    __slots__ = ("end", "errors", "extents", "is_awaited", "is_written", "segment", "start", "writes")

    def __init__(self, segment: Segment, start: int, writes: list[_PendingWrite]) -> None:
        self.segment = segment
        self.start = start
        self.end = start
        self.writes = writes
        self.extents: list[WrittenExtent] = []
        self.errors: list[Exception | None] = []
        """What an observer of each body has raised."""
        self.is_awaited = any(pending.on_written is not None for pending in writes)
        """Whether the event loop wants to know when it is written."""
        self.is_written = False

    def await_written(self) -> bool:
        """Whether it is written. If not, the event loop will be told. The thread writes the one and reads the other in
        the opposite order, so one of both notices."""
        self.is_awaited = True
        return self.is_written

    def write(self) -> None:
        buffers: list[Buffer] = []
        at = self.start
        for pending in self.writes:
            length = pending.length
            self.extents.append(WrittenExtent(self.segment.id, at, length, *checksums_of(*pending.chunks)))
            buffers += pending.chunks
            if padding := aligned(length) - length:
                buffers.append(_PADDING[:padding])
            at += aligned(length)
        self.end = at
        self.segment.allocate(aligned(at, _ALLOCATE_BYTES))
        self.segment.write(buffers, self.start)
        if any(pending.observers for pending in self.writes):
            self.segment.begin_writing_out(self.start, at - self.start)
        self.is_written = True

    def observe_and_sync(self) -> None:
        self.errors = [_observe(pending) for pending in self.writes]
        self.segment.sync()


class _Threads:
    """Threads for jobs that report to the event loop themselves. An executor would make a future for each job."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def run(self, job: Callable[[], None], unfinished: int) -> None:
        """Run the job, beside so many others at most that are not finished."""
        if len(self._threads) <= unfinished:
            name = f"extent-batch-writer_{len(self._threads)}"
            self._threads.append(Thread(target=self._work, name=name, daemon=True))
            self._threads[-1].start()
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # The bytes of a batch are not kept until the next one.

    def end(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()


class BatchWriter:
    """Has the segment that small bodies go to. Everything but a batch's own work happens on the event loop."""

    def __init__(self, segments: Segments, recent_writes: RecentWrites) -> None:
        self._segments = segments
        self._recent_writes = recent_writes
        self._current: Segment | None = None
        self._waiting: deque[_PendingWrite] = deque()
        self._is_scheduled = False
        self._batches: set[_Batch] = set()
        """Those that are being written or synced."""
        self._last: _Batch | None = None
        """The last of them. The next one begins when it is written."""
        self._threads = _Threads()
        self._idle: asyncio.Future[None] | None = None

    async def put(
        self,
        chunks: Sequence[Buffer],
        on_written: Callable[[], object] | None = None,
        observers: Sequence[Observer] = (),
    ) -> WrittenExtent:
        """Store a body that is in memory, in chunks."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[WrittenExtent] = loop.create_future()
        length = sum(map(len, chunks))
        self._waiting.append(_PendingWrite(chunks, length, done, observers, on_written))
        self._schedule(loop)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(self._discard_result)
            raise

    def reserve(self, length: int) -> tuple[Segment, int]:
        """Reserve a stretch of the current segment for the caller, which writes it itself."""
        if self._current is None:
            self._current = self._segments.new_segment()
        segment = self._current
        start = segment.reserve(length)
        if segment.end >= SEGMENT_FULL_BYTES:
            self.mark_full(segment)
        return segment, start

    def mark_full(self, segment: Segment) -> None:
        """Reserve nothing more in this segment."""
        segment.full = True
        if segment is self._current:
            self._current = None

    async def close(self) -> None:
        while self._waiting or self._batches:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        if self._current is not None:
            segment = self._current
            self.mark_full(segment)
            self._segments.retire(segment)
        self._threads.end()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a batch soon: what is put in the same iteration of the loop belongs to it."""
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin the next batch if the last one is written. It does not wait for the sync of that."""
        self._is_scheduled = False
        if not self._waiting or len(self._batches) == _BATCHES:
            return
        if self._last is not None and not self._last.await_written():
            return
        writes = self._next_writes()
        segment, start = self.reserve(sum(aligned(pending.length) for pending in writes))
        batch = self._last = _Batch(segment, start, writes)
        self._threads.run(lambda: self._store(batch, loop), len(self._batches))
        self._batches.add(batch)
        if self._waiting:
            self._schedule(loop)

    def _next_writes(self) -> list[_PendingWrite]:
        writes: list[_PendingWrite] = []
        size = 0
        while self._waiting and size < _BATCH_BYTES and len(writes) < _BATCH_COUNT:
            writes.append(self._waiting.popleft())
            size += writes[-1].length
        return writes

    def _store(self, batch: _Batch, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread."""
        error: Exception | None = None
        try:
            batch.write()
            if batch.is_awaited:
                loop.call_soon_threadsafe(self._announce, batch, loop)
            batch.observe_and_sync()
        except Exception as raised:
            error = raised
        loop.call_soon_threadsafe(self._finish, batch, error, loop)
        self._recent_writes.add(batch.segment.path, batch.start, batch.end - batch.start)

    def _announce(self, batch: _Batch, loop: asyncio.AbstractEventLoop) -> None:
        for pending in batch.writes:
            if pending.on_written is not None:
                pending.on_written()
        self._schedule(loop)

    def _finish(self, batch: _Batch, error: Exception | None, loop: asyncio.AbstractEventLoop) -> None:
        self._batches.discard(batch)
        if self._last is batch:
            self._last = None
        segment = batch.segment
        if error is None:
            segment.written(len(batch.writes))
            for pending, extent, refusal in zip(batch.writes, batch.extents, batch.errors, strict=True):
                if refusal is None:
                    pending.done.set_result(extent)
                else:
                    pending.done.set_exception(refusal)
                    self._segments.orphaned(extent)
        else:
            segment.written(0)
            self.mark_full(segment)
            reason = failure(error) if isinstance(error, OSError | EngineError) else error
            for pending in batch.writes:
                pending.done.set_exception(reason)
        self._segments.retire(segment)
        if self._waiting:
            self._schedule(loop)
        elif self._idle is not None and not self._batches and not self._idle.done():
            self._idle.set_result(None)

    def _discard_result(self, done: "asyncio.Future[WrittenExtent]") -> None:
        with contextlib.suppress(Exception):
            self._segments.orphaned(done.result())


def _observe(pending: _PendingWrite) -> Exception | None:
    """Pass a body to its observers. If one of them fails, that is no matter of the other bodies."""
    try:
        for observe in pending.observers:
            for chunk in pending.chunks:
                observe(chunk)
    except Exception as error:
        return error
    return None
