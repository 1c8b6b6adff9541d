"""Extents in the objects of an S3-compatible store, shared by any number of processes on any number of machines.

An extent is part of an object, and an object is never changed. Opened after the fork, once per process. Segments carry
the process's id in ``membership``, which the caller closes after the store.

Readers of other machines are not known, so ``pin`` does nothing and segments that nothing refers to are kept for
``keep_seconds``. A hole cannot be given back: an object stays until nothing refers to any part of it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from kyanite.engine.api import Damaged
from kyanite.extents.api import (
    BLOCK_BYTES,
    EXTENT_MAX,
    Extent,
    Mark,
    Observer,
    OpenExtent,
    Stretch,
    WrittenExtent,
)
from kyanite.extents.crc64 import crc64, encode
from kyanite.extents.s3.batch_writer import BatchWriter
from kyanite.extents.s3.bucket import Bucket, ObjectMissing
from kyanite.extents.s3.location import S3Location
from kyanite.extents.s3.names import SEGMENTS, name_of, number_of, segment_of, segments_of
from kyanite.extents.s3.open_segments import OpenSegments
from kyanite.extents.s3.seals import Seals
from kyanite.extents.s3.unfinished import abort_unfinished
from kyanite.extents.s3.upload import S3Upload, UploadMemory
from kyanite.membership.api import OWNER_BYTES, Membership

_THREADS = 4


class _NoPin:
    """Nothing has to be kept for this reader."""

    __slots__ = ()

    def release(self) -> None:
        return None


_no_pin = _NoPin()


class S3Extents:
    has_files = False

    def __init__(self, location: S3Location, membership: Membership, *, bucket: Bucket | None = None) -> None:
        self.keep_seconds = location.keep_seconds
        self._location = location
        self._owner = membership.id
        self._is_alive = membership.is_alive
        self._bucket = bucket or Bucket(location)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="extents")
        self._seals = Seals(self._bucket, membership.id, lambda: self._open_segments.state)
        self._open_segments = OpenSegments(membership.id, self._remove_unneeded, self._seals.changed)
        self._batch_writer = BatchWriter(self._open_segments, self._put)
        self._upload_memory = UploadMemory()
        self.commit = self._open_segments.commit

    # Writing

    def upload(self, *, size_hint: int | None, observers: Sequence[Observer] = ()) -> S3Upload:
        return S3Upload(
            self._open_segments,
            self._bucket,
            self._batch_writer,
            self._threads,
            self._upload_memory,
            size_hint=size_hint,
            observers=observers,
        )

    async def put(
        self, data: bytes | memoryview, on_written: Callable[[], object] | None = None
    ) -> WrittenExtent:
        if not 0 < len(data) <= EXTENT_MAX:
            raise ValueError("An extent has between one byte and EXTENT_MAX.")
        return await self._batch_writer.put(data, on_written)

    async def discard(self, extents: Sequence[Extent]) -> None:
        if removals := self._open_segments.discard(extents):
            await asyncio.wait(removals)

    async def _put(self, segment: bytes, data: bytes | memoryview) -> None:
        await self._bucket.put(name_of(segment), data)

    # Reading

    def pin(self) -> _NoPin:
        return _no_pin

    async def read(self, extent: Extent, offset: int, length: int) -> bytes:
        data = await self._read(extent, offset, length)
        if length == extent.length and crc64(data) != extent.crc64:
            raise Damaged(f"The CRC of {extent} is wrong.")
        return data

    async def read_into(self, extent: Extent, offset: int, buffer: memoryview) -> None:
        buffer[:] = await self._read(extent, offset, len(buffer))

    async def read_cold(self, extent: Extent, offset: int, length: int) -> bytes:
        return await self._read(extent, offset, length)

    async def checksums(self, extent: Extent, first: int, count: int) -> bytes:
        """Fetches the blocks, all of them together."""
        start, end = first * BLOCK_BYTES, min((first + count) * BLOCK_BYTES, extent.length)
        _check_within(extent, start, (first + count - 1) * BLOCK_BYTES + 1 - start)
        blocks = memoryview(await self._fetch(extent, start, end - start))
        if len(blocks) < end - start:
            raise Damaged(f"Bytes of block {first + len(blocks) // BLOCK_BYTES} of {extent} are missing.")
        return encode([crc64(blocks[at : at + BLOCK_BYTES]) for at in range(0, len(blocks), BLOCK_BYTES)])

    def open_extent(self, extent: Extent, offset: int, length: int) -> OpenExtent:
        raise NotImplementedError("An object store has no files.")

    async def _read(self, extent: Extent, offset: int, length: int) -> bytes:
        _check_within(extent, offset, length)
        data = await self._fetch(extent, offset, length)
        if len(data) != length:
            raise Damaged(f"Bytes of {extent} are missing.")
        return data

    async def _fetch(self, extent: Extent, offset: int, length: int) -> bytes:
        """The bytes, fewer if the object ends before."""
        if not length:
            return b""
        try:
            return await self._bucket.get(name_of(extent.segment), extent.start + offset, length)
        except ObjectMissing as error:
            raise Damaged(f"The object of {extent} is missing.") from error

    # For garbage collection

    def mark(self) -> Mark:
        return Mark(0)

    def passed(self, mark: Mark) -> bool:
        return True

    async def sealed(self, segments: Iterable[bytes]) -> set[bytes]:
        by_owner: dict[bytes, list[bytes]] = {}
        for segment in segments:
            by_owner.setdefault(segment[:OWNER_BYTES], []).append(segment)
        sealed: set[bytes] = set()
        for owner, owned in by_owner.items():
            if owner == self._owner:
                sealed.update(filter(self._open_segments.is_sealed, owned))
            elif not self._is_alive(owner):
                sealed.update(owned)
            else:
                state = await self._seals.of(owner)
                sealed.update(each for each in owned if state.is_sealed(number_of(each)))
        return sealed

    async def punch(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        """An object has no holes."""

    async def keep_only(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        """An object has no holes."""

    async def remove(self, segment: bytes) -> None:
        await self._bucket.delete(name_of(segment))

    async def _remove_unneeded(self, segment: bytes, in_parts: bool) -> None:
        await self.remove(segment)
        if in_parts:
            await self._in_thread(lambda: abort_unfinished(self._location, name_of(segment)))

    async def segments_of(self, owner: bytes) -> AsyncIterator[bytes]:
        """Those that the owner has not published as sealed: what is freed in the others has rows that say so."""
        state = await self._seals.of(owner)
        if not self._is_alive(owner):
            await self._in_thread(lambda: abort_unfinished(self._location, segments_of(owner)))
        async for found in self._bucket.list(segments_of(owner)):
            segment = segment_of(found.name)
            if segment is not None and not state.is_sealed(number_of(segment)):
                yield segment

    async def segments(self) -> AsyncIterator[tuple[bytes, int]]:
        async for found in self._bucket.list(SEGMENTS):
            if (segment := segment_of(found.name)) is not None:
                yield segment, found.size

    async def drop_owner(self, owner: bytes) -> None:
        await self._seals.remove(owner)

    async def close(self) -> None:
        await self._batch_writer.close()
        await self._open_segments.close()
        await self._seals.close()
        self._threads.shutdown()

    async def _in_thread(self, job: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, job)


def _check_within(extent: Extent, offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length > extent.length:
        raise ValueError("Beyond the extent.")
