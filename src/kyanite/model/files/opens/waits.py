"""Waiting for other clients: for an oplock or a lease to be broken, or for a byte range to be unlocked.

A transaction body never waits. It returns a ``Wait``, or raises ``BreakNeeded`` when clients must give up what they
cache. The caller waits outside the transaction and runs the body again, as often as needed. A break that no client
acknowledges is over after some time: the body that runs then knows it by its ``now``.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NamedTuple, TypeVar

from kyanite.engine.api import Engine, Scope, Transaction
from kyanite.membership.api import Membership
from kyanite.model.files.opens import caching, owners
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.rules.refusals import Reason, Refused

T = TypeVar("T")
AGAIN_SECONDS = 1.0
"""Notifications may be lost, so a body runs again after this time without one."""
REST_SECONDS = 30.0
"""How long a request of REST waits at most."""


class Wait(NamedTuple):
    """The body could not do its work yet."""

    topic: bytes
    """Notified when it is worth another try."""


async def run_until_done(
    engine: Engine,
    body: Callable[[Transaction], T | Wait],
    *scopes: Scope,
    membership: Membership,
    durable: bool,
    waiting: Callable[[Awaitable[None]], Awaitable[None]],
    again: Callable[[Transaction], T | Wait] | None = None,
) -> T:
    """Run the body until it does not have to wait. The handles of a dead process are not waited for.

    ``waiting`` awaits each pause: a request of SMB sends its interim response there. What it raises ends the wait.
    ``again`` is the body to run after a pause, if it is another one.
    """
    subscription: tuple[bytes, AsyncIterator[None]] | None = None
    while True:
        outcome = await engine.run(partial(_run, body=body), *scopes, durable=durable)
        if not isinstance(outcome, Wait):
            return outcome
        if await owners.close_handles_of_dead(engine, membership):
            continue
        if subscription is not None and subscription[0] == outcome.topic:
            await waiting(_pause(subscription[1], AGAIN_SECONDS))
            body = again or body
        else:  # What was notified before is lost, so the body runs once more.
            subscription = outcome.topic, engine.subscribe(outcome.topic)


def _run(tx: Transaction, body: Callable[[Transaction], T | Wait]) -> T | Wait:
    """Send the breaks that a body needs in the same transaction. It has written nothing when it needs them."""
    try:
        return body(tx)
    except BreakNeeded as needed:
        if caching.send_breaks(tx, needed):
            return Wait(needed.topic)
    try:  # Those that could not be sent were closed.
        return body(tx)
    except BreakNeeded as needed:
        return Wait(needed.topic)


async def after_breaks(
    engine: Engine,
    membership: Membership,
    needed: BreakNeeded,
    attempt: Callable[[], Awaitable[T]],
    seconds: float,
) -> T:
    """Repeat what needs a break once clients have given up what they cache; refused if that takes too long."""
    clock = asyncio.get_running_loop().time
    ends_at = clock() + seconds
    while True:
        notifications = engine.subscribe(needed.topic)
        sent = await engine.run(partial(caching.send_breaks, needed=needed), durable=False)
        if sent and not await owners.close_handles_of_dead(engine, membership):
            await _pause(notifications, min(AGAIN_SECONDS, ends_at - clock()))
        try:
            return await attempt()
        except BreakNeeded as again:
            if clock() >= ends_at:
                raise Refused(Reason.CLIENT_CACHE_FLUSH_DELAY) from None
            needed = again


async def _pause(notifications: AsyncIterator[None], seconds: float) -> None:
    """Until a notification, or so long; an engine that was closed ends it, too.

    The caller may be a request that has not had to wait before, and has no task yet: ``asyncio.timeout`` needs one.
    """
    notified = asyncio.ensure_future(_next(notifications))
    try:
        await asyncio.wait((notified,), timeout=seconds)
    finally:
        notified.cancel()


async def _next(notifications: AsyncIterator[None]) -> None:
    await anext(notifications, None)
