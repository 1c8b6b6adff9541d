"""One batch of the PostgreSQL engine: bodies that run one after another, and what they have read and written together.

Nothing here talks to the database. A body that misses a row or a range says so and runs again when it is known
(``writer.py``).
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from kyanite.engine.api import Transaction
from kyanite.engine.postgres.clock import DatabaseClock
from kyanite.engine.postgres.known import Known, Version
from kyanite.engine.postgres.reader import set_error
from kyanite.engine.postgres.source import KnownRows, Miss, Reads, Written, ranges_to_confirm
from kyanite.engine.transaction import BodyRunner, BufferedTransaction
from kyanite.values import Instant

_INSTANTS_TICKS_MAX: Final = 10_000_000
"""A body that runs again after more than a second gets new instants."""


class PendingBody:
    __slots__ = ("body", "durable", "future", "instants", "is_alone", "rounds", "used")

    def __init__(
        self, body: Callable[[Transaction], Any], durable: bool, future: "asyncio.Future[Any]"
    ) -> None:
        self.body = body
        self.durable = durable
        self.future = future
        self.rounds = 0
        """How often it was ended by a Miss, since it was last fetched for."""
        self.instants: list[Instant] = []
        """What its last run was given, of which it has used so many:"""
        self.used = 0
        self.is_alone = False
        """Whether it no longer belongs to a group."""


class Finished:
    """A body that has run to its end."""

    __slots__ = ("error", "pending", "reads", "value")

    def __init__(self, pending: PendingBody, reads: Reads, value: object, error: Exception | None) -> None:
        self.pending = pending
        self.reads = reads
        self.value = value
        self.error = error

    def release(self) -> None:
        future = self.pending.future
        if future.done():
            return
        if self.error is not None:
            set_error(future, self.error)
        else:
            future.set_result(self.value)


class Batch:
    """Bodies that have run one after another, and what they have read and written together."""

    def __init__(
        self, known: Known, clock: DatabaseClock, body_runner: BodyRunner, after: Instant | None = None
    ) -> None:
        """Its instants are later than the one that is given, or than all that are known to be used."""
        self.known = known
        self._clock = clock
        self._body_runner = body_runner
        self.finished: list[Finished] = []
        self.written = Written()
        self.notifications: list[bytes] = []
        self.instants: list[Instant] = []
        """Those that finished bodies have used, ascending."""
        self.after = self.last_instant = clock.last if after is None else after
        """The latest that a finished body has used, or that was used before."""
        self._given = self.last_instant
        """The latest that any body was given."""
        self.size_bytes = 0
        self.rows = 0
        """About how many rows the last runs took."""

    def add_instant(self) -> None:
        """For the batch itself."""
        self.last_instant = self._given = Instant(max(self._clock(), self._given + 1, self.last_instant + 1))
        self.instants.append(self.last_instant)

    def _instants_for(self, pending: PendingBody) -> Callable[[], Instant]:
        """The clock of one run. A body that has run before gets the instants of that run again, if they are still
        later than those of all that have finished: what it reads may depend on the ids that it makes of them."""
        position = 0
        instants = pending.instants
        if instants and self._clock() - instants[0] > _INSTANTS_TICKS_MAX:
            instants.clear()

        def clock() -> Instant:
            nonlocal position
            if position == len(instants) or instants[position] <= self.last_instant:
                del instants[position:]
                self._given = Instant(max(self._clock(), self._given + 1, self.last_instant + 1))
                instants.append(self._given)
            position += 1
            pending.used = position
            return instants[position - 1]

        return clock

    def run(self, pending: PendingBody) -> Reads | None:
        """Run the body. Returns what it has read and misses, if it misses something."""
        source = KnownRows(self.known, self.written)
        pending.used = 0
        transaction = BufferedTransaction(source, self._instants_for(pending))
        reads = source.reads
        value, error = None, None
        try:
            value = self._body_runner.call(pending.body, transaction)
        except Miss:
            return reads
        except Exception as raised:
            error = raised
        self.rows += len(reads.rows) + sum(len(read.rows) for read in reads.ranges)
        self.finished.append(Finished(pending, reads, value, error))
        if pending.used:
            self.instants += pending.instants[: pending.used]
            self.last_instant = pending.instants[pending.used - 1]
        if error is None:
            self.rows += len(transaction.writes)
            self.written.add(transaction.writes)
            self.notifications += transaction.notifications
            self.size_bytes += transaction.size_bytes
        return None

    @property
    def is_durable(self) -> bool:
        return any(each.pending.durable for each in self.finished)

    @property
    def changes_nothing(self) -> bool:
        return not self.written.writes and not self.notifications and not self.instants

    def reads(self) -> dict[bytes, Version] | None:
        """The versions that were read; None if they contradict one another."""
        found: dict[bytes, Version] = {}
        for each in self.finished:
            for key, stored in each.reads.rows.items():
                if found.setdefault(key, stored[0]) != stored[0]:
                    return None
        return found

    def ranges(self) -> list[tuple[bytes, bytes, bytes]]:
        """What confirms all that was read of ranges. If some of it contradicts the rest, the batch is refused."""
        return ranges_to_confirm([each.reads for each in self.finished])
