"""Local extents: what goes in comes out, what is aborted leaves nothing, and nothing is believed unchecked."""

import asyncio
import errno
import hashlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kyanite.engine.api import Damaged, EngineBusy, EngineError, EngineFull
from kyanite.extents.api import BLOCK_BYTES, Extent, Extents, Stretch, WrittenExtent
from kyanite.extents.crc64 import checksums_of, crc64
from kyanite.extents.local import file_reads
from kyanite.extents.local import upload_memory as memory_module
from kyanite.extents.local.file_system import Buffer, FileSystem
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership

KIB = 1024
MIB = 1024 * KIB

punches_holes = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux gives stretches back"
)


@asynccontextmanager
async def opened(folder: Path, file_system: FileSystem | None = None) -> AsyncIterator[LocalExtents]:
    membership = LocalMembership(folder / "owners")
    extents = LocalExtents(folder, membership, file_system=file_system)
    try:
        yield extents
    finally:
        await extents.close()
        membership.close()


def run(
    folder: Path, body: Callable[[LocalExtents], Awaitable[None]], file_system: FileSystem | None = None
) -> None:
    async def main() -> None:
        async with opened(folder, file_system) as extents:
            await body(extents)

    asyncio.run(main())


def noise(length: int, seed: int = 0) -> bytes:
    """Bytes that look random, always the same ones."""
    return hashlib.shake_128(seed.to_bytes(4, "big")).digest(length)


def segment_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "segments").rglob("*") if path.is_file()]


def dead_owners(folder: Path) -> list[bytes]:
    membership = LocalMembership(folder / "owners")
    try:
        return membership.dead_owners()
    finally:
        membership.forget(membership.id)
        membership.close()


async def upload(
    extents: Extents, data: bytes, piece: int, *, size_known: bool = True
) -> list[WrittenExtent]:
    body = extents.upload(size_hint=len(data) if size_known else None)
    for at in range(0, len(data), piece):
        await body.write(data[at : at + piece])
    return await body.finish()


async def read_all(extents: Extents, stored: Sequence[Extent]) -> bytes:
    return b"".join([await extents.read(extent, 0, extent.length) for extent in stored])


@pytest.mark.parametrize("is_cached", [True, False])
def test_checksums_are_computed_from_the_stored_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cached: bool
) -> None:
    if not is_cached:
        monkeypatch.setattr(file_reads, "_NOWAIT", 0)
    data = noise(9 * BLOCK_BYTES + 17)
    all_of_them = checksums_of(data)[1]

    async def body(extents: LocalExtents) -> None:
        await extents.put(noise(5000))  # So that the extent does not begin with the file.
        stored = await extents.put(data)
        for first, count in [(0, 1), (3, 2), (0, 4), (1, 8), (9, 1), (0, 10)]:
            assert (
                await extents.checksums(stored, first, count) == all_of_them[8 * first : 8 * (first + count)]
            )
        for first, count in [(-1, 2), (9, 2), (10, 1)]:
            with pytest.raises(ValueError, match="Beyond"):
                await extents.checksums(stored, first, count)
        (path,) = segment_files(tmp_path)
        os.truncate(path, stored.start + 7 * BLOCK_BYTES + 5)
        assert await extents.checksums(stored, 0, 7) == all_of_them[: 8 * 7]
        for first, count in [(7, 1), (6, 4), (0, 10)]:
            with pytest.raises(Damaged, match="block 7 of extent"):
                await extents.checksums(stored, first, count)

    run(tmp_path, body)


def test_bytes_that_the_disk_cannot_read_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def body(extents: LocalExtents) -> None:
        stored = await extents.put(noise(MIB))
        monkeypatch.setattr(os, "preadv", fail)
        for reading in (
            extents.checksums(stored, 0, 1),
            extents.read(stored, 0, 100),
            extents.read_into(stored, 0, memoryview(bytearray(100))),
        ):
            with pytest.raises(Damaged, match="cannot be read: Input/output error"):
                await reading

    run(tmp_path, body)


def test_uploads_share_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "MEMORY_BYTES", 8 * MIB)

    async def body(extents: LocalExtents) -> None:
        memory = extents._upload_memory
        slow = [extents.upload(size_hint=10 * MIB) for _ in range(100)]
        for _ in range(9):
            for each in slow:
                await each.write(noise(100_000))
        assert memory.used_bytes <= 2 * 8 * MIB
        for each in slow:
            await each.abort()
        assert memory.used_bytes == 0

    run(tmp_path, body)
    assert segment_files(tmp_path) == []


def test_uploads_fail_when_all_memory_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "MEMORY_BYTES", 1000)

    async def body(extents: LocalExtents) -> None:
        first, second = extents.upload(size_hint=MIB), extents.upload(size_hint=MIB)
        await first.write(bytes(2001))
        with pytest.raises(EngineBusy):
            await second.write(b"x")
        await second.abort()
        await first.abort()
        third = extents.upload(size_hint=1, observers=(len,))
        await third.write(b"x")
        extents.commit(await third.finish())
        assert extents._upload_memory.used_bytes == 0

    run(tmp_path, body)


