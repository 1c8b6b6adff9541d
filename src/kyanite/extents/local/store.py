"""Extents in files of a local folder, shared by all processes of one server.

    readers                      since when each process reads, mapped by every process
    segments/<owner>/<count>     the bytes

Opened after the fork, once per process: the slot in the table of readers and the threads belong to one process.
Segments and the slot carry the process's id in ``membership``, which the caller closes after the store.
"""

import asyncio
import contextlib
import errno
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from kyanite.engine.api import Damaged, EngineBusy, EngineError
from kyanite.extents.api import (
    BLOCK_BYTES,
    EXTENT_MAX,
    SEGMENT_BYTES,
    Extent,
    Observer,
    OpenExtent,
    Stretch,
    WrittenExtent,
)
from kyanite.extents.crc64 import crc64, encode
from kyanite.extents.local.batch_writer import BatchWriter
from kyanite.extents.local.cold_reads import read_cold
from kyanite.extents.local.descriptor_cache import CachedDescriptor, DescriptorCache
from kyanite.extents.local.file_reads import (
    page_aligned,
    read_cached,
    read_cached_into,
    read_fully,
    read_fully_into,
    scratch,
)
from kyanite.extents.local.file_system import FileSystem
from kyanite.extents.local.open_segments import OpenSegments
from kyanite.extents.local.reader_table import ReaderTable
from kyanite.extents.local.recent_writes import RecentWrites
from kyanite.extents.local.segment import aligned
from kyanite.extents.local.upload import LocalUpload
from kyanite.extents.local.upload_memory import UploadMemory
from kyanite.membership.api import OWNER_BYTES, Membership

_THREADS = 8
_OWNER_NAME = re.compile(f"[0-9a-f]{{{2 * OWNER_BYTES}}}")
_SEGMENT_NAME = re.compile(f"[0-9a-f]{{{2 * (SEGMENT_BYTES - OWNER_BYTES)}}}")


_thread = threading.local()
"""A buffer for each thread."""

_CACHED_BLOCKS_MAX = 4
"""Up to so many blocks are checked on the event loop, in about 0.2 ms."""

T = TypeVar("T")


