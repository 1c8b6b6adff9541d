"""Maintenance: the background work that gives space back, a bounded step at a time.

One worker does it for all. What it leaves undone when it dies, its successor finds.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from kyanite.engine.api import EngineClosed, EngineError
from kyanite.model.maintenance.deleted_containers import DeletedContainers
from kyanite.model.maintenance.deleted_shares import DeletedShares
from kyanite.model.maintenance.deleted_tables import DeletedTables
from kyanite.model.maintenance.garbage_collection import GarbageCollector
from kyanite.model.maintenance.spent_messages import SpentMessages
from kyanite.server.store.api import Store

IDLE_SECONDS = 1.0
"""How long to wait for work when there was none."""
BUSY_SECONDS_MIN = 0.02
"""The shortest pause between two steps that found work: by then most readers that had just begun have finished."""
TROUBLE_SECONDS = 10.0

Step = Callable[[], Awaitable[bool]]
"""Does a bounded piece of work; False when there was nothing to do."""

_log = logging.getLogger("kyanite.maintenance")


def steps_of(store: Store) -> list[Step]:
    return [
        DeletedContainers(store.engine).step,
        DeletedShares(store.engine).step,
        GarbageCollector(store.engine, store.extents, store.membership).step,
        SpentMessages(store.engine).step,
        DeletedTables(store.engine).step,
    ]


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
