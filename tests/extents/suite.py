"""One suite for all extents: what ``extents/api.py`` promises, as tests.

Extents join by a class that derives from ``ExtentsSuite`` and a fixture ``site`` that makes empty stores of their
kind. Nothing here knows which extents it runs on.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import NamedTuple, Protocol

import pytest

from kyanite.engine.api import Damaged
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.api import BLOCK_BYTES, EXTENT_MAX, Extent, Extents, Stretch, Upload, WrittenExtent
from kyanite.extents.crc64 import checksums_of
from kyanite.membership.api import Membership
from kyanite.model.accounts import Store
from kyanite.model.content import content
from kyanite.server.store.api import StoreExtents
from tests.model.maintenance.garbage_collection import GarbageCollector

KIB = 1024
MIB = 1024 * KIB


class Process(NamedTuple):
    """A process that has the store open. When it is closed, it is dead for the others."""

    extents: StoreExtents
    membership: Membership


class Site(Protocol):
    """Where the extents of one test are."""

    def opened(self) -> AbstractAsyncContextManager[Process]: ...

    def segments(self) -> set[bytes]:
        """What is there, found without the code under test."""

    def change(self, segment: bytes, change: Callable[[bytes], bytes]) -> None:
        """Change stored bytes, as a fault would."""

    def unfinished(self) -> int:
        """What else is there of uploads that were not finished."""


def noise(length: int, seed: int = 0) -> bytes:
    """Bytes that look random, always the same ones."""
    return hashlib.shake_128(seed.to_bytes(4, "big")).digest(length)


async def upload(
    extents: Extents, data: bytes, piece: int, *, size_known: bool = True
) -> list[WrittenExtent]:
    body = extents.upload(size_hint=len(data) if size_known else None)
    for at in range(0, len(data), piece):
        await body.write(data[at : at + piece])
    return await body.finish()


async def send_all(body: Upload, size: int) -> list[WrittenExtent]:
    for at in range(0, size, 1000):
        await body.write(bytes(min(1000, size - at)))
    return await body.finish()


async def read_all(extents: Extents, stored: Sequence[Extent]) -> bytes:
    return b"".join([await extents.read(extent, 0, extent.length) for extent in stored])


async def gather(chunks: AsyncIterator[bytes], got: bytearray) -> None:
    async for chunk in chunks:
        got += chunk


async def until_sealed(extents: StoreExtents, segments: set[bytes]) -> None:
    for _ in range(500):
        if await extents.sealed(segments) == segments:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("A segment is never sealed.")


async def collect_garbage(process: Process, engine: MemoryEngine) -> None:
    """Until nothing more happens for a while."""
    collector = GarbageCollector(engine, process.extents, process.membership)
    idle = 0
    for _ in range(500):
        idle = 0 if await collector.step() else idle + 1
        if idle > 5:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("Garbage collection never ends.")


class ExtentsSuite:
    @pytest.mark.parametrize("size_known", [True, False])
    @pytest.mark.parametrize(
        ("length", "piece"),
        [
            (1, 1),
            (20_000, 7),
            (MIB, 100_000),
            (MIB + 1, MIB + 1),
            (3 * MIB + 17, 64 * KIB),
            (9 * MIB + 5, 300_001),
        ],
    )
    async def test_what_is_uploaded_is_read_back(
        self, site: Site, length: int, piece: int, size_known: bool
    ) -> None:
        data = noise(length)
        async with site.opened() as (extents, _):
            stored = await upload(extents, data, piece, size_known=size_known)
            assert await read_all(extents, stored) == data
            assert [(extent.crc64, extent.checksums) for extent in stored] == [checksums_of(data)]
            extents.commit(stored)

    async def test_an_empty_body_needs_no_extent(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            assert await extents.upload(size_hint=0).finish() == []
        assert site.segments() == set()

    async def test_a_long_body_is_cut_into_extents(self, site: Site) -> None:
        piece = noise(MIB - 7)
        count = 66
        async with site.opened() as (extents, _):
            long = extents.upload(size_hint=None)
            for _ in range(count):
                await long.write(piece)
            first, second = await long.finish()
            assert first.length == EXTENT_MAX
            assert second.length == count * len(piece) - EXTENT_MAX
            whole = piece * count
            assert (first.crc64, first.checksums) == checksums_of(memoryview(whole)[:EXTENT_MAX])
            assert (second.crc64, second.checksums) == checksums_of(memoryview(whole)[EXTENT_MAX:])
            assert await extents.read(second, 0, second.length) == whole[EXTENT_MAX:]
            extents.commit([first, second])

    async def test_ranges_are_read(self, site: Site) -> None:
        data = noise(700_000)
        async with site.opened() as (extents, _):
            await extents.put(noise(5000))  # So that the extent does not begin with its segment.
            stored = await extents.put(memoryview(data))
            for offset, length in [(0, 1), (1000, 17), (699_999, 1), (262_000, 300), (0, 700_000), (5, 0)]:
                assert await extents.read(stored, offset, length) == data[offset : offset + length]
                assert await extents.read_cold(stored, offset, length) == data[offset : offset + length]
                buffer = bytearray(length)
                await extents.read_into(stored, offset, memoryview(buffer))
                assert buffer == data[offset : offset + length]
            for offset, length in [(-1, 5), (699_999, 2), (700_001, 0)]:
                with pytest.raises(ValueError, match="Beyond"):
                    await extents.read(stored, offset, length)

    async def test_checksums_are_computed_from_the_stored_bytes(self, site: Site) -> None:
        data = noise(9 * BLOCK_BYTES + 17)
        all_of_them = checksums_of(data)[1]
        async with site.opened() as (extents, _):
            stored = await extents.put(data)
            for first, count in [(0, 1), (3, 2), (0, 4), (1, 8), (9, 1), (0, 10)]:
                found = await extents.checksums(stored, first, count)
                assert found == all_of_them[8 * first : 8 * (first + count)]
            for first, count in [(-1, 2), (9, 2), (10, 1)]:
                with pytest.raises(ValueError, match="Beyond"):
                    await extents.checksums(stored, first, count)
            site.change(stored.segment, lambda old: old[: stored.start + 7 * BLOCK_BYTES + 5])
            assert await extents.checksums(stored, 0, 7) == all_of_them[: 8 * 7]
            for first, count in [(7, 1), (6, 4), (0, 10)]:
                with pytest.raises(Damaged, match="block 7 of extent"):
                    await extents.checksums(stored, first, count)

    async def test_observers_see_every_byte_in_order(self, site: Site) -> None:
        data = noise(9 * MIB + 3)
        async with site.opened() as (extents, _):
            for size in (1000, 2 * MIB, len(data)):
                digest = hashlib.md5(usedforsecurity=False)
                body = extents.upload(size_hint=size, observers=(digest.update,))
                for at in range(0, size, 250_000):
                    await body.write(data[at : min(at + 250_000, size)])
                extents.commit(await body.finish())
                assert digest.digest() == hashlib.md5(data[:size], usedforsecurity=False).digest()

    async def test_a_failing_observer_fails_the_upload(self, site: Site) -> None:
        def fail(_data: object) -> None:
            raise RuntimeError("observed")

        async with site.opened() as (extents, _):
            for size in (1000, 3 * MIB):
                body = extents.upload(size_hint=size, observers=(fail,))
                with pytest.raises(RuntimeError, match="observed"):
                    await send_all(body, size)
                await body.abort()
        assert site.segments() == set()

    async def test_more_than_announced_is_refused(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            body = extents.upload(size_hint=10)
            with pytest.raises(ValueError, match="announced"):
                await body.write(bytes(11))
            await body.abort()

    @pytest.mark.parametrize("length", [10, 3 * MIB, 25 * MIB])
    async def test_an_aborted_upload_leaves_nothing(self, site: Site, length: int) -> None:
        async with site.opened() as (extents, _):
            body = extents.upload(size_hint=length + 1)
            data = noise(100_000)
            for at in range(0, length, 100_000):
                await body.write(data[: min(100_000, length - at)])
            await body.abort()
        assert site.segments() == set()
        assert site.unfinished() == 0

    async def test_concurrent_puts_share_a_segment(self, site: Site) -> None:
        bodies = [noise(10_000 + 100 * seed, seed) for seed in range(100)]
        async with site.opened() as (extents, _):
            stored = await asyncio.gather(*(extents.put(data) for data in bodies))
            assert len({extent.segment for extent in stored}) == 1
            for extent, data in zip(stored, bodies, strict=True):
                assert await extents.read(extent, 0, extent.length) == data
                assert await extents.read(extent, 1000, 17) == data[1000:1017]
            extents.commit(stored)

    async def test_the_caller_is_notified_when_a_body_is_written(self, site: Site) -> None:
        notified: list[int] = []
        async with site.opened() as (extents, _):
            puts = [extents.put(noise(1000), lambda at=at: notified.append(at)) for at in range(3)]  # type: ignore[misc]
            extents.commit(await asyncio.gather(*puts))
        assert notified == [0, 1, 2]

    async def test_the_extent_of_a_cancelled_put_is_discarded(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            waiting = asyncio.ensure_future(extents.put(noise(MIB)))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert site.segments() == set()

    async def test_discarded_extents_are_gone(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            stored = await upload(extents, noise(9 * MIB), MIB)
            await extents.discard(stored)
            assert site.segments() == set()
            with pytest.raises(Damaged):
                await extents.read(stored[0], 0, 10)

    async def test_what_shares_a_segment_with_discarded_extents_stays(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            kept, discarded = await asyncio.gather(
                extents.put(noise(50_000, 1)), extents.put(noise(50_000, 2))
            )
            assert kept.segment == discarded.segment
            await extents.discard([discarded])
            extents.commit([kept])
            assert await extents.read(kept, 0, kept.length) == noise(50_000, 1)

    async def test_a_flipped_bit_is_noticed(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            stored = await extents.put(noise(600_000))
            extents.commit([stored])
            at = stored.start + 300_000
            site.change(stored.segment, lambda old: old[:at] + bytes((old[at] ^ 1,)) + old[at + 1 :])
            with pytest.raises(Damaged):
                await extents.read(stored, 0, stored.length)

    async def test_missing_bytes_are_noticed(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            stored = await extents.put(noise(50_000))
            extents.commit([stored])
            site.change(stored.segment, lambda old: old[: stored.start + 100])
            for reading in (
                extents.read(stored, 50, 100),
                extents.read(stored, 200, 100),
                extents.read_into(stored, 200, memoryview(bytearray(100))),
                extents.read_cold(stored, 200, 100),
            ):
                with pytest.raises(Damaged, match="missing"):
                    await reading

    async def test_readers_get_whole_bytes_or_an_error(self, site: Site) -> None:
        """Through the reader that requests use."""
        data = noise(5 * MIB + 100)
        async with site.opened() as (extents, membership):
            engine = MemoryEngine()
            reader = Store(engine, extents, membership).reader
            stored = await upload(extents, data, MIB)
            await engine.run(lambda tx: content.create(tx, stored))
            extents.commit(stored)
            (extent,) = [Extent(each.segment, each.start, each.length, each.crc64) for each in stored]
            for offset, length in [(0, 100), (300_000, 600_000), (5 * MIB, 100), (1, 5 * MIB)]:
                assert await reader.read(extent, offset, length) == data[offset : offset + length]
                chunks = [chunk async for chunk in reader.stream(extent, offset, length)]
                assert b"".join(chunks) == data[offset : offset + length]
                assert max(map(len, chunks)) <= BLOCK_BYTES
                buffer = bytearray(length)
                await reader.read_into(extent, offset, memoryview(buffer))
                assert buffer == data[offset : offset + length]
            at = stored[0].start + 3 * MIB
            site.change(extent.segment, lambda old: old[:at] + bytes((old[at] ^ 1,)) + old[at + 1 :])
            fresh = Store(engine, extents, membership).reader
            with pytest.raises(Damaged):
                await fresh.read(extent, 3 * MIB - 5, 10)
            got = bytearray()
            with pytest.raises(Damaged):
                await gather(fresh.stream(extent, 0, extent.length), got)
            assert got == data[: len(got)]

    async def test_what_was_never_committed_is_left_for_garbage_collection(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            await extents.put(noise(5000))
        async with site.opened() as (extents, membership):
            (dead,) = membership.dead_owners()
            (segment,) = [each async for each in extents.segments_of(dead)]
            assert await extents.sealed([segment]) == {segment}
            await extents.remove(segment)
            assert [each async for each in extents.segments_of(dead)] == []
            await extents.drop_owner(dead)
            await extents.drop_owner(dead)
        assert site.segments() == set()

    async def test_a_segment_is_sealed_when_all_its_extents_are_committed(self, site: Site) -> None:
        async with site.opened() as (extents, _), site.opened() as (other, _):
            stored = await upload(extents, noise(9 * MIB), MIB)
            small = await extents.put(noise(5000))
            both = {stored[0].segment, small.segment}
            assert await extents.sealed(both) == await other.sealed(both) == set()
            assert await read_all(other, stored) == noise(9 * MIB)
            extents.commit(stored)
            await until_sealed(other, {stored[0].segment})
            assert await other.sealed(both) == {stored[0].segment}
            extents.commit([small])

    async def test_all_but_what_is_kept_may_be_freed(self, site: Site) -> None:
        async with site.opened() as (extents, _):
            stored = [await extents.put(noise(100_000, seed)) for seed in range(5)]
            extents.commit(stored)
        async with site.opened() as (extents, _):
            for segment in {each.segment for each in stored}:
                kept = [each for each in stored[1::2] if each.segment == segment]
                await extents.keep_only(segment, [Stretch(each.start, each.length) for each in kept])
            for seed in (1, 3):
                assert await extents.read(stored[seed], 0, 100_000) == noise(100_000, seed)

    async def test_garbage_of_live_and_dead_processes_is_collected(self, site: Site) -> None:
        engine = MemoryEngine()
        async with site.opened() as process:
            extents = process.extents
            async with site.opened() as (dying, _):
                kept, dropped = await upload(dying, noise(2 * MIB, 1), MIB), await dying.put(noise(5000, 2))
                await dying.put(noise(5000, 3))  # Never committed.
                await upload(dying, noise(2 * MIB, 4), MIB)  # Nor this.
                what = await engine.run(lambda tx: content.create(tx, [dropped]))
                await engine.run(lambda tx: content.create(tx, kept))
                dying.commit([*kept, dropped])
                unfinished = dying.upload(size_hint=None)
                for _ in range(200):
                    await unfinished.write(noise(100_000))
            own = await upload(extents, noise(5 * MIB, 5), MIB)
            own_content = await engine.run(lambda tx: content.create(tx, own))
            extents.commit(own)
            await engine.run(lambda tx: content.drop(tx, own_content))
            await engine.run(lambda tx: content.drop(tx, what))
            await collect_garbage(process, engine)
            assert site.segments() == {kept[0].segment}
            assert site.unfinished() == 0
            assert process.membership.dead_owners() == []
            assert await read_all(extents, kept) == noise(2 * MIB, 1)
            with suppress(Exception):  # Its process is dead.
                await unfinished.abort()
