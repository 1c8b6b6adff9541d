"""A body while it is received into an object.

Chunks gather to pieces of a megabyte. A body that is one piece goes to the batch writer, a short one is one request,
and a longer one is sent in parts while it comes. A thread computes checksums and passes the bytes to the observers
meanwhile.

A part cannot be short, so an object that is sent in parts needs room for several of them in memory. All uploads of a
process share a bound. If there is no room, a body goes on piece by piece through the batch writer, and when there have
been many pieces it waits for room. At twice the bound uploads fail.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from kyanite.engine.api import EngineBusy, EngineError
from kyanite.extents.api import PACK_MAX, Observer, WrittenExtent
from kyanite.extents.cutter import Cutter
from kyanite.extents.s3.batch_writer import BatchWriter
from kyanite.extents.s3.bucket import PART_BYTES, PARTS_AT_ONCE, Bucket, StoreRefuses
from kyanite.extents.s3.names import name_of
from kyanite.extents.s3.open_segments import OpenSegments

MEMORY_BYTES = 128 * 1024 * 1024
"""What all uploads of a process should have in memory at most."""

PIECES_MAX = 64
"""So many pieces may become extents of their own."""

_PIECES_AHEAD = 2
_PARTS_BYTES = (PARTS_AT_ONCE + 1) * PART_BYTES + _PIECES_AHEAD * PACK_MAX
"""What an object takes that is sent in parts."""
_ROOM_SECONDS = 30.0
_SHORT_PIECE_BYTES = 64 * 1024


class UploadMemory:
    """How many bytes all uploads of a process have in memory, or have reserved."""

    def __init__(self) -> None:
        self.used_bytes = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def add(self, count: int) -> None:
        self.used_bytes += count
        if count < 0:
            while self._waiting:
                waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_result(None)
                    return

    def try_to_reserve(self, count: int) -> bool:
        if self.used_bytes + count > MEMORY_BYTES:
            return False
        self.used_bytes += count
        return True

    async def reserve(self, count: int) -> None:
        """Wait for room. Raises EngineBusy if there is none for a long time."""
        try:
            async with asyncio.timeout(_ROOM_SECONDS):
                while not self.try_to_reserve(count):
                    waiter = asyncio.get_running_loop().create_future()
                    self._waiting.append(waiter)
                    await waiter
        except TimeoutError:
            raise EngineBusy("uploads use all the memory that they may") from None


class _PartsAborted(Exception):
    """The upload was aborted; raised into the request that sends its parts."""


class _Object:
    """One object that is being written: in one request, or in parts if it is long."""

    def __init__(self, segment: bytes, bucket: Bucket, *, in_parts: bool) -> None:
        self.segment = segment
        self.in_parts = in_parts
        self.may_exist = in_parts
        """Whether the object, or a part of it, may be in the store."""
        self.cutter = Cutter(segment, 0)
        self._bucket = bucket
        self._pieces: deque[bytes] = deque()
        self._is_complete = False
        self._is_aborted = False
        self._changed = asyncio.Event()
        self._sending: asyncio.Future[None] | None = None
        if in_parts:
            self._sending = asyncio.ensure_future(bucket.put_parts(name_of(segment), self._parts()))
            self._sending.add_done_callback(lambda _: self._changed.set())

    async def write(self, piece: bytes) -> None:
        """Returns when the store can take more."""
        self._pieces.append(piece)
        self._changed.set()
        sending = self._sending
        while sending is not None and len(self._pieces) > _PIECES_AHEAD:
            if sending.done():
                sending.result()
                raise EngineError("An object ended before all of it was sent.")
            await self._wait()

    async def finish(self) -> None:
        if self._sending is None:
            self.may_exist = True
            try:
                await self._bucket.put(name_of(self.segment), b"".join(self._pieces))
            except StoreRefuses:
                self.may_exist = False
                raise
            return
        self._is_complete = True
        self._changed.set()
        await asyncio.shield(self._sending)

    async def abort(self) -> None:
        self._is_aborted = True
        self._changed.set()
        if self._sending is not None:
            with suppress(EngineError, _PartsAborted):
                await self._sending

    async def _parts(self) -> AsyncIterator[bytes]:
        while True:
            if self._is_aborted:
                raise _PartsAborted
            if self._pieces:
                yield self._pieces.popleft()
                self._changed.set()
            elif self._is_complete:
                return
            else:
                await self._wait()

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class S3Upload:
    def __init__(
        self,
        segments: OpenSegments,
        bucket: Bucket,
        batch_writer: BatchWriter,
        threads: ThreadPoolExecutor,
        memory: UploadMemory,
        *,
        size_hint: int | None,
        observers: Sequence[Observer],
    ) -> None:
        self._segments = segments
        self._bucket = bucket
        self._batch_writer = batch_writer
        self._threads = threads
        self._memory = memory
        self._size_hint = size_hint
        self._observers = observers
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._received_bytes = 0
        self._counted_bytes = 0
        """What this upload has in memory, or has reserved."""
        self._extents: list[WrittenExtent] = []
        """The pieces that became extents of their own."""
        self._object: _Object | None = None
        self._digesting: asyncio.Future[None] | None = None

    async def write(self, chunk: bytes) -> None:
        self._received_bytes += len(chunk)
        if self._size_hint is not None and self._received_bytes > self._size_hint:
            raise ValueError("More bytes came than were announced.")
        is_tight = self._memory.used_bytes > MEMORY_BYTES
        if self._gathered_bytes >= (_SHORT_PIECE_BYTES if is_tight else PACK_MAX):
            await self._send()
        self._gather(chunk)
        if self._memory.used_bytes > 2 * MEMORY_BYTES:
            raise EngineBusy("uploads use all the memory that they may")

    def buffer(self) -> None:
        """Chunks suit the parts of an object better, which are sent from memory."""
        return

    async def filled(self, count: int) -> None:
        raise AssertionError("there is no buffer")

    async def finish(self) -> list[WrittenExtent]:
        if self._object is None:
            if self._gathered:
                await self._send_piece()
        else:
            await self._send()
            await self._object.finish()
        await self._digested()
        self._count(-self._counted_bytes)
        extents = self._extents
        if self._object is not None:
            written = self._object.cutter.finish()
            self._segments.written(self._object.segment, len(written))
            extents = extents + written
        assert sum(each.length for each in extents) == self._received_bytes, "Each byte is in one extent."
        self._extents, self._object = [], None
        return extents

    async def abort(self) -> None:
        await asyncio.shield(asyncio.ensure_future(self._abandon()))

    def _gather(self, chunk: bytes) -> None:
        self._gathered.append(chunk)
        self._gathered_bytes += len(chunk)
        self._count(len(chunk))

    def _empty_gathered(self) -> bytes:
        """The gathered bytes, which the caller takes over."""
        data = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        return data

    async def _send(self) -> None:
        """Send what has gathered."""
        if self._object is None and not await self._begin_object():
            await self._send_piece()
            return
        assert self._object is not None
        data = self._empty_gathered()
        await self._digested()
        self._digest(data, self._object.cutter)
        await self._object.write(data)
        self._count(-len(data))  # The object has reserved its memory.

    async def _begin_object(self) -> bool:
        """Begin an object, if it gets the memory that it needs."""
        is_short = self._size_hint is not None and self._size_hint <= PART_BYTES
        needed = self._size_hint or 0 if is_short else _PARTS_BYTES
        if not self._memory.try_to_reserve(needed):
            if len(self._extents) < PIECES_MAX:
                return False
            await self._memory.reserve(needed)
        self._counted_bytes += needed
        self._object = _Object(self._segments.new_segment(), self._bucket, in_parts=not is_short)
        return True

    async def _send_piece(self) -> None:
        """Make an extent of what has gathered."""
        data = self._empty_gathered()
        await self._digested()
        self._digest(data, None)
        self._extents.append(await self._batch_writer.put(data))
        await self._digested()
        self._count(-len(data))

    def _digest(self, data: bytes, cutter: Cutter | None) -> None:
        """Begin to compute checksums and to pass the bytes to the observers."""
        if cutter is None and not self._observers:
            return

        def digest() -> None:
            if cutter is not None:
                cutter.add([data])
            for observe in self._observers:
                observe(data)

        self._digesting = asyncio.get_running_loop().run_in_executor(self._threads, digest)

    async def _digested(self) -> None:
        if self._digesting is not None:
            await asyncio.shield(self._digesting)
            self._digesting = None

    def _count(self, more: int) -> None:
        self._counted_bytes += more
        self._memory.add(more)

    async def _abandon(self) -> None:
        self._gathered, self._gathered_bytes = [], 0
        with suppress(Exception):
            await self._digested()
        if self._object is not None:
            opened, self._object = self._object, None
            await opened.abort()
            if opened.may_exist:
                await self._segments.failed(opened.segment, in_parts=opened.in_parts)
            else:
                self._segments.not_sent(opened.segment)
        self._count(-self._counted_bytes)
        extents, self._extents = self._extents, []
        if removals := self._segments.discard(extents):
            await asyncio.wait(removals)
