"""Any process can say why another one has refused a request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from kyanite.engine.api import Engine, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.requests import questions
from kyanite.model.requests.questions import Questions
from kyanite.model.requests.refusals import Refusal, Refusals
from kyanite.model.verification.rows import check_page
from kyanite.rules.refusals import Reason
from kyanite.values import instant_from_unix_seconds, later
from tests.services.harness import Clock

REQUEST_ID = "b9c1a3b0-0000-4000-8000-00000000000a"


def refusal(request_id: str = REQUEST_ID, account: str = "acme", length: int = 0) -> Refusal:
    return Refusal(
        request_id,
        instant_from_unix_seconds(1_790_000_000),
        "blob",
        account,
        "Get Blob",
        "GET",
        "/acme/c/b",
        "sv=2025-05-05&sig=SECRET",
        "127.0.0.1",
        "agent",
        "mine",
        404,
        "BlobNotFound",
        Reason.BLOB_NOT_FOUND,
        length=length,
    )


@asynccontextmanager
async def processes(engine: Engine, count: int) -> AsyncIterator[list[tuple[Refusals, Questions]]]:
    async def living() -> int:
        return count

    made = []
    for number in range(count):
        refusals = Refusals()
        made.append((refusals, Questions(engine, bytes([number]) * OWNER_BYTES, refusals, living)))
    tasks = [asyncio.create_task(each.follow()) for _, each in made]
    await asyncio.sleep(0)
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def rows_of(engine: Engine) -> list[bytes]:
    return await engine.read(lambda snap: [key for key, _ in snap.scan(b"!", b'"')])


async def test_a_refusal_of_another_process_is_found_and_nothing_is_left_behind() -> None:
    engine = MemoryEngine(clock=Clock())
    async with processes(engine, 3) as made:
        made[2][0].add(refusal())
        for _, asker in made:
            found = await asker.explain(f" {REQUEST_ID.upper()} ")
            assert found is not None
            assert (found.request_id, found.code, found.operation) == (
                REQUEST_ID,
                "BlobNotFound",
                "Get Blob",
            )
            assert found.url == "/acme/c/b?sv=2025-05-05&sig=..."
            assert found.sentences
        assert await rows_of(engine) == []


async def test_an_unknown_one_is_unknown_as_soon_as_all_have_replied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "ANSWER_SECONDS", 3600.0)
    engine = MemoryEngine(clock=Clock())
    async with processes(engine, 3) as made:
        made[1][0].add(refusal())
        assert await made[0][1].explain("b9c1a3b0-0000-4000-8000-00000000000b") is None
        assert await rows_of(engine) == []


async def test_an_account_sees_its_own_refusals_only() -> None:
    engine = MemoryEngine(clock=Clock())
    async with processes(engine, 2) as made:
        made[1][0].add(refusal())
        for _, asker in made:
            assert await asker.explain(REQUEST_ID, account="other") is None
            assert await asker.explain(REQUEST_ID, account="acme") is not None


async def test_a_process_that_does_not_answer_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "ANSWER_SECONDS", 0.01)
    engine = MemoryEngine(clock=Clock())

    async def two() -> int:
        return 2

    asker = Questions(engine, bytes(OWNER_BYTES), Refusals(), two)
    assert await asker.explain(REQUEST_ID) is None
    assert await rows_of(engine) == []


async def test_a_question_is_repeated_when_its_notification_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "ANSWER_SECONDS", 3600.0)
    monkeypatch.setattr(questions, "_AGAIN_SECONDS", 0.01)
    engine = MemoryEngine(clock=Clock())

    async def two() -> int:
        return 2

    pending = asyncio.create_task(Questions(engine, bytes(OWNER_BYTES), Refusals(), two).explain(REQUEST_ID))
    while not await rows_of(engine):
        await asyncio.sleep(0)
    knowing = Refusals()
    knowing.add(refusal())
    late = asyncio.create_task(Questions(engine, b"b" * OWNER_BYTES, knowing, two).follow())
    assert (await pending) is not None
    late.cancel()


async def test_a_question_that_its_asker_has_left_is_deleted_by_the_next_one() -> None:
    clock = Clock()
    engine = MemoryEngine(clock=clock)

    def leave(tx: Transaction) -> None:
        question_id = questions._put_question(tx, "x", None, b"a" * OWNER_BYTES)
        questions._put_answer(tx, question_id, b"o" * OWNER_BYTES, b"")

    await engine.run(leave)
    page = await engine.read(lambda snap: check_page(snap, b""))
    assert (page.rows, page.findings) == (2, [])
    clock.now = later(clock.now, 61)
    async with processes(engine, 2) as made:
        assert await made[0][1].explain("y") is None
    assert await rows_of(engine) == []


async def test_verification_refuses_rows_that_no_process_writes() -> None:
    engine = MemoryEngine(clock=Clock())
    await engine.run(lambda tx: tx.put(b"!\7" + keys.number(1), b""))
    page = await engine.read(lambda snap: check_page(snap, b""))
    assert len(page.findings) == 1


def test_the_last_refusals_are_kept_bounded_in_number_and_bytes() -> None:
    refusals = Refusals(kept_max=3, bytes_max=1_000)
    for number in range(5):
        refusals.add(refusal(str(number), length=10))
    assert [refusals.find(str(number)) is not None for number in range(5)] == [False, False, True, True, True]
    refusals.add(refusal("long", length=985))
    assert len(refusals) == 2
    assert refusals.find("4") is not None
    refusals.add(refusal("long", length=5))
    refusals.add(refusal("next", length=900))
    assert len(refusals) == 3
    refusals.add(refusal("too long", length=2_000))
    assert len(refusals) == 0
