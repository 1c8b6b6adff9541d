"""Reading from SQLite: each body on the state that is committed when it begins.

Requests that are ready in the same iteration of the event loop are read one after the other. As long as nothing was
committed in between and no commit is in flight, which the shared state says, a new snapshot would be the same as the
last, so that one is used again: SQLite's locks are taken once and not for every read. The snapshot ends in the next
iteration of the loop, or as soon as something was committed, so it never blocks a checkpoint.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import apsw

from kyanite.engine.api import Snapshot
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.transaction import BodyRunner, BodySnapshot, Clock

T = TypeVar("T")


class Reader:
    """To be made on the loop that uses it."""

    def __init__(
        self, connection: apsw.Connection, shared_state: SharedState, body_runner: BodyRunner, clock: Clock
    ) -> None:
        self._cursor = connection.cursor()
        self._rows = Rows(connection)
        self._shared_state = shared_state
        self._body_runner = body_runner
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._commits: int | None = None
        """The count of commits when the snapshot began; None without a snapshot."""

    def read(self, body: Callable[[Snapshot], T]) -> T:
        # Read before the snapshot begins: a commit in between only makes the next read begin a new one.
        commits = self._shared_state.commits
        if commits != self._commits or commits % 2:
            self._begin(commits)
        try:
            return self._body_runner.call(body, BodySnapshot(self._rows, self._clock))
        except apsw.Error:
            with suppress(apsw.Error):
                self.end()
            raise
        finally:
            if self._rows.open_scans:
                self._rows.end_scans()

    def end(self) -> None:
        """End the snapshot, if there is one."""
        if self._commits is not None:
            self._commits = None
            self._cursor.execute("COMMIT")

    def _begin(self, commits: int) -> None:
        if self._commits is None:
            self._loop.call_soon(self.end)
        else:
            self._cursor.execute("COMMIT")
            self._commits = None
        self._cursor.execute("BEGIN")
        self._commits = commits
