"""Letting SQLite check its own file: the pages of the database and the order of its rows, not what the rows contain."""

from contextlib import closing
from pathlib import Path

import apsw

from kyanite.engine.sqlite.database import DATABASE_FILE, connect


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
    except apsw.Error as error:
        return [str(error)]
    found = [" ".join(str(text).split()) for (text,) in rows]
    return [] if found == ["ok"] else found[:limit]
