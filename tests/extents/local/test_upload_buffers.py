"""Bodies that are received into buffers of the extents, and the memory that all uploads share."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from kyanite.engine.api import EngineError
from kyanite.extents.api import Upload
from kyanite.extents.crc64 import checksums_of
from kyanite.extents.local import upload_memory as memory_module
from kyanite.extents.local.file_system import Buffer, FileSystem
from kyanite.extents.local.store import LocalExtents
from kyanite.extents.local.upload_memory import UploadMemory
from tests.extents.local.test_store import MIB, noise, read_all, run, segment_files

CHUNK = 64 * 1024
"""What comes in chunks before there is a buffer."""


async def receive(body: Upload, data: bytes, *, chunk: int = CHUNK) -> list[int]:
    """Pass on the data as a request does; returns how long the buffers were."""
    at = 0
    lengths = []
    while at < len(data):
        if (buffer := body.buffer()) is None:
            await body.write(data[at : at + chunk])
            at += chunk
        else:
            count = len(buffer)
            buffer[:] = data[at : at + count]
            lengths.append(count)
            at += count
            await body.filled(count)
    assert body.buffer() is None
    return lengths


@pytest.mark.parametrize(
    ("length", "buffers"),
    [
        (MIB, []),
        (MIB + 1, [MIB - CHUNK + 1]),
        (MIB + CHUNK, [MIB]),
        (4 * MIB, [MIB, MIB, MIB, MIB - CHUNK]),
        (5 * MIB + CHUNK + 9, [MIB, MIB, MIB, MIB, MIB, 9]),
    ],
)
@pytest.mark.parametrize("is_observed", [False, True])
def test_what_is_received_is_read_back(
    tmp_path: Path, length: int, buffers: list[int], is_observed: bool
) -> None:
    data = noise(length)
    digest = hashlib.md5(usedforsecurity=False)

    async def body(extents: LocalExtents) -> None:
        for _ in range(3):  # The buffers of the first one are used again.
            one = extents.upload(size_hint=length, observers=(digest.update,) if is_observed else ())
            assert await receive(one, data) == buffers
            stored = await one.finish()
            assert await read_all(extents, stored) == data
            assert [(extent.crc64, extent.checksums) for extent in stored] == [checksums_of(data)]
            extents.commit(stored)
            assert extents._upload_memory.used_bytes == 0

    run(tmp_path, body)
    assert digest.digest() == hashlib.md5(data * 3 if is_observed else b"", usedforsecurity=False).digest()


def test_many_at_a_time(tmp_path: Path) -> None:
    bodies = [noise(6 * MIB + seed, seed) for seed in range(8)]

    async def body(extents: LocalExtents) -> None:
        async def one(data: bytes) -> None:
            upload = extents.upload(size_hint=len(data), observers=(len,))
            await receive(upload, data)
            stored = await upload.finish()
            extents.commit(stored)
            assert await read_all(extents, stored) == data

        await asyncio.gather(*map(one, bodies))
        assert extents._upload_memory.used_bytes == 0

    run(tmp_path, body)


def test_short_bodies_and_those_of_unknown_length_get_no_buffer(tmp_path: Path) -> None:
    async def body(extents: LocalExtents) -> None:
        for size_hint in (None, MIB):
            upload = extents.upload(size_hint=size_hint)
            await upload.write(noise(CHUNK))
            assert upload.buffer() is None
            await upload.abort()

    run(tmp_path, body)


@pytest.mark.parametrize("count", [0, 1, 5000, MIB - 1])
def test_a_slow_client_keeps_only_what_it_sent(tmp_path: Path, count: int) -> None:
    data = noise(4 * MIB)

    async def body(extents: LocalExtents) -> None:
        upload = extents.upload(size_hint=len(data), observers=(len,))
        await upload.write(data[:CHUNK])
        buffer = upload.buffer()
        assert buffer is not None
        assert extents._upload_memory.used_bytes == CHUNK + MIB
        buffer[:count] = data[CHUNK : CHUNK + count]
        await upload.filled(count)
        assert extents._upload_memory.used_bytes == CHUNK + count
        assert upload.buffer() is None, "not before it has sent more"
        await receive(upload, data[CHUNK + count :])
        stored = await upload.finish()
        extents.commit(stored)
        assert await read_all(extents, stored) == data
        assert extents._upload_memory.used_bytes == 0

    run(tmp_path, body)


def test_buffers_share_the_memory_of_all_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "MEMORY_BYTES", 8 * MIB)

    async def body(extents: LocalExtents) -> None:
        memory = extents._upload_memory
        slow = [extents.upload(size_hint=10 * MIB) for _ in range(20)]
        for each in slow:
            await each.write(noise(CHUNK))
        with_buffers = [each for each in slow if each.buffer() is not None]
        assert len(with_buffers) == 6, "the chunks of all take part of it"
        assert memory.used_bytes == 20 * CHUNK + 6 * MIB
        for each in slow:
            await each.abort()
        assert memory.used_bytes == 0

    run(tmp_path, body)


@pytest.mark.parametrize("size", [3 * MIB, 9 * MIB])
def test_an_aborted_upload_leaves_nothing(tmp_path: Path, size: int) -> None:
    async def body(extents: LocalExtents) -> None:
        upload = extents.upload(size_hint=size + 1, observers=(len,))
        await receive_most(upload, size)
        await upload.abort()
        assert extents._upload_memory.used_bytes == 0

    run(tmp_path, body)
    assert segment_files(tmp_path) == []


async def receive_most(upload: Upload, size: int) -> None:
    await upload.write(noise(CHUNK))
    for _ in range(size // MIB - 1):
        assert upload.buffer() is not None
        await upload.filled(MIB)


class FailingWrites(FileSystem):
    def write(self, fd: int, buffers: Sequence[Buffer], offset: int) -> None:
        if offset >= MIB:
            raise OSError(5, "Input/output error")
        super().write(fd, buffers, offset)


def test_a_failed_write_ends_the_upload_and_frees_its_memory(tmp_path: Path) -> None:
    async def body(extents: LocalExtents) -> None:
        upload = extents.upload(size_hint=9 * MIB, observers=(len,))
        with pytest.raises(EngineError):
            await receive(upload, noise(9 * MIB))
        await upload.abort()
        assert extents._upload_memory.used_bytes == 0

    run(tmp_path, body, FailingWrites())
    assert segment_files(tmp_path) == []


class Journal(FileSystem):
    """Notes what the disk is told to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin_writing_out(self, fd: int, start: int, length: int) -> None:
        self.calls.append(f"begin {length}")
        super().begin_writing_out(fd, start, length)

    def write(self, fd: int, buffers: Sequence[Buffer], offset: int) -> None:
        self.calls.append(f"write {sum(map(len, buffers))}")
        super().write(fd, buffers, offset)

    def sync(self, fd: int) -> None:
        self.calls.append("sync")
        super().sync(fd)


