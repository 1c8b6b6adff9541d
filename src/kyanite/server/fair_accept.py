"""Fair accepting on one socket that several processes share.

Left to the kernel, few connections spread badly: with one inherited socket the process that wakes first accepts them
all, and with ``SO_REUSEPORT`` chance decides (``docs/decisions/0003-one-socket-and-fair-accept.md`` has measurements).
So a process reads the process table before it accepts. While another process that serves has fewer connections, it
waits a moment and leaves the connection to that one; but not for ever, since a client is waiting.

Workers beyond the number of cores are *spare*: they do the same once the others have many connections. Few clients on
many workers would commit their writes in as many small batches, each with a sync of its own.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from operator import attrgetter
from ssl import SSLContext

from kyanite.server.http.connection import HttpConnection, OnCompleted, new_connection
from kyanite.server.http.limits import Limits
from kyanite.server.http.server import HttpServer
from kyanite.server.processes.process_table import Slot, State
from kyanite.wire.http import Handler

PAUSES_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016)
"""How long to leave a connection to another process. On a busy machine that may need a while to wake up."""
_LEFT_SECONDS = sum(PAUSES_SECONDS)
"""A loop with much work notices the end of a pause late, so the time counts as well as the pauses."""
SPARE_BEYOND = 64
"""A spare process accepts a connection when each of the others has so many more."""
_SPARE_PATIENCE = 8
"""A spare process leaves a connection to the others for so many times as long, and anew whenever they have accepted
one: when many clients come at once, those are busy with the first of them."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_EXHAUSTED_SECONDS = 0.1
_TLS_HANDSHAKE = b"\x16"
"""The first byte of every TLS connection (RFC 8446, section 5.1), with which no request begins."""

_log = logging.getLogger("kyanite.accept")


class FairAccept:
    """Accepts connections from a listener, shared fairly with the other processes, and passes them on."""

    def __init__(
        self,
        listener: socket.socket,
        on_accepted: Callable[[socket.socket], None],
        own: Slot,
        others: Sequence[Slot],
        count_of: Callable[[Slot], int] = attrgetter("connections"),
    ) -> None:
        """``count_of`` is the number of connections of a process, of which the least should accept the next."""
        self._listener = listener
        self._on_accepted = on_accepted
        self._own = own
        self._others = others
        self._count_of = count_of
        self._pauses = 0
        self._left_at = 0.0
        """When the first pause began."""
        self._resuming: asyncio.TimerHandle | None = None
        self._patience = _SPARE_PATIENCE if own.is_spare else 1
        self._accepted_by_others = 0
        self._loop = asyncio.get_running_loop()
        self._watch()

    def close(self) -> None:
        """Accept no more. The other processes accept what waits in the kernel."""
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
        if self._own.is_spare:
            self._note_progress()
        if self._may_leave() and self._another_should():
            self._pause(PAUSES_SECONDS[self._pauses] * self._patience)
            self._pauses += 1
            return
        self._pauses = 0
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
        self._on_accepted(connection)

    def _note_progress(self) -> None:
        """Be patient again when those that are not spare have accepted something since."""
        accepted = sum(self._count_of(other) for other in self._others if not other.is_spare)
        if accepted != self._accepted_by_others:
            self._accepted_by_others = accepted
            self._pauses = 0

    def _may_leave(self) -> bool:
        """Whether the client has not waited for long."""
        now = self._loop.time()
        if not self._pauses:
            self._left_at = now
        return self._pauses < len(PAUSES_SECONDS) and now - self._left_at < _LEFT_SECONDS * self._patience

    def _another_should(self) -> bool:
        own_count = self._handicapped_count(self._own)
        return any(
            self._handicapped_count(other) < own_count and other.state is State.SERVING
            for other in self._others
        )

    def _handicapped_count(self, slot: Slot) -> int:
        return self._count_of(slot) + (SPARE_BEYOND if slot.is_spare else 0)


class FairServer(HttpServer):
    """An HTTP server that accepts fairly with those of other processes on the same listeners."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits,
        own: Slot,
        others: Sequence[Slot],
        on_completed: OnCompleted | None = None,
    ) -> None:
        super().__init__(handler, limits=limits, on_completed=on_completed)
        self._own = own
        self._others = others
        self._accepting: list[FairAccept] = []
        self._arriving: set[asyncio.Task[object]] = set()
        """Connections that were accepted and are not open yet: a TLS handshake takes time."""

    async def accept_on(
        self, listener: socket.socket, ssl: SSLContext | None = None, *, plain_too: bool = False
    ) -> None:
        """``plain_too`` lets clients choose: those that do not begin with a TLS handshake speak plain HTTP."""
        open_connection = partial(self._open, listener.getsockname()[1], ssl, plain_too)
        self._accepting.append(FairAccept(listener, open_connection, self._own, self._others))

    async def stop(self, grace_seconds: float) -> None:
        for each in self._accepting:
            each.close()
        for task in list(self._arriving):
            task.cancel()
        await super().stop(grace_seconds)

    def closed(self, connection: HttpConnection) -> None:
        super().closed(connection)
        self._publish_count()

    def _open(self, port: int, ssl: SSLContext | None, plain_too: bool, connection: socket.socket) -> None:
        opening = (
            self._open_either(port, ssl, connection) if plain_too else self._connect(port, ssl, connection)
        )
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(opening)
        self._arriving.add(task)
        task.add_done_callback(self._arrived)
        self._publish_count()

    def _connect(
        self, port: int, ssl: SSLContext | None, connection: socket.socket
    ) -> Coroutine[object, object, object]:
        loop = asyncio.get_running_loop()
        return loop.connect_accepted_socket(
            lambda: new_connection(self, loop, port),
            connection,
            ssl=ssl,
            ssl_handshake_timeout=None if ssl is None else self.limits.head_seconds,
        )

    async def _open_either(self, port: int, ssl: SSLContext | None, connection: socket.socket) -> object:
        try:
            is_tls = await self._begins_with_tls(connection)
        except BaseException:
            connection.close()
            raise
        return await self._connect(port, ssl if is_tls else None, connection)

    async def _begins_with_tls(self, connection: socket.socket) -> bool:
        if len(self._arriving) > self.limits.connections:
            raise ConnectionAbortedError("too many clients that have sent nothing yet")
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()
        loop.add_reader(connection, arrived.set)
        try:
            async with asyncio.timeout(self.limits.idle_seconds):
                await arrived.wait()
        finally:
            loop.remove_reader(connection)
        return connection.recv(1, socket.MSG_PEEK) == _TLS_HANDSHAKE

    def _arrived(self, task: asyncio.Task[object]) -> None:
        self._arriving.discard(task)
        # A failed handshake, or a client that left before it, is no fault of the server.
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("a connection was not established", extra={"why": str(error)})
        self._publish_count()

    def _publish_count(self) -> None:
        self._own.connections = self.stats.connections_open + len(self._arriving)
