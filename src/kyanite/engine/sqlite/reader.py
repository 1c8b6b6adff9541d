"""Reading from the embedded store: a body at a time, each on the state that is committed when it begins.

Requests that are ready at the same turn of the event loop are read one after the other. As long as nothing has been
committed in between and no commit is under way, which the board tells, a new snapshot would show what the last one
shows, so that one is used on: SQLite's locks are taken once and not for every read. It is let go at the next turn of
the loop, or as soon as something was committed, so it never keeps the log from being checkpointed.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import apsw

from kyanite.engine.api import Snapshot
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.transaction import Bodies, Clock, View

T = TypeVar("T")


class Reader:
    """To be made on the loop that will use it."""

    def __init__(
        self, connection: apsw.Connection, shared_state: SharedState, bodies: Bodies, clock: Clock
    ) -> None:
        self._cursor = connection.cursor()
        self._rows = Rows(connection)
        self._shared_state = shared_state
        self._bodies = bodies
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._commits: int | None = None
        """How many commits there had been when the snapshot was begun; None while there is none."""

    def read(self, body: Callable[[Snapshot], T]) -> T:
        # Counted before the snapshot is taken: what is committed meanwhile makes it be taken anew the next time.
        commits = self._shared_state.commits
        if commits != self._commits or commits % 2:
            self._begin(commits)
        try:
            return self._bodies.call(body, View(self._rows, self._clock))
        except apsw.Error:
            with suppress(apsw.Error):
                self.end()
            raise
        finally:
            self._rows.end_scans()

    def end(self) -> None:
        """Let the snapshot go, if there is one."""
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
