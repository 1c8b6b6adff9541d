"""The files of a SQLite store: connections with the right settings, the schema, and its version.

A folder has ``store.sqlite3`` (with ``-wal`` and ``-shm`` beside it), the lock files, the page of shared memory and the
pipes for notifications. The table ``meta`` has ``format``, the version of the SQL schema, and ``last_instant``: no
committed transaction has a later one. It is a little ahead while the store is open, so that few commits write it. A
program refuses a schema that is newer than its own, and upgrades an older one.

*After a failed sync* the kernel may have pages that look clean and never reached the disk. The first process that opens
the store again copies the whole log into the database file, which writes those pages once more, and has SQLite check
the file before it allows writes.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from kyanite.engine.api import Damaged, EngineError
from kyanite.engine.sqlite.long_values import ADD_LONG_VALUES
from kyanite.engine.sqlite.rows import ADD_CHECKSUMS, SCHEMA
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.values import Instant

FORMAT = 3
"""The version of the SQL schema. The format of what the rows contain has a number of its own.

1: rows without checksums.
2: no table for long values.
"""

PAGE_BYTES = 8192

DATABASE_FILE = "store.sqlite3"
LOG_FILE = DATABASE_FILE + "-wal"
_USERS_FILE = "users.lock"
_BUSY_MILLISECONDS = 10_000
CACHE_KIB = 16 * 1024
LONG_READ_CACHE_KIB = 2 * 1024

_META = "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
_GET_META = "SELECT value FROM meta WHERE name = ?"
_SET_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


def connect(
    folder: Path, *, read_only: bool = False, vfs: str | None = None, cache_kib: int = CACHE_KIB
) -> apsw.Connection:
    """A connection to the store. To be opened after a fork, never before.

    One that only reads belongs to one thread at a time, so SQLite needs no lock for it: a scan takes a fifth less.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    if read_only:
        flags |= apsw.SQLITE_OPEN_NOMUTEX
    connection = apsw.Connection(str(folder / DATABASE_FILE), flags=flags, vfs=vfs)
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    connection.pragma("page_size", PAGE_BYTES)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("fullfsync", True)  # Only macOS makes a difference.
    connection.pragma("checkpoint_fullfsync", True)
    connection.pragma("cache_size", -cache_kib)
    connection.pragma("temp_store", "memory")
    connection.pragma("cell_size_check", True)
    connection.pragma("query_only", read_only)
    connection.wal_autocheckpoint(0)
    # Otherwise SQLite compiles a statement with "LIMIT ?" again whenever it is executed, to plan for the number.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


@contextmanager
def descriptor(folder: Path) -> Iterator[int]:
    """A descriptor of the database file, apart from SQLite's own.

    POSIX drops all locks that a process has on a file when it closes any descriptor of that file, SQLite's locks
    included. So all engines of a process share one descriptor, and each closes its connections first.
    """
    path = (folder / DATABASE_FILE).resolve()
    shared = _descriptors.setdefault(path, _SharedDescriptor())
    if shared.users == 0:
        shared.number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    shared.users += 1
    try:
        yield shared.number
    finally:
        shared.users -= 1
        if shared.users == 0:
            del _descriptors[path]
            os.close(shared.number)


@dataclass(slots=True)
class _SharedDescriptor:
    number: int = -1
    users: int = 0


_descriptors: dict[Path, _SharedDescriptor] = {}


def save_last_instant(cursor: apsw.Cursor, instant: Instant) -> None:
    cursor.execute(_SET_META, ("last_instant", instant))


def join(folder: Path, shared_state: SharedState, *, boot: int, vfs: str | None = None) -> int:
    """Join the processes that use the store, and prepare it if there are no others. Closing the descriptor leaves."""
    users = os.open(folder / _USERS_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _is_alone(users):
            _prepare(folder, shared_state, boot, vfs)
        fcntl.flock(users, fcntl.LOCK_SH)
    except BaseException:
        os.close(users)
        raise
    return users


def _is_alone(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _prepare(folder: Path, shared_state: SharedState, boot: int, vfs: str | None) -> None:
    with _closing(connect(folder, vfs=vfs)) as connection:
        _create_schema(connection)
        _upgrade_schema(connection)
        if shared_state.failed:
            _heal(connection)
        shared_state.reset(Instant(_load_meta(connection, "last_instant")), boot)
        # Opening a large store must not wait for a checkpoint.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    _sync_folder(folder)
    _sync_folder(folder.parent)


def _create_schema(connection: apsw.Connection) -> None:
    with connection:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchall():
            return
        connection.execute(_META + SCHEMA)
        cursor = connection.cursor()
        cursor.execute(_SET_META, ("format", FORMAT))
        cursor.execute(_SET_META, ("last_instant", 0))


def _load_meta(connection: apsw.Connection, name: str) -> int:
    rows = connection.execute(_GET_META, (name,)).fetchall()
    if not rows or not isinstance(rows[0][0], int):
        raise Damaged(f"The store is damaged: it has no {name}.")
    return rows[0][0]


def _upgrade_schema(connection: apsw.Connection) -> None:
    with connection:
        found = _load_meta(connection, "format")
        if found > FORMAT:
            raise EngineError(
                f"The store has format {found} and this version of Kyanite knows format {FORMAT}:"
                " open it with a newer version."
            )
        if found < 1:
            raise Damaged(f"The store is damaged: no version of Kyanite ever wrote format {found}.")
        if found == 1:
            connection.execute(ADD_CHECKSUMS)
        if found < FORMAT:
            connection.execute(ADD_LONG_VALUES)
            connection.execute(_SET_META, ("format", FORMAT))


def _heal(connection: apsw.Connection) -> None:
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    findings = [text for (text,) in connection.execute("PRAGMA quick_check(10)")]
    if findings != ["ok"]:
        raise Damaged(f"The store is damaged: {'; '.join(map(str, findings))}.")


@contextmanager
def _closing(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    try:
        yield connection
    finally:
        connection.close()


def _sync_folder(folder: Path) -> None:
    folder_descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)
