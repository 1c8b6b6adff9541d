"""Waiting outside of transactions: bodies run again when something has changed, now and then, and not for ever."""

import asyncio
from collections.abc import Awaitable, Iterator

import pytest

from kyanite.engine.api import Transaction
from kyanite.model.files import file
from kyanite.model.files.opens import waits
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.model.files.opens.waits import Wait
from kyanite.rules.refusals import Reason, Refused
from tests.model.files.builders import path_of
from tests.model.files.opens.caching_clients import CachingClients, lease

TOPIC = b"a topic"


class Membership:
    """Of a process that knows no dead ones."""

    id = b"this process"

    def is_alive(self, owner: bytes) -> bool:
        return True

    def dead_owners(self) -> list[bytes]:
        return []

    def forget(self, owner: bytes) -> None: ...

    def close(self) -> None: ...


MEMBERSHIP = Membership()


@pytest.fixture
def clients() -> CachingClients:
    return CachingClients()


async def pause(waiting: Awaitable[None]) -> None:
    await waiting


class Countdown:
    """A body that is done after so many runs."""

    def __init__(self, runs: int) -> None:
        self.left = runs

    def __call__(self, tx: Transaction) -> str | Wait:
        self.left -= 1
        return "done" if self.left == 0 else Wait(TOPIC)


async def test_a_body_that_need_not_wait_runs_once(clients: CachingClients) -> None:
    body = Countdown(1)
    done = await waits.run_until_done(
        clients.engine, body, membership=MEMBERSHIP, durable=False, waiting=pause
    )
    assert (done, body.left) == ("done", 0)


async def test_a_body_runs_again_after_a_notification(clients: CachingClients) -> None:
    body, begun = Countdown(3), asyncio.Event()

    async def waiting(pause: Awaitable[None]) -> None:
        begun.set()
        await pause

    running = asyncio.ensure_future(
        waits.run_until_done(clients.engine, body, membership=MEMBERSHIP, durable=False, waiting=waiting)
    )
    await begun.wait()
    assert body.left == 1, "It has run once more after the subscription."
    await asyncio.sleep(0)
    await clients.engine.run(lambda tx: tx.notify(TOPIC))
    assert await running == "done"


async def test_a_body_runs_again_without_a_notification(
    clients: CachingClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "AGAIN_SECONDS", 0.001)
    running = waits.run_until_done(
        clients.engine, Countdown(5), membership=MEMBERSHIP, durable=False, waiting=pause
    )
    assert await running == "done"


async def test_after_a_pause_another_body_may_run(
    clients: CachingClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "AGAIN_SECONDS", 0.001)
    first = Countdown(9)
    running = waits.run_until_done(
        clients.engine,
        first,
        membership=MEMBERSHIP,
        durable=False,
        waiting=pause,
        again=lambda tx: "other",
    )
    assert (await running, first.left) == ("other", 7)


async def test_what_waiting_raises_ends_the_wait(clients: CachingClients) -> None:
    async def give_up(waiting: Awaitable[None]) -> None:
        waiting.close()  # type: ignore[attr-defined]
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await waits.run_until_done(
            clients.engine, Countdown(9), membership=MEMBERSHIP, durable=False, waiting=give_up
        )


# --- REST


async def needed(clients: CachingClients) -> BreakNeeded:
    with pytest.raises(BreakNeeded) as raised:
        await file.get_properties(clients.engine, path_of("f"), None)
    return raised.value


async def repeated(clients: CachingClients, seconds: float) -> int:
    """The length of the file, when clients have written back what they cache."""
    found = await waits.after_breaks(
        clients.engine,
        MEMBERSHIP,
        await needed(clients),
        lambda: file.get_properties(clients.engine, path_of("f"), None),
        seconds,
    )
    return found.entry.length


async def test_a_request_is_repeated_when_the_client_has_answered(clients: CachingClients) -> None:
    first = lease("RW")
    clients.opened(first)
    running = asyncio.ensure_future(repeated(clients, 60))
    while not clients.share.rows(b"K"):
        await asyncio.sleep(0)
    clients.acknowledge(first, "R")
    assert await running == 100


@pytest.mark.parametrize("seconds", [0, 0.01])
async def test_a_request_waits_so_long_at_most(clients: CachingClients, seconds: float) -> None:
    clients.opened(lease("RW"))
    with pytest.raises(Refused) as refused:
        await repeated(clients, seconds)
    assert refused.value.reason is Reason.CLIENT_CACHE_FLUSH_DELAY
    assert len(clients.sent()) == 1


async def test_a_request_does_not_wait_when_the_client_has_answered_already(clients: CachingClients) -> None:
    handle = clients.opened(lease("RW"))
    raised = await needed(clients)
    clients.close(handle)
    attempts: Iterator[str] = iter(["done"])

    async def attempt() -> str:
        return next(attempts)

    assert await waits.after_breaks(clients.engine, MEMBERSHIP, raised, attempt, 60) == "done"
    assert clients.sent() == []
