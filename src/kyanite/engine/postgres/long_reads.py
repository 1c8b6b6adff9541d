"""Long reads: bodies in steps, and bodies that read more often than they could run again.

Each has a connection of its own with a snapshot of its own (REPEATABLE READ). A step cannot be run twice, so it runs in
a thread and waits there for what it reads. There is one thread: the steps of several long reads take it in order.

What the first step of a body has read before is fetched in one round trip, with as many rows of its longest scan as the
body wants and as have room. Further rows come in parts of as many bytes.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from kyanite.engine.api import STEP_ROWS, EngineBusy, EngineClosed, EngineError, Snapshot, Steps, Transaction
from kyanite.engine.groups import Groups, seek_groups
from kyanite.engine.postgres.clock import DatabaseClock
from kyanite.engine.postgres.connections import PATIENCE_SECONDS, Connection, Connections
from kyanite.engine.postgres.errors import ConnectionLost
from kyanite.engine.postgres.known import FoundGroups, Guesses, Known, Stored, Wanted, WantedGroups
from kyanite.engine.postgres.source import Reads, values_of
from kyanite.engine.postgres.statements import UNKNOWN, Answer, Request, decode, times
from kyanite.engine.transaction import BodyRunner, BodySnapshot, BufferedTransaction, Row
from kyanite.slices import next_read
from kyanite.values import Instant

T = TypeVar("T")

LONG_READS = 3
_NO_GUESSES = Guesses(0)
_FIRST_ROWS = 64
_SEEKS_ALONE = 16
"""So many scans of few rows fetch no more than they want, when the rows behind them turned out not to be wanted."""
_PART_ROWS_MAX = 5_001
_PART_BYTES = 4 * 1024 * 1024
_ROW_BYTES = 100
"""What a row takes beside its key and its value."""
_BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '60s'"
)


class Ahead:
    """What a body is going to read, to judge by what its first step has read before."""

    __slots__ = ("groups", "keys", "scan")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.scan: Wanted | None = None
        self.groups: WantedGroups | None = None

    def observe(self, reads: Reads) -> None:
        self.keys = list(reads.rows)
        longest = max(reads.ranges, key=lambda read: len(read.rows), default=None)
        if longest is not None and not longest.reverse and len(longest.rows) >= STEP_ROWS:
            rows = _rows_of_a_part(longest.rows)
            rows = rows if longest.wanted is None else min(rows, longest.wanted)
            self.scan = Wanted(longest.low, longest.high, False, rows)
        if reads.groups:
            first = reads.groups[0]
            self.groups = WantedGroups(first.wanted.groups, min(first.limit, _PART_ROWS_MAX))

    def request(self) -> Request:
        return Request(
            dict.fromkeys(self.keys, UNKNOWN),
            [] if self.scan is None else [self.scan],
            groups=[] if self.groups is None else [self.groups],
        )


def _rows_of_a_part(rows: Sequence[tuple[bytes, Stored]]) -> int:
    """How many rows have room in a part, if they are like these."""
    if not rows:
        return STEP_ROWS
    size = sum(len(key) + len(value or b"") + _ROW_BYTES for key, (_, value) in rows) // len(rows)
    return min(max(_PART_BYTES // size, STEP_ROWS), _PART_ROWS_MAX)


class SnapshotRows:
    """A ``Source`` for the thread: rows of one committed state, which is chosen when the first one is read."""

    def __init__(
        self,
        connections: Connections,
        clock: DatabaseClock,
        loop: asyncio.AbstractEventLoop,
        ahead: Ahead | None = None,
    ) -> None:
        self._ahead = ahead
        self._connections = connections
        self._clock = clock
        self._loop = loop
        self._at_end = AsyncExitStack()
        self._connection: Connection | None = None
        self._last = Instant(0)
        self.rows: dict[bytes, Stored] = {}
        """What was read. Kept if ``keeps_rows``."""
        self.ranges: list[tuple[Wanted, list[tuple[bytes, Stored]], bytes | None]] = []
        self.keeps_rows = False
        self._rows_ahead: dict[bytes, Stored] = {}
        self._groups_ahead: dict[WantedGroups, FoundGroups] = {}
        self._fetched = Known(_NO_GUESSES)
        """The last range, and all rows of it."""
        self._scans_of_fetched = 0
        """How many scans have begun in it."""
        self._seeks_alone = 0
        self.is_closed = False
        self.statements = 0

    def now(self) -> Instant:
        self.take_snapshot()
        return max(self._clock(), self._last)

    def take_snapshot(self) -> None:
        self._fetch_ahead()
        if self._connection is None:
            self._fetch(Request())

    def _fetch_ahead(self) -> None:
        if self._ahead is not None:
            request, self._ahead = self._ahead.request(), None
            answer = self._fetch(request)
            self._rows_ahead = answer.rows
            self._groups_ahead = answer.groups
            for found in answer.ranges:
                self._fetched.add_range(*found)

    def get(self, key: bytes) -> bytes | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._fetch_ahead()
        if all(key in self._rows_ahead for key in keys):
            return [self._rows_ahead[key][1] for key in keys]
        answer = self._fetch(Request(rows=dict.fromkeys(keys, UNKNOWN)))
        if self.keeps_rows:
            self.rows.update(answer.rows)
        return [answer.rows[key][1] for key in keys]

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        return islice(
            self._scan_down(start, end, limit) if reverse else self._scan_up(start, end, limit), limit
        )

    def _scan_up(self, start: bytes, end: bytes, limit: int | None) -> Iterator[Row]:
        self._fetch_ahead()
        at_a_time = _FIRST_ROWS if limit is None else min(max(limit, _FIRST_ROWS), STEP_ROWS)
        count = 0
        is_begun = False
        while start < end:
            fetched = self._fetched.forwards(start)
            if fetched is None:
                if not is_begun and limit is not None and limit < _FIRST_ROWS:
                    at_a_time = self._rows_of_seek(limit)
                self._fetched = Known(_NO_GUESSES)
                found = self._fetch_range(Wanted(start, end, False, at_a_time))
                self._fetched.add_range(*found)
                fetched = self._fetched.forwards(start)
                assert fetched is not None
                at_a_time = self._next_rows(found[1], limit, count + len(found[1]))
            if not is_begun:
                is_begun = True
                self._scans_of_fetched += 1
            rows = self._fetched.rows
            for key in fetched.keys[bisect_left(fetched.keys, start) : bisect_left(fetched.keys, end)]:
                value = rows[key][1]
                assert value is not None
                count += 1
                yield key, value
            start = fetched.high

    def _rows_of_seek(self, limit: int) -> int:
        """How many rows to fetch for a scan of few.

        A body that skips parts of a range makes many of them, so somewhat more are fetched at a time. If the parts are
        long, the next scan begins behind all of that.
        """
        if self._seeks_alone:
            self._seeks_alone -= 1
        elif self._scans_of_fetched == 1:
            self._seeks_alone = _SEEKS_ALONE
        self._scans_of_fetched = 0
        return limit if self._seeks_alone else _FIRST_ROWS

    @staticmethod
    def _next_rows(rows: Sequence[tuple[bytes, Stored]], limit: int | None, count: int) -> int:
        """How many rows to fetch after these, if the scan has had so many."""
        room = _rows_of_a_part(rows)
        return room if limit is None else max(min(room, limit - count), 1)

    def _scan_down(self, start: bytes, end: bytes, limit: int | None) -> Iterator[Row]:
        self._fetch_ahead()
        at_a_time = _FIRST_ROWS if limit is None else min(limit, STEP_ROWS)
        count = 0
        while start < end:
            _, rows, _ = self._fetch_range(Wanted(start, end, True, at_a_time))
            for key, stored in reversed(rows):
                assert stored[1] is not None
                yield key, stored[1]
            if len(rows) < at_a_time:
                return
            count += len(rows)
            end, at_a_time = rows[0][0], self._next_rows(rows, limit, count)

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        if self.keeps_rows:  # For a transaction, which does not read so (source.py).
            yield from seek_groups(self.scan, groups, limit)
            return
        self._fetch_ahead()
        position: bytes | None = groups.start
        while position is not None and position < groups.end and limit > 0:
            wanted = WantedGroups(groups._replace(start=position), min(limit, _PART_ROWS_MAX))
            found = self._groups_ahead.pop(wanted, None)
            if found is None:
                found = self._fetch(Request(groups=[wanted])).groups[wanted]
            rows = values_of(found)
            for first in range(0, len(rows), STEP_ROWS):
                yield rows[first : first + STEP_ROWS]
            limit -= len(found.rows)
            position = found.more_from

    def _fetch_range(self, wanted: Wanted) -> tuple[Wanted, list[tuple[bytes, Stored]], bytes | None]:
        (found,) = self._fetch(Request(ranges=[wanted])).ranges
        if self.keeps_rows:
            self.ranges.append(found)
        return found

    def without_checksum(self, _start: bytes, _end: bytes) -> list[bytes]:
        return []

    def _fetch(self, request: Request) -> Answer:
        """In the thread: wait for the loop to fetch it. Decoding many rows would take too long there."""
        records = asyncio.run_coroutine_threadsafe(self._fetch_on_loop(request), self._loop).result()
        return decode(request, records)

    async def _fetch_on_loop(self, request: Request) -> Sequence[Any]:
        if self.is_closed:
            raise EngineClosed("the engine was closed")
        if self._connection is None:
            connection = await self._at_end.enter_async_context(self._connections.lend())
            await connection.execute(_BEGIN)
            self._connection = connection
        self.statements += 1
        statement, values = request.statement()
        records = await self._connection.call(statement, *values)
        last, clock = times(records)
        self._clock.observe(last, clock)
        self._last = self._last or last
        return records

    async def end(self) -> None:
        self.is_closed = True
        if self._connection is not None:
            with suppress(ConnectionLost, EngineError):
                await self._connection.execute("ROLLBACK")
        await self._at_end.aclose()


class LongReads:
    """To be made on the loop that uses it."""

    def __init__(self, connections: Connections, clock: DatabaseClock) -> None:
        self._connections = connections
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._body_runner = BodyRunner()
        self._thread = ThreadPoolExecutor(1, "kyanite-long-reads")
        self._limit = asyncio.Semaphore(LONG_READS)
        self._under_way: set[SnapshotRows] = set()
        self._ended = asyncio.Event()
        self._ended.set()
        self._closed = False
        self.statements = 0
        """Of reads that have ended, for metrics."""

    async def read_in_steps(self, body: Callable[[Snapshot], Steps[T]], ahead: Ahead) -> T:
        async with self._limit:
            return await self._retried(partial(self._steps, body), ahead)

    async def read(self, body: Callable[[Snapshot], T]) -> T:
        """The body as a whole."""

        async def work(rows: SnapshotRows) -> T:
            snapshot = BodySnapshot(rows, rows.now)
            return await self._in_thread(lambda: self._body_runner.call(body, snapshot))

        async with self._limit:
            return await self._retried(work)

    async def rows_of(self, body: Callable[[Transaction], Any]) -> SnapshotRows:
        """What a body of a transaction reads. Its outcome does not count, for it runs again with these rows."""

        async def work(rows: SnapshotRows) -> SnapshotRows:
            rows.keeps_rows = True
            transaction = BufferedTransaction(rows, rows.now)
            try:
                await self._in_thread(lambda: self._body_runner.call(body, transaction))
            except (ConnectionLost, EngineError):
                raise
            except Exception:
                return rows  # Whether the body refuses is decided when it runs again.
            return rows

        async with self._limit:
            return await self._retried(work)

    async def _retried(self, work: Callable[[SnapshotRows], Awaitable[T]], ahead: Ahead | None = None) -> T:
        deadline = self._loop.time() + PATIENCE_SECONDS
        while True:
            self._check_open()
            rows = SnapshotRows(self._connections, self._clock, self._loop, ahead)
            self._under_way.add(rows)
            self._ended.clear()
            try:
                return await work(rows)
            except ConnectionLost as error:
                if self._loop.time() > deadline:
                    raise EngineBusy(f"The connection to the database was lost: {error}.") from error
            finally:
                await rows.end()
                self.statements += rows.statements
                self._under_way.discard(rows)
                if not self._under_way:
                    self._ended.set()

    async def _steps(self, body: Callable[[Snapshot], Steps[T]], rows: SnapshotRows) -> T:
        snapshot = BodySnapshot(rows, rows.now)
        steps = body(snapshot)
        try:
            while True:
                ended = await self._in_thread(lambda: self._step(steps))
                if ended is not None:
                    result: T = ended[0]
                    return result
                await next_read()
                self._check_open()
                await self._in_thread(snapshot.begin_step)
        finally:
            snapshot.end()
            steps.close()

    def _step(self, steps: Steps[T]) -> tuple[T] | None:
        try:
            self._body_runner.call_step(steps)
        except StopIteration as ended:
            return (ended.value,)
        return None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Also if the caller is cancelled, the step ends before the generator is closed."""
        running = asyncio.ensure_future(self._loop.run_in_executor(self._thread, _without_stop, work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            with suppress(Exception):
                await running
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise EngineClosed("the engine was closed")

    async def close(self) -> None:
        self._closed = True
        for rows in self._under_way:
            rows.is_closed = True
        await self._ended.wait()
        self._thread.shutdown(wait=False)


def _without_stop(work: Callable[[], T]) -> T:
    """A future cannot raise StopIteration."""
    try:
        return work()
    except StopIteration as error:
        raise RuntimeError("the body raised StopIteration") from error
