"""Reads: bodies run against what is known, and one statement for all that wait confirms it or fetches what is missing.

Everything that a statement returns or confirms is of one committed state. A body has its outcome when all that it has
read was returned or confirmed by the same statement, which was sent after the call. So a read of rows that are known
takes one round trip, and transfers no value that has not changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from kyanite.engine.api import Damaged, EngineBusy, EngineClosed, Snapshot
from kyanite.engine.postgres.clock import DatabaseClock
from kyanite.engine.postgres.connections import Connection, Connections
from kyanite.engine.postgres.known import Guesses, Interval, Known, Stored, WantedGroups
from kyanite.engine.postgres.source import KnownRows, Miss, Reads
from kyanite.engine.postgres.statements import UNKNOWN, Answer, Request, decode
from kyanite.engine.transaction import BodyRunner, BodySnapshot
from kyanite.values import Instant

T = TypeVar("T")

_STATEMENTS_MAX: Final = 3
_BODIES_MAX: Final = 128
_ROWS_PER_SLICE: Final = 2_000
_ROWS_MAX: Final = 3_000
_WAITING_MAX: Final = 20_000
ROUNDS_MAX: Final = 8
"""A body that needs more rounds is read on a connection of its own."""


class PendingRead:
    __slots__ = ("body", "error", "future", "is_complete", "now", "observe", "reads", "rounds", "value")

    def __init__(
        self,
        body: Callable[[Snapshot], Any],
        future: "asyncio.Future[Any]",
        observe: Callable[[Reads], None] | None,
    ) -> None:
        self.body = body
        self.future = future
        self.observe = observe
        self.rounds = 0
        self.reads = Reads()
        self.is_complete = False
        self.value: Any = None
        self.error: Exception | None = None
        self.now: Instant | None = None

    def finish(self) -> None:
        if self.future.done():
            return
        if self.observe is not None:
            self.observe(self.reads)
        if self.error is not None:
            set_error(self.future, self.error)
        else:
            self.future.set_result(self.value)


def set_error(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if isinstance(error, StopIteration):
        error = RuntimeError("the body raised StopIteration")
    if not future.done():
        future.set_exception(error)


class Reader:
    def __init__(
        self,
        connections: Connections,
        guesses: Guesses,
        clock: DatabaseClock,
        body_runner: BodyRunner,
        read_alone: Callable[[Callable[[Snapshot], Any]], Awaitable[Any]],
    ) -> None:
        self._connections = connections
        self._guesses = guesses
        self._clock = clock
        self._body_runner = body_runner
        self._read_alone = read_alone
        self._waiting: list[PendingRead] = []
        self._running: set[asyncio.Task[None]] = set()
        self._alone: set[asyncio.Task[None]] = set()
        self._is_scheduled = False
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self.statements = 0
        """How many were sent, for metrics and budgets."""

    def read(
        self, body: Callable[[Snapshot], T], observe: Callable[[Reads], None] | None = None
    ) -> "asyncio.Future[T]":
        """``observe`` gets what the body has read."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(EngineClosed("the engine was closed"))
            return future
        if len(self._waiting) >= _WAITING_MAX:
            future.set_exception(EngineBusy("too many reads wait for the database"))
            return future
        pending = PendingRead(body, future, observe)
        self._run(pending, Known(self._guesses))
        self._add(pending)
        return future

    def _add(self, pending: PendingRead) -> None:
        self._waiting.append(pending)
        if not self._is_scheduled and len(self._running) < _STATEMENTS_MAX:
            self._is_scheduled = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._is_scheduled = False
        if not self._waiting or len(self._running) >= _STATEMENTS_MAX:
            return
        task = self._loop.create_task(self._round(self._next_group()))
        self._running.add(task)
        task.add_done_callback(self._on_done)

    def _next_group(self) -> list[PendingRead]:
        """Those that share the next statement: not more than the loop can handle the rows of in one go."""
        group: list[PendingRead] = []
        rows = count = 0
        for pending in self._waiting[:_BODIES_MAX]:
            wanted = pending.reads.missing_range
            rows += 0 if wanted is None else wanted.rows
            rows += sum(each.rows for each in _groups_of(pending.reads))
            if rows > _ROWS_MAX and group:
                break
            count += 1
            if not pending.future.done():
                group.append(pending)
        del self._waiting[:count]
        return group

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._start)

    def _run(self, pending: PendingRead, known: Known) -> None:
        source = KnownRows(known)
        snapshot = BodySnapshot(source, self._now)
        pending.reads = source.reads
        pending.is_complete = False
        pending.value = pending.error = None
        try:
            pending.value = self._body_runner.call(pending.body, snapshot)
            pending.is_complete = True
        except Miss:
            pass
        except Exception as error:
            pending.error = error
            pending.is_complete = True
        pending.now = snapshot.used_now

    def _now(self) -> Instant:
        if not self._clock.is_known:
            raise Miss
        return max(self._clock(), self._clock.last)

    async def _round(self, group: list[PendingRead]) -> None:
        try:
            await self._try_round(group)
        except Damaged as error:
            if len(group) == 1:
                set_error(group[0].future, error)
            for pending in group if len(group) > 1 else ():
                await self._round([pending])
        except Exception as error:
            for pending in group:
                set_error(pending.future, error)

    async def _try_round(self, group: list[PendingRead]) -> None:
        request = Request()
        sent = _add_rows(request, group)
        hashes = _add_ranges(request, group)
        request.groups = list(
            dict.fromkeys([each for pending in group for each in _groups_of(pending.reads)])
        )
        answer = await self._fetch(request)
        known = Known(self._guesses)
        known.groups = answer.groups
        for key in request.rows:
            known.rows[key] = answer.rows[key] if key in answer.rows else sent[key]
        changed = set(answer.changed)
        for pending in group:
            self._carry_over(pending, known, changed)
        for found in answer.ranges:
            known.add_range(*found)
        known.keep_guesses()
        rows = 0
        for pending in group:
            rows += self._go_on(pending, answer, known, hashes, changed)
            if rows > _ROWS_PER_SLICE:
                rows = 0
                await asyncio.sleep(0)

    @staticmethod
    def _carry_over(pending: PendingRead, known: Known, changed: set[tuple[bytes, bytes]]) -> None:
        """The ranges that were confirmed are known now."""
        for read in pending.reads.ranges:
            bounds = read.bounds()
            if bounds is not None and bounds not in changed:
                rows = read.rows[::-1] if read.reverse else read.rows
                for key, stored in rows:
                    known.rows.setdefault(key, stored)
                known.add_interval(Interval(*bounds, [key for key, _ in rows]))

    def _go_on(
        self,
        pending: PendingRead,
        answer: Answer,
        known: Known,
        hashes: dict[tuple[bytes, bytes], bytes],
        changed: set[tuple[bytes, bytes]],
    ) -> int:
        """Finish the read, or run its body again. Returns about how many rows that took."""
        if pending.is_complete and self._is_confirmed(pending, answer, known, hashes, changed):
            pending.finish()
            return 0
        pending.rounds += 1
        if pending.rounds > ROUNDS_MAX:
            self._loop.create_task(self._finish_alone(pending))
            return 0
        fresh = _Fresh(known)
        self._run(pending, fresh)
        if pending.is_complete and fresh.is_fresh:
            pending.finish()
        else:
            self._add(pending)
        reads = pending.reads
        rows = sum(len(read.rows) for read in reads.ranges) + sum(
            len(read.found.rows) for read in reads.groups
        )
        return len(reads.rows) + rows

    @staticmethod
    def _is_confirmed(
        pending: PendingRead,
        answer: Answer,
        known: Known,
        hashes: dict[tuple[bytes, bytes], bytes],
        changed: set[tuple[bytes, bytes]],
    ) -> bool:
        if pending.now is not None and pending.now < answer.last:
            return False  # The state may have transactions that are later than the time that the body used.
        for key, stored in pending.reads.rows.items():
            if known.rows[key][0] != stored[0]:
                return False
        for read in pending.reads.ranges:
            bounds = read.bounds()
            if bounds is not None and (bounds in changed or hashes[bounds] != read.hash()):
                return False
        return all(known.groups[read.wanted] == read.found for read in pending.reads.groups)

    async def _finish_alone(self, pending: PendingRead) -> None:
        try:
            value = await self._read_alone(pending.body)
        except Exception as error:
            set_error(pending.future, error)
        else:
            if not pending.future.done():
                pending.future.set_result(value)

    async def _fetch(self, request: Request) -> Answer:
        async def work(connection: Connection) -> Answer:
            return await fetch(connection, request, self._clock)

        self.statements += 1
        return await self._connections.repeat(work)

    async def close(self) -> None:
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)
            await asyncio.sleep(0)
        for pending in self._waiting:
            set_error(pending.future, EngineClosed("the engine was closed"))


