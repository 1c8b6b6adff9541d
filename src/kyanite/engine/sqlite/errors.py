"""From an error of SQLite to one of the engine contract."""

import apsw

from kyanite.engine.api import Damaged, EngineBusy, EngineError, EngineFull

_DAMAGE = frozenset({apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_DATA})
"""The file ends too early, the disk cannot read, or the file system has found its own checksum wrong."""


def engine_error(error: apsw.Error) -> EngineError:
    text = f"SQLite: {error}"
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return Damaged(text)
    if getattr(error, "extendedresult", 0) in _DAMAGE:
        return Damaged(text)
    if isinstance(error, apsw.FullError):
        return EngineFull(text)
    if isinstance(error, apsw.BusyError):
        return EngineBusy(text)
    return EngineError(text)
