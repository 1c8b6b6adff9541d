"""Queues on an engine that fails, repeats bodies, or does the work and loses the word of it."""

from pathlib import Path

import pytest

from kyanite.engine.api import EngineBusy, EngineFull, OutcomeUnknown
from kyanite.engine.faulty import Call, Fail, FaultyEngine, Plan, Repeat
from kyanite.services.queue.service import queue_service
from kyanite.values import later
from tests.services.harness import Harness
from tests.services.queue.requests import document, get, put, texts, use


@pytest.fixture
def queues(tmp_path: Path) -> Harness:
    return Harness(tmp_path, queue_service, "queue")


def spoil(queues: Harness, plan: Plan) -> FaultyEngine:
    """From now on the engine fails by plan. Its calls are counted from here."""
    engine = FaultyEngine(queues.engine, plan)
    queues.use_store(queue_service, engine=engine)
    return engine


async def count(queues: Harness) -> str:
    return (await queues("GET", "/work?comp=metadata")).headers["x-ms-approximate-messages-count"]


async def test_a_body_that_runs_again_does_its_work_once(queues: Harness) -> None:
    await queues("PUT", "/work")
    engine = spoil(queues, {(Call.RUN, number): Repeat(2) for number in range(1, 6)})
    await put(queues, "first")
    (got,) = await get(queues)
    assert got["DequeueCount"] == "1"
    updated = await queues("PUT", use(got, "&visibilitytimeout=0"), body=document("x" * 10_000))
    assert await texts(queues) == ["x" * 10_000]
    assert await count(queues) == "1"
    receipt = updated.headers["x-ms-popreceipt"]
    assert (await queues("DELETE", use(got, receipt=receipt))).status == 204
    assert await count(queues) == "0"
    assert (await queues("DELETE", "/work/messages")).status == 204
    engine.check_all_hit()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (EngineBusy("busy"), 503, "ServerBusy"),
        (EngineFull("full"), 507, "InsufficientStorage"),
        (OutcomeUnknown("unknown"), 500, "InternalError"),
    ],
)
@pytest.mark.parametrize("request_", ["put", "get", "update", "delete", "clear"])
async def test_what_failed_has_done_nothing(
    queues: Harness, error: EngineBusy | EngineFull | OutcomeUnknown, status: int, code: str, request_: str
) -> None:
    await queues("PUT", "/work")
    sent = await put(queues, "kept")
    engine = spoil(queues, {(Call.RUN, 1): Fail(error)})
    requests = {
        "put": ("POST", "/work/messages", document("new")),
        "get": ("GET", "/work/messages", b""),
        "update": ("PUT", use(sent, "&visibilitytimeout=0"), document("new")),
        "delete": ("DELETE", use(sent), b""),
        "clear": ("DELETE", "/work/messages", b""),
    }
    method, target, body = requests[request_]
    answer = await queues(method, target, body=body)
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)
    assert await texts(queues) == ["kept"]
    assert await count(queues) == "1"
    assert (await queues("DELETE", use(sent))).status == 204
    engine.check_all_hit()


async def test_what_was_done_although_it_failed_is_done_once_and_whole(queues: Harness) -> None:
    """A client that got an error tries again, as clients do."""
    await queues("PUT", "/work")
    lost = Fail(OutcomeUnknown("unknown"), done=True)
    engine = spoil(queues, {(Call.RUN, number): lost for number in (1, 3, 6)})
    assert (await queues("POST", "/work/messages", body=document("it"))).status == 500
    await put(queues, "it")
    assert await texts(queues) == ["it", "it"], "at least once"
    assert (await queues("GET", "/work/messages?visibilitytimeout=10")).status == 500
    (second,) = await get(queues, "visibilitytimeout=100")
    assert second["DequeueCount"] == "1"
    queues.clock.now = later(queues.clock.now, 11)
    (first,) = await get(queues)
    assert first["DequeueCount"] == "2", "it was delivered, though no client knows"
    assert (await queues("DELETE", use(first))).status == 500
    again = await queues("DELETE", use(first))
    assert (again.status, again.code) == (404, "MessageNotFound")
    assert await count(queues) == "1"
    engine.check_all_hit()


async def test_a_failing_read_is_an_error(queues: Harness) -> None:
    await queues("PUT", "/work")
    await put(queues, "kept")
    engine = spoil(queues, {(Call.READ, 1): Fail(EngineBusy("busy"))})
    answer = await queues("GET", "/work/messages?peekonly=true")
    assert (answer.status, answer.code) == (503, "ServerBusy")
    assert await texts(queues) == ["kept"]
    engine.check_all_hit()
