"""Long reads: bodies that read one committed state in several steps, with other work of the loop in between.

A snapshot of SQLite belongs to a connection, so each long read has a connection of its own until it ends. There are few
of them: they are opened when they are needed first, and further reads wait until one is free. So neither memory nor the
log, which cannot be shortened past the oldest snapshot, grows with the number of clients. When the log has become long,
they wait until it was copied (``checkpoint.py``).
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import apsw

from kyanite.engine.api import EngineClosed, Snapshot, Steps
from kyanite.engine.sqlite.errors import engine_error
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.transaction import BodyRunner, BodySnapshot, Clock
from kyanite.slices import next_read

T = TypeVar("T")

LONG_READS = 4
_CHECKPOINT_SECONDS_MAX = 5.0
_CHECKPOINT_PAUSE_SECONDS = 0.01


class _LongReader:
    """A connection, and what reads its rows."""

    __slots__ = ("cursor", "rows")

    def __init__(self, connection: apsw.Connection) -> None:
        self.cursor = connection.cursor()
        self.rows = Rows(connection)

    def end(self) -> None:
        self.rows.end_scans()
        self.cursor.execute("COMMIT")


class LongReads:
    """To be made on the loop that uses it."""

    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        shared_state: SharedState,
        body_runner: BodyRunner,
        clock: Clock,
    ) -> None:
        self._connect = connect
        self._shared_state = shared_state
        self._body_runner = body_runner
        self._clock = clock
        self._opened = 0
        self._free: list[_LongReader] = []
        self._under_way: set[_LongReader] = set()
        self._waiting: deque[asyncio.Future[_LongReader]] = deque()
        self._closed = False

    async def read(self, body: Callable[[Snapshot], Steps[T]]) -> T:
        try:
            reader = await self._acquire()
            try:
                if self._shared_state.is_log_long:
                    await self._wait_for_checkpoint()
                reader.cursor.execute("BEGIN")
                self._under_way.add(reader)
                return await self._run(reader, body)
            finally:
                self._release(reader)
        except apsw.Error as error:
            raise engine_error(error) from error

    async def _run(self, reader: _LongReader, body: Callable[[Snapshot], Steps[T]]) -> T:
        snapshot = BodySnapshot(reader.rows, self._clock)
        steps = body(snapshot)
        try:
            while True:
                self._body_runner.call_step(steps)
                await next_read()
                snapshot.begin_step()
                self._check_open()
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            snapshot.end()
            steps.close()

    async def _wait_for_checkpoint(self) -> None:
        """Not for ever: a read is late rather than a log short."""
        deadline = time.monotonic() + _CHECKPOINT_SECONDS_MAX
        while self._shared_state.is_log_long and time.monotonic() < deadline:
            await asyncio.sleep(_CHECKPOINT_PAUSE_SECONDS)
            self._check_open()

    async def _acquire(self) -> _LongReader:
        self._check_open()
        if self._free:
            return self._free.pop()
        if self._opened < LONG_READS:
            self._opened += 1
            try:
                return _LongReader(self._connect())
            except BaseException:
                self._opened -= 1
                raise
        waiter: asyncio.Future[_LongReader] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._release(waiter.result())
            raise

    def _release(self, reader: _LongReader) -> None:
        if reader in self._under_way:
            self._under_way.discard(reader)
            with suppress(apsw.Error):
                reader.end()
        while self._waiting and not self._closed:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(reader)
                return
        self._free.append(reader)

    def close(self) -> None:
        """End all reads. Those under way fail at their next step."""
        self._closed = True
        for reader in self._under_way:
            with suppress(apsw.Error):
                reader.end()
        self._under_way.clear()
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(EngineClosed("the engine was closed"))
        self._waiting.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise EngineClosed("the engine was closed")
