"""Checked reads: nothing that is damaged is handed out, what is not damaged is, and little is read for that."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kyanite.engine.api import Damaged, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.api import BLOCK_BYTES, Extent, WrittenExtent
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model.content import checked_reads, content
from kyanite.model.content.checked_reads import CheckedReader
from kyanite.model.content.content import Content
from tests.damaged import flip, segment_files

KIB = 1024
MIB = 1024 * KIB
RECHECK_SECONDS = 600.0


def noise(length: int, seed: int = 0) -> bytes:
    return hashlib.shake_128(seed.to_bytes(4, "big")).digest(length)


class CountedExtents(LocalExtents):
    """Counts the blocks that are read to check them."""

    checked = 0

    async def checksums(self, extent: Extent, first: int, count: int) -> bytes:
        self.checked += count
        return await super().checksums(extent, first, count)


class World:
    """One extent after another, a reader, and a clock that moves when told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.membership = LocalMembership(folder / "owners")
        self.extents = CountedExtents(folder, self.membership)
        self.engine = MemoryEngine()
        self.engine_reads = 0
        self.now = 1000.0
        self.reader = self.new_reader()
        self.data = b""

    def new_reader(self, recheck_seconds: float = RECHECK_SECONDS) -> CheckedReader:
        """As that of another process."""
        return CheckedReader(self, self.extents, recheck_seconds, lambda: self.now)  # type: ignore[arg-type]

    def read(self, body: Callable[[Any], Any]) -> Awaitable[Any]:
        """The engine, as the reader uses it."""
        self.engine_reads += 1
        return self.engine.read(body)

    async def put(self, length: int, *, is_old: bool = False) -> Extent:
        """An extent that content refers to; of an old store, which had no checksums of blocks."""
        self.data = noise(length, seed=length)
        written = await self.extents.put(self.data)
        if is_old:
            written = WrittenExtent(written.segment, written.start, length, written.crc64)
        self.content: Content = await self.engine.run(lambda tx: content.create(tx, [written]))
        self.extents.commit([written])
        return Extent(written.segment, written.start, length, written.crc64)

    async def aclose(self) -> None:
        await self.extents.close()
        self.membership.close()

    def flip(self, offset: int) -> None:
        flip(self.folder, self.data[offset : offset + 64])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def by_read(reader: CheckedReader, extent: Extent, offset: int, length: int) -> bytes:
    return await reader.read(extent, offset, length)


async def by_buffer(reader: CheckedReader, extent: Extent, offset: int, length: int) -> bytes:
    buffer = bytearray(length)
    await reader.read_into(extent, offset, memoryview(buffer))
    return bytes(buffer)


async def by_stream(reader: CheckedReader, extent: Extent, offset: int, length: int) -> bytes:
    return b"".join([chunk async for chunk in reader.stream(extent, offset, length)])


async def by_file(reader: CheckedReader, extent: Extent, offset: int, length: int) -> bytes:
    sent, is_first = b"", True
    while length:
        span = await reader.open_checked(extent, offset, length, is_first=is_first)
        is_first = False
        with open(f"/proc/self/fd/{span.fd}", "rb") as file:
            file.seek(span.offset)
            sent += file.read(span.length)
        span.release()
        offset += span.length
        length -= span.length
    return sent


WAYS = [by_read, by_buffer, by_stream, by_file]
Way = Callable[[CheckedReader, Extent, int, int], Awaitable[bytes]]

