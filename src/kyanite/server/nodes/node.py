"""This process as a part of a store that several nodes serve: what it does for all of them, and what it tells them."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial

from kyanite.engine.api import Engine, EngineClosed, EngineError
from kyanite.model import members
from kyanite.values import Instant

SECRET_BYTES = 32
MAINTENANCE_SECONDS = 1.0
"""How long it may take at most until another process does the maintenance, after the one that did is dead."""


class Node:
    def __init__(self, engine: Engine, owner: bytes) -> None:
        self._engine = engine
        self._owner = owner

    async def until_maintainer(self) -> None:
        """Wait until this process does the maintenance for all nodes. It does so until it ends."""
        notifications = self._engine.subscribe(members.TOPIC)
        while True:
            try:
                if await self._engine.read(members.is_maintenance_free) and await self._engine.run(
                    partial(members.take_maintenance, owner=self._owner)
                ):
                    return
            except EngineClosed:
                raise
            except EngineError:  # It may work in a second.
                pass
            with suppress(TimeoutError):
                async with asyncio.timeout(MAINTENANCE_SECONDS):
                    await anext(notifications)

    def confirm(self, changed_at: Instant) -> Awaitable[None]:
        """This process obeys all changes of accounts up to this one. Said once, so it must survive a failover."""
        return self._engine.run(partial(members.confirm, owner=self._owner, changed_at=changed_at))

    def late(self, changed_at: Instant) -> Awaitable[list[str]]:
        """The processes of all nodes that may not obey a change yet."""
        return self._engine.read(partial(members.unconfirmed, changed_at=changed_at))

    def shared_secret(self, fresh: bytes) -> Awaitable[bytes]:
        """What all nodes of the store know: the fresh one, if there is none yet."""
        return self._engine.run(partial(members.share_secret, fresh=fresh))
