"""Reading from SQLite: each body on the state that is committed when it begins.

As long as nothing was committed and no commit is in flight, which the shared state says, the rows are as they were at
the last read. So the reader keeps small rows until something is committed, and a body that finds all its rows among
them needs no snapshot of SQLite. One that does not begins a snapshot, which the other reads of the same iteration of
the event loop use as well: SQLite's locks are taken once and not for every read. The snapshot ends in the next
iteration, or as soon as something was committed, so it never blocks a checkpoint.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import apsw

from kyanite.engine.api import Snapshot
from kyanite.engine.groups import Groups
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.transaction import BodyRunner, BodySnapshot, Clock, Row

T = TypeVar("T")

_KEPT_ROWS = 4096
_KEPT_BYTES_MAX: Final = 2048
"""The longest value that is kept."""
_NO_STATE: Final = -1


class _Outdated(BaseException):
    """Something was committed after the body had read rows that were kept: it has to run again.

    No body catches this, whatever it does with errors.
    """


class Reader:
    """To be made on the loop that uses it. It is what the snapshots of bodies read from."""

    def __init__(
        self, connection: apsw.Connection, shared_state: SharedState, body_runner: BodyRunner, clock: Clock
    ) -> None:
        self._cursor = connection.cursor()
        self._rows = Rows(connection)
        self._shared_state = shared_state
        self._body_runner = body_runner
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._commits = _NO_STATE
        """The count of commits when the state began that is read at present."""
        self._kept: dict[bytes, bytes | None] = {}
        """Rows of this state."""
        self._has_snapshot = False
        """Whether SQLite has a snapshot of it."""

    def read(self, body: Callable[[Snapshot], T]) -> T:
        # Read before the snapshot begins: a commit in between only makes the next read begin a new one.
        commits = self._shared_state.commits
        if commits != self._commits or commits % 2:
            self._begin_state(commits)
        try:
            return self._body_runner.call(body, BodySnapshot(self, self._clock))
        except _Outdated:
            self._begin_state(_NO_STATE)
            return self.read(body)  # Nothing is kept, so this cannot happen twice.
        except apsw.Error:
            with suppress(apsw.Error):
                self.end()
            raise
        finally:
            if self._rows.open_scans:
                self._rows.end_scans()

    def _begin_state(self, commits: int) -> None:
        self._kept.clear()
        if self._has_snapshot:
            self.end()
        self._commits = commits

    def end(self) -> None:
        """End the snapshot, if there is one."""
        if self._has_snapshot:
            self._has_snapshot = False
            try:
                self._cursor.execute("COMMIT")
            except (
                apsw.CorruptError
            ):  # SQLite ends the transaction all the same, and reports its damage once more.
                self._commits = _NO_STATE

    # What a body reads

    def take_snapshot(self) -> None:
        if not self._has_snapshot:
            self._begin()
        self._rows.take_snapshot()

    def get(self, key: bytes) -> bytes | None:
        kept = self._kept
        value = kept.get(key)
        if value is not None or key in kept:
            return value
        if not self._has_snapshot:
            self._begin()
        value = self._rows.get(key)
        if (value is None or len(value) <= _KEPT_BYTES_MAX) and len(kept) < _KEPT_ROWS:
            kept[key] = value
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if not self._has_snapshot:
            self._begin()
        return self._rows.get_many(keys)

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        if not self._has_snapshot:
            self._begin()
        return self._rows.scan(start, end, reverse, limit)

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        if not self._has_snapshot:
            self._begin()
        return self._rows.scan_groups(groups, limit)

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        if not self._has_snapshot:
            self._begin()
        return self._rows.without_checksum(start, end)

    def _begin(self) -> None:
        """SQLite takes the snapshot at the first row that is read."""
        self._cursor.execute("BEGIN")
        self._has_snapshot = True
        self._loop.call_soon(self.end)
        if self._kept:
            self._rows.take_snapshot()
            if self._shared_state.commits != self._commits:
                raise _Outdated
