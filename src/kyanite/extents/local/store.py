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
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from kyanite.engine.api import Damaged, EngineBusy
from kyanite.extents.api import EXTENT_MAX, Extent, Observer, OpenExtent, Stretch, WrittenExtent
from kyanite.extents.crc64 import crc64
from kyanite.extents.local.batch_writer import BatchWriter
from kyanite.extents.local.descriptor_cache import CachedDescriptor, DescriptorCache
from kyanite.extents.local.file_system import FileSystem
from kyanite.extents.local.open_segments import OpenSegments
from kyanite.extents.local.reader_table import ReaderTable
from kyanite.extents.local.segment import aligned
from kyanite.extents.local.upload import LocalUpload, UploadMemory
from kyanite.membership.api import OWNER_BYTES, Membership

_THREADS = 8
_CHUNK_BYTES = 256 * 1024
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_scratch = memoryview(bytearray(1024 * 1024))
"""Cached bytes pass through this buffer: a new one for each read would have to be cleared first, which takes longer
than the read. Used on the event loop only."""

T = TypeVar("T")


class LocalExtents:
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
        self._batch_writer = BatchWriter(self._open_segments)
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
        if jobs := self._open_segments.discard(extents):
            await asyncio.wait(jobs)

    # Reading

    async def read(self, extent: Extent, offset: int, length: int) -> bytes:
        data = await self._read(extent, offset, length)
        if length == extent.length and crc64(data) != extent.crc64:
            raise Damaged(f"The CRC of {_name(extent)} is wrong.")
        return data

    async def read_into(self, extent: Extent, offset: int, buffer: memoryview) -> None:
        _check_within(extent, offset, len(buffer))
        file = self._acquire(extent)
        try:
            start = extent.start + offset
            count = _read_cached_into(file.fd, start, buffer)
            if count < len(buffer):
                count += await self._in_thread(_read_fully_into, file.fd, start + count, buffer[count:])
        finally:
            self._descriptors.release(file)
        if count != len(buffer):
            raise Damaged(f"Bytes of {_name(extent)} are missing.")

    async def stream(self, extent: Extent, offset: int, length: int) -> AsyncIterator[bytes]:
        crc, end = 0, offset + length
        while offset < end:
            chunk = await self._read(extent, offset, min(_CHUNK_BYTES, end - offset))
            offset += len(chunk)
            if length == extent.length:
                crc = crc64(chunk, crc)
                if offset == end and crc != extent.crc64:
                    raise Damaged(f"The CRC of {_name(extent)} is wrong.")
            yield chunk

    def open_extent(self, extent: Extent, offset: int, length: int) -> OpenExtent:
        _check_within(extent, offset, length)
        file = self._acquire(extent)
        return OpenExtent(file.fd, extent.start + offset, length, partial(self._descriptors.release, file))

    async def _read(self, extent: Extent, offset: int, length: int) -> bytes:
        """From the page cache on the event loop if all bytes are there, else in a thread."""
        _check_within(extent, offset, length)
        file = self._acquire(extent)
        try:
            data = _read_cached(file.fd, extent.start + offset, length)
            if data is None:
                data = await self._in_thread(_read_fully, file.fd, extent.start + offset, length)
        finally:
            self._descriptors.release(file)
        if len(data) != length:
            raise Damaged(f"Bytes of {_name(extent)} are missing.")
        return data

    def _acquire(self, extent: Extent) -> CachedDescriptor:
        try:
            return self._descriptors.acquire(extent.segment)
        except FileNotFoundError:
            raise Damaged(f"The file of {_name(extent)} is missing.") from None
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise EngineBusy(str(error)) from error
            raise Damaged(str(error)) from error

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

    def segments_of(self, owner: bytes) -> Iterator[bytes]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._segments / owner.hex()) as entries:
            for entry in entries:
                yield owner + bytes.fromhex(entry.name)

    def segments(self) -> Iterator[tuple[bytes, int]]:
        for owner in os.listdir(self._segments):
            for segment in self.segments_of(bytes.fromhex(owner)):
                yield segment, self._path_of(segment).stat().st_blocks * 512

    def drop_owner(self, owner: bytes) -> None:
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


def _read_cached(fd: int, offset: int, length: int) -> bytes | None:
    """The bytes if they are all in the page cache, else None."""
    if not _NOWAIT:
        return None
    buffer = _scratch[:length] if length <= len(_scratch) else memoryview(bytearray(length))
    return bytes(buffer) if _read_cached_into(fd, offset, buffer) == length else None


def _read_cached_into(fd: int, offset: int, buffer: memoryview) -> int:
    """Fill the beginning of the buffer with what is in the page cache; how many bytes that are."""
    if not _NOWAIT:
        return 0
    try:
        return os.preadv(fd, [buffer], offset, _NOWAIT)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EOPNOTSUPP):
            raise Damaged(str(error)) from error
    return 0


def _read_fully_into(fd: int, offset: int, buffer: memoryview) -> int:
    """Fill the buffer, as far as the file has bytes; how many these are."""
    count = 0
    try:
        while count < len(buffer) and (more := os.preadv(fd, [buffer[count:]], offset + count)):
            count += more
    except OSError as error:
        raise Damaged(str(error)) from error
    return count


def _read_fully(fd: int, offset: int, length: int) -> bytes:
    try:
        data = os.pread(fd, length, offset)
        while len(data) < length and (more := os.pread(fd, length - len(data), offset + len(data))):
            data += more
    except OSError as error:
        raise Damaged(str(error)) from error
    return data


def _check_within(extent: Extent, offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length > extent.length:
        raise ValueError("Beyond the extent.")


def _name(extent: Extent) -> str:
    return f"extent {extent.segment.hex()}+{extent.start}"
