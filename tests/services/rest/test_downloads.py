"""Downloads: content is opened once, after the pin, and everything is released however the download ends."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest

from kyanite.engine.api import Engine, Scope, Snapshot, Steps, Transaction
from kyanite.extents.api import Pin
from kyanite.extents.local.store import LocalExtents
from kyanite.model.content import content
from kyanite.services.blob.service import blob_service
from tests.services.harness import Harness

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

    def subscribe(self, topic: bytes) -> AsyncIterator[None]:
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
    watch.events.clear()
    answer = await blobs("GET", "/box/b", {"Range": range_} if range_ else {})
    if range_ and not size:
        assert answer.status == 416
    else:
        assert answer.body == (body[:1] if range_ else body[:size])
    assert watch.events == ["pin", "read"]
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
