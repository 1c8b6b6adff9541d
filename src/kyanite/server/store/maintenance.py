"""Upkeep: what gives space back in the background, a step at a time, without getting in anybody's way.

One worker does it for all. Whatever it leaves undone when it dies, its successor finds.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from kyanite.engine.api import EngineClosed, EngineError

IDLE_SECONDS = 1.0
"""How often to look for work when there was none."""
BUSY_SECONDS_MIN = 0.02
"""How soon at the earliest to go on when there was work: by then whoever had just begun to read has often finished."""
TROUBLE_SECONDS = 10.0

Step = Callable[[], Awaitable[bool]]
"""Does a bounded piece of work; False when there was nothing to do."""

_log = logging.getLogger("kyanite.upkeep")


async def keep_up(step: Step) -> None:
    """Take steps for ever, resting after each for as long as it took."""
    while True:
        began = time.monotonic()
        try:
            worked = await step()
        except EngineClosed:
            return
        except EngineError as error:
            _log.warning("upkeep has to wait", extra={"why": str(error)})
            await asyncio.sleep(TROUBLE_SECONDS)
            continue
        except Exception:
            _log.exception("upkeep failed")
            await asyncio.sleep(TROUBLE_SECONDS)
            continue
        took = time.monotonic() - began
        await asyncio.sleep(max(BUSY_SECONDS_MIN, took) if worked else IDLE_SECONDS)
