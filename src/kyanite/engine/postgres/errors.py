"""What goes wrong with a database, as errors of the engine.

A ``ConnectionLost`` never leaves the engine: whatever it interrupts is done again on another connection, and a commit
is first looked up.
"""

import asyncpg

from kyanite.engine.api import Damaged, EngineBusy, EngineError, EngineFull

NO_SPACE = (asyncpg.DiskFullError,)
_DAMAGED = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)
_RETRYABLE = (
    asyncpg.exceptions.LockNotAvailableError,
    asyncpg.exceptions.QueryCanceledError,
    asyncpg.exceptions.TransactionRollbackError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.exceptions.ReadOnlySQLTransactionError,
)
LOST = (
    OSError,
    asyncpg.exceptions.PostgresConnectionError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.IdleInTransactionSessionTimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    TimeoutError,
)
"""After one of these the connection is of no use. ``QueryCanceledError`` is an intervention too, but comes first."""


class ConnectionLost(Exception):
    """The connection ended while it was used. Whether its last statement was carried out is not known."""


def engine_error(error: Exception) -> Exception:
    """The error of the engine that this error of the driver is; a ``ConnectionLost`` if it is about the connection."""
    if isinstance(error, EngineError | ConnectionLost):
        return error
    text = str(error) or type(error).__name__
    if isinstance(error, NO_SPACE):
        return EngineFull(f"The database has no space left: {text}.")
    if isinstance(error, _DAMAGED):
        return Damaged(f"The database is damaged: {text}.")
    if isinstance(error, asyncpg.exceptions.ReadOnlySQLTransactionError):
        return ConnectionLost(text)  # It was the primary once.
    if isinstance(error, _RETRYABLE):
        return EngineBusy(f"The database is busy: {text}.")
    if isinstance(error, LOST):
        return ConnectionLost(text)
    return EngineError(f"The database failed: {text}.")