def test_the_disk_begins_with_the_first_job(tmp_path: Path) -> None:
    disk = Journal()

    async def body(extents: LocalExtents) -> None:
        upload = extents.upload(size_hint=3 * MIB)
        await receive(upload, noise(3 * MIB))
        extents.commit(await upload.finish())

    run(tmp_path, body, disk)
    first, last = MIB + CHUNK, MIB - CHUNK
    assert disk.calls == [
        *(f"write {first}", f"begin {first}", f"write {MIB}", f"begin {MIB}"),
        *(f"write {last}", "sync"),
    ]


def test_a_short_body_is_observed_between_write_and_sync(tmp_path: Path) -> None:
    """In the thread that writes, so that the disk and the hash work at the same time and no other thread is asked."""
    disk = Journal()

    async def body(extents: LocalExtents) -> None:
        def observe(data: object) -> None:
            disk.calls.append("observe")

        upload = extents.upload(size_hint=100_000, observers=(observe,))
        await receive(upload, noise(100_000), chunk=50_000)
        extents.commit(await upload.finish())

    run(tmp_path, body, disk)
    padded = 25 * 4096
    assert disk.calls == [f"write {padded}", f"begin {padded}", "observe", "observe", "sync"]


def test_a_failing_observer_concerns_only_its_own_body(tmp_path: Path) -> None:
    disk = Journal()

    async def body(extents: LocalExtents) -> None:
        def fail(_data: object) -> None:
            raise RuntimeError("observed")

        good, bad = extents.upload(size_hint=5000), extents.upload(size_hint=6000, observers=(fail,))
        await good.write(noise(5000))
        await bad.write(noise(6000))
        stored, error = await asyncio.gather(good.finish(), bad.finish(), return_exceptions=True)
        assert isinstance(stored, list)
        assert isinstance(error, RuntimeError)
        await bad.abort()
        assert await read_all(extents, stored) == noise(5000)
        extents.commit(stored)
        assert extents._upload_memory.used_bytes == 0

    run(tmp_path, body, disk)
    assert disk.calls.count("sync") == 1, "they were one batch"


async def test_free_buffers_are_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "_FREE_SECONDS", 0.01)
    memory = UploadMemory()
    first = memory.take()
    assert first is not None
    memory.give_back(first)
    assert memory.take() is first
    memory.give_back(first)
    while memory._free:
        await asyncio.sleep(0.005)
    second = memory.take()
    assert second is not None
    assert second is not first
    many = [memory.take() for _ in range(2 * memory_module._FREE_MAX)]
    for each in many:
        assert each is not None
        memory.give_back(each)
    assert len(memory._free) == memory_module._FREE_MAX
