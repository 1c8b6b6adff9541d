"""Many small bodies in one file: while one group of them is written and synced, the next one gathers.

A body of 64 KiB would otherwise cost a file, a sync of its folder and a sync of its own. Here all bodies that
are waiting share one write and one sync, in a thread that does nothing else.
"""

import asyncio
import contextlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from kyanite.engine.api import EngineError
from kyanite.extents.api import Extent
from kyanite.extents.crc64 import crc64
from kyanite.extents.local.file_system import Buffer, failure
from kyanite.extents.local.segment import BLOCK, Segment, aligned

SEGMENT_FULL_BYTES = 256 * 1024 * 1024
_ALLOCATE_BYTES = 16 * 1024 * 1024
_GROUP_BYTES = 8 * 1024 * 1024
_GROUP_COUNT = 256
_PADDING = memoryview(bytes(BLOCK))


class Segments(Protocol):
    """What the packer asks of the store it works for."""

    def new_segment(self) -> Segment: ...

    def retire(self, segment: Segment) -> "asyncio.Future[None] | None":
        """The segment may have become idle. Answers what is being done about it, if anything."""

    def orphaned(self, extent: Extent) -> None:
        """An extent that nobody waits for any more."""


class _PendingWrite(NamedTuple):
    data: bytes
    done: "asyncio.Future[Extent]"


class BatchWriter:
    """Owns the segment that this process is filling."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._current: Segment | None = None
        self._waiting: deque[_PendingWrite] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="extent-packer")

    async def put(self, data: bytes) -> Extent:
        done: asyncio.Future[Extent] = asyncio.get_running_loop().create_future()
        self._waiting.append(_PendingWrite(data, done))
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(self._take_back)
            raise

    def set_aside(self, length: int) -> tuple[Segment, int]:
        """A stretch of the current segment for a writer of its own."""
        if self._current is None:
            self._current = self._segments.new_segment()
        segment = self._current
        start = segment.set_aside(length)
        if segment.end >= SEGMENT_FULL_BYTES:
            self.turn_over(segment)
        return segment, start

    def turn_over(self, segment: Segment) -> None:
        """Put nothing more into this segment."""
        segment.full = True
        if segment is self._current:
            self._current = None

    async def close(self) -> None:
        if self._draining is not None:
            await self._draining
        if self._current is not None:
            segment = self._current
            self.turn_over(segment)
            self._segments.retire(segment)
        self._thread.shutdown()

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._store(self._next_group())
        finally:
            self._draining = None

    def _next_group(self) -> list[_PendingWrite]:
        group: list[_PendingWrite] = []
        size = 0
        while self._waiting and size < _GROUP_BYTES and len(group) < _GROUP_COUNT:
            group.append(self._waiting.popleft())
            size += len(group[-1].data)
        return group

    async def _store(self, group: list[_PendingWrite]) -> None:
        bodies = [pending.data for pending in group]
        segment, start = self.set_aside(sum(aligned(len(data)) for data in bodies))
        loop = asyncio.get_running_loop()
        try:
            extents = await loop.run_in_executor(self._thread, _write_group, segment, start, bodies)
        except (OSError, EngineError) as error:
            segment.written(0)
            self.turn_over(segment)
            for pending in group:
                pending.done.set_exception(failure(error))
        else:
            segment.written(len(group))
            for pending, extent in zip(group, extents, strict=True):
                pending.done.set_result(extent)
        self._segments.retire(segment)

    def _take_back(self, done: "asyncio.Future[Extent]") -> None:
        with contextlib.suppress(EngineError):
            self._segments.orphaned(done.result())


def _write_group(segment: Segment, start: int, bodies: list[bytes]) -> list[Extent]:
    pieces: list[Buffer] = []
    extents = []
    at = start
    for data in bodies:
        length = len(data)
        extents.append(Extent(segment.id, at, length, crc64(data)))
        pieces.append(data)
        if padding := aligned(length) - length:
            pieces.append(_PADDING[:padding])
        at += aligned(length)
    segment.allocate(aligned(at, _ALLOCATE_BYTES))
    segment.write(pieces, start)
    segment.sync()
    return extents
