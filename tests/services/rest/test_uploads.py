"""What becomes of the bytes of an upload: committed, discarded, or left alone while the outcome is unknown."""

import asyncio
import hashlib
from collections.abc import Awaitable

import pytest

from kyanite.engine.api import EngineBusy, EngineError, EngineFull, OutcomeUnknown
from kyanite.engine.faulty import Call, Delay, Fail, FaultyEngine
from kyanite.model.accounts import Store
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.blob.service import blob_service
from kyanite.services.rest import uploads
from kyanite.services.rest.uploads import Expected, ReceivedBody
from kyanite.wire.http import BodyError
from kyanite.wire.malformed import Malformed
from tests.services.harness import BytesBody, Harness, md5_text

BLOCK = {"x-ms-blob-type": "BlockBlob"}
BODY = b"x" * 5_000_000
"""Large enough for a segment of its own, which shows whether it is still open."""
MEDIUM = b"m" * 100_000
NO_HASHES = Expected(None, None)


def interrupt(blobs: Harness, fault: Delay | Fail) -> FaultyEngine:
    """From now on the first transaction meets the fault."""
    faulty = FaultyEngine(blobs.engine, {(Call.RUN, 1): fault})
    blobs.use_store(blob_service, engine=faulty)
    return faulty


async def becomes_sealed(blobs: Harness) -> bool:
    for _ in range(500):
        if not await blobs.open_segments():
            return True
        await asyncio.sleep(0.01)
    return False


class Journal:
    """Extents that note what was committed and what was discarded."""

    has_files = True

    def __init__(self, blobs: Harness) -> None:
        self._extents = blobs.extents
        self.store = Store(blobs.engine, self, blobs.membership)  # type: ignore[arg-type]  # What an upload uses is here.
        self.events: list[str] = []
        self.upload = blobs.extents.upload
        self.put = blobs.extents.put

    def commit(self, extents: tuple[object, ...]) -> None:
        self.events.append("commit")
        self._extents.commit(extents)  # type: ignore[arg-type]

    async def discard(self, extents: tuple[object, ...]) -> None:
        self.events.append("discard")
        await self._extents.discard(extents)  # type: ignore[arg-type]

    async def receive(self, data: bytes, transaction: uploads.Transaction[str]) -> str:
        _, result = await uploads.store_body(self.store, BytesBody(data), len(data), NO_HASHES, transaction)
        return result


async def succeed() -> str:
    return "done"


async def fail(error: BaseException) -> str:
    raise error


@pytest.mark.parametrize("data", [MEDIUM, BODY], ids=["medium", "large"])
async def test_extents_are_committed_after_their_transaction(blobs: Harness, data: bytes) -> None:
    journal = Journal(blobs)

    def transaction(received: ReceivedBody) -> Awaitable[str]:
        assert not journal.events
        assert (received.length, isinstance(received.payload, tuple)) == (len(data), True)
        return succeed()

    assert await journal.receive(data, transaction) == "done"
    assert journal.events == ["commit"]


