"""What becomes of the bytes of an upload when its transaction ends, whoever still waits for that."""

import asyncio

import pytest

from kyanite.engine.api import EngineBusy, EngineError, OutcomeUnknown
from kyanite.engine.faulty import Call, Delay, Fail, FaultyEngine
from kyanite.services.blob.service import blob_service
from tests.services.harness import Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}
BODY = b"x" * 5_000_000
"""Large enough for a file of its own, which shows whether it is still in hand."""


def interrupt(blobs: Harness, fault: Delay | Fail) -> FaultyEngine:
    """From now on the first transaction meets the fault."""
    faulty = FaultyEngine(blobs.engine, {(Call.RUN, 1): fault})
    blobs.use_store(blob_service, engine=faulty)
    return faulty


async def in_hand(blobs: Harness) -> int:
    """How many segments wait to hear what became of their bytes."""
    segments = set(blobs.extents.segments_of(blobs.membership.id))
    return len(segments - await blobs.extents.sealed(segments))


async def comes_to_rest(blobs: Harness) -> bool:
    for _ in range(500):
        if not await in_hand(blobs):
            return True
        await asyncio.sleep(0.01)
    return False


@pytest.mark.parametrize(("container", "status"), [("box", 200), ("nowhere", 404)])
async def test_bytes_are_spoken_for_although_the_client_has_gone(
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
    assert await in_hand(blobs)
    may_go_on.set()
    assert await comes_to_rest(blobs)
    faulty.check_all_hit()
    answer = await blobs("GET", f"/{container}/blob")
    assert (answer.status, answer.body == BODY) == (status, status == 200)


@pytest.mark.parametrize(
    ("error", "done", "is_in_hand"),
    [
        (EngineBusy("no turn came"), False, False),
        (OutcomeUnknown("the sync failed"), True, True),
        (EngineError("something else"), False, True),
    ],
)
async def test_bytes_stay_when_the_outcome_is_not_known(
    blobs: Harness, error: EngineError, done: bool, is_in_hand: bool
) -> None:
    await blobs("PUT", "/box?restype=container")
    faulty = interrupt(blobs, Fail(error, done=done))
    assert (await blobs("PUT", "/box/blob", BLOCK, BODY)).status in {500, 503}
    faulty.check_all_hit()
    assert bool(await in_hand(blobs)) is is_in_hand
