"""Puts many small bodies into one object: a request of its own would cost each of them as much as all together.

Bodies that come within a few milliseconds share an object. While so many objects are on their way to the store that
more would not make it faster, the next ones gather.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from kyanite.engine.api import EngineError
from kyanite.extents.api import WrittenExtent
from kyanite.extents.crc64 import checksums_of
from kyanite.extents.s3.bucket import StoreRefuses
from kyanite.extents.s3.open_segments import OpenSegments

GATHER_SECONDS = 0.002
_OBJECT_BYTES = 4 * 1024 * 1024
_OBJECT_BODIES = 128
_OBJECTS_AT_ONCE = 8
_CHECKED_ON_LOOP_BYTES = 4 * 1024 * 1024


class _PendingWrite(NamedTuple):
    data: bytes | memoryview
    done: "asyncio.Future[WrittenExtent]"
    on_written: Callable[[], object] | None


class BatchWriter:
    def __init__(
        self, segments: OpenSegments, put: Callable[[bytes, bytes | memoryview], Awaitable[None]]
    ) -> None:
        self._segments = segments
        self._put = put
        self._waiting: deque[_PendingWrite] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._storing: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_OBJECTS_AT_ONCE)

    async def put(
        self, data: bytes | memoryview, on_written: Callable[[], object] | None = None
    ) -> WrittenExtent:
        done: asyncio.Future[WrittenExtent] = asyncio.get_running_loop().create_future()
        self._waiting.append(_PendingWrite(data, done, on_written))
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(self._discard_result)
            raise

    async def close(self) -> None:
        if self._draining is not None:
            await self._draining
        if self._storing:
            await asyncio.wait(self._storing)

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(GATHER_SECONDS)
                await self._room.acquire()
                storing = asyncio.ensure_future(self._store(self._next_batch()))
                self._storing.add(storing)
                storing.add_done_callback(self._storing.discard)
        finally:
            self._draining = None

    def _next_batch(self) -> list[_PendingWrite]:
        """The first that wait, as many as fit into an object; at least one."""
        batch: list[_PendingWrite] = []
        room = _OBJECT_BYTES
        while self._waiting and len(batch) < _OBJECT_BODIES:
            if batch and len(self._waiting[0].data) > room:
                break
            batch.append(self._waiting.popleft())
            room -= len(batch[-1].data)
        return batch

    async def _store(self, batch: list[_PendingWrite]) -> None:
        segment = self._segments.new_segment()
        try:
            extents = await _extents_of(segment, [pending.data for pending in batch])
            whole = batch[0].data if len(batch) == 1 else b"".join(pending.data for pending in batch)
            await self._put(segment, whole)
        except Exception as error:
            if isinstance(error, StoreRefuses):
                self._segments.not_sent(segment)
            else:
                self._segments.failed(segment)
            for pending in batch:
                pending.done.set_exception(error)
        else:
            self._segments.written(segment, len(batch))
            for pending, extent in zip(batch, extents, strict=True):
                if pending.on_written is not None:
                    pending.on_written()
                pending.done.set_result(extent)
        finally:
            self._room.release()

    def _discard_result(self, done: "asyncio.Future[WrittenExtent]") -> None:
        with suppress(EngineError):
            self._segments.orphaned(done.result())


async def _extents_of(segment: bytes, bodies: list[bytes | memoryview]) -> list[WrittenExtent]:
    """The extents that these bodies become, one after the other."""
    if sum(map(len, bodies)) <= _CHECKED_ON_LOOP_BYTES:
        checksums = [checksums_of(data) for data in bodies]
    else:
        checksums = await asyncio.to_thread(lambda: [checksums_of(data) for data in bodies])
    extents, start = [], 0
    for data, (crc64, of_blocks) in zip(bodies, checksums, strict=True):
        extents.append(WrittenExtent(segment, start, len(data), crc64, of_blocks))
        start += len(data)
    return extents