@pytest.mark.parametrize("length", [10, 3 * MIB, 9 * MIB])
def test_an_aborted_upload_leaves_nothing(tmp_path: Path, length: int) -> None:
    async def body(extents: LocalExtents) -> None:
        upload = extents.upload(size_hint=length + 1)
        data = noise(length)
        for at in range(0, length, 100_000):
            await upload.write(data[at : at + 100_000])
        await upload.abort()

    run(tmp_path, body)
    assert segment_files(tmp_path) == []


@punches_holes
def test_an_aborted_upload_frees_its_stretch_of_a_shared_segment(tmp_path: Path) -> None:
    async def body(extents: LocalExtents) -> None:
        kept = await extents.put(noise(64 * KIB))
        upload = extents.upload(size_hint=3 * MIB)
        for _ in range(30):
            await upload.write(noise(100_000))
        await upload.abort()
        extents.commit([kept])
        assert await extents.read(kept, 0, kept.length) == noise(64 * KIB)

    run(tmp_path, body)
    (file,) = segment_files(tmp_path)
    assert file.stat().st_blocks * 512 < MIB


def test_concurrent_puts_share_a_segment(tmp_path: Path) -> None:
    bodies = [noise(30_000 + 100 * seed, seed) for seed in range(100)]

    async def body(extents: LocalExtents) -> None:
        stored = await asyncio.gather(*(extents.put(data) for data in bodies))
        assert len({extent.segment for extent in stored}) == 1
        for extent, data in zip(stored, bodies, strict=True):
            assert extent.start % 4096 == 0
            assert await extents.read(extent, 0, extent.length) == data
            assert await extents.read(extent, 1000, 17) == data[1000:1017]
        extents.commit(stored)

    run(tmp_path, body)


class CountingDisk(FileSystem):
    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


def test_puts_that_wait_together_share_a_sync(tmp_path: Path) -> None:
    file_system = CountingDisk()

    async def body(extents: LocalExtents) -> None:
        extents.commit(await asyncio.gather(*(extents.put(noise(5000, seed)) for seed in range(50))))

    run(tmp_path, body, file_system)
    assert file_system.syncs == 1


class HeldSync(FileSystem):
    """The first sync waits until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.writes = 0
        self.syncs = 0
        self._changed = threading.Condition()

    def write(self, fd: int, buffers: Sequence[Buffer], offset: int) -> None:
        super().write(fd, buffers, offset)
        self._count(writes=1)

    def sync(self, fd: int) -> None:
        self._count(syncs=1)
        assert self.release.wait(30)
        super().sync(fd)

    def _count(self, *, writes: int = 0, syncs: int = 0) -> None:
        with self._changed:
            self.writes += writes
            self.syncs += syncs
            self._changed.notify_all()

    def wait_for(self, *, writes: int, syncs: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: (self.writes, self.syncs) >= (writes, syncs), 30)


def test_batches_are_written_while_another_is_synced_and_share_the_next_sync(tmp_path: Path) -> None:
    disk = HeldSync()

    async def body(extents: LocalExtents) -> None:
        puts = [asyncio.ensure_future(extents.put(noise(100_000, 0)))]
        assert await asyncio.to_thread(disk.wait_for, writes=1, syncs=1)
        for seed in (1, 2):
            puts.append(asyncio.ensure_future(extents.put(memoryview(noise(100_000, seed)))))
            assert await asyncio.to_thread(disk.wait_for, writes=seed + 1, syncs=1)
        assert (disk.syncs, any(put.done() for put in puts)) == (1, False)
        disk.release.set()
        stored = await asyncio.gather(*puts)
        assert disk.syncs == 2
        assert await read_all(extents, stored) == b"".join(noise(100_000, seed) for seed in range(3))
        extents.commit(stored)

    run(tmp_path, body, disk)


async def put_alone(extents: LocalExtents, folder: Path, length: int) -> tuple[Extent, Path]:
    """An extent in a store that has no other, and the file that it is in."""
    stored = await extents.put(noise(length))
    extents.commit([stored])
    (file,) = segment_files(folder)
    return stored, file


def test_an_open_extent_is_the_same_bytes_and_its_file_stays_open(tmp_path: Path) -> None:
    data = noise(100_000)

    async def body(extents: LocalExtents) -> None:
        stored = await upload(extents, data, 50_000)
        part = extents.open_extent(stored[0], 10, 5000)
        await extents.discard(stored)
        with pytest.raises(Damaged):
            extents.open_extent(Extent(bytes(16), 0, 10, 0), 0, 10)
        os.fstat(part.fd)
        part.release()

        kept = await extents.put(data)
        extents.commit([kept])
        part = extents.open_extent(kept, 10, 5000)
        assert os.pread(part.fd, part.length, part.offset) == data[10:5010]
        part.release()

    run(tmp_path, body)


class FullDisk(FileSystem):
    """A disk with room for so many bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def allocate(self, fd: int, start: int, length: int) -> None:
        pass

    def write(self, fd: int, buffers: Sequence[Buffer], offset: int) -> None:
        self.room -= sum(map(len, buffers))
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(fd, buffers, offset)


