"""Connections to the primary: few, reused, and made again when the server restarts or another takes over.

A URL may name several servers. One that is a standby, or read-only, is never used; all are tried until one is the
primary. A statement is never cancelled: PostgreSQL would then acknowledge a commit that no standby has. A connection on
which a statement takes too long is closed instead, and what became of a commit is looked up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import asyncpg

from kyanite.engine.api import EngineBusy, EngineClosed, EngineError
from kyanite.engine.postgres import schema
from kyanite.engine.postgres.address import Address
from kyanite.engine.postgres.errors import LOST, ConnectionLost, engine_error

T = TypeVar("T")

PATIENCE_SECONDS = 12.0
"""How long a call waits for a primary before the engine says that it is busy."""
STATEMENT_SECONDS = 8.0
"""After this, the server is taken to be gone."""
_CONNECT_SECONDS = 2.0
_PAUSE_SECONDS = 0.1, 1.0
"""Between two looks for a primary: at first, and at most. It doubles each time."""
_RETRY_SECONDS = 0.01
_MAX_CONNECTIONS = 8
_SETTINGS = {
    "application_name": "kyanite",
    "lock_timeout": "6000",
    "idle_in_transaction_session_timeout": "4000",
    "statement_timeout": "0",
    "jit": "off",
    # All statements go through the primary keys, however few rows the tables have when they are planned.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
}
_MIN_SERVER = 130_000
_log = logging.getLogger("kyanite.engine")


class Connection:
    """One connection. After ``ConnectionLost`` it is of no further use."""

    def __init__(self, driver: asyncpg.Connection) -> None:
        self.driver = driver
        self._is_late = False

    async def call(self, statement: str, *values: object) -> Sequence[Any]:
        return await self._finish(self.driver.fetch(statement, *values))

    async def execute(self, statements: str) -> None:
        await self._finish(self.driver.execute(statements))

    async def _finish(self, statement: Awaitable[T]) -> T:
        """Await a statement, without ever cancelling it."""
        timer = asyncio.get_running_loop().call_later(STATEMENT_SECONDS, self._give_up)
        try:
            return await statement
        except asyncio.CancelledError:
            # The driver has not sent its request to cancel the statement yet, and does not when it is closed.
            self.driver.terminate()
            raise
        except (asyncpg.PostgresError, *LOST) as error:
            if self._is_late:
                raise ConnectionLost(f"no answer within {STATEMENT_SECONDS:.0f} seconds") from error
            raise engine_error(error) from error
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        self._is_late = True
        self.driver.terminate()

    @property
    def is_usable(self) -> bool:
        return not self.driver.is_closed() and not self.driver.is_in_transaction()


class Connections:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: list[Connection] = []
        self._limit = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._all: set[Connection] = set()
        self._is_prepared = False
        self._connecting = asyncio.Lock()
        self._search: asyncio.Task[None] | None = None
        """Looks for a primary, for all who wait, while none can be reached:"""
        self._problem = ""
        self._closed = False

    def lend(self) -> "Lent":
        """A connection to the primary, for a block. Raises EngineBusy if there is none in time."""
        return Lent(self)

    async def take(self) -> Connection:
        await self._limit.acquire()
        try:
            return await self._take()
        except BaseException:
            self._limit.release()
            raise

    def give_back(self, connection: Connection) -> None:
        self._limit.release()
        if connection.is_usable and not self._closed:
            self._free.append(connection)
        else:
            self.drop(connection)

    async def _take(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if connection.is_usable:
                return connection
            self.drop(connection)
        return await self.connect()

    def drop(self, connection: Connection) -> None:
        self._all.discard(connection)
        connection.driver.terminate()

    async def connect(self) -> Connection:
        """A new connection. Waits for a primary, but not for ever."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        while True:
            if self._closed:
                raise EngineClosed("the engine was closed")
            if self._search is None:
                try:
                    return await self._connect_to_any()
                except ConnectionLost as error:
                    self._problem = str(error)
                    self._search = self._search or loop.create_task(self._search_primary())
            await asyncio.wait((self._search,), timeout=max(deadline - loop.time(), 0))
            if loop.time() >= deadline:
                raise EngineBusy(f"The database {self._address.names} cannot be reached: {self._problem}.")

    async def _search_primary(self) -> None:
        """Ends when there is one, or when something is wrong that waiting does not help against."""
        pause, longest = _PAUSE_SECONDS
        longest = min(longest, PATIENCE_SECONDS / 8)  # Who has just begun to wait does not miss it.
        try:
            while not self._closed:
                await asyncio.sleep(min(pause, longest))
                pause *= 2
                with suppress(ConnectionLost):
                    self._free.append(await self._connect_to_any())
                    return
        except EngineError:
            pass  # Whoever connects next is told.
        finally:
            self._search = None

    async def _connect_to_any(self) -> Connection:
        problems = []
        for server in self._address.servers:
            try:
                connection = await self._connect_to(server)
            except (ConnectionLost, *LOST) as error:
                problems.append(_sentence_of(error))
            else:
                self._all.add(connection)
                return connection
        raise ConnectionLost("; ".join(problems))

    async def _connect_to(self, server: str) -> Connection:
        settings = {**_SETTINGS, "search_path": self._address.schema}
        try:
            driver = await asyncpg.connect(
                server, timeout=_CONNECT_SECONDS, server_settings=settings, max_cached_statement_lifetime=0
            )
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            raise EngineError(
                f"The database {self._address.names} refuses the user or the password."
            ) from error
        except asyncpg.InvalidCatalogNameError as error:
            raise EngineError(f"There is no such database: {self._address.names}.") from error
        except (asyncpg.PostgresError, *LOST) as error:
            raise ConnectionLost(_sentence_of(error)) from error
        try:
            await asyncio.wait_for(self._check(driver), STATEMENT_SECONDS)
        except BaseException as error:
            driver.terminate()
            if isinstance(error, (asyncpg.PostgresError, *LOST)):
                raise engine_error(error) from error
            raise
        return Connection(driver)

    async def _check(self, driver: asyncpg.Connection) -> None:
        row = await driver.fetchrow(
            "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS is_read_only,"
            " current_setting('server_version_num')::int AS version,"
            " current_setting('synchronous_commit') AS commit"
        )
        assert row is not None
        if row["is_read_only"]:
            raise ConnectionLost("the server is a standby, or read-only")
        if row["version"] < _MIN_SERVER:
            raise EngineError("The database is older than PostgreSQL 13.")
        if row["commit"] == "off":
            # What is acknowledged would not be on disk.
            await driver.execute("SET synchronous_commit = on")
        if not self._is_prepared:
            async with self._connecting:
                if not self._is_prepared:
                    await self._prepare(driver)

    async def _prepare(self, driver: asyncpg.Connection) -> None:
        try:
            await schema.prepare(driver, self._address.schema)
        except asyncpg.InsufficientPrivilegeError as error:
            raise EngineError(
                f"The user may not make the schema {self._address.schema} in the database {self._address.names}."
            ) from error
        self._is_prepared = True

    async def repeat(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do work that may be done twice, again if its connection is lost; then EngineBusy."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                async with self.lend() as connection:
                    return await work(connection)
            except ConnectionLost as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise EngineBusy(f"The connection to the database was lost: {error}.") from error
                await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        self._closed = True
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait((self._search,))
        for connection in self._free:
            with suppress(Exception):
                await connection.driver.close(timeout=1)
            self._all.discard(connection)
        for connection in tuple(self._all):
            self.drop(connection)


class Lent:
    """A connection for the block of an ``async with``."""

    __slots__ = ("_connection", "_connections")

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: Connection | None = None

    async def __aenter__(self) -> Connection:
        self._connection = await self._connections.take()
        return self._connection

    async def __aexit__(self, *_error: object) -> None:
        assert self._connection is not None
        self._connections.give_back(self._connection)


def _sentence_of(error: BaseException) -> str:
    return (str(error) or type(error).__name__).rstrip(".")
