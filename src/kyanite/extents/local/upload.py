"""A body while it is received into local files.

Chunks gather to jobs of about a megabyte. While the next job gathers, one thread writes the last one and another passes
it to the observers, so receiving, hashing and writing overlap. A few jobs may be left to the threads, so that none of
them waits for the event loop. Syncs begin early, which leaves little to do for the last one. A body that never filled
one job goes to the batch writer instead.

All uploads of a process share a bound on what they have in memory. Near it jobs are as small as the chunks, so that
many slow clients cannot fill the memory; at twice the bound uploads fail.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

from kyanite.engine.api import EngineBusy
from kyanite.extents.api import PACK_MAX, Observer, WrittenExtent
from kyanite.extents.cutter import Cutter
from kyanite.extents.local.batch_writer import BatchWriter, Segments
from kyanite.extents.local.file_system import Buffer
from kyanite.extents.local.job_line import JobLine
from kyanite.extents.local.segment import Segment, aligned

SHARED_MAX = 4 * 1024 * 1024
"""Bodies of a known size up to this share a segment; others get a segment of their own."""

JOB_BYTES = PACK_MAX
_JOBS_LEFT = 2
"""How many jobs may be left to the threads when the next one is added."""
MEMORY_BYTES = 64 * 1024 * 1024
"""What all uploads of a process should have in memory at most."""
_SMALL_CHUNK_BYTES = 4096
_EARLY_SYNC_BYTES = 32 * 1024 * 1024

_ALLOCATE_BYTES = 64 * 1024 * 1024
"""How much space is allocated ahead. Not for the whole body: a client may announce much and send nothing."""


class UploadMemory:
    """How many bytes all uploads of a process have in memory."""

    __slots__ = ("lock", "used_bytes")

    def __init__(self) -> None:
        self.used_bytes = 0
        self.lock = Lock()
        """Threads change the number too."""


class LocalUpload:
    def __init__(
        self,
        segments: Segments,
        batch_writer: BatchWriter,
        threads: ThreadPoolExecutor,
        memory: UploadMemory,
        *,
        size_hint: int | None,
        observers: Sequence[Observer],
    ) -> None:
        self._segments = segments
        self._batch_writer = batch_writer
        self._threads = threads
        self._memory = memory
        self._counted_bytes = 0
        """What this upload adds to the memory in use."""
        self._size_hint = size_hint
        self._observers = observers
        self._gathered: list[Buffer] = []
        self._gathered_bytes = 0
        self._sent_bytes = 0
        self._written_bytes = 0
        self._observed_bytes = 0
        self._segment: Segment | None = None
        self._shares_segment = size_hint is not None and size_hint <= SHARED_MAX
        self._cutter = Cutter(b"", 0)
        self._start = 0
        self._writing = JobLine(threads)
        self._observing = JobLine(threads)
        self._early_sync: asyncio.Future[None] | None = None
        self._early_sync_bytes = 0

    async def write(self, chunk: bytes) -> None:
        if self._memory.used_bytes > MEMORY_BYTES:
            await self._write_out()
        elif self._gathered_bytes >= JOB_BYTES:
            await self._send()
        self._gather(chunk)
        if self._size_hint is not None and self._sent_bytes + self._gathered_bytes > self._size_hint:
            raise ValueError("More bytes came than were announced.")

    async def finish(self) -> list[WrittenExtent]:
        if self._segment is None and self._gathered_bytes <= JOB_BYTES:
            return await self._finish_small()
        segment = await self._send()
        self._writing.add(segment.sync)
        await self._writing.wait()
        await self._observing.wait()
        self._count_nothing()
        extents = self._cutter.finish()
        assert sum(each.length for each in extents) == self._sent_bytes, "Each byte belongs to one extent."
        self._end_writing(segment, extents)
        return extents

    async def abort(self) -> None:
        await asyncio.shield(asyncio.ensure_future(self._abandon()))

    def _gather(self, chunk: bytes) -> None:
        """Keep the chunk; small ones are joined, so that a job has few buffers."""
        gathered = self._gathered
        self._gathered_bytes += len(chunk)
        self._count()
        if len(chunk) >= _SMALL_CHUNK_BYTES:
            gathered.append(chunk)
            return
        last = gathered[-1] if gathered else b""
        if isinstance(last, bytearray):
            last += chunk
        else:
            gathered.append(bytearray(chunk))

    async def _write_out(self) -> None:
        """Keep as little in memory as possible."""
        if self._gathered:
            await self._send()
        await self._writing.wait()
        await self._observing.wait()
        if self._memory.used_bytes > 2 * MEMORY_BYTES:
            raise EngineBusy("uploads use all the memory that they may")

    async def _send(self) -> Segment:
        """Pass the gathered chunks to the threads, once these have finished most of the jobs before."""
        await self._writing.wait(_JOBS_LEFT)
        await self._observing.wait(_JOBS_LEFT)
        segment = self._segment or self._open()
        chunks, offset = self._gathered, self._start + self._sent_bytes
        self._sent_bytes += self._gathered_bytes
        self._gathered, self._gathered_bytes = [], 0
        self._writing.add(lambda: self._store(segment, chunks, offset))
        if self._observers:
            self._observing.add(lambda: self._observe(chunks))
        self._sync_early(segment)
        return segment

    def _open(self) -> Segment:
        if self._shares_segment:
            segment, self._start = self._batch_writer.reserve(self._size_hint or 0)
        else:
            segment = self._segments.new_segment()
            segment.reserve(self._size_hint or 0)
            segment.full = True
        self._cutter = Cutter(segment.id, self._start)
        self._segment = segment
        return segment

    def _store(self, segment: Segment, chunks: list[Buffer], offset: int) -> None:
        if self._size_hint is not None:
            ahead = aligned(offset + sum(map(len, chunks)), _ALLOCATE_BYTES)
            segment.allocate(min(ahead, self._start + self._size_hint))
        self._cutter.add(chunks)
        segment.write(chunks, offset)
        self._written_bytes += sum(map(len, chunks))
        self._count()

    def _observe(self, chunks: Iterable[Buffer]) -> None:
        for chunk in chunks:
            for observe in self._observers:
                observe(chunk)
            self._observed_bytes += len(chunk)
        self._count()

    def _count(self) -> None:
        """Count what is in memory: all chunks that were neither written nor observed yet."""
        with self._memory.lock:
            done = min(self._written_bytes, self._observed_bytes) if self._observers else self._written_bytes
            held = self._sent_bytes + self._gathered_bytes - done
            self._memory.used_bytes += held - self._counted_bytes
            self._counted_bytes = held

    def _count_nothing(self) -> None:
        with self._memory.lock:
            self._memory.used_bytes -= self._counted_bytes
            self._counted_bytes = 0

    def _sync_early(self, segment: Segment) -> None:
        if self._early_sync is not None and not self._early_sync.done():
            return
        if self._sent_bytes - self._early_sync_bytes >= _EARLY_SYNC_BYTES:
            self._early_sync_bytes = self._sent_bytes
            self._early_sync = self._run(segment.sync)
            self._early_sync.add_done_callback(_ignore_error)

    async def _finish_small(self) -> list[WrittenExtent]:
        if not self._gathered_bytes:
            return []
        body = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
        data = body if isinstance(body, bytes) else bytes(body)
        if self._observers:
            self._observing.add(lambda: self._observe([data]))
        extent = await self._batch_writer.put(data)
        try:
            await self._observing.wait()
        except BaseException:
            self._segments.orphaned(extent)
            raise
        self._count_nothing()
        return [extent]

    def _end_writing(self, segment: Segment, extents: list[WrittenExtent]) -> "asyncio.Future[None] | None":
        self._segment = None
        segment.written(len(extents))
        return self._segments.retire(segment)

    async def _abandon(self) -> None:
        self._gathered, self._gathered_bytes = [], 0
        for line in (self._writing, self._observing):
            with suppress(Exception):
                await line.wait()
        self._count_nothing()
        segment = self._segment
        if segment is None:
            return
        if self._early_sync is not None:
            await asyncio.wait([self._early_sync])
        if self._shares_segment:
            await self._run(lambda: segment.punch(self._start, self._size_hint or 0))
        if (removal := self._end_writing(segment, [])) is not None:
            await removal

    def _run(self, job: Callable[[], None]) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().run_in_executor(self._threads, job)


def _ignore_error(job: "asyncio.Future[None]") -> None:
    """Mark its error as handled: the next job reports it, or the upload was aborted."""
    if not job.cancelled():
        job.exception()
