"""The SQLite engine: apsw, one database file, any number of processes of one machine.

Every process opens the store after its fork and uses it from one event loop. Reads run inline on the loop, each in a
transaction of its own on the reading connection, and long ones on connections of their own; writes go through
``GroupCommit``; a ``Checkpointer`` in one of the processes keeps the log short.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from kyanite.engine.api import EngineClosed, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.engine.clock import SteadyClock, boot_number, wall_clock
from kyanite.engine.outcome import Done, Failed
from kyanite.engine.sqlite import database
from kyanite.engine.sqlite.checkpoint import LOG_BYTES, Checkpointer
from kyanite.engine.sqlite.errors import engine_error
from kyanite.engine.sqlite.group_commit import DEFAULT_LIMITS, GroupCommit, Limits
from kyanite.engine.sqlite.lone_client import LoneClient
from kyanite.engine.sqlite.long_reads import LongReads
from kyanite.engine.sqlite.notifications import PipeNotifications
from kyanite.engine.sqlite.reader import Reader
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.sqlite.write_lock import WriteLock
from kyanite.engine.transaction import BodyRunner, Clock
from kyanite.slices import first_slice
from kyanite.values import Instant

T = TypeVar("T")


class SqliteEngine:
    def __init__(
        self,
        folder: Path,
        clock: Clock,
        boot: int,
        limits: Limits,
        log_bytes: int,
        vfs: str | None,
        files: ExitStack,
    ) -> None:
        """Opens files and connections. ``files`` closes them in the opposite order, also if opening one fails."""
        self._clock = clock
        self._files = files
        self._shared_state = SharedState(folder)
        files.callback(self._shared_state.close)
        files.callback(os.close, database.join(folder, self._shared_state, boot=boot, vfs=vfs))
        # Before the first connection, hence closed after the last.
        database_fd = files.enter_context(database.descriptor(folder))
        write_lock = WriteLock(folder, self._shared_state)
        files.callback(write_lock.close)
        reading = self._connect(folder, vfs, read_only=True)
        writing = self._connect(folder, vfs)
        self._notifications = PipeNotifications(folder, self._shared_state)
        checkpointer = Checkpointer(
            self._connect(folder, vfs), database_fd, folder, self._shared_state, log_bytes
        )
        files.callback(checkpointer.stop)
        self._body_runner = BodyRunner()
        self._lone_client = LoneClient()
        self._reader = Reader(reading, self._shared_state, self._body_runner, self._now)
        self._long_reads = LongReads(
            partial(self._connect, folder, vfs, read_only=True, cache_kib=database.LONG_READ_CACHE_KIB),
            self._shared_state,
            self._body_runner,
            self._now,
        )
        self._writer = GroupCommit(
            writing,
            write_lock,
            self._shared_state,
            self._body_runner,
            clock=clock,
            notify=self._notifications.notify,
            lone_client=self._lone_client,
            limits=limits,
        )
        self.commits = self._writer.commits
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        clock: Clock = wall_clock,
        ticks: Callable[[], int] | None = None,
        boot: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        log_bytes: int = LOG_BYTES,
        vfs: str | None = None,
    ) -> "SqliteEngine":
        """Open the store in this folder, or create one. To be called on the loop that will use it.

        ``ticks`` count since the start of the machine, whose number is ``boot``: with them the clock of the store goes
        on when ``clock`` steps back. Without, the store only never has an instant twice.
        ``limits`` bound a batch of writes, ``log_bytes`` the log; ``vfs`` names another file system layer for
        SQLite, with which tests record or corrupt what it writes.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as files:
            try:
                number = 0 if ticks is None else boot_number() if boot is None else boot
                engine = cls(folder, clock, number, limits, log_bytes, vfs, files)
                if ticks is not None:
                    engine._steady(ticks, number)
            except apsw.Error as error:
                raise engine_error(error) from error
            engine._files = files.pop_all()
        return engine

    def _steady(self, ticks: Callable[[], int], boot: int) -> None:
        """Go on by the steady clock of the store. The first process since the start of the machine begins it."""
        shared_state = self._shared_state
        clock = SteadyClock(self._clock, ticks, shared_state)
        if boot == 0 or shared_state.boot != boot or clock() < shared_state.last_instant:
            clock.begin(shared_state.last_instant)
            shared_state.boot = boot
        self._clock = self._writer.clock = clock

    def _connect(
        self,
        folder: Path,
        vfs: str | None,
        *,
        read_only: bool = False,
        cache_kib: int = database.CACHE_KIB,
    ) -> apsw.Connection:
        connection = database.connect(folder, read_only=read_only, vfs=vfs, cache_kib=cache_kib)
        self._files.callback(self._close_connection, connection)
        return connection

    def _close_connection(self, connection: apsw.Connection) -> None:
        """The last connection to close would copy the log, which after a failure must stay for the next opening."""
        if self._shared_state.failed:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        if self._closing is not None:
            return Failed(EngineClosed("the engine was closed"))
        self._body_runner.check_outside_bodies()
        self._lone_client.has_company = True
        try:
            return Done(self._reader.read(body))
        except apsw.Error as error:
            return Failed(engine_error(error))
        except Exception as error:
            return Failed(error)

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        self._body_runner.check_outside_bodies()
        return self._read_in_steps(body)

    async def _read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> T:
        """A read that ends with its first step does not wait for those that are long."""
        await first_slice()
        whole = await self.read(partial(_first_step, body))
        return await self._long_reads.read(body) if whole is None else whole[0]

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        return self._writer.submit(body, durable)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._notifications.subscribe(topic)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._writer.close()
        self._notifications.close()
        self._reader.end()
        self._long_reads.close()
        await asyncio.to_thread(self._files.close)

    def _now(self) -> Instant:
        return max(self._clock(), self._shared_state.last_instant)


def _first_step(body: Callable[[Snapshot], Steps[T]], snap: Snapshot) -> tuple[T] | None:
    """The result, if there is no second step."""
    steps = body(snap)
    try:
        next(steps)
    except StopIteration as ended:
        return (ended.value,)
    finally:
        steps.close()
    return None