@pytest.mark.parametrize("data", [MEDIUM, BODY], ids=["medium", "large"])
@pytest.mark.parametrize(
    "error",
    [
        Refused(Reason.CONTAINER_NOT_FOUND),
        Malformed("InvalidInput"),
        EngineBusy(""),
        EngineFull(""),
        KeyError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_before_the_transaction_begins_discards(
    blobs: Harness, data: bytes, error: Exception
) -> None:
    journal = Journal(blobs)

    def transaction(_: ReceivedBody) -> Awaitable[str]:
        raise error

    with pytest.raises(type(error)):
        await journal.receive(data, transaction)
    assert journal.events == ["discard"]


@pytest.mark.parametrize(
    ("error", "events"),
    [
        (Refused(Reason.CONTAINER_NOT_FOUND), ["discard"]),
        (EngineBusy("the queue is full"), ["discard"]),
        (EngineFull("no space"), ["discard"]),
        (OutcomeUnknown("the sync failed"), []),
        (EngineError("something else"), []),
        (KeyError("a fault of the server, perhaps after the commit"), []),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_failed_transaction_discards_unless_its_outcome_is_unknown(
    blobs: Harness, error: Exception, events: list[str]
) -> None:
    journal = Journal(blobs)
    with pytest.raises(type(error)):
        await journal.receive(BODY, lambda _: fail(error))
    assert journal.events == events


async def test_a_small_body_needs_no_extents(blobs: Harness) -> None:
    journal = Journal(blobs)
    with pytest.raises(Refused):
        await journal.receive(b"small", lambda _: fail(Refused(Reason.CONTAINER_NOT_FOUND)))
    assert await journal.receive(b"small", lambda _: succeed()) == "done"
    assert not journal.events


@pytest.mark.parametrize("data", [MEDIUM, BODY], ids=["medium", "large"])
async def test_bytes_with_a_wrong_hash_are_discarded(blobs: Harness, data: bytes) -> None:
    journal = Journal(blobs)
    body = BytesBody(data)
    with pytest.raises(Malformed):
        await uploads.store_body(
            journal.store, body, len(data), Expected(bytes(16), None), lambda _: succeed()
        )
    assert journal.events == ["discard"]
    assert data is MEDIUM or not await blobs.open_segments(), "medium ones share a segment, which stays open"


async def test_a_body_that_ends_early_leaves_nothing_open(blobs: Harness) -> None:
    journal = Journal(blobs)
    with pytest.raises(BodyError):
        await uploads.store_body(
            journal.store, BytesBody(BODY[:-1]), len(BODY), NO_HASHES, lambda _: succeed()
        )
    assert not journal.events
    assert not await blobs.open_segments()


async def test_a_request_cancelled_while_its_body_arrives_leaves_nothing_open(blobs: Harness) -> None:
    journal, has_begun = Journal(blobs), asyncio.Event()

    class Stalled(BytesBody):
        async def read(self) -> bytes:
            data = await super().read()
            if not data:
                has_begun.set()
                await asyncio.Event().wait()
            return data

    request = asyncio.ensure_future(
        uploads.store_body(journal.store, Stalled(BODY[:-1]), len(BODY), NO_HASHES, lambda _: succeed())
    )
    await asyncio.wait_for(has_begun.wait(), 60)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert not journal.events
    assert await becomes_sealed(blobs)


@pytest.mark.parametrize(("container", "status"), [("box", 200), ("nowhere", 404)])
async def test_a_cancelled_request_does_not_cancel_its_transaction(
    blobs: Harness, container: str, status: int
) -> None:
    await blobs("PUT", "/box?restype=container")
    may_go_on, has_begun = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        has_begun.set()
        await may_go_on.wait()

    faulty = interrupt(blobs, Delay(wait))
    request = asyncio.ensure_future(blobs("PUT", f"/{container}/blob", BLOCK, BODY))
    await asyncio.wait_for(has_begun.wait(), 60)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert await blobs.open_segments()
    may_go_on.set()
    assert await becomes_sealed(blobs)
    faulty.check_all_hit()
    answer = await blobs("GET", f"/{container}/blob")
    assert (answer.status, answer.body == BODY) == (status, status == 200)


@pytest.mark.parametrize(
    ("error", "done", "is_open"),
    [
        (EngineBusy("no turn came"), False, False),
        (OutcomeUnknown("the sync failed"), True, True),
        (EngineError("something else"), False, True),
    ],
)
async def test_bytes_stay_when_the_outcome_is_not_known(
    blobs: Harness, error: EngineError, done: bool, is_open: bool
) -> None:
    await blobs("PUT", "/box?restype=container")
    faulty = interrupt(blobs, Fail(error, done=done))
    assert (await blobs("PUT", "/box/blob", BLOCK, BODY)).status in {500, 503}
    faulty.check_all_hit()
    assert bool(await blobs.open_segments()) is is_open


@pytest.mark.parametrize("length", [100, 100_000, 5_000_000])
@pytest.mark.parametrize(
    ("target", "headers", "computed"),
    [
        ("/box/blob?comp=block&blockid=MDAx", {}, False),
        ("/box/blob?comp=block&blockid=MDAx", {"Content-MD5": ""}, True),
        ("/box/blob", BLOCK, True),
    ],
)
async def test_the_md5_is_computed_only_if_it_is_stored_or_returned(
    blobs: Harness,
    monkeypatch: pytest.MonkeyPatch,
    length: int,
    target: str,
    headers: dict[str, str],
    computed: bool,
) -> None:
    data, real, hashed = bytes(length), hashlib.md5, list[int]()
    if "Content-MD5" in headers:
        headers = {"Content-MD5": md5_text(data)}

    class Counting:
        def __init__(self, first: bytes = b"", *, usedforsecurity: bool = True) -> None:
            self._md5 = real(usedforsecurity=usedforsecurity)
            self.digest = self._md5.digest
            self.update(first)

        def update(self, piece: bytes) -> None:
            hashed.append(len(piece))
            self._md5.update(piece)

    await blobs("PUT", "/box?restype=container")
    monkeypatch.setattr(hashlib, "md5", Counting)
    answer = await blobs("PUT", target, headers, data)
    assert (answer.status, "content-md5" in answer.headers) == (201, computed)
    assert sum(hashed) == (length if computed else 0)
