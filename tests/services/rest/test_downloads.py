"""Downloads: content is opened once, after the pin, and everything is released however the download ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from kyanite.engine.api import Engine, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.extents.api import BLOCK_BYTES, Pin
from kyanite.extents.local.store import LocalExtents
from kyanite.model.content import content
from kyanite.model.maintenance.tasks import step_each, steps
from kyanite.services.blob.service import blob_service
from kyanite.services.rest import streams
from kyanite.wire.http import Request, Response
from tests.services.harness import VERSION, BytesBody, Harness, bytes_of

T = TypeVar("T")

BLOCK = {"x-ms-blob-type": "BlockBlob"}
PAGES = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "40960"}


class Watched:
    """An engine and extents that note when they are used."""

    def __init__(self, engine: Engine, extents: LocalExtents) -> None:
        self._engine = engine
        self.events: list[str] = []
        self.pins = 0
        self._pin = extents.pin
        extents.pin = self.pin  # type: ignore[assignment]

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        self.events.append("read")
        return self._engine.read(body)

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        self.events.append("read in steps")
        return self._engine.read_in_steps(body)

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        self.events.append("run")
        return self._engine.run(body, *scopes, durable=durable)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._engine.subscribe(topic)

    async def close(self) -> None:
        await self._engine.close()

    def pin(self) -> Pin:
        self.events.append("pin")
        self.pins += 1
        return _Counted(self, self._pin())


class _Counted:
    def __init__(self, watched: Watched, pin: Pin) -> None:
        self._watched = watched
        self._pin = pin

    def release(self) -> None:
        self._watched.pins -= 1
        self._pin.release()


@pytest.fixture
def watch(blobs: Harness) -> Watched:
    watched = Watched(blobs.engine, blobs.extents)
    blobs.use_store(blob_service, engine=watched)
    return watched


@pytest.mark.parametrize("size", [0, 1, 1024, 20_000, 300_000, 3_000_000])
@pytest.mark.parametrize("range_", [None, "bytes=0-0"])
async def test_content_is_pinned_first_and_opened_once(
    blobs: Harness, watch: Watched, size: int, range_: str | None
) -> None:
    await blobs("PUT", "/box?restype=container")
    body = bytes(range(256)) * (size // 256 + 1)
    await blobs("PUT", "/box/b", BLOCK, body[:size])
    await blobs("HEAD", "/box/b")  # The CORS rules of the account are read once a second.
    for is_checked in (False, True):
        watch.events.clear()
        answer = await blobs("GET", "/box/b", {"Range": range_} if range_ else {})
        if range_ and not size:
            assert answer.status == 416
        else:
            assert answer.body == (body[:1] if range_ else body[:size])
        checksums = ["read"] if size > BLOCK_BYTES and not is_checked else []
        assert watch.events == ["pin", "read", *checksums]
        assert watch.pins == 0


@pytest.mark.parametrize("target", ["/box/none", "/none/b", "/box/b?snapshot=2026-01-01T00:00:00.0000000Z"])
async def test_a_refused_read_keeps_no_pin(blobs: Harness, watch: Watched, target: str) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/b", BLOCK, b"there")
    assert (await blobs("GET", target)).status == 404
    assert watch.pins == 0


async def test_only_a_plan_that_does_not_fit_one_snapshot_is_a_pinned_read(
    blobs: Harness, watch: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/p", PAGES)
    expected = bytearray(40960)
    for page in range(0, 40960 // 512, 3):
        first = page * 512
        data = bytes([page]) * 512
        write = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        assert (await blobs("PUT", "/box/p?comp=page", write, data)).status == 201
        expected[first : first + 512] = data
    await blobs("HEAD", "/box/p")
    watch.events.clear()
    assert (await blobs("GET", "/box/p")).body == bytes(expected)
    assert watch.events == ["pin", "read"]
    monkeypatch.setattr(content, "_PLAN_PARTS", 10)
    watch.events.clear()
    assert (await blobs("GET", "/box/p")).body == bytes(expected)
    assert watch.events[:3] == ["pin", "read", "run"]
    assert watch.events[-1] == "run", "the pinned read is released"
    assert set(watch.events[3:-1]) == {"read"}
    assert watch.pins == 0
    rows = await watch.read(lambda snap: [key for key, _ in snap.scan(b"h", b"i")])
    assert rows == []


async def reclaim(blobs: Harness) -> None:
    """Give back all space that no reader needs."""
    idle = 0
    each = steps(blobs.engine, blobs.extents, blobs.membership)
    while idle < 3:
        idle = 0 if await step_each(each) else idle + 1
        await asyncio.sleep(0.011)  # A pin counts for a moment after its release.


@pytest.mark.parametrize("parts", [1, 3, 400])
async def test_a_slow_download_keeps_its_own_bytes_only(
    blobs: Harness, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    monkeypatch.setattr(streams, "SLOW_SECONDS", 0.01)
    await blobs("PUT", "/box?restype=container", {"x-ms-blob-public-access": "blob"})
    data = b"".join(bytes((number % 251,)) * 20_000 for number in range(parts))
    if parts == 1:
        data *= 20
        await blobs("PUT", "/box/slow", BLOCK, data)
    else:
        await blobs("PUT", "/box/slow", {"x-ms-blob-type": "AppendBlob"})
        for number in range(parts):
            await blobs(
                "PUT", "/box/slow?comp=appendblock", {}, data[number * 20_000 : (number + 1) * 20_000]
            )
    await blobs("PUT", "/box/other", BLOCK, bytes(3_000_000))
    response = await begin_download(blobs)
    assert not isinstance(response.body, bytes)
    pieces = response.body.__aiter__()
    first = await anext(pieces)
    await asyncio.sleep(0.05)
    before = await occupied_bytes(blobs)
    for name in ("slow", "other"):
        assert (await blobs("DELETE", f"/box/{name}")).status == 202
    await reclaim(blobs)
    assert await occupied_bytes(blobs) <= before - 3_000_000
    received = bytes_of(first)
    async for piece in pieces:
        received += bytes_of(piece)
    assert received == data
    assert response.release is not None
    response.release()
    await asyncio.sleep(0.01)
    await reclaim(blobs)
    assert await occupied_bytes(blobs) <= before - 3_000_000 - len(data)
    rows = await blobs.engine.read(lambda snap: [*snap.scan(b"1", b"2"), *snap.scan(b"h", b"i")])
    assert rows == []


async def begin_download(blobs: Harness) -> Response:
    """Anyone may read the blob."""
    headers = {"host": "localhost:10000", "x-ms-version": VERSION}
    request = Request("GET", "/acme/box/slow", "", headers, [], BytesBody(b""), "127.0.0.1", False, 10000)
    return await blobs.service(request)


async def occupied_bytes(blobs: Harness) -> int:
    return sum([size async for _, size in blobs.extents.segments()])
