"""A bucket that refuses writes for a time: what could not be removed is removed later, by this process or after it."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kyanite.engine.api import EngineBusy, EngineError
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.s3 import open_segments, seals
from kyanite.extents.s3.open_segments import OpenSegments
from kyanite.extents.s3.seals import SealState
from tests.extents.s3.bucket_site import PrivateBucket
from tests.extents.suite import MIB, collect_garbage, noise, read_all
from tests.model.maintenance.garbage_collection import GarbageCollector
from tests.read_only_gateway import ReadOnlyGateway
from tests.seaweed_server import SeaweedServer


@pytest.fixture
def gateway(seaweed: SeaweedServer) -> Iterator[ReadOnlyGateway]:
    with ReadOnlyGateway(urlsplit(seaweed.endpoint).port or 0) as gateway:
        yield gateway


@pytest.fixture
def site(
    seaweed: SeaweedServer, gateway: ReadOnlyGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> PrivateBucket:
    monkeypatch.setattr(seals, "PUBLISH_SECONDS", 0.05)
    monkeypatch.setattr(open_segments, "AGAIN_SECONDS", 0.05)
    site = PrivateBucket(seaweed, tmp_path)
    site.location = replace(site.location, endpoint=f"http://127.0.0.1:{gateway.port}")
    return site


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.02)


async def test_reads_go_on(site: PrivateBucket, gateway: ReadOnlyGateway) -> None:
    async with site.opened() as (extents, _):
        stored = await extents.put(noise(5000))
        extents.commit([stored])
        gateway.is_read_only = True
        body = extents.upload(size_hint=2 * MIB)
        await body.write(noise(2 * MIB))
        for write in (lambda: extents.put(noise(5000, 1)), body.finish):
            with pytest.raises(EngineBusy, match="refuses"):
                await write()
        await body.abort()
        assert await read_all(extents, [stored]) == noise(5000)
        refused = len([each for each in gateway.refused if "/segments/" in each])
        assert refused == 2, "What was refused is not there, so nothing has to be removed."
        gateway.is_read_only = False
        more = await extents.put(noise(5000, 1))
        extents.commit([more])
    assert site.segments() == {stored.segment, more.segment}


async def test_what_could_not_be_removed_is_removed_when_it_can_be(
    site: PrivateBucket, gateway: ReadOnlyGateway
) -> None:
    async with site.opened() as (extents, _):
        stored = [await extents.put(noise(5000, seed)) for seed in range(3)]
        gateway.is_read_only = True
        await extents.discard(stored)
        assert len(site.segments()) == 3
        gateway.is_read_only = False
        await until(lambda: not site.segments())


async def test_what_could_not_be_removed_is_found_after_a_death(
    site: PrivateBucket, gateway: ReadOnlyGateway
) -> None:
    """Although the process has published what it has sealed since."""
    async with site.opened() as (dying, membership):
        left = await dying.put(noise(5000))
        gateway.is_read_only = True
        await dying.discard([left])
        gateway.refused.clear()
        await until(lambda: len(gateway.refused) > 1)
        # As an object store does that lets objects be written and not removed.
        gateway.methods = {"POST", "DELETE"}
        stored = await dying.put(noise(5000, 1))
        dying.commit([stored])
        owner = membership.id
        await until(lambda: f"owners/{owner.hex()}" in site.names())
    gateway.is_read_only = False
    async with site.opened() as (extents, _):
        assert [each async for each in extents.segments_of(owner)] == [left.segment]


async def test_what_is_sealed_is_published_when_it_can_be(
    site: PrivateBucket, gateway: ReadOnlyGateway
) -> None:
    async with site.opened() as (extents, membership), site.opened() as (other, _):
        stored = await extents.put(noise(5000))
        gateway.is_read_only = True
        extents.commit([stored])
        await until(lambda: any("/owners/" in each for each in gateway.refused))
        assert not await other.sealed([stored.segment])
        gateway.is_read_only = False
        await until(lambda: f"owners/{membership.id.hex()}" in site.names())
        assert await other.sealed([stored.segment])


@pytest.mark.parametrize("is_alive", [True, False])
async def test_parts_are_removed_when_they_can_be(
    site: PrivateBucket, gateway: ReadOnlyGateway, is_alive: bool
) -> None:
    async with site.opened() as (extents, _):
        body = extents.upload(size_hint=None)
        for _ in range(20):
            await body.write(noise(MIB))
        await until(lambda: site.unfinished() == 1)
        gateway.is_read_only = True
        with pytest.raises(EngineBusy, match="refuses"):
            await body.finish()
        await body.abort()
        assert site.unfinished() == 1, "It could be neither completed nor aborted."
        if is_alive:
            gateway.is_read_only = False
            await until(lambda: site.unfinished() == 0)
    gateway.is_read_only = False
    async with site.opened() as process:
        await collect_garbage(process, MemoryEngine())
    assert site.unfinished() == 0
    assert site.segments() == set()


async def test_segments_of_the_dead_are_collected_after_a_failure(
    site: PrivateBucket, gateway: ReadOnlyGateway
) -> None:
    """A listing that failed begins again, so that none is missed."""
    async with site.opened() as (dying, _):
        await dying.put(noise(5000))  # Never committed.
        body = dying.upload(size_hint=None)
        for _ in range(20):
            await body.write(noise(MIB))
        await until(lambda: site.unfinished() == 1)
        gateway.is_read_only = True
        await body.abort()
    async with site.opened() as process:
        collector = GarbageCollector(MemoryEngine(), process.extents, process.membership)
        with pytest.raises(EngineError, match="403"):
            await many_steps(collector)
        gateway.is_read_only = False
        await many_steps(collector)
    assert site.segments() == set()
    assert site.unfinished() == 0


async def many_steps(collector: GarbageCollector) -> None:
    for _ in range(30):
        await collector.step()
        await asyncio.sleep(0.01)


async def test_no_more_is_remembered_than_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten counts as not sealed, so it is found when the process has ended."""
    monkeypatch.setattr(open_segments, "UNNEEDED_MAX", 3)

    async def remove(segment: bytes, in_parts: bool) -> None:
        raise EngineBusy("away")

    segments = OpenSegments(bytes(12), remove, lambda: None)
    for _ in range(2):
        segment = segments.new_segment()
        segments.not_sent(segment)
    assert segments.state == SealState(3, [])
    for _ in range(3):
        await segments.failed(segments.new_segment())
    assert segments.state == SealState(6, [3, 4, 5])
    for _ in range(2):
        await segments.failed(segments.new_segment())
    state = segments.state
    assert [state.is_sealed(number) for number in range(1, 9)] == [True, True] + [False] * 6
    await segments.close()
