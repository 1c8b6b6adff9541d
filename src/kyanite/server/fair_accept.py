"""Fair turns at one listening socket that several processes share.

Left to the kernel, few connections spread badly: one inherited socket lets whoever wakes first take them all, and
``SO_REUSEPORT`` throws dice (``docs/decisions/0003-one-socket-and-fair-accept.md`` has the figures). So a process looks
at the roster before it accepts: while another one that is awake holds fewer connections, it steps back for a moment and
leaves the connection to that one, but not for ever, since a client is waiting.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from ssl import SSLContext

from kyanite.server.http.connection import HttpConnection, OnExchange
from kyanite.server.http.limits import Limits
from kyanite.server.http.server import HttpServer
from kyanite.server.processes.process_table import Slot, State
from kyanite.wire.http import Handler

STEPS_BACK_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016)
"""How long each step back takes. On a busy machine the other one may need a while to wake up."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_EXHAUSTED_SECONDS = 0.1

_log = logging.getLogger("kyanite.turns")


class FairAccept:
    """Accepts connections from a listener in turn with the other processes, and hands them on."""

    def __init__(
        self,
        listener: socket.socket,
        take: Callable[[socket.socket], None],
        own: Slot,
        others: Sequence[Slot],
    ) -> None:
        self._listener = listener
        self._take = take
        self._own = own
        self._others = others
        self._steps_back = 0
        self._resuming: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._watch()

    def close(self) -> None:
        """Accept no more. What waits in the kernel is for the other processes."""
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        else:
            self._loop.remove_reader(self._listener)
        self._listener.close()

    def _watch(self) -> None:
        self._resuming = None
        self._loop.add_reader(self._listener, self._on_connection)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._resuming = self._loop.call_later(seconds, self._watch)

    def _on_connection(self) -> None:
        if self._steps_back < len(STEPS_BACK_SECONDS) and self._another_should():
            self._pause(STEPS_BACK_SECONDS[self._steps_back])
            self._steps_back += 1
            return
        self._steps_back = 0
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            _log.warning("cannot accept a connection", extra={"why": error.strerror})
            self._pause(_EXHAUSTED_SECONDS)
            return
        connection.setblocking(False)
        self._take(connection)

    def _another_should(self) -> bool:
        held = self._own.connections
        return any(other.connections < held and other.state is State.SERVING for other in self._others)


class FairServer(HttpServer):
    """An HTTP server that takes turns with those of other processes on the same listeners."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits,
        own: Slot,
        others: Sequence[Slot],
        on_exchange: OnExchange | None = None,
    ) -> None:
        super().__init__(handler, limits=limits, on_exchange=on_exchange)
        self._own = own
        self._others = others
        self._doors: list[FairAccept] = []
        self._arriving: set[asyncio.Task[object]] = set()
        """Connections that were accepted and have not been opened yet: TLS takes its time to shake hands."""

    async def listen(self, listener: socket.socket, ssl: SSLContext | None = None) -> None:
        port = listener.getsockname()[1]
        self._doors.append(FairAccept(listener, partial(self._take, port, ssl), self._own, self._others))

    async def stop(self, grace_seconds: float) -> None:
        for door in self._doors:
            door.close()
        for task in list(self._arriving):
            task.cancel()
        await super().stop(grace_seconds)

    def closed(self, connection: HttpConnection) -> None:
        super().closed(connection)
        self._tell()

    def _take(self, port: int, ssl: SSLContext | None, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        opening = loop.connect_accepted_socket(
            lambda: HttpConnection(self, loop, port),
            connection,
            ssl=ssl,
            ssl_handshake_timeout=None if ssl is None else self.limits.head_seconds,
        )
        task: asyncio.Task[object] = loop.create_task(opening)
        self._arriving.add(task)
        task.add_done_callback(self._arrived)
        self._tell()

    def _arrived(self, task: asyncio.Task[object]) -> None:
        self._arriving.discard(task)
        # A client that fails to shake hands, or leaves before, is nobody's concern but its own.
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("a connection did not come about", extra={"why": str(error)})
        self._tell()

    def _tell(self) -> None:
        self._own.connections = self.stats.connections_open + len(self._arriving)
