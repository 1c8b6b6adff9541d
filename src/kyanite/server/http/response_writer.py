"""The sending side of a connection: what is written, what is still unsent, and whether the client reads it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from kyanite.server.gathered_responses import GatheredResponses
from kyanite.server.http.limits import Limits, Progress, Stats
from kyanite.server.http.sendfile import DirectSender
from kyanite.server.http.streaming import TransportSender, send_pieces
from kyanite.wire.http import Piece

_BUFFER_BYTES: Final = 512 * 1024


class ResponseWriter:
    """Writes through the transport or, for streamed answers on a plain socket, beside it."""

    __slots__ = (
        "_drained",
        "_loop",
        "_progress",
        "_secure",
        "_sender",
        "_short",
        "_stats",
        "_transport",
        "bytes_out",
        "paused",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        stats: Stats,
        gathered: GatheredResponses | None,
        *,
        secure: bool,
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._stats = stats
        self._secure = secure
        self._short = None if gathered is None else gathered.of(transport)
        self._drained: asyncio.Future[None] | None = None
        self._sender: DirectSender | None = None
        self._progress = Progress()
        self.bytes_out = 0
        self.paused = False
        """Whether the client has to read more before anything should be added."""
        transport.set_write_buffer_limits(_BUFFER_BYTES)

    def write(self, data: bytes | memoryview) -> None:
        size = len(data)
        self.bytes_out += size
        self._stats.bytes_out += size
        short = self._short
        if short is None or not isinstance(data, bytes):
            self._transport.write(data)
        else:
            short.send(data)

    def flush(self) -> None:
        """To be called before the connection may be closed: what was written is the transport's to send."""
        if self._short is not None:
            self._short.flush()

    def write_both(self, head: bytes, body: bytes) -> None:
        """Two pieces in one call to the kernel, without copying them together."""
        self.count(len(head) + len(body))
        self.flush()
        self._transport.writelines((head, body))

    def count(self, size: int) -> None:
        self.bytes_out += size
        self._stats.bytes_out += size

    async def writable(self) -> None:
        while self.paused:
            self._drained = self._loop.create_future()
            try:
                await self._drained
            finally:
                self._drained = None

    async def send(
        self, head: bytes, pieces: AsyncIterator[Piece], *, length: int | None, chunked: bool
    ) -> None:
        """Send a streamed response. The client can tell whether it is complete."""
        if self._secure:
            sender = TransportSender(self._loop, self)
            await send_pieces(sender, head, pieces, length=length, chunked=chunked)
            return
        await self._transport_empty()
        self._sender = DirectSender(self._loop, self._transport.get_extra_info("socket"), self.count)
        try:
            await send_pieces(self._sender, head, pieces, length=length, chunked=chunked)
        finally:
            self._sender.close()
            self._sender = None

    async def _transport_empty(self) -> None:
        self.flush()
        if self._transport.get_write_buffer_size():
            self._transport.set_write_buffer_limits(0)
            await self.writable()
            self._transport.set_write_buffer_limits(_BUFFER_BYTES)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def stalled(self, elapsed_seconds: float, limits: Limits) -> bool:
        """To be called at every tick: whether the client has stopped reading."""
        unsent = self._transport.get_write_buffer_size()
        if not unsent and (self._sender is None or not self._sender.waiting):
            return False
        return self._progress.stalled(self.bytes_out - unsent, elapsed_seconds, limits)
