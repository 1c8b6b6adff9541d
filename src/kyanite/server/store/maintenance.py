"""Maintenance: the background work that gives space back, a bounded step at a time.

One worker does it for all, of one node where there are several. What it leaves undone when it dies, its successor
finds.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from kyanite.engine.api import EngineClosed, EngineError
from kyanite.model.maintenance.pace import Pace
from kyanite.model.maintenance.scrub import FoundDamage, Scrub
from kyanite.model.maintenance.tasks import Step, steps
from kyanite.server.store.api import Store

IDLE_SECONDS = 1.0
"""How long to wait for work when there was none."""
BUSY_SECONDS_MIN = 0.02
"""The shortest pause between two steps that found work: by then most readers that had just begun have finished."""
TROUBLE_SECONDS = 10.0

BUSY_REQUESTS = 8
"""With so many requests in flight a worker is busy, and the scrub goes more slowly."""

_log = logging.getLogger("kyanite.maintenance")
_scrub_log = logging.getLogger("kyanite.scrub")


def steps_of(store: Store) -> list[Step]:
    return steps(store.engine, store.extents, store.membership)


def scrub_of(store: Store, mib_per_second: float, requests_in_flight: Callable[[], int]) -> Scrub:
    pace = Pace(
        mib_per_second * 1024 * 1024,
        clock=time.monotonic,
        sleep=asyncio.sleep,
        is_busy=lambda: requests_in_flight() >= BUSY_REQUESTS,
    )
    return Scrub(store.engine, store.extents, pace, _report_damage)


def _report_damage(found: FoundDamage) -> None:
    extra = {"damage": found.text, "hurt": found.hurt, "hurt_count": found.hurt_count}
    _scrub_log.error("damaged", extra=extra)


class MaintenanceFigures(msgspec.Struct):
    """What this process has done for a store."""

    steps: int = 0
    """Those that found work."""
    failures: int = 0


async def repeat(step: Step, figures: MaintenanceFigures) -> None:
    """Take steps until the engine is closed, pausing after each for as long as it took."""
    while True:
        began = time.monotonic()
        try:
            worked = await step()
        except EngineClosed:
            return
        except EngineError as error:
            figures.failures += 1
            _log.warning("maintenance has to wait", extra={"why": str(error)})
            await asyncio.sleep(TROUBLE_SECONDS)
            continue
        except Exception:
            figures.failures += 1
            _log.exception("maintenance failed")
            await asyncio.sleep(TROUBLE_SECONDS)
            continue
        figures.steps += worked
        took = time.monotonic() - began
        await asyncio.sleep(max(BUSY_SECONDS_MIN, took) if worked else IDLE_SECONDS)
