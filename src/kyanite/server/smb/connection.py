"""The socket of one client: bytes to messages and back.

Bytes are received into a buffer that all connections of the loop share, since what is in it is used up before the next
connection receives. A message that does not end there gets a buffer of its own, into which the rest is received
directly; so the payload of a large message is not copied.

There are no timers here. The server calls ``tick``.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol, cast

from kyanite.server.smb.limits import Limits, Stats
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import frame
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.buffers import new_buffer
from kyanite.wire.smb2.frame import PREFIX_BYTES
from kyanite.wire.smb2.transport import ClientConnection, Connect

_JOINED_BYTES = 16 * 1024
"""Up to here it is faster to copy a message into one piece than to send its pieces."""
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
"""A client that vanished is found out after two minutes, and then what it has open is closed."""


class Host(Protocol):
    """What a connection uses of its server."""

    connect: Connect
    limits: Limits
    stats: Stats
    shared_buffer: memoryview

    def opened(self, connection: "SmbConnection") -> bool:
        """Whether there is room for one more."""

    def closed(self, connection: "SmbConnection", client: ClientConnection | None) -> None: ...


class SmbConnection(asyncio.BufferedProtocol):
    __slots__ = (
        "_client",
        "_host",
        "_is_closing",
        "_is_paused",
        "_is_unread",
        "_message",
        "_moved_bytes",
        "_partial",
        "_received_bytes",
        "_slow_seconds",
        "_stranger_seconds",
        "_transport",
        "_unsent_at_tick",
        "address",
    )

    _transport: asyncio.Transport

    def __init__(self, host: Host) -> None:
        self._host = host
        self.address = ""
        self._client: ClientConnection | None = None
        self._partial = b""
        """The beginning of a prefix."""
        self._message: bytearray | None = None
        """The message that is being received into a buffer of its own."""
        self._received_bytes = 0
        self._is_paused = False
        self._is_unread = False
        """Whether the client has too much to read."""
        self._is_closing = False
        # Since the last tick at which the client was quick enough, or nothing was expected of it.
        self._moved_bytes = 0
        self._unsent_at_tick = 0
        self._slow_seconds = 0.0
        self._stranger_seconds = 0.0

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        limits = self._host.limits
        self._transport.set_write_buffer_limits(high=limits.unsent_bytes, low=limits.unsent_bytes // 4)
        _keep_alive(transport.get_extra_info("socket"))
        peername = transport.get_extra_info("peername")
        self.address = str(peername[0]) if isinstance(peername, tuple) else ""
        if not self._host.opened(self):
            self.abort()
            return
        self._client = self._host.connect(self, self.address)

    def get_buffer(self, _sizehint: int) -> memoryview:
        if self._message is None:
            return self._host.shared_buffer
        return memoryview(self._message)[self._received_bytes :]

    def buffer_updated(self, count: int) -> None:
        self._host.stats.bytes_in += count
        self._moved_bytes += count
        if self._is_closing:
            return
        try:
            if self._message is None:
                self._divide(count)
            else:
                self._received_bytes += count
                self._pass_on_if_complete(self._message)
        except Malformed:
            self._host.stats.malformed_total += 1
            self.close()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        client, self._client = self._client, None
        if client is not None:
            client.lost()
        self._host.closed(self, client)

    def pause_writing(self) -> None:
        self._is_unread = True
        self._update_reading()

    def resume_writing(self) -> None:
        self._is_unread = False
        self._update_reading()

    # Receiving

    def _divide(self, count: int) -> None:
        """Pass on the messages in the shared buffer, and keep the one that does not end there."""
        data = self._host.shared_buffer[:count]
        if self._partial:
            data = memoryview(self._partial + bytes(data))
            self._partial = b""
        at = 0
        client = self._client
        assert client is not None
        while at < len(data) and not self._is_closing:
            length = frame.decode_prefix(data, client.longest_message, at)
            if length is None:
                self._partial = bytes(data[at:])
                return
            at += PREFIX_BYTES
            if at + length > len(data):
                self._begin(length, data[at:])
                return
            self._pass_on(bytearray(data[at : at + length]))
            at += length

    def _begin(self, length: int, data: memoryview) -> None:
        message = new_buffer(length)
        message[: len(data)] = data
        self._message, self._received_bytes = message, len(data)

    def _pass_on_if_complete(self, message: bytearray) -> None:
        if self._received_bytes == len(message):
            self._message = None
            self._pass_on(message)

    def _pass_on(self, message: bytearray) -> None:
        # An empty message is the keep-alive of old NetBIOS clients.
        if message and self._client is not None:
            self._host.stats.messages_total += 1
            self._client.received(message)

    def _update_reading(self) -> None:
        if self._is_closing:
            return
        if self._is_paused or self._is_unread:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Called by the client's connection: wire.smb2.transport.Transport.

    def send(self, message: Sequence[Data]) -> None:
        if self._transport.is_closing():
            return
        framed = frame.frame(message)
        size = sum(map(len, framed))
        self._host.stats.bytes_out += size
        if size <= _JOINED_BYTES:
            self._transport.write(b"".join(framed))
        else:
            self._transport.writelines(framed)

    def close(self) -> None:
        self._is_closing = True
        self._transport.close()

    def pause(self) -> None:
        self._is_paused = True
        self._update_reading()

    def resume(self) -> None:
        self._is_paused = False
        self._update_reading()

    # Called by the server.

    def abort(self) -> None:
        self._is_closing = True
        self._transport.abort()

    def tick(self, elapsed_seconds: float) -> None:
        limits = self._host.limits
        if self._is_stalled(elapsed_seconds):
            self._host.stats.stalls_total += 1
            self.abort()
        client = self._client
        if client is None or client.is_authenticated:
            self._stranger_seconds = 0.0
            return
        self._stranger_seconds += elapsed_seconds
        if self._stranger_seconds > limits.logon_seconds:
            self.abort()

    def _is_stalled(self, elapsed_seconds: float) -> bool:
        """Whether the rest of a message, or the client's reading, is waited for and has not moved for too long."""
        unsent = self._transport.get_write_buffer_size()
        is_received = (self._message is not None or bool(self._partial)) and not (
            self._is_paused or self._is_unread
        )
        limits = self._host.limits
        moved = self._moved_bytes + max(self._unsent_at_tick - unsent, 0)
        if moved >= limits.stall_bytes or not (is_received or unsent):
            self._moved_bytes, self._unsent_at_tick, self._slow_seconds = 0, unsent, 0.0
            return False
        self._slow_seconds += elapsed_seconds
        return self._slow_seconds > limits.stall_seconds


def _keep_alive(connected: socket.socket | None) -> None:
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
