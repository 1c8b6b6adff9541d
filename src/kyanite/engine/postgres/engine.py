"""The PostgreSQL engine: one database, any number of processes on any number of machines.

Each process uses it from one event loop. ``reader.py`` and ``writer.py`` say how bodies that are plain functions share
few round trips; ``long_reads.py`` has those that cannot. Nothing that was known before a call counts in its outcome
unless the database has confirmed it after the call.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from kyanite.engine.api import EngineClosed, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.engine.postgres.address import Address
from kyanite.engine.postgres.clock import DatabaseClock
from kyanite.engine.postgres.connections import Connections
from kyanite.engine.postgres.known import Guesses
from kyanite.engine.postgres.long_reads import Ahead, LongReads
from kyanite.engine.postgres.notifications import DatabaseNotifications
from kyanite.engine.postgres.reader import Reader
from kyanite.engine.postgres.writer import Writer
from kyanite.engine.transaction import BodyRunner, Clock

T = TypeVar("T")

GUESS_BYTES = 32 * 1024 * 1024


class PostgresEngine:
    def __init__(
        self, address: Address, *, clock: Clock | None = None, guess_bytes: int = GUESS_BYTES
    ) -> None:
        """To be made on the loop that will use it. Connects when it is first used, and makes the tables then.

        Without a clock the database's is used. ``guess_bytes`` bounds the memory for rows that are kept.
        """
        self._connections = Connections(address)
        self._body_runner = BodyRunner()
        self._clock = DatabaseClock(clock)
        guesses = self._guesses = Guesses(guess_bytes)
        sender = os.urandom(8).hex()
        self._notifications = DatabaseNotifications(self._connections, f"kyanite_{address.schema}", sender)
        self._long_reads = LongReads(self._connections, self._clock)
        self._reader = Reader(
            self._connections, guesses, self._clock, self._body_runner, self._long_reads.read
        )
        self._writer = Writer(
            self._connections,
            guesses,
            self._clock,
            self._body_runner,
            self._notifications,
            self._long_reads,
        )
        self.commits = self._writer.commits
        self._closing: asyncio.Future[None] | None = None

    def forget(self) -> None:
        """Forget all rows that are kept: as in a process that has just started."""
        self._guesses.clear()

    @property
    def round_trips(self) -> int:
        """How many statements were sent for reads and writes."""
        return self.commits.statements + self._reader.statements

    def counters(self) -> Mapping[str, int]:
        return {
            "batches": self.commits.batches,
            "transactions": self.commits.transactions,
            "batches_refused": self.commits.refused,
            "batches_locked": self.commits.locked,
            "write_statements": self.commits.statements,
            "read_statements": self._reader.statements,
            "long_read_statements": self._long_reads.statements,
        }

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        self._body_runner.check_outside_bodies()
        return self._reader.read(body)

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        self._body_runner.check_outside_bodies()
        return self._read_in_steps(body)

    async def _read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> T:
        if self._closing is not None:
            raise EngineClosed("the engine was closed")
        ahead = Ahead()
        whole = await self._reader.read(partial(_first_step, body), ahead.observe)
        return await self._long_reads.read_in_steps(body, ahead) if whole is None else whole[0]

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        self._body_runner.check_outside_bodies()
        return self._writer.submit(body, durable)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._notifications.subscribe(topic)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._writer.close()
        await self._notifications.close()
        await self._long_reads.close()
        await self._reader.close()
        await self._connections.close()


def _first_step(body: Callable[[Snapshot], Steps[T]], snap: Snapshot) -> tuple[T] | None:
    """The result, if there is no second step: then the read needs no connection of its own."""
    steps = body(snap)
    try:
        next(steps)
    except StopIteration as ended:
        return (ended.value,)
    finally:
        steps.close()
    return None
