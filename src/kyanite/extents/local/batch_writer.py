"""Writes many small bodies into one file. While one batch is synced, the next one is written.

A file of its own would cost a body of 64 KiB two syncs. Here all waiting bodies share one write, and all batches that
were written by then share the next sync. Observers get the bytes while the disk writes them.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol

from kyanite.engine.api import EngineError
from kyanite.extents.api import Extent, Observer, WrittenExtent
from kyanite.extents.crc64 import checksums_of
from kyanite.extents.local.file_system import Buffer, failure
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


class _Outcome(NamedTuple):
    extent: WrittenExtent
    error: Exception | None
    """What an observer of this body has raised."""


class BatchWriter:
    """Has the segment that small bodies go to."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._current: Segment | None = None
        self._waiting: deque[_PendingWrite] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._storing: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_BATCHES)
        self._threads = ThreadPoolExecutor(_BATCHES, thread_name_prefix="extent-batch-writer")

    async def put(
        self,
        chunks: Sequence[Buffer],
        on_written: Callable[[], object] | None = None,
        observers: Sequence[Observer] = (),
    ) -> WrittenExtent:
        """Store a body that is in memory, in chunks."""
        done: asyncio.Future[WrittenExtent] = asyncio.get_running_loop().create_future()
        length = sum(map(len, chunks))
        self._waiting.append(_PendingWrite(chunks, length, done, observers, on_written))
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())
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
        if self._draining is not None:
            await self._draining
        if self._storing:
            await asyncio.wait(self._storing)
        if self._current is not None:
            segment = self._current
            self.mark_full(segment)
            self._segments.retire(segment)
        self._threads.shutdown()

    async def _drain(self) -> None:
        """Write one batch after the other. None waits for the sync of the one before."""
        try:
            while self._waiting:
                await self._room.acquire()
                written = asyncio.Event()
                storing = asyncio.ensure_future(self._store(self._next_batch(), written))
                self._storing.add(storing)
                storing.add_done_callback(self._storing.discard)
                await written.wait()
        finally:
            self._draining = None

    def _next_batch(self) -> list[_PendingWrite]:
        batch: list[_PendingWrite] = []
        size = 0
        while self._waiting and size < _BATCH_BYTES and len(batch) < _BATCH_COUNT:
            batch.append(self._waiting.popleft())
            size += batch[-1].length
        return batch

    async def _store(self, batch: list[_PendingWrite], written: asyncio.Event) -> None:
        segment, start = self.reserve(sum(aligned(pending.length) for pending in batch))
        loop = asyncio.get_running_loop()
        on_written = partial(loop.call_soon_threadsafe, _announce, batch, written)
        try:
            outcomes = await loop.run_in_executor(
                self._threads, _write_batch, segment, start, batch, on_written
            )
        except Exception as error:
            segment.written(0)
            self.mark_full(segment)
            reason = failure(error) if isinstance(error, OSError | EngineError) else error
            for pending in batch:
                pending.done.set_exception(reason)
        else:
            segment.written(len(batch))
            for pending, outcome in zip(batch, outcomes, strict=True):
                if outcome.error is None:
                    pending.done.set_result(outcome.extent)
                else:
                    pending.done.set_exception(outcome.error)
                    self._segments.orphaned(outcome.extent)
        finally:
            written.set()
            self._room.release()
        self._segments.retire(segment)

    def _discard_result(self, done: "asyncio.Future[WrittenExtent]") -> None:
        with contextlib.suppress(Exception):
            self._segments.orphaned(done.result())


def _announce(batch: list[_PendingWrite], written: asyncio.Event) -> None:
    for pending in batch:
        if pending.on_written is not None:
            pending.on_written()
    written.set()


def _write_batch(
    segment: Segment, start: int, batch: list[_PendingWrite], on_written: Callable[[], object]
) -> list[_Outcome]:
    buffers: list[Buffer] = []
    extents = []
    at = start
    for pending in batch:
        length = pending.length
        extents.append(WrittenExtent(segment.id, at, length, *checksums_of(*pending.chunks)))
        buffers += pending.chunks
        if padding := aligned(length) - length:
            buffers.append(_PADDING[:padding])
        at += aligned(length)
    segment.allocate(aligned(at, _ALLOCATE_BYTES))
    segment.write(buffers, start)
    on_written()
    if any(pending.observers for pending in batch):
        segment.begin_writing_out(start, at - start)
    errors = [_observe(pending) for pending in batch]
    segment.sync()
    return [_Outcome(extent, error) for extent, error in zip(extents, errors, strict=True)]


def _observe(pending: _PendingWrite) -> Exception | None:
    """Pass a body to its observers. If one of them fails, that is no matter of the other bodies."""
    try:
        for observe in pending.observers:
            for chunk in pending.chunks:
                observe(chunk)
    except Exception as error:
        return error
    return None
