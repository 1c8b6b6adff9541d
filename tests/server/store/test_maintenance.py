"""Upkeep takes steps, rests, and survives trouble."""

import asyncio

import pytest

from kyanite.engine.api import EngineBusy, EngineClosed
from kyanite.server.store import maintenance
from kyanite.server.store.maintenance import keep_up


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long upkeep rested each time, without the waiting."""
    rested: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        rested.append(seconds)
        await sleep(0)

    monkeypatch.setattr("kyanite.server.store.maintenance.asyncio.sleep", note)
    return rested


def run(*outcomes: bool | Exception) -> None:
    """Give upkeep these outcomes of its steps, and then an engine that was closed."""
    left = [*outcomes, EngineClosed("closed")]

    async def step() -> bool:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    asyncio.run(keep_up(step))
    assert left == []


def test_at_once_while_there_is_work_and_seldom_when_there_is_none(rests: list[float]) -> None:
    run(True, True, False, True)
    assert rests[2] == maintenance.IDLE_SECONDS
    assert all(
        maintenance.BUSY_SECONDS_MIN <= rest < maintenance.IDLE_SECONDS
        for rest in (rests[0], rests[1], rests[3])
    )


@pytest.mark.parametrize("trouble", [EngineBusy("busy"), AssertionError("a fault of ours")])
def test_trouble_is_logged_and_waited_out(
    trouble: Exception, rests: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    run(True, trouble, False)
    assert rests[1:] == [maintenance.TROUBLE_SECONDS, maintenance.IDLE_SECONDS]
    assert len(caplog.records) == 1
