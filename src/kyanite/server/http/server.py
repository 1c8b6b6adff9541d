"""The HTTP/1.1 front end: accepts connections, counts them, ends slow ones, and stops gracefully.

It knows nothing of storage. A handler gets a ``Request`` and returns a ``Response``. What lies between them and the
socket is in the modules beside this one: ``request_parser`` and ``request_body`` (bytes to requests), ``connection``
(one client), ``response_head``, ``response_writer``, ``streaming`` and ``sendfile`` (responses to bytes). Short
responses of several clients leave together (``server/gathered_responses.py``).
"""

import asyncio
import logging
import socket
from collections.abc import Collection
from ssl import SSLContext

from kyanite.server.gathered_responses import gathered_responses
from kyanite.server.http.connection import (
    HttpConnection,
    OnCompleted,
    OnError,
    OnMalformed,
    new_connection,
)
from kyanite.server.http.limits import Limits, Stats
from kyanite.server.memory_budget import MemoryBudget
from kyanite.wire.http import BodyError, Handler, Request, Response

_BACKLOG = 1024
_CLEAN_UP_SECONDS = 5.0
"""How long cancelled handlers may take to clean up when the server stops."""

_log = logging.getLogger(__name__)


def answer_to_error(request: Request, error: Exception) -> Response:
    """The response when a handler fails, unless the server has another function for that."""
    if isinstance(error, BodyError):
        return Response(error.status)
    _log.error("%s %s failed", request.method, request.path, exc_info=error)
    return Response(500)


class HttpServer:
    """Serves one handler on any number of listening sockets."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits,
        on_error: OnError = answer_to_error,
        on_completed: OnCompleted | None = None,
    ) -> None:
        self.handler = handler
        self.limits = limits
        self.on_error = on_error
        self.on_completed = on_completed
        self.on_malformed: OnMalformed | None = None
        self.stats = Stats()
        self.budget = MemoryBudget(limits.memory_bytes)
        self.stopping = False
        self._loop = asyncio.get_running_loop()
        self.gathered = gathered_responses(self._loop)
        self.now_seconds = self._loop.time()
        self._listeners: list[asyncio.Server] = []
        self._connections: set[HttpConnection] = set()
        self._emptied = asyncio.Event()
        self._ticking = self._loop.call_later(limits.tick_seconds, self._tick)

    async def accept_on(self, listener: socket.socket, ssl: SSLContext | None = None) -> None:
        """Accept connections on a bound socket, which the server will close."""
        name = listener.getsockname()
        local_port = name[1] if isinstance(name, tuple) else 0
        server = await self._loop.create_server(
            lambda: new_connection(self, self._loop, local_port),
            sock=listener,
            ssl=ssl,
            ssl_handshake_timeout=None if ssl is None else self.limits.head_seconds,
            backlog=_BACKLOG,
        )
        self._listeners.append(server)

    def drain(self) -> None:
        """From now on every connection ends after the response to its request, and one without a request soon. New
        ones are still accepted."""
        self.stopping = True

    async def stop(self, grace_seconds: float) -> None:
        """Accept no more connections, let requests in flight finish within the grace time, then abort the rest."""
        self.stopping = True
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            connection.finish()
        await self._until_empty(grace_seconds)
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        for connection in list(self._connections):
            connection.abort()
        await self._until_empty(_CLEAN_UP_SECONDS)
        if tasks:
            await asyncio.wait(tasks, timeout=_CLEAN_UP_SECONDS)
        self._ticking.cancel()
        if self.gathered is not None:
            self.gathered.close()

    async def abort_requests_of(self, accounts: Collection[str]) -> None:
        """End the connections that have requests of these accounts in progress, and wait for their handlers to end."""
        aborted = [connection for connection in self._connections if connection.account in accounts]
        tasks = [connection.task for connection in aborted if connection.task is not None]
        for connection in aborted:
            connection.abort()
        if tasks:
            await asyncio.wait(tasks)

    async def _until_empty(self, seconds: float) -> None:
        if not self._connections:
            return
        self._emptied.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._emptied.wait()
        except TimeoutError:
            return

    # Called by connections.

    def opened(self, connection: HttpConnection) -> bool:
        self._connections.add(connection)
        stats = self.stats
        stats.connections_total += 1
        stats.connections_open += 1
        if len(self._connections) <= self.limits.connections:
            return True
        stats.connections_refused += 1
        if len(self._connections) > 2 * self.limits.connections:
            connection.abort()
        return False

    def closed(self, connection: HttpConnection) -> None:
        self._connections.discard(connection)
        self.stats.connections_open -= 1
        if not self._connections:
            self._emptied.set()

    def _tick(self) -> None:
        now = self._loop.time()
        elapsed, self.now_seconds = now - self.now_seconds, now
        self._ticking = self._loop.call_later(self.limits.tick_seconds, self._tick)
        for connection in list(self._connections):
            connection.tick(elapsed)
        self.budget.tick()


async def serve(
    handler: Handler,
    sockets: list[socket.socket],
    *,
    ssl: SSLContext | None = None,
    limits: Limits | None = None,
    on_error: OnError = answer_to_error,
    on_completed: OnCompleted | None = None,
) -> HttpServer:
    """Serve on bound sockets until ``stop`` is awaited on what this returns."""
    server = HttpServer(handler, limits=limits or Limits(), on_error=on_error, on_completed=on_completed)
    for listener in sockets:
        await server.accept_on(listener, ssl)
    return server
