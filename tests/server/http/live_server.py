"""The HTTP front end on a real socket, in a thread with a loop of its own."""

import asyncio
import gc
import os
import socket
import ssl
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import uvloop

from kyanite.server.http.connection import HttpConnection, OnCompleted, OnError
from kyanite.server.http.limits import Limits
from kyanite.server.http.server import HttpServer, serve
from kyanite.wire.http import FileSlice, Handler, Piece, Request, Response
from tests.server.http.blocking_client import PATIENCE_SECONDS, read_to_end, until

T = TypeVar("T")


class LiveHttp:
    """Start it with ``with``; it is stopped, with no grace, at the end."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits | None = None,
        ssl_context: ssl.SSLContext | None = None,
        on_error: OnError | None = None,
        on_completed: OnCompleted | None = None,
    ) -> None:
        self._handler = handler
        self._options: dict[str, Any] = {"limits": limits, "ssl": ssl_context, "on_completed": on_completed}
        if on_error is not None:
            self._options["on_error"] = on_error
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, daemon=True)
        self.server: HttpServer

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def __enter__(self) -> Self:
        self._thread.start()
        self.server = self.run(serve(self._handler, [self._listener], **self._options))
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(0.0)
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def stop(self, grace_seconds: float) -> None:
        self.run(self.server.stop(grace_seconds))

    def connect(self, *, receive_buffer_bytes: int | None = None) -> socket.socket:
        client = socket.socket()
        if receive_buffer_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        client.settimeout(PATIENCE_SECONDS)
        try:
            client.connect(("127.0.0.1", self.port))
        except OSError:
            client.close()
            raise
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def talk(self, *sends: bytes) -> bytes:
        """Send each piece by itself and read until the server closes."""
        with self.connect() as client:
            for data in sends:
                client.sendall(data)
            return read_to_end(client)

    def pending_tasks(self) -> int:
        async def count() -> int:
            return len(asyncio.all_tasks()) - 1

        return self.run(count())

    @contextmanager
    def nothing_left(self) -> Iterator[None]:
        """Whatever happens inside leaves no connection, task or descriptor behind, nor work for the collector."""
        gc.collect()
        gc.disable()
        try:
            descriptors = len(os.listdir("/proc/self/fd"))
            yield
            until(lambda: self.server.stats.connections_open == 0)
            until(lambda: self.pending_tasks() == 0)
            assert self.server.stats.requests_in_flight == 0
            until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
            until(lambda: not connections_in_memory())
        finally:
            gc.enable()


def connections_in_memory() -> bool:
    """By type: isinstance asks a weak proxy for the class of what it stands for, which may be gone."""
    return any(issubclass(type(thing), HttpConnection) for thing in gc.get_objects())


async def describe(request: Request) -> Response:
    """A handler that answers with what it was asked."""
    body = await request.body.read_all(1 << 20)
    assert body is not None
    target = request.path + ("?" + request.query if request.query else "")
    return Response(200, body=b"%b %b %b" % (request.method.encode(), target.encode(), body))


class Pieces:
    """A streamed body that is no generator: it only knows how to give the next piece."""

    def __init__(self, *pieces: Piece) -> None:
        self._pieces = iter(pieces)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | memoryview | FileSlice:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration
