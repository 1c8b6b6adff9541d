"""Who watches sees the requests of all processes; while nobody does, nothing is collected and nothing is stored."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from kyanite.engine.api import MAX_VALUE_BYTES, Engine, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.records import encode
from kyanite.model.requests import tail
from kyanite.model.requests.tail import Collector, RequestLine, Wanted, watch
from kyanite.model.verification.rows import check_page
from kyanite.values import Instant, later
from tests.services.harness import START, Clock


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "BATCH_SECONDS", 0.001)
    monkeypatch.setattr(tail, "RENEW_SECONDS", 0.02)


def line(
    operation: str = "Get Blob",
    status: int | str = 200,
    account: str = "acme",
    at: Instant = START,
    code: str = "",
) -> RequestLine:
    return RequestLine(
        at, "id", "blob", account, operation, "GET", "/acme/c/b", status, code, 0.001, 0, 10, "::1"
    )


@asynccontextmanager
async def collectors(engine: Engine, count: int) -> AsyncIterator[list[Collector]]:
    made = [Collector(engine, bytes([number]) * OWNER_BYTES) for number in range(count)]
    tasks = [asyncio.create_task(each.follow()) for each in made]
    await asyncio.sleep(0)
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def until_watched(made: list[Collector], *, is_watched: bool = True) -> None:
    while any(each.is_watched is not is_watched for each in made):
        await asyncio.sleep(0.001)


async def rows_of(engine: Engine) -> list[bytes]:
    return await engine.read(lambda snap: [key for key, _ in snap.scan(b"!", b'"')])


async def test_a_watcher_sees_the_requests_of_all_processes_until_it_ends() -> None:
    engine = MemoryEngine(clock=Clock())
    async with collectors(engine, 3) as made:
        switched: list[bool] = []
        made[0].on_watched.append(switched.append)
        made[0].add(line("Before"))
        read: list[str] = []
        watching = watch(engine, Wanted())
        await anext(watching)
        await until_watched(made)
        for number, each in enumerate(made):
            each.add(line(f"Operation {number}", at=later(START, -number)))
        async for completed in watching:
            assert [each.at for each in completed.lines] == sorted(each.at for each in completed.lines)
            read += [each.operation for each in completed.lines]
            if len(read) == 3:
                break
        assert sorted(read) == ["Operation 0", "Operation 1", "Operation 2"]
        page = await engine.read(lambda snap: check_page(snap, b""))
        assert page.findings == []
        await watching.aclose()
        await until_watched(made, is_watched=False)
        while await rows_of(engine):
            await asyncio.sleep(0.001)
        assert switched == [True, False]


async def test_a_watch_that_is_not_renewed_ends_by_itself() -> None:
    clock = Clock()
    engine = MemoryEngine(clock=clock)
    async with collectors(engine, 1) as made:
        await engine.run(lambda tx: tail._begin(tx, Wanted()))
        await until_watched(made)
        clock.now = later(clock.now, tail.EXPIRES_SECONDS)
        await until_watched(made, is_watched=False)


async def test_what_does_not_fit_is_left_out_and_counted() -> None:
    engine = MemoryEngine(clock=Clock())
    async with collectors(engine, 1) as made:
        watching = watch(engine, Wanted(status="5xx"))
        await anext(watching)
        await until_watched(made)
        for _ in range(tail.BATCH_LINES_MAX + 7):
            made[0].add(line(status=503))
            made[0].add(line(status=200))
        lines = left_out = 0
        async for completed in watching:
            lines += len(completed.lines)
            left_out += completed.left_out
            if lines + left_out >= tail.BATCH_LINES_MAX + 7:
                break
        assert (lines, left_out) == (tail.BATCH_LINES_MAX, 7)


async def test_each_process_keeps_its_last_batches_only() -> None:
    engine = MemoryEngine(clock=Clock())

    def write(tx: Transaction, number: int) -> None:
        tail._put_batch(tx, b"o" * OWNER_BYTES, number, (line(),), 0)

    for number in range(1, 3 * tail.BATCHES_MAX):
        await engine.run(lambda tx, number=number: write(tx, number))  # type: ignore[misc]
    assert len(await rows_of(engine)) == tail.BATCHES_MAX


async def test_what_a_dead_process_has_left_is_deleted_by_the_next_watch() -> None:
    clock = Clock()
    engine = MemoryEngine(clock=clock)
    await engine.run(lambda tx: tail._put_batch(tx, b"o" * OWNER_BYTES, 1, (line(),), 0))
    await engine.run(lambda tx: tail._begin(tx, Wanted()))
    clock.now = later(clock.now, 100)
    watch_id = await engine.run(lambda tx: tail._begin(tx, Wanted()))
    assert await rows_of(engine) == [keys.watch(watch_id)]


def test_a_batch_fits_into_a_row() -> None:
    text = "\u00e9" * tail.PATH_CHARACTERS_MAX
    ids = "i" * 36, "blob", "a" * 24, "o" * 60, "OPTIONS"
    longest = RequestLine(START, *ids, text, 200, "c" * 60, 1.0, 1 << 60, 1 << 60, "::1" * 10, text, text)
    batch = tail.Batch(START, (longest,) * tail.BATCH_LINES_MAX, 0)
    assert len(encode(batch)) <= MAX_VALUE_BYTES


@pytest.mark.parametrize(
    ("wanted", "is_included"),
    [
        (Wanted(), True),
        (Wanted(account="acme"), True),
        (Wanted(account="acm"), False),
        (Wanted(operation="get blob"), True),
        (Wanted(operation="blob"), True),
        (Wanted(operation="Put"), False),
        (Wanted(status="404"), True),
        (Wanted(status="4xx"), True),
        (Wanted(status="2xx"), False),
        (Wanted(status="error"), True),
        (Wanted(status="40"), False),
        (Wanted(account="acme", operation="Get Blob", status="200"), False),
    ],
)
def test_which_requests_are_wanted(wanted: Wanted, is_included: bool) -> None:
    assert wanted.includes(line(status=404)) is is_included


def test_a_status_of_smb_is_a_name() -> None:
    of_smb = line(status="SHARING_VIOLATION", code="SHARING_VIOLATION")
    assert Wanted(status="sharing_violation").includes(of_smb)
    assert Wanted(status="error").includes(of_smb)
    assert not Wanted(status="error").includes(line(status="SUCCESS"))