SIZES = [100, 64 * KIB, BLOCK_BYTES, BLOCK_BYTES + 1, MIB, 6 * MIB + 5]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", SIZES)
@pytest.mark.parametrize("is_old", [False, True], ids=["new", "old"])
@pytest.mark.parametrize("where", ["first", "middle", "last"])
async def test_damage_is_found_by_every_read_that_touches_its_block(
    world: World, way: Way, length: int, is_old: bool, where: str
) -> None:
    extent = await world.put(length, is_old=is_old)
    assert await way(world.reader, extent, 0, length) == world.data
    at = {"first": 0, "middle": length // 2, "last": max(length - 64, 0)}[where]
    world.flip(at)
    block = at // BLOCK_BYTES
    start, end = block * BLOCK_BYTES, min((block + 1) * BLOCK_BYTES, length)
    for offset, size in [(0, length), (start, end - start), (start, 1), (end - 1, 1)]:
        with pytest.raises(Damaged, match=str(extent).replace("+", r"\+")):
            await way(world.new_reader(), extent, offset, size)


@pytest.mark.parametrize("way", WAYS)
async def test_ranges_that_do_not_touch_a_damaged_block_are_read(world: World, way: Way) -> None:
    length = 5 * BLOCK_BYTES + 1000
    extent = await world.put(length)
    world.flip(2 * BLOCK_BYTES + 7)
    for offset, size in [
        (0, 2 * BLOCK_BYTES),
        (2 * BLOCK_BYTES - 1, 1),
        (3 * BLOCK_BYTES, length - 3 * BLOCK_BYTES),
        (length - 1, 1),
    ]:
        found = await way(world.new_reader(), extent, offset, size)
        assert found == world.data[offset : offset + size]
    for offset, size in [(0, 2 * BLOCK_BYTES + 1), (3 * BLOCK_BYTES - 1, 1), (3 * BLOCK_BYTES - 1, 2)]:
        with pytest.raises(Damaged, match="block 2 of"):
            await way(world.new_reader(), extent, offset, size)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [1000, BLOCK_BYTES + 1, 6 * MIB + 5])
