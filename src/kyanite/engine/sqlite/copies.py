"""Copies of a database at one committed state, made while other processes write it, and reading such a copy.

Neither joins the processes that use the store: a server may start, stop and upgrade the store meanwhile, as if nobody
read. All that a reader holds is SQLite's own snapshot, past which the log cannot be shortened until the copy is made.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from kyanite.engine.api import EngineError
from kyanite.engine.sqlite.database import DATABASE_FILE, FORMAT, LONG_READ_CACHE_KIB, PAGE_BYTES, connect
from kyanite.engine.sqlite.errors import engine_error
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.transaction import Row

STEP_PAGES = 512
_FORMAT = "SELECT value FROM meta WHERE name = 'format'"


class DatabaseReader:
    """Rows of a database, each call at the state that is committed when it begins."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rows = Rows(connection)

    def get(self, key: bytes) -> bytes | None:
        with _errors():
            return self._rows.get(key)

    def page(self, start: bytes, end: bytes, limit: int) -> list[Row]:
        """The first rows of the range. Raises Damaged for one that is not as it was written."""
        with _errors():
            try:
                return list(self._rows.scan(start, end, False, limit))
            finally:
                self._rows.end_scans()

    def problems(self) -> list[str]:
        """What SQLite finds wrong with the pages, a few findings at most."""
        with _errors():
            rows = self._connection.execute("PRAGMA quick_check(5)").fetchall()
        found = [" ".join(str(text).split()) for (text,) in rows]
        return [] if found == ["ok"] else found

    def copy_to(self, target: Path) -> Iterator[tuple[int, int]]:
        """Copy the state that is committed now into a new file, and sync it. Yields bytes copied, and bytes in all."""
        with _errors():
            self._connection.execute("BEGIN")
            try:
                self._rows.take_snapshot()
                yield from _copy(self._connection, target)
            finally:
                self._connection.execute("COMMIT")
        with target.open("rb") as file:
            os.fsync(file.fileno())


def _copy(source: apsw.Connection, target: Path) -> Iterator[tuple[int, int]]:
    with closing(apsw.Connection(str(target))) as copy:
        # The file is of no use before it is whole, and is synced then.
        copy.pragma("journal_mode", "off")
        copy.pragma("synchronous", "off")
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(STEP_PAGES)
                copied = backup.page_count - backup.remaining
                yield copied * PAGE_BYTES, backup.page_count * PAGE_BYTES


@contextmanager
def open_live(folder: Path) -> Iterator[DatabaseReader]:
    """The database of a store that other processes may use."""
    with _errors(), closing(connect(folder, read_only=True, cache_kib=LONG_READ_CACHE_KIB)) as connection:
        # Copying the log is left to the processes that write.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _check_schema(connection)
        yield DatabaseReader(connection)


@contextmanager
def open_copy(path: Path) -> Iterator[DatabaseReader]:
    """A database that no process ever writes again. Nothing is made beside it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with (
        _errors(),
        closing(apsw.Connection(f"{path.resolve().as_uri()}?immutable=1", flags=flags)) as connection,
    ):
        connection.pragma("cell_size_check", True)
        _check_schema(connection)
        yield DatabaseReader(connection)


def database_path(folder: Path) -> Path:
    return folder / DATABASE_FILE


def _check_schema(connection: apsw.Connection) -> None:
    rows = connection.execute(_FORMAT).fetchall()
    found = rows[0][0] if rows else 0
    if found != FORMAT:
        raise EngineError(
            f"Its tables have format {found}, and this version of Kyanite reads format {FORMAT} here:"
            " serve or verify the store once with this version."
        )


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise engine_error(error) from error
