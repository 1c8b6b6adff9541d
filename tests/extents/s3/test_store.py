"""What is particular to an object store: few requests, bounded memory, segments that are kept for a time, bad luck."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kyanite.engine.api import Damaged, EngineBusy
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.api import BLOCK_BYTES, Extent, WrittenExtent
from kyanite.extents.s3 import bucket as bucket_module
from kyanite.extents.s3 import seals
from kyanite.extents.s3 import upload as upload_module
from kyanite.extents.s3.bucket import PART_BYTES, Bucket
from kyanite.extents.s3.check import is_empty, problem
from kyanite.extents.s3.location import parse
from kyanite.extents.s3.store import S3Extents
from kyanite.membership.local import LocalMembership
from kyanite.model.content import content, fetched_reads
from kyanite.model.content.fetched_reads import FetchingReader
from kyanite.values import Instant
from tests.extents.s3.bucket_site import NO_ENVIRONMENT, PrivateBucket
from tests.extents.suite import MIB, Process, collect_garbage, noise, read_all, send_all, upload
from tests.seaweed_server import SeaweedServer
from tests.tcp_proxy import TcpProxy


@pytest.fixture
def site(seaweed: SeaweedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrivateBucket:
    monkeypatch.setattr(seals, "PUBLISH_SECONDS", 0.05)
    return PrivateBucket(seaweed, tmp_path)


class WatchedBucket(Bucket):
    """Counts requests, and the bytes of pieces that were asked for and not yet taken in."""

    waits: asyncio.Event | None = None
    sent_bytes = 0

    async def put_parts(self, name: str, pieces: AsyncIterator[bytes]) -> None:
        async def watched() -> AsyncIterator[bytes]:
            async for piece in pieces:
                if self.waits is not None:
                    await self.waits.wait()
                self.sent_bytes += len(piece)
                yield piece

        await super().put_parts(name, watched())


def opened_with(site: PrivateBucket, bucket: Bucket, folder: Path) -> tuple[S3Extents, LocalMembership]:
    membership = LocalMembership(folder / "owners")
    return S3Extents(site.location, membership, bucket=bucket), membership


async def test_puts_that_come_together_cost_few_requests(site: PrivateBucket, tmp_path: Path) -> None:
    bucket = Bucket(site.location)
    extents, membership = opened_with(site, bucket, tmp_path)
    stored = await asyncio.gather(*(extents.put(noise(64 * 1024, seed)) for seed in range(128)))
    assert bucket.requests == 2, "8 MiB in objects of 4 MiB"
    extents.commit(stored)
    assert await read_all(extents, stored[:5]) == b"".join(noise(64 * 1024, seed) for seed in range(5))
    await extents.close()
    membership.close()


@pytest.mark.parametrize(("length", "requests"), [(MIB, 1), (4 * MIB, 1), (PART_BYTES, 1)])
async def test_a_block_is_one_request(
    site: PrivateBucket, tmp_path: Path, length: int, requests: int
) -> None:
    bucket = Bucket(site.location)
    extents, membership = opened_with(site, bucket, tmp_path)
    stored = await upload(extents, noise(length), 100_000)
    assert bucket.requests == requests
    await extents.discard(stored)
    await extents.close()
    membership.close()


async def test_an_upload_waits_for_a_slow_store(site: PrivateBucket, tmp_path: Path) -> None:
    """A sender that is faster than the store is held back, and the memory of all uploads is bounded."""
    bucket = WatchedBucket(site.location)
    bucket.waits = asyncio.Event()
    extents, membership = opened_with(site, bucket, tmp_path)
    body = extents.upload(size_hint=None)
    piece = noise(MIB)
    sent = 0

    async def send() -> list[WrittenExtent]:
        nonlocal sent
        for _ in range(40):
            await body.write(piece)
            sent += MIB
        return await body.finish()

    sending = asyncio.ensure_future(send())
    for _ in range(50):
        await asyncio.sleep(0.01)
    assert not sending.done()
    assert sent <= 6 * MIB
    assert extents._upload_memory.used_bytes <= upload_module._PARTS_BYTES + 2 * MIB + 1
    bucket.waits.set()
    stored = await sending
    assert extents._upload_memory.used_bytes == 0
    assert sum(each.length for each in stored) == bucket.sent_bytes == 40 * MIB
    await extents.discard(stored)
    await extents.close()
    membership.close()


async def test_uploads_share_the_memory(site: PrivateBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """What gets no room for parts goes on in pieces; nothing is lost, and the order is kept."""
    monkeypatch.setattr(upload_module, "MEMORY_BYTES", 34 * MIB)
    async with site.opened() as (extents, _):
        memory = extents._upload_memory  # type: ignore[attr-defined]
        highest = 0

        async def send(seed: int) -> list[WrittenExtent]:
            nonlocal highest
            body = extents.upload(size_hint=9 * MIB)
            data = noise(9 * MIB, seed)
            for at in range(0, len(data), 300_000):
                await body.write(data[at : at + 300_000])
                highest = max(highest, memory.used_bytes)
                await asyncio.sleep(0)
            return await body.finish()

        stored = await asyncio.gather(*(send(seed) for seed in range(6)))
        assert highest <= 2 * 34 * MIB
        assert memory.used_bytes == 0
        assert sorted(map(len, stored))[0] == 1, "one had room"
        assert max(map(len, stored)) > 1, "others had none"
        for seed, extents_of in enumerate(stored):
            assert await read_all(extents, extents_of) == noise(9 * MIB, seed)
            extents.commit(extents_of)


async def test_uploads_fail_when_all_memory_is_used(
    site: PrivateBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_module, "MEMORY_BYTES", 1000)
    async with site.opened() as (extents, _):
        first, second = extents.upload(size_hint=MIB), extents.upload(size_hint=MIB)
        await first.write(bytes(2000))
        with pytest.raises(EngineBusy):
            await second.write(b"x")
        await second.abort()
        await first.abort()
        third = extents.upload(size_hint=1, observers=(len,))
        await third.write(b"x")
        extents.commit(await third.finish())
        assert extents._upload_memory.used_bytes == 0  # type: ignore[attr-defined]


async def test_a_long_body_without_room_waits_and_then_fails(
    site: PrivateBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_module, "MEMORY_BYTES", 8 * MIB)
    monkeypatch.setattr(upload_module, "PIECES_MAX", 2)
    monkeypatch.setattr(upload_module, "_ROOM_SECONDS", 0.05)
    async with site.opened() as (extents, _):
        body = extents.upload(size_hint=20 * MIB)
        with pytest.raises(EngineBusy, match="memory"):
            await send_all(body, 20 * MIB)
        await body.abort()
        assert extents._upload_memory.used_bytes == 0  # type: ignore[attr-defined]
    assert site.segments() == set()


async def stored_content(process: Process, data: bytes) -> tuple[MemoryEngine, Extent]:
    engine = MemoryEngine()
    (stored,) = await upload(process.extents, data, MIB)
    await engine.run(lambda tx: content.create(tx, [stored]))
    process.extents.commit([stored])
    return engine, Extent(stored.segment, stored.start, stored.length, stored.crc64)


async def test_streams_share_the_memory(site: PrivateBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_reads, "STREAMS_BYTES", 10 * MIB)
    data = noise(20 * MIB)
    async with site.opened() as process:
        engine, extent = await stored_content(process, data)
        reader = FetchingReader(engine, process.extents)
        streams = [reader.stream(extent, 0, extent.length) for _ in range(8)]
        got = [bytearray() for _ in streams]
        for _ in range(extent.length // BLOCK_BYTES):
            for stream, received in zip(streams, got, strict=True):
                received += await anext(stream)
            assert reader._streams_bytes <= 10 * MIB + len(streams) * BLOCK_BYTES
        assert all(received == data for received in got)
        for stream in streams:
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        assert reader._streams_bytes == 0


async def test_a_stream_that_is_left_gives_its_memory_back(site: PrivateBucket) -> None:
    async with site.opened() as process:
        engine, extent = await stored_content(process, noise(9 * MIB))
        reader = FetchingReader(engine, process.extents)
        stream = reader.stream(extent, 5, extent.length - 5)
        await anext(stream)
        assert reader._streams_bytes > MIB, "the next piece is on its way"
        await stream.aclose()  # type: ignore[attr-defined]
        assert reader._streams_bytes == 0


async def test_an_extent_without_a_row_is_checked_as_a_whole(site: PrivateBucket) -> None:
    """It was freed while a reader had it."""
    data = noise(3 * MIB)
    async with site.opened() as process:
        (stored,) = await upload(process.extents, data, MIB)
        process.extents.commit([stored])
        reader = FetchingReader(MemoryEngine(), process.extents)
        assert await reader.read(stored, MIB, 100) == data[MIB : MIB + 100]
        site.change(stored.segment, lambda old: old[:-1] + bytes((old[-1] ^ 1,)))
        with pytest.raises(Damaged):
            await FetchingReader(MemoryEngine(), process.extents).read(stored, MIB, 100)


class Clock:
    def __init__(self) -> None:
        self.at = Instant(638_000_000_000_000_000)

    def __call__(self) -> Instant:
        return self.at


async def test_unneeded_segments_are_kept_for_the_stated_time(site: PrivateBucket) -> None:
    site.location = replace(site.location, keep_seconds=3600.0)
    clock = Clock()
    engine = MemoryEngine(clock=clock)
    async with site.opened() as process:
        async with site.opened() as (dying, _):
            await dying.put(noise(5000))  # Never committed.
        stored = await upload(process.extents, noise(2 * MIB), MIB)
        what = await engine.run(lambda tx: content.create(tx, stored))
        process.extents.commit(stored)
        await engine.run(lambda tx: content.drop(tx, what))
        await collect_garbage(process, engine)
        assert len(site.segments()) == 2
        assert await read_all(process.extents, stored) == noise(2 * MIB)
        clock.at = Instant(clock.at + 3590 * 10_000_000)
        await collect_garbage(process, engine)
        assert len(site.segments()) == 2
        clock.at = Instant(clock.at + 20 * 10_000_000)
        await collect_garbage(process, engine)
        assert site.segments() == set()
        assert await engine.read(lambda snap: list(snap.scan(b"-", b"."))) == []


async def test_only_what_was_not_sealed_is_visited_after_a_death(site: PrivateBucket) -> None:
    async with site.opened() as (dying, membership):
        sealed = await dying.put(noise(5000, 1))
        dying.commit([sealed])
        left = await dying.put(noise(5000, 2))
        owner = membership.id
    async with site.opened() as (extents, _):
        assert [each async for each in extents.segments_of(owner)] == [left.segment]
        assert {each async for each, _ in extents.segments()} == {sealed.segment, left.segment}
        assert f"owners/{owner.hex()}" in site.names()
        await extents.drop_owner(owner)
        assert f"owners/{owner.hex()}" not in site.names()


async def test_the_name_of_an_object_is_never_used_twice(site: PrivateBucket) -> None:
    async with site.opened() as (extents, _):
        stored = [await extents.put(noise(100, seed)) for seed in range(3)]
        await extents.discard(stored[:2])
        more = await extents.put(noise(100, 4))
        assert more.segment not in {each.segment for each in stored}
        extents.commit([stored[2], more])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_module, "_RETRIES", 1)


@pytest.mark.usefixtures("impatient")
async def test_a_store_that_is_away_is_busy_and_comes_back(
    site: PrivateBucket, seaweed: SeaweedServer, tmp_path: Path
) -> None:
    with TcpProxy(urlsplit(seaweed.endpoint).port or 0) as proxy:
        site.location = replace(site.location, endpoint=f"http://127.0.0.1:{proxy.port}")
        async with site.opened() as (extents, _):
            stored = await extents.put(noise(5000))
            half = extents.upload(size_hint=None)
            for _ in range(10):
                await half.write(noise(MIB))
            proxy.cut()
            failing: list[Callable[[], object]] = [
                lambda: extents.put(noise(5000)),
                lambda: extents.read(stored, 0, 100),
                half.finish,
                lambda: extents.remove(stored.segment),
                lambda: anext(extents.segments()),
                lambda: anext(extents.segments_of(b"x" * 12)),
            ]
            for call in failing:
                with pytest.raises(EngineBusy):
                    await call()  # type: ignore[misc]
            assert "does not answer" in str(await problem(site.location))
            await half.abort()
            proxy.restore()
            assert await extents.read(stored, 0, 5000) == noise(5000)
            more = await extents.put(noise(5000, 1))
            extents.commit([stored, more])
    assert {stored.segment, more.segment} <= site.segments()


@pytest.mark.parametrize(
    ("user", "secret", "bucket", "sentence"),
    [
        ("writer", "writes", "kyanite-tests", None),
        ("writer", "writes", "not-there", "does not exist"),
        ("writer", "wrong", "kyanite-tests", "does not accept the credentials"),
        ("nobody", "wrong", "kyanite-tests", "does not accept the credentials"),
        ("reader", "reads", "kyanite-tests", "may not be written"),
    ],
)
async def test_what_is_wrong_with_a_bucket(
    seaweed: SeaweedServer, tmp_path: Path, user: str, secret: str, bucket: str, sentence: str | None
) -> None:
    url = seaweed.url(tmp_path.name, user=user, secret=secret, bucket=bucket)
    found = await problem(parse(url, NO_ENVIRONMENT))
    assert found is None if sentence is None else sentence in str(found)


async def test_a_bucket_that_refuses_is_busy(site: PrivateBucket) -> None:
    site.location = replace(site.location, access_key_id="reader", secret_access_key="reads")
    async with site.opened() as (extents, _):
        with pytest.raises(EngineBusy, match="refuses"):
            await extents.put(noise(5000))


async def test_what_is_in_a_bucket_that_is_gone_is_not_damaged(site: PrivateBucket) -> None:
    async with site.opened() as (extents, _):
        stored = await extents.put(noise(5000))
        extents.commit([stored])
    site.location = replace(site.location, bucket="not-there")
    async with site.opened() as (extents, _):
        with pytest.raises(EngineBusy, match="bucket is not there"):
            await extents.read(stored, 0, 5000)
        with pytest.raises(EngineBusy, match="bucket is not there"):
            await extents.put(noise(5000))


async def test_whether_a_bucket_is_empty(site: PrivateBucket) -> None:
    assert is_empty(site.location)
    async with site.opened() as (extents, _):
        extents.commit([await extents.put(noise(100))])
    assert not is_empty(site.location)
