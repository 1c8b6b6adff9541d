"""A body while it is received into local files.

Chunks gather to jobs of about a megabyte, or a long body is received into buffers of that size, of which each is a job
without any copy. While the next job gathers, one thread writes the last one and another passes it to the observers, so
receiving, hashing and writing overlap. A few jobs may be left to the threads, so that none of them waits for the event
loop. The disk begins to write with the first job, which leaves little to do for the sync. A body that never filled one
job goes to the batch writer instead.

All uploads of a process share a bound on what they have in memory. Near it there are no buffers and jobs are as small
as the chunks, so that many slow clients cannot fill the memory; at twice the bound uploads fail.
"""

import asyncio
import mmap
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

from kyanite.engine.api import EngineBusy
from kyanite.extents.api import PACK_MAX, Observer, WrittenExtent
from kyanite.extents.cutter import Cutter
from kyanite.extents.local.batch_writer import BatchWriter, Segments
from kyanite.extents.local.file_system import Buffer
from kyanite.extents.local.job_line import JobLine
from kyanite.extents.local.recent_writes import RecentWrites
from kyanite.extents.local.segment import Segment, aligned
from kyanite.extents.local.upload_memory import BUFFER_BYTES, UploadMemory

SHARED_MAX = 4 * 1024 * 1024
"""Bodies of a known size up to this share a segment; others get a segment of their own."""

JOB_BYTES = PACK_MAX
_JOBS_LEFT = 2
"""How many jobs may be left to the threads when the next one is added."""
_SMALL_CHUNK_BYTES = 4096
_CHUNKED_BYTES = 64 * 1024
"""What has to come in chunks before a body gets buffers, and again when its client was slow: who sends little gets
none."""

_ALLOCATE_BYTES = 64 * 1024 * 1024
"""How much space is allocated ahead. Not for the whole body: a client may announce much and send nothing."""


class _Job:
    """Bytes that are written and observed, in any order."""

    __slots__ = ("_left", "_lock", "buffer", "chunks", "counted_bytes", "length")

    def __init__(
        self, chunks: Sequence[Buffer], length: int, counted_bytes: int, buffer: mmap.mmap | None, uses: int
    ) -> None:
        self.chunks = chunks
        self.length = length
        self.counted_bytes = counted_bytes
        """What it adds to the memory in use."""
        self.buffer = buffer
        self._lock = Lock()
        self._left = uses

    def is_over(self) -> bool:
        """To be called after each use: whether that was the last one."""
        with self._lock:
            self._left -= 1
            return self._left == 0


