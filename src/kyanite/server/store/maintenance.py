"""Maintenance: the background work that gives space back, a bounded step at a time.

One worker does it for all. What it leaves undone when it dies, its successor finds.
"""

import asyncio
import logging
import time

from kyanite.engine.api import EngineClosed, EngineError
from kyanite.model.maintenance.tasks import Step, steps
from kyanite.server.store.api import Store

IDLE_SECONDS = 1.0
"""How long to wait for work when there was none."""
BUSY_SECONDS_MIN = 0.02
"""The shortest pause between two steps that found work: by then most readers that had just begun have finished."""
TROUBLE_SECONDS = 10.0

_log = logging.getLogger("kyanite.maintenance")


def steps_of(store: Store) -> list[Step]:
    return steps(store.engine, store.extents, store.membership)


async def repeat(step: Step) -> None:
    """Take steps until the engine is closed, pausing after each for as long as it took."""
    while True:
        began = time.monotonic()
        try:
            worked = await step()
        except EngineClosed:
            return
        except EngineError as error:
            _log.warning("maintenance has to wait", extra={"why": str(error)})
            await asyncio.sleep(TROUBLE_SECONDS)
            continue
        except Exception:
            _log.exception("maintenance failed")
            await asyncio.sleep(TROUBLE_SECONDS)
            continue
        took = time.monotonic() - began
        await asyncio.sleep(max(BUSY_SECONDS_MIN, took) if worked else IDLE_SECONDS)
