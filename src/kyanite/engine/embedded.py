"""The embedded engine: SQLite through apsw, one file, any number of processes of one machine.

Every process opens the store after its fork and uses it from one event loop. Reads run inline on the loop, each in a
transaction of its own on the reading connection; writes go through ``GroupCommit``; a ``Checkpointer`` in one of the
processes keeps the log short.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import apsw

from kyanite.engine import sqlite_store
from kyanite.engine.api import EngineClosed, EngineError, Scope, Snapshot, Transaction
from kyanite.engine.bell import Bell
from kyanite.engine.board import Board
from kyanite.engine.clock import wall_clock
from kyanite.engine.group_commit import GroupCommit, Limits
from kyanite.engine.outcome import Done, Failed
from kyanite.engine.rows import Rows
from kyanite.engine.snapshot import Bodies, Clock, View
from kyanite.engine.turnstile import Turnstile
from kyanite.values import Instant

T = TypeVar("T")


class EmbeddedEngine:
    def __init__(self, folder: Path, clock: Clock, limits: Limits, vfs: str | None) -> None:
        self._clock = clock
        self._board = Board(folder)
        self._users = sqlite_store.join(folder, self._board, vfs=vfs)
        self._bodies = Bodies()
        self._bell = Bell()
        self._reading = sqlite_store.connect(folder, read_only=True, vfs=vfs)
        self._cursor = self._reading.cursor()
        self._rows = Rows(self._reading)
        self._writing = sqlite_store.connect(folder, vfs=vfs)
        self._turnstile = Turnstile(folder, self._board)
        self._closed = False
        self._writer = GroupCommit(
            self._writing,
            self._turnstile,
            self._board,
            self._bodies,
            clock=clock,
            ring=self._bell.ring,
            limits=limits,
        )

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        clock: Clock = wall_clock,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        vfs: str | None = None,
    ) -> "EmbeddedEngine":
        """Open the store in this folder, or make one there. To be called on the loop that will use it."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder, clock, limits, vfs)

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        if self._closed:
            return Failed(EngineClosed("the engine was closed"))
        self._bodies.check_none_runs()
        try:
            self._cursor.execute("BEGIN")
            try:
                return Done(self._bodies.call(body, View(self._rows, self._now)))
            finally:
                self._rows.end_scans()
                self._cursor.execute("COMMIT")
        except apsw.Error as error:
            return Failed(EngineError(f"SQLite: {error}"))
        except Exception as error:
            return Failed(error)

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        return self._writer.submit(body, durable)

    def listen(self, topic: bytes) -> AsyncIterator[None]:
        return self._bell.listen(topic)

    async def close(self) -> None:
        if self._closed:
            return
        await self._writer.close()
        self._closed = True
        self._bell.close()
        await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        self._reading.close()
        self._writing.close()
        self._turnstile.close()
        self._board.close()
        os.close(self._users)

    def _now(self) -> Instant:
        return max(self._clock(), self._board.high)