class LocalExtents:
    has_files = True
    keep_seconds = 0.0

    def __init__(
        self, folder: Path, membership: Membership, *, file_system: FileSystem | None = None
    ) -> None:
        self._file_system = file_system or FileSystem()
        self._is_alive = membership.is_alive
        self._segments = folder / "segments"
        self._file_system.make_folder(self._segments)
        self._readers = ReaderTable(folder / "readers", membership)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="extents")
        self._descriptors = DescriptorCache(self._path_of)
        self._open_segments = OpenSegments(membership.id, self._path_of, self._file_system, self._threads)
        self._recent_writes = RecentWrites(self._file_system)
        self._batch_writer = BatchWriter(self._open_segments, self._recent_writes)
        self._upload_memory = UploadMemory()
        self.pin = self._readers.pin
        self.mark = self._readers.mark
        self.passed = self._readers.passed
        self.commit = self._open_segments.commit

    # Writing

    def upload(self, *, size_hint: int | None, observers: Sequence[Observer] = ()) -> LocalUpload:
        return LocalUpload(
            self._open_segments,
            self._batch_writer,
            self._threads,
            self._upload_memory,
            self._recent_writes,
            size_hint=size_hint,
            observers=observers,
        )

    async def put(
        self, data: bytes | memoryview, on_written: Callable[[], object] | None = None
    ) -> WrittenExtent:
        if not 0 < len(data) <= EXTENT_MAX:
            raise ValueError("An extent has between one byte and EXTENT_MAX.")
        return await self._batch_writer.put([data], on_written)

    async def discard(self, extents: Sequence[Extent]) -> None:
        if jobs := self._open_segments.discard(extents):
            await asyncio.wait(jobs)

    # Reading

    async def read(self, extent: Extent, offset: int, length: int) -> bytes:
        data = await self._read(extent, offset, length)
        if length == extent.length and crc64(data) != extent.crc64:
            raise Damaged(f"The CRC of {extent} is wrong.")
        return data

    async def read_into(self, extent: Extent, offset: int, buffer: memoryview) -> None:
        _check_within(extent, offset, len(buffer))
        file = self._acquire(extent)
        try:
            start = extent.start + offset
            count = read_cached_into(file.fd, start, buffer)
            if count < len(buffer):
                count += await self._in_thread(read_fully_into, file.fd, start + count, buffer[count:])
        except OSError as error:
            raise _unreadable(extent, error) from error
        finally:
            self._descriptors.release(file)
        if count != len(buffer):
            raise Damaged(f"Bytes of {extent} are missing.")

    async def checksums(self, extent: Extent, first: int, count: int) -> bytes:
        """Of a few blocks on the event loop, if these are in the page cache, else in a thread."""
        blocks = _blocks_of(extent, first, count)
        file = self._acquire(extent)
        try:
            computed = _checksums_cached(file.fd, blocks) if count <= _CACHED_BLOCKS_MAX else []
            if len(computed) < count:
                computed += await self._in_thread(_checksums, file.fd, blocks[len(computed) :])
        except OSError as error:
            raise _unreadable(extent, error) from error
        finally:
            self._descriptors.release(file)
        if len(computed) < count:
            raise Damaged(f"Bytes of block {first + len(computed)} of {extent} are missing.")
        return encode(computed)

    async def read_cold(self, extent: Extent, offset: int, length: int) -> bytes:
        _check_within(extent, offset, length)
        path = self._path_of(extent.segment)
        try:
            data = await self._in_thread(read_cold, path, extent.start + offset, length)
        except OSError as error:
            raise _cannot_open(extent, error) from error
        if len(data) != length:
            raise Damaged(f"Bytes of {extent} are missing.")
        return data

    def open_extent(self, extent: Extent, offset: int, length: int) -> OpenExtent:
        _check_within(extent, offset, length)
        file = self._acquire(extent)
        return OpenExtent(file.fd, extent.start + offset, length, partial(self._descriptors.release, file))

    async def _read(self, extent: Extent, offset: int, length: int) -> bytes:
        """From the page cache on the event loop if all bytes are there, else in a thread."""
        _check_within(extent, offset, length)
        file = self._acquire(extent)
        try:
            data = read_cached(file.fd, extent.start + offset, length)
            if data is None:
                data = await self._in_thread(read_fully, file.fd, extent.start + offset, length)
        except OSError as error:
            raise _unreadable(extent, error) from error
        finally:
            self._descriptors.release(file)
        if len(data) != length:
            raise Damaged(f"Bytes of {extent} are missing.")
        return data

    def _acquire(self, extent: Extent) -> CachedDescriptor:
        try:
            return self._descriptors.acquire(extent.segment)
        except OSError as error:
            raise _cannot_open(extent, error) from error

    # For garbage collection

    async def sealed(self, segments: Iterable[bytes]) -> set[bytes]:
        return await self._in_thread(lambda: {each for each in segments if self._is_sealed(each)})

    async def punch(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        holes = [(start, aligned(length)) for start, length in stretches]
        await self._in_thread(self._file_system.punch, self._path_of(segment), holes)

    async def keep_only(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        await self._in_thread(self._keep_only, self._path_of(segment), stretches)

    async def remove(self, segment: bytes) -> None:
        self._descriptors.forget(segment)
        await self._in_thread(self._remove, segment)

    async def segments_of(self, owner: bytes) -> AsyncIterator[bytes]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._segments / owner.hex()) as entries:
            for entry in entries:
                if _SEGMENT_NAME.fullmatch(entry.name):
                    yield owner + bytes.fromhex(entry.name)

    async def segments(self) -> AsyncIterator[tuple[bytes, int]]:
        for owner in filter(_OWNER_NAME.fullmatch, os.listdir(self._segments)):
            async for segment in self.segments_of(bytes.fromhex(owner)):
                yield segment, self._path_of(segment).stat().st_blocks * 512

    async def drop_owner(self, owner: bytes) -> None:
        with contextlib.suppress(OSError):
            (self._segments / owner.hex()).rmdir()

    def _is_sealed(self, segment: bytes) -> bool:
        try:
            if self._file_system.is_sealed(self._path_of(segment)):
                return True
        except FileNotFoundError:
            return True
        return not self._is_alive(segment[:OWNER_BYTES])

    def _remove(self, segment: bytes) -> None:
        path = self._path_of(segment)
        self._file_system.unlink(path)
        if not self._is_alive(segment[:OWNER_BYTES]):
            with contextlib.suppress(OSError):
                path.parent.rmdir()

    def _keep_only(self, path: Path, stretches: Sequence[Stretch]) -> None:
        holes, end = [], 0
        for start, length in stretches:
            if start > end:
                holes.append((end, start - end))
            end = start + aligned(length)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > end:
                self._file_system.truncate(path, end)
            if holes:
                self._file_system.punch(path, holes)

    async def close(self) -> None:
        await self._batch_writer.close()
        await self._open_segments.close()
        self._threads.shutdown()
        self._descriptors.close()
        self._readers.close()

    def _path_of(self, segment: bytes) -> Path:
        return self._segments / segment[:OWNER_BYTES].hex() / segment[OWNER_BYTES:].hex()

    async def _in_thread(self, job: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(job, *arguments))


def _blocks_of(extent: Extent, first: int, count: int) -> list[Stretch]:
    """Where these blocks are in the file."""
    last = first + count - 1
    _check_within(extent, first * BLOCK_BYTES, last * BLOCK_BYTES + 1 - first * BLOCK_BYTES)
    return [
        Stretch(extent.start + at, min(BLOCK_BYTES, extent.length - at))
        for at in range(first * BLOCK_BYTES, (last + 1) * BLOCK_BYTES, BLOCK_BYTES)
    ]


def _checksums_cached(fd: int, blocks: Iterable[Stretch]) -> list[int]:
    """The checksums of the first blocks, as far as they are in the page cache."""
    computed = []
    for start, length in blocks:
        block = scratch[:length]
        if read_cached_into(fd, start, block) < length:
            break
        computed.append(crc64(block))
    return computed


def _checksums(fd: int, blocks: Iterable[Stretch]) -> list[int]:
    """The checksums of the first blocks, as far as the file has bytes."""
    computed = []
    buffer: memoryview = getattr(_thread, "buffer", None) or page_aligned(BLOCK_BYTES)
    _thread.buffer = buffer
    for start, length in blocks:
        block = buffer[:length]
        if read_fully_into(fd, start, block) < length:
            break
        computed.append(crc64(block))
    return computed


def _check_within(extent: Extent, offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length > extent.length:
        raise ValueError("Beyond the extent.")


def _cannot_open(extent: Extent, error: OSError) -> EngineError:
    if isinstance(error, FileNotFoundError):
        return Damaged(f"The file of {extent} is missing.")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return EngineBusy(str(error))
    return _unreadable(extent, error)


def _unreadable(extent: Extent, error: OSError) -> Damaged:
    return Damaged(f"The bytes of {extent} cannot be read: {error.strerror}.")