def test_a_full_disk_is_reported_and_half_written_files_are_removed(tmp_path: Path) -> None:
    file_system = FullDisk(5 * MIB)

    async def body(extents: LocalExtents) -> None:
        kept = await extents.put(noise(MIB))
        extents.commit([kept])
        half = extents.upload(size_hint=None)

        async def write() -> None:
            for _ in range(10):
                await half.write(noise(MIB))

        with pytest.raises(EngineFull):
            await write()
        await half.abort()
        assert len(segment_files(tmp_path)) == 1
        with pytest.raises(EngineFull):
            await extents.put(noise(5 * MIB))
        assert await extents.read(kept, 0, kept.length) == noise(MIB)
        file_system.room = 5 * MIB
        extents.commit([await extents.put(noise(MIB))])

    run(tmp_path, body, file_system)


class NothingToAllocate(FileSystem):
    def allocate(self, fd: int, start: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("length", [3 * MIB, 9 * MIB])
def test_a_disk_that_is_full_from_the_beginning(tmp_path: Path, length: int) -> None:
    async def body(extents: LocalExtents) -> None:
        whole = extents.upload(size_hint=length)
        await whole.write(noise(length))
        with pytest.raises(EngineFull):
            await whole.finish()
        await whole.abort()
        with pytest.raises(EngineFull):
            await extents.put(noise(1000))

    run(tmp_path, body, NothingToAllocate())
    assert segment_files(tmp_path) == []


class FailingSync(FileSystem):
    def __init__(self) -> None:
        self.fails = False

    def sync(self, fd: int) -> None:
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")
        super().sync(fd)


def test_after_a_failed_sync_the_segment_is_never_used_again(tmp_path: Path) -> None:
    file_system = FailingSync()

    async def body(extents: LocalExtents) -> None:
        before = await extents.put(noise(5000))
        part = extents.upload(size_hint=2 * MIB)
        await part.write(noise(MIB))
        await part.write(noise(100))
        file_system.fails = True
        with pytest.raises(EngineError):
            await extents.put(noise(5000))
        file_system.fails = False
        with pytest.raises(EngineError):
            await part.finish()
        await part.abort()
        after = await extents.put(noise(5000))
        assert after.segment != before.segment
        extents.commit([before, after])

    run(tmp_path, body, file_system)


def test_a_clean_close_leaves_no_reserved_space(tmp_path: Path) -> None:
    async def body(extents: LocalExtents) -> None:
        extents.commit(await upload(extents, noise(9 * MIB), MIB))
        extents.commit([await extents.put(noise(5000))])

    run(tmp_path, body)
    assert sorted(file.stat().st_size for file in segment_files(tmp_path)) == [8192, 9 * MIB]


def test_nothing_is_left_of_an_owner_that_was_dropped(tmp_path: Path) -> None:
    async def leave(extents: LocalExtents) -> None:
        stored = await upload(extents, noise(9 * MIB), MIB)
        extents.commit(stored)
        for _ in range(100):
            if await extents.sealed([stored[0].segment]):
                break
            await asyncio.sleep(0.02)
        await extents.remove(stored[0].segment)
        assert len(list((tmp_path / "segments").iterdir())) == 1

    async def drop(extents: LocalExtents) -> None:
        (dead,) = dead_owners(tmp_path)
        assert [each async for each in extents.segments_of(dead)] == []
        await extents.drop_owner(dead)
        assert list((tmp_path / "segments").iterdir()) == []
        await extents.drop_owner(dead)

    run(tmp_path, leave)
    run(tmp_path, drop)


@punches_holes
def test_all_but_what_is_kept_is_freed(tmp_path: Path) -> None:
    async def leave(extents: LocalExtents) -> None:
        stored = [await extents.put(noise(100_000, seed)) for seed in range(5)]
        extents.commit(stored)

    async def keep(extents: LocalExtents) -> None:
        (dead,) = dead_owners(tmp_path)
        (segment,) = [each async for each in extents.segments_of(dead)]
        await extents.keep_only(segment, [Stretch(102_400, 100_000), Stretch(307_200, 100_000)])
        (file,) = segment_files(tmp_path)
        assert file.stat().st_size == 4 * 102_400
        assert file.stat().st_blocks * 512 <= 2 * 102_400
        for seed in (1, 3):
            data = noise(100_000, seed)
            extent = Extent(segment, seed * 102_400, 100_000, crc64(data))
            assert await extents.read(extent, 0, 100_000) == data

    run(tmp_path, leave)
    run(tmp_path, keep)
