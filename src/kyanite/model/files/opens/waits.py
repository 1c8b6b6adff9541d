"""Waiting for other clients: for an oplock to be broken, or for a byte range to be unlocked.

A transaction body never waits. It returns a ``Wait``: what it waits for, and until when. The caller waits outside the
transaction and runs the body again, as often as needed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from kyanite.engine.api import Engine, Scope, Transaction
from kyanite.values import Instant

T = TypeVar("T")
_AGAIN_SECONDS = 1.0
"""Notifications may be lost, so a body runs again after this time without one."""


class Wait(NamedTuple):
    """The body could not do its work yet."""

    until: Instant
    """When it need not wait any longer. The body that runs then knows it by its ``now``."""


async def run_until_done(
    engine: Engine,
    body: Callable[[Transaction], T | Wait],
    *scopes: Scope,
    topic: bytes,
    durable: bool,
    waiting: Callable[[Awaitable[None]], Awaitable[None]],
) -> T:
    """Run the body until it does not return a ``Wait``.

    ``topic`` is notified when it is worth another try. ``waiting`` awaits each pause: a request of SMB sends its
    interim response there, a request of REST limits the time. What it raises ends the wait.
    """
    outcome = await engine.run(body, *scopes, durable=durable)
    if not isinstance(outcome, Wait):
        return outcome
    notifications = engine.subscribe(topic)
    while True:
        outcome = await engine.run(body, *scopes, durable=durable)
        if not isinstance(outcome, Wait):
            return outcome
        await waiting(_pause(notifications.__anext__()))


async def _pause(notified: Awaitable[None]) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(notified, _AGAIN_SECONDS)