async def test_a_second_read_within_the_time_reads_nothing_to_check(
    world: World, way: Way, length: int
) -> None:
    extent = await world.put(length)
    await way(world.reader, extent, 0, length)
    await way(world.reader, extent, length - 1, 1)
    assert world.extents.checked <= -(-length // BLOCK_BYTES), "No block was checked twice."
    assert world.engine_reads == (length > BLOCK_BYTES)
    world.extents.checked = world.engine_reads = 0
    world.now += RECHECK_SECONDS - 1
    assert await way(world.reader, extent, 0, length) == world.data
    assert await way(world.reader, extent, length - 1, 1) == world.data[-1:]
    assert (world.extents.checked, world.engine_reads) == (0, 0)


@pytest.mark.parametrize("way", WAYS)
async def test_blocks_are_checked_again_after_the_time(world: World, way: Way) -> None:
    extent = await world.put(MIB)
    await way(world.reader, extent, 1, MIB - 1)
    world.flip(MIB // 2)
    world.now += RECHECK_SECONDS - 1
    await way(world.reader, extent, 1, MIB - 1)  # It was checked a short time ago.
    world.engine_reads = 0
    world.now += 1
    with pytest.raises(Damaged, match="block 2 of"):
        await way(world.reader, extent, 1, MIB - 1)
    assert world.engine_reads == 0, "The checksums are known."
    assert await way(world.reader, extent, 0, MIB // 2) == world.data[: MIB // 2]


@pytest.mark.parametrize("way", WAYS)
async def test_every_time_if_the_time_is_zero(world: World, way: Way) -> None:
    reader, extent = world.new_reader(recheck_seconds=0), await world.put(MIB)
    for _ in range(2):
        assert await way(reader, extent, 0, MIB) == world.data
    world.flip(0)
    with pytest.raises(Damaged):
        await way(reader, extent, 0, MIB)


async def test_a_range_costs_the_blocks_that_it_touches(world: World) -> None:
    extent = await world.put(8 * BLOCK_BYTES)
    await world.reader.read(extent, 3 * BLOCK_BYTES - 1, 2)
    assert world.extents.checked == 2
    await world.reader.read(extent, 3 * BLOCK_BYTES, BLOCK_BYTES + 1)
    assert world.extents.checked == 3, "The first of these two was checked."


async def test_an_old_extent_is_checked_whole_on_first_use_only(world: World) -> None:
    extent = await world.put(8 * BLOCK_BYTES, is_old=True)
    await world.reader.read(extent, 0, 1)
    assert (world.extents.checked, world.engine_reads) == (8, 1)
    world.now += RECHECK_SECONDS
    await world.reader.read(extent, 0, 1)
    assert (world.extents.checked, world.engine_reads) == (9, 1), "The checksums of its blocks are known now."


@pytest.mark.parametrize("way", WAYS)
async def test_a_freed_extent_is_checked_whole_while_it_is_pinned(world: World, way: Way) -> None:
    extent = await world.put(MIB)
    pin = world.extents.pin()

    def drop(tx: Transaction) -> None:
        content.drop(tx, world.content)

    await world.engine.run(drop)
    assert await way(world.reader, extent, 0, MIB) == world.data
    world.flip(MIB - 64)
    with pytest.raises(Damaged):
        await way(world.new_reader(), extent, 0, 1)
    pin.release()


@pytest.mark.parametrize("checksums", [bytes(31), bytes(32)], ids=["too few", "wrong"])
async def test_checksums_that_do_not_fit_the_extent_are_not_used(world: World, checksums: bytes) -> None:
    data = noise(MIB)
    written = await world.extents.put(data)
    wrong = WrittenExtent(written.segment, written.start, MIB, written.crc64, checksums)
    await world.engine.run(lambda tx: content.create(tx, [wrong]))
    extent = Extent(written.segment, written.start, MIB, written.crc64)
    assert await world.reader.read(extent, 5, 10) == data[5:15]
    assert world.extents.checked == 4


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [1000, 6 * MIB + 5])
async def test_a_file_that_is_cut_or_gone_is_damage(world: World, way: Way, length: int) -> None:
    extent = await world.put(length)
    (path,) = segment_files(world.folder)
    with path.open("r+b") as file:
        file.truncate(extent.start + length - 1)
    with pytest.raises(Damaged, match="missing"):
        await way(world.new_reader(), extent, length - 1, 1)
    await world.extents.close()
    path.unlink()
    world.extents = CountedExtents(world.folder, world.membership)
    with pytest.raises(Damaged, match="missing"):
        await way(world.new_reader(), extent, 0, 1)


async def test_the_first_piece_to_send_is_short_and_the_next_is_checked_meanwhile(world: World) -> None:
    extent = await world.put(12 * MIB)
    sizes = []
    offset = 0
    while offset < extent.length:
        span = await world.reader.open_checked(extent, offset, extent.length - offset, is_first=not offset)
        sizes.append(span.length // BLOCK_BYTES)
        span.release()
        offset += span.length
    assert sizes == [4, 16, 16, 12]
    assert world.extents.checked == 48
    span = await world.reader.open_checked(extent, 1000, 11 * MIB, is_first=True)
    assert span.length == 16 * BLOCK_BYTES - 1000, "It was checked, so nobody waits."
    span.release()


async def test_requests_for_the_same_bytes_check_them_once(world: World) -> None:
    extent = await world.put(8 * BLOCK_BYTES)
    async with asyncio.TaskGroup() as group:
        reads = [group.create_task(by_file(world.reader, extent, 0, extent.length)) for _ in range(5)]
    assert {task.result() for task in reads} == {world.data}
    assert world.extents.checked == 8
    assert world.engine_reads == 1


async def test_a_cancelled_check_does_not_stop_the_others(world: World) -> None:
    extent = await world.put(8 * BLOCK_BYTES)
    first, second, third = (
        asyncio.ensure_future(by_read(world.reader, extent, 0, extent.length)) for _ in range(3)
    )
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    assert await third == world.data
    assert first.cancelled()
    assert second.cancelled()


async def test_what_is_remembered_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    extents = [await world.put(2 * BLOCK_BYTES + seed) for seed in range(1, 5)]
    monkeypatch.setattr(checked_reads, "REMEMBERED_BYTES", 2_000)  # Three of them.
    for extent in extents:
        await world.reader.read(extent, 0, 1)
    world.extents.checked = 0
    for extent in reversed(extents):
        await world.reader.read(extent, 0, 1)
    assert world.extents.checked == 1, "Those that were used last are remembered."
