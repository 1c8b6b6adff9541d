"""Letting SQLite check its own file: its pages, the order of its rows, and that each long value belongs to a row.

What the rows contain is not checked here: whoever reads them does that.
"""

from contextlib import closing
from pathlib import Path

import apsw

from kyanite.engine.sqlite.database import DATABASE_FILE, connect

_HAS_LONG = "SELECT 1 FROM sqlite_schema WHERE name = 'long'"
"""Not before schema 3."""
_UNUSED_LONG = """
SELECT count(*), coalesce(sum(length(value)), 0) FROM long
WHERE NOT EXISTS (SELECT 1 FROM kv WHERE kv.key = long.key AND kv.value = long.id)
"""
"""A row whose value is not there is damaged for all who read it. A value without a row nobody would notice."""


def exists(folder: Path) -> bool:
    """Whether there is a database. SQLite takes an empty file for a new one."""
    path = folder / DATABASE_FILE
    return path.exists() and path.stat().st_size > 0


def problems(folder: Path, *, limit: int) -> list[str]:
    """What SQLite finds wrong, so many findings at most. To be called while no engine has the store open."""
    if not exists(folder):
        return [f"the file {DATABASE_FILE} is missing or empty"]
    try:
        with closing(connect(folder, read_only=True)) as connection:
            # A file that is damaged is left as it is.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            rows = connection.execute(f"PRAGMA integrity_check({limit})").fetchall()
            found = [" ".join(str(text).split()) for (text,) in rows]
            if found != ["ok"]:
                return found[:limit]
            return _unused_long_values(connection)
    except apsw.Error as error:
        return [str(error)]


def _unused_long_values(connection: apsw.Connection) -> list[str]:
    if connection.execute(_HAS_LONG).get is None:
        return []
    count, size = connection.execute(_UNUSED_LONG).fetchall()[0]
    return [f"{count} long values with {size} bytes belong to no row"] if count else []