def _add_rows(request: Request, group: Sequence[PendingRead]) -> dict[bytes, Stored]:
    """Ask for the rows that were read or are missing. Returns what is known of the former."""
    sent: dict[bytes, Stored] = {}
    for pending in group:
        for key, stored in pending.reads.rows.items():
            if sent.setdefault(key, stored) != stored:
                request.rows[key] = UNKNOWN  # Two bodies know different values.
            else:
                request.rows.setdefault(key, stored[0])
    for pending in group:
        for key in pending.reads.missing_keys:
            request.rows.setdefault(key, UNKNOWN)
    return sent


def _add_ranges(request: Request, group: Sequence[PendingRead]) -> dict[tuple[bytes, bytes], bytes]:
    """Ask for the ranges that are missing, and confirm those that were read. Returns the hashes of the latter."""
    hashes: dict[tuple[bytes, bytes], bytes] = {}
    for pending in group:
        for read in pending.reads.ranges:
            if (bounds := read.bounds()) is not None and bounds not in hashes:
                hashes[bounds] = read.hash()
    request.confirmed = [(low, high, digest) for (low, high), digest in hashes.items()]
    missing = [each.reads.missing_range for each in group if each.reads.missing_range is not None]
    request.ranges = list(dict.fromkeys(missing))
    return hashes


def _groups_of(reads: Reads) -> list[WantedGroups]:
    """Those that are missing, and those that were read: these are fetched once more, which confirms them."""
    found = [read.wanted for read in reads.groups]
    return found if reads.missing_groups is None else [*found, reads.missing_groups]


class _Fresh(Known):
    """What the last statement has returned or confirmed. Says whether a body has read anything else."""

    __slots__ = ("is_fresh",)

    def __init__(self, known: Known) -> None:
        self._guesses = known._guesses
        self._absences = None
        self._assumed = set()
        self.rows = known.rows
        self.groups = known.groups
        self._lows = known._lows
        self._intervals = known._intervals
        self.is_fresh = True

    def row(self, key: bytes) -> Stored | None:
        found = self.rows.get(key)
        if found is None:
            found = self._guesses.get(key)
            if found is not None:
                self.is_fresh = False
        return found


async def fetch(connection: Connection, request: Request, clock: DatabaseClock) -> Answer:
    statement, values = request.statement()
    answer = decode(request, await connection.call(statement, *values))
    clock.observe(answer.last, answer.clock)
    return answer
