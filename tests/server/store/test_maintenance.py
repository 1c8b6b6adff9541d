"""Maintenance takes steps, pauses, and survives trouble."""

import asyncio

import pytest

from kyanite.engine.api import EngineBusy, EngineClosed
from kyanite.server.store import maintenance
from kyanite.server.store.maintenance import MaintenanceFigures, repeat


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each pause was, without the waiting."""
    paused: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        paused.append(seconds)
        await sleep(0)

    monkeypatch.setattr("kyanite.server.store.maintenance.asyncio.sleep", note)
    return paused


def run(*outcomes: bool | Exception) -> MaintenanceFigures:
    """Give maintenance these outcomes of its steps, and then an engine that was closed."""
    left = [*outcomes, EngineClosed("closed")]

    async def step() -> bool:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    figures = MaintenanceFigures()
    asyncio.run(repeat(step, figures))
    assert left == []
    return figures


def test_pauses_are_short_while_there_is_work(pauses: list[float]) -> None:
    assert run(True, True, False, True) == MaintenanceFigures(steps=3)
    assert pauses[2] == maintenance.IDLE_SECONDS
    assert all(
        maintenance.BUSY_SECONDS_MIN <= pause < maintenance.IDLE_SECONDS
        for pause in (pauses[0], pauses[1], pauses[3])
    )


@pytest.mark.parametrize("trouble", [EngineBusy("busy"), AssertionError("a fault of ours")])
def test_trouble_is_logged_and_waited_out(
    trouble: Exception, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    assert run(True, trouble, False) == MaintenanceFigures(steps=1, failures=1)
    assert pauses[1:] == [maintenance.TROUBLE_SECONDS, maintenance.IDLE_SECONDS]
    assert len(caplog.records) == 1
