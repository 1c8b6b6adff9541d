"""The embedded engine: SQLite through apsw, one file, any number of processes of one machine.

Every process opens the store after its fork and uses it from one event loop. Reads run inline on the loop, each in a
transaction of its own on the reading connection; writes go through ``GroupCommit``; a ``Checkpointer`` in one of the
processes keeps the log short.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import apsw

from kyanite.engine.api import EngineClosed, EngineError, Scope, Snapshot, Transaction
from kyanite.engine.clock import wall_clock
from kyanite.engine.outcome import Done, Failed
from kyanite.engine.sqlite import database as sqlite_store
from kyanite.engine.sqlite.checkpoint import LOG_BYTES, Checkpointer
from kyanite.engine.sqlite.group_commit import DEFAULT_LIMITS, GroupCommit, Limits
from kyanite.engine.sqlite.notifications import FifoNotifications
from kyanite.engine.sqlite.reader import Reader
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.sqlite.write_lock import WriteLock
from kyanite.engine.transaction import Bodies, Clock
from kyanite.values import Instant

T = TypeVar("T")


class EmbeddedEngine:
    def __init__(
        self, folder: Path, clock: Clock, limits: Limits, log_bytes: int, vfs: str | None, files: ExitStack
    ) -> None:
        """Opens one thing after another. ``files`` closes them in the opposite order, also if one cannot be."""
        self._clock = clock
        self._files = files
        self._shared_state = SharedState(folder)
        files.callback(self._shared_state.close)
        files.callback(os.close, sqlite_store.join(folder, self._shared_state, vfs=vfs))
        # Before the first connection, hence closed after the last.
        database = files.enter_context(sqlite_store.descriptor(folder))
        write_lock = WriteLock(folder, self._shared_state)
        files.callback(write_lock.close)
        reading = self._connect(folder, vfs, read_only=True)
        writing = self._connect(folder, vfs)
        self._notifications = FifoNotifications(folder, self._shared_state)
        checkpointer = Checkpointer(
            self._connect(folder, vfs), database, folder, self._shared_state, log_bytes
        )
        files.callback(checkpointer.stop)
        self._bodies = Bodies()
        self._reader = Reader(reading, self._shared_state, self._bodies, self._now)
        self._writer = GroupCommit(
            writing,
            write_lock,
            self._shared_state,
            self._bodies,
            clock=clock,
            notify=self._notifications.notify,
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
        limits: Limits = DEFAULT_LIMITS,
        log_bytes: int = LOG_BYTES,
        vfs: str | None = None,
    ) -> "EmbeddedEngine":
        """Open the store in this folder, or make one there. To be called on the loop that will use it.

        ``limits`` bound a batch of writes, ``log_bytes`` the log; ``vfs`` names another file system layer for
        SQLite, which tests use to see or to spoil what it does to its files.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as files:
            try:
                engine = cls(folder, clock, limits, log_bytes, vfs, files)
            except apsw.Error as error:
                raise EngineError(f"SQLite: {error}") from error
            engine._files = files.pop_all()
        return engine

    def _connect(self, folder: Path, vfs: str | None, *, read_only: bool = False) -> apsw.Connection:
        connection = sqlite_store.connect(folder, read_only=read_only, vfs=vfs)
        self._files.callback(self._close_connection, connection)
        return connection

    def _close_connection(self, connection: apsw.Connection) -> None:
        """The last to close would copy the log, but after a failure it must stay for whoever opens the store next."""
        if self._shared_state.failed:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        if self._closing is not None:
            return Failed(EngineClosed("the engine was closed"))
        self._bodies.check_none_runs()
        try:
            return Done(self._reader.read(body))
        except apsw.Error as error:
            return Failed(EngineError(f"SQLite: {error}"))
        except Exception as error:
            return Failed(error)

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        return self._writer.submit(body, durable)

    def subscribe(self, topic: bytes) -> AsyncIterator[None]:
        return self._notifications.subscribe(topic)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._writer.close()
        self._notifications.close()
        self._reader.end()
        await asyncio.to_thread(self._files.close)

    def _now(self) -> Instant:
        return max(self._clock(), self._shared_state.high)