class LocalUpload:
    def __init__(
        self,
        segments: Segments,
        batch_writer: BatchWriter,
        threads: ThreadPoolExecutor,
        memory: UploadMemory,
        recent_writes: RecentWrites,
        *,
        size_hint: int | None,
        observers: Sequence[Observer],
    ) -> None:
        self._segments = segments
        self._batch_writer = batch_writer
        self._threads = threads
        self._memory = memory
        self._recent_writes = recent_writes
        self._counted_bytes = 0
        """What this upload adds to the memory in use, but for its jobs."""
        self._jobs: set[_Job] = set()
        """Those that are not over."""
        self._size_hint = size_hint
        self._observers = observers
        self._gathered: list[Buffer] = []
        self._gathered_bytes = 0
        self._buffer: mmap.mmap | None = None
        """What the next bytes are received into, or the last ones of those gathered were."""
        self._chunked_left = _CHUNKED_BYTES
        self._sent_bytes = 0
        self._segment: Segment | None = None
        self._shares_segment = size_hint is not None and size_hint <= SHARED_MAX
        self._start = 0
        self._cutter: Cutter
        self._writing: JobLine
        self._observing: JobLine

    async def write(self, chunk: bytes) -> None:
        if self._memory.is_tight:
            await self._write_out()
        elif self._gathered_bytes >= JOB_BYTES:
            await self._send()
        self._gather(chunk)
        self._chunked_left -= len(chunk)
        if self._size_hint is not None and self._sent_bytes + self._gathered_bytes > self._size_hint:
            raise ValueError("More bytes came than were announced.")

    def buffer(self) -> memoryview | None:
        if self._size_hint is None or self._size_hint <= JOB_BYTES or self._chunked_left > 0:
            return None
        left = self._size_hint - self._sent_bytes - self._gathered_bytes
        if not left or self._gathered_bytes >= JOB_BYTES:
            return None
        self._buffer = self._memory.take()
        if self._buffer is None:
            return None
        self._counted_bytes += BUFFER_BYTES
        return memoryview(self._buffer)[:left]

    async def filled(self, count: int) -> None:
        assert self._size_hint is not None
        assert self._buffer is not None
        received = memoryview(self._buffer)[:count]
        left = self._size_hint - self._sent_bytes - self._gathered_bytes - count
        if left and count < BUFFER_BYTES:
            self._give_up_buffer(bytes(received))
            return
        self._gathered.append(received)
        self._gathered_bytes += count
        if left:
            await self._send()  # The last ones are written together with the sync.

    async def finish(self) -> list[WrittenExtent]:
        if self._segment is None and self._gathered_bytes <= JOB_BYTES:
            return await self._finish_small()
        segment = await self._send(is_last=True)
        await self._wait()
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
        self._counted_bytes += len(chunk)
        self._memory.add(len(chunk))
        if len(chunk) >= _SMALL_CHUNK_BYTES:
            gathered.append(chunk)
            return
        last = gathered[-1] if gathered else b""
        if isinstance(last, bytearray):
            last += chunk
        else:
            gathered.append(bytearray(chunk))

    def _give_up_buffer(self, received: bytes) -> None:
        """The client is slow: keep no more than what came."""
        buffer, self._buffer = self._buffer, None
        assert buffer is not None
        self._memory.give_back(buffer)
        self._memory.add(-BUFFER_BYTES)
        self._counted_bytes -= BUFFER_BYTES
        self._chunked_left = _CHUNKED_BYTES
        if received:
            self._gather(received)

    async def _write_out(self) -> None:
        """Keep as little in memory as possible."""
        if self._gathered:
            await self._send()
        if self._segment is not None:
            await self._wait()
        if self._memory.is_exhausted:
            raise EngineBusy("uploads use all the memory that they may")

    async def _send(self, *, is_last: bool = False) -> Segment:
        """Pass the gathered chunks to the threads, once these have finished most of the jobs before."""
        segment = self._segment or self._open()
        await self._wait(_JOBS_LEFT)
        uses = 2 if self._observers else 1
        job = _Job(self._gathered, self._gathered_bytes, self._counted_bytes, self._buffer, uses)
        offset = self._start + self._sent_bytes
        self._sent_bytes += self._gathered_bytes
        self._gathered, self._gathered_bytes = [], 0
        self._counted_bytes, self._buffer = 0, None
        self._jobs.add(job)
        if self._observers:  # First, because hashes take longer than the disk.
            self._observing.add(lambda: self._observe(job))
        self._writing.add(lambda: self._store(segment, job, offset, is_last=is_last))
        return segment

    def _open(self) -> Segment:
        if self._shares_segment:
            segment, self._start = self._batch_writer.reserve(self._size_hint or 0)
        else:
            segment = self._segments.new_segment()
            segment.reserve(self._size_hint or 0)
            segment.full = True
        self._cutter = Cutter(segment.id, self._start)
        self._writing, self._observing = JobLine(self._threads), JobLine(self._threads)
        self._segment = segment
        return segment

    async def _wait(self, left: int = 0) -> None:
        """Wait until the threads have at most so many jobs left."""
        await self._writing.wait(left)
        await self._observing.wait(left)

    def _store(self, segment: Segment, job: _Job, offset: int, *, is_last: bool) -> None:
        end = offset + job.length
        if self._size_hint is not None:
            segment.allocate(min(aligned(end, _ALLOCATE_BYTES), self._start + self._size_hint))
        self._cutter.add(job.chunks)
        segment.write(job.chunks, offset)
        if is_last:
            segment.sync()
        else:
            segment.begin_writing_out(offset, job.length)
        self._recent_writes.add(segment.path, offset, job.length)
        self._used(job)

    def _observe(self, job: _Job) -> None:
        for chunk in job.chunks:
            for observe in self._observers:
                observe(chunk)
        self._used(job)

    def _used(self, job: _Job) -> None:
        if job.is_over():
            self._jobs.discard(job)
            self._memory.add(-job.counted_bytes)
            job.chunks = ()
            if job.buffer is not None:
                self._memory.give_back(job.buffer)

    def _count_nothing(self) -> None:
        """After an error some jobs are left, which no thread will do."""
        self._memory.add(-self._counted_bytes - sum(job.counted_bytes for job in self._jobs))
        self._counted_bytes, self._buffer = 0, None
        self._jobs.clear()

    async def _finish_small(self) -> list[WrittenExtent]:
        if not self._gathered_bytes:
            return []
        extent = await self._batch_writer.put(self._gathered, observers=self._observers)
        self._gathered = []
        self._count_nothing()
        return [extent]

    def _end_writing(self, segment: Segment, extents: list[WrittenExtent]) -> "asyncio.Future[None] | None":
        self._segment = None
        segment.written(len(extents))
        return self._segments.retire(segment)

    async def _abandon(self) -> None:
        self._gathered, self._gathered_bytes = [], 0
        segment = self._segment
        if segment is None:
            self._count_nothing()
            return
        for line in (self._writing, self._observing):
            with suppress(Exception):
                await line.wait()
        self._count_nothing()
        if self._shares_segment:
            await self._run(lambda: segment.punch(self._start, self._size_hint or 0))
        if (removal := self._end_writing(segment, [])) is not None:
            await removal

    def _run(self, job: Callable[[], None]) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().run_in_executor(self._threads, job)
