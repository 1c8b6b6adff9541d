"""The SMB front end: counts connections, ends slow ones, and stops gracefully.

It knows nothing of storage or of what messages mean: ``connect`` makes the other side of each connection.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable

from kyanite.server.gathered_responses import gathered_responses
from kyanite.server.memory_budget import MemoryBudget
from kyanite.server.smb.connection import SmbConnection
from kyanite.server.smb.limits import Limits, Stats
from kyanite.wire.smb2.transport import ClientConnection, Connect

_SHARED_BUFFER_BYTES = 64 * 1024
_ROOM_SECONDS = 0.05
"""How soon a message that was too long for the memory is tried again: not everything that ends is reported."""
_log = logging.getLogger(__name__)


class SmbServer:
    def __init__(
        self,
        connect: Connect,
        *,
        limits: Limits,
        budget: MemoryBudget | None = None,
        on_count: Callable[[], None] = lambda: None,
    ) -> None:
        self.connect = connect
        self.limits = limits
        self.budget = MemoryBudget(limits.memory_bytes) if budget is None else budget
        self._without_room: dict[SmbConnection, None] = {}
        """Those whose next message is too long for the memory that is left, in their order."""
        self._on_count = on_count
        self.stats = Stats()
        self.shared_buffer = memoryview(bytearray(_SHARED_BUFFER_BYTES))
        self._loop = asyncio.get_running_loop()
        self.gathered = gathered_responses(self._loop)
        self._ticked_at = self._loop.time()
        self._ticking = self._loop.call_later(limits.tick_seconds, self._tick)
        self._connections: set[SmbConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._arriving: set[asyncio.Task[object]] = set()
        """Connections that were accepted and are not open yet."""
        self._ending: set[asyncio.Task[None]] = set()
        """Connections that are lost and not cleaned up yet."""
        self._is_stopping = False

    @property
    def connection_count(self) -> int:
        return len(self._connections) + len(self._arriving)

    def accept(self, connected: socket.socket) -> None:
        """Serve a client whose connection was accepted."""
        if connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task: asyncio.Task[object] = self._loop.create_task(self._open(connected))
        self._arriving.add(task)
        task.add_done_callback(self._arrived)
        self._on_count()

    async def prepare(self) -> None:
        """Called before each connection is opened: ``connect`` may have to be made first."""

    async def _open(self, connected: socket.socket) -> None:
        try:
            await self.prepare()
        except BaseException:
            connected.close()
            raise
        await self._loop.connect_accepted_socket(lambda: SmbConnection(self), connected)

    def _arrived(self, task: asyncio.Task[object]) -> None:
        self._arriving.discard(task)
        # A client that left before is no fault of the server.
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("a connection was not established", extra={"why": str(error)})
        self._on_count()

    async def stop(self, seconds: float) -> None:
        """Close all connections, and wait until what their clients had open is closed."""
        self._is_stopping = True
        self._ticking.cancel()
        for arriving in list(self._arriving):
            arriving.cancel()
        for connection in list(self._connections):
            connection.abort()
        try:
            async with asyncio.timeout(seconds):
                while self._connections or self._ending:
                    await (asyncio.wait(self._ending) if self._ending else asyncio.sleep(0))
        except TimeoutError:
            _log.warning("clients were not cleaned up in time", extra={"count": len(self._ending)})
        if self.gathered is not None:
            self.gathered.close()

    # Called by connections.

    def opened(self, connection: SmbConnection) -> bool:
        self._connections.add(connection)
        self._by_address[connection.address] += 1
        self.stats.connections_total += 1
        self.stats.connections_open += 1
        limit, of_address = self.limits.connections, self._by_address[connection.address]
        if (
            len(self._connections) <= limit
            and of_address <= max(limit * self.limits.address_part, 1)
            and not self._is_stopping
        ):
            return True
        self.stats.connections_refused += 1
        return False

    def wait_for_room(self, connection: SmbConnection) -> None:
        """Let the connection go on when other messages have ended."""
        if not self._without_room:
            self._loop.call_later(_ROOM_SECONDS, self._try_again)
        self._without_room[connection] = None

    def _try_again(self) -> None:
        self.released()
        if self._without_room:
            self._loop.call_later(_ROOM_SECONDS, self._try_again)

    def released(self) -> None:
        """Some memory is free again."""
        for connection in list(self._without_room):
            if not connection.go_on_with_room():
                break
            del self._without_room[connection]

    def closed(self, connection: SmbConnection, client: ClientConnection | None) -> None:
        self._connections.discard(connection)
        self._without_room.pop(connection, None)
        self._by_address[connection.address] -= 1
        if not self._by_address[connection.address]:
            del self._by_address[connection.address]
        self.stats.connections_open -= 1
        self._on_count()
        if client is not None:
            task = self._loop.create_task(client.finished())
            self._ending.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a lost connection was not cleaned up", exc_info=error)

    def _tick(self) -> None:
        now = self._loop.time()
        elapsed, self._ticked_at = now - self._ticked_at, now
        self._ticking = self._loop.call_later(self.limits.tick_seconds, self._tick)
        for connection in list(self._connections):
            connection.tick(elapsed)
