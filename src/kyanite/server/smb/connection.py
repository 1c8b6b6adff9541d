"""The socket of one client: bytes to messages and back.

Bytes are received into a buffer that all connections of the loop share, since what is in it is used up before the next
connection receives. A message that does not end there gets a buffer of its own, into which the rest is received
directly; so the payload of a large message is not copied.

What a connection keeps counts in the memory of the process: a message that has begun, what was received while the
connection is paused, and responses that the client has not read. A message for which there is no room is not received
until there is. What the service does with a message is counted by the service.

There are no timers here. The server calls ``tick``.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol, cast

from kyanite.server.memory_budget import MemoryBudget, RoomWaiter
from kyanite.server.smb.limits import Limits, Stats
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import frame
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.buffers import new_buffer
from kyanite.wire.smb2.frame import PREFIX_BYTES
from kyanite.wire.smb2.transport import ClientConnection, Connect

_JOINED_BYTES = 16 * 1024
"""Up to here it is faster to copy a message into one piece than to send its pieces."""
_SMALL_UNSENT_BYTES = 16 * 1024
"""So much is not counted."""
_TIGHT_RECEIVED_BYTES = 16 * 1024
"""How much is received at a time while memory is tight."""
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
"""A client that vanished is found out after two minutes, and then what it has open is closed."""


class Host(Protocol):
    """What a connection uses of its server."""

    connect: Connect
    limits: Limits
    stats: Stats
    memory: MemoryBudget
    shared_buffer: memoryview

    def opened(self, connection: "SmbConnection") -> bool:
        """Whether there is room for one more."""

    def closed(self, connection: "SmbConnection", client: ClientConnection | None) -> None: ...


class SmbConnection(asyncio.BufferedProtocol):
    __slots__ = (
        "_client",
        "_host",
        "_is_closing",
        "_is_counting_later",
        "_is_dividing",
        "_is_paused",
        "_is_unread",
        "_kept_bytes",
        "_loop",
        "_message",
        "_moved_at_tick",
        "_moved_when_quick",
        "_partial",
        "_received_bytes",
        "_slow_seconds",
        "_stranger_seconds",
        "_total_bytes",
        "_transport",
        "_unsent_bytes",
        "_waiter",
        "address",
        "memory",
        "seconds_to_go",
    )

    _transport: asyncio.Transport

    def __init__(self, host: Host) -> None:
        self._host = host
        self.memory = host.memory
        self.address = ""
        self._client: ClientConnection | None = None
        self._loop = asyncio.get_running_loop()
        self._partial = b""
        """What was received and not divided: the beginning of a prefix, or more while nothing is to be received."""
        self._message: bytearray | None = None
        """The message that is being received into a buffer of its own."""
        self._received_bytes = 0
        """Of that message."""
        self._is_paused = False
        self._is_unread = False
        """Whether the client has too much to read."""
        self._waiter: RoomWaiter | None = None
        """While the next message waits for memory."""
        self._is_dividing = False
        self._is_closing = False
        # What counts in the memory of the process.
        self._kept_bytes = 0
        self._unsent_bytes = 0
        self._is_counting_later = False
        self._total_bytes = 0
        """Received, and given to the transport."""
        # How much of that had moved by the last tick, and by the last at which the client was quick enough, or nothing
        # was expected of it.
        self._moved_at_tick = 0
        self._moved_when_quick = 0
        self._slow_seconds = 0.0
        self._stranger_seconds = 0.0
        self.seconds_to_go = 0.0
        """How long it would keep what it keeps, at the speed at which it moved in the last tick."""

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_SMALL_UNSENT_BYTES, low=_SMALL_UNSENT_BYTES // 4)
        _keep_alive(transport.get_extra_info("socket"))
        peername = transport.get_extra_info("peername")
        self.address, port = peername[:2] if isinstance(peername, tuple) else ("", 0)
        if not self._host.opened(self):
            self.abort()
            return
        self._client = self._host.connect(self, self.address, port)

    def get_buffer(self, _sizehint: int) -> memoryview:
        if self._message is None:
            shared = self._host.shared_buffer
            return shared[:_TIGHT_RECEIVED_BYTES] if self.memory.is_tight else shared
        return memoryview(self._message)[self._received_bytes :]

    def buffer_updated(self, count: int) -> None:
        self._host.stats.bytes_in += count
        self._total_bytes += count
        if self._is_closing:
            return
        if self._message is None:
            data = self._host.shared_buffer[:count]
            self._divide(memoryview(self._partial + bytes(data)) if self._partial else data)
        else:
            self._received_bytes += count
            if self._received_bytes == len(self._message):
                self._pass_on_own_buffer(self._message)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._forget()
        client, self._client = self._client, None
        if client is not None:
            client.lost()
        self._host.closed(self, client)

    def pause_writing(self) -> None:
        self._count_unsent()

    def resume_writing(self) -> None:
        self._count_unsent()

    # Receiving

    @property
    def _is_held_up(self) -> bool:
        return self._is_paused or self._is_unread or self._waiter is not None

    def _divide(self, data: memoryview) -> None:
        """Pass on the messages, as long as more are wanted, and keep the rest."""
        self._is_dividing = True
        try:
            self._partial = b""
            rest = self._divided(data)
            if len(rest):
                self._partial = bytes(rest)
        except Malformed:
            self._host.stats.malformed_total += 1
            self.close()
        finally:
            self._is_dividing = False
        self._count_kept()
        if self._is_held_up and not self._is_closing:
            self._transport.pause_reading()

    def _divided(self, data: memoryview) -> memoryview:
        """What is left: a message that does not end here has got a buffer of its own, if there is room for it."""
        at = 0
        client = self._client
        assert client is not None
        while at < len(data) and not self._is_closing and not self._is_held_up:
            length = frame.decode_prefix(data, client.longest_message, at)
            if length is None:
                break
            begin = at + PREFIX_BYTES
            if begin + length > len(data):
                if self.memory.has_room(length):
                    self._begin(length, data[begin:])
                    return data[:0]
                self._waiter = self.memory.when_room(length, self._room_found)
                break
            self._pass_on(bytearray(data[begin : begin + length]))
            at = begin + length
        return data[at:]

    def _begin(self, length: int, data: memoryview) -> None:
        message = new_buffer(length)
        message[: len(data)] = data
        self._message, self._received_bytes = message, len(data)

    def _pass_on_own_buffer(self, message: bytearray) -> None:
        self._message = None
        self._count_kept()  # From here on the service counts it.
        self._pass_on(message)

    def _pass_on(self, message: bytearray) -> None:
        # An empty message is the keep-alive of old NetBIOS clients.
        if message and self._client is not None:
            self._host.stats.messages_total += 1
            self._client.received(message)

    def _room_found(self) -> None:
        self._waiter = None
        self._update_reading()

    def _update_reading(self) -> None:
        """Receive or not, as is wanted now; but first divide what was received while nothing was wanted."""
        if self._is_dividing:
            return
        if self._partial and not self._is_held_up and not self._is_closing:
            self._divide(memoryview(self._partial))
        if self._is_closing:
            return
        if self._is_held_up:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Counting

    def _count_kept(self) -> None:
        kept = len(self._partial) if self._message is None else len(self._message)
        if kept != self._kept_bytes:
            self.memory.used_bytes += kept - self._kept_bytes
            self._kept_bytes = kept

    def _count_unsent(self) -> None:
        unsent = self._transport.get_write_buffer_size()
        counted = unsent if unsent > _SMALL_UNSENT_BYTES else 0
        self.memory.used_bytes += counted - self._unsent_bytes
        self._unsent_bytes = counted
        limits = self._host.limits
        is_unread = unsent > (limits.tight_unsent_bytes if self.memory.is_tight else limits.unsent_bytes)
        if is_unread != self._is_unread:
            self._is_unread = is_unread
            self._update_reading()

    def _count_later(self) -> None:
        self._is_counting_later = False
        if not self._is_closing:
            self._count_unsent()

    def _forget(self) -> None:
        self.memory.used_bytes -= self._kept_bytes + self._unsent_bytes
        self._kept_bytes = self._unsent_bytes = 0
        self._partial, self._message = b"", None
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None

    # Called by the client's connection: wire.smb2.transport.Transport.

    def send(self, message: Sequence[Data]) -> None:
        if self._transport.is_closing():
            return
        framed = frame.frame(message)
        size = sum(map(len, framed))
        self._host.stats.bytes_out += size
        self._total_bytes += size
        if size <= _JOINED_BYTES:
            self._transport.write(b"".join(framed))
        else:
            self._transport.writelines(framed)
        if self._transport.get_write_buffer_size() > _SMALL_UNSENT_BYTES:
            self._count_unsent()
            if not self._is_counting_later:
                # The transport says when it is behind, but not when all was sent in this iteration of the loop.
                self._is_counting_later = True
                self._loop.call_soon(self._count_later)

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
        self._count_unsent()
        self._judge_speed(elapsed_seconds)
        if self._slow_seconds > limits.stall_seconds:
            self._host.stats.stalls_total += 1
            self.abort()
        client = self._client
        if client is None or client.is_authenticated:
            self._stranger_seconds = 0.0
            return
        self._stranger_seconds += elapsed_seconds
        if self._stranger_seconds > limits.logon_seconds:
            self.abort()

    def _judge_speed(self, elapsed_seconds: float) -> None:
        """How long the rest of a message, or the client's reading, was waited for without enough progress."""
        unsent = self._transport.get_write_buffer_size()
        moved = self._total_bytes - unsent
        is_received = (self._message is not None or bool(self._partial)) and not self._is_held_up
        kept = self._unsent_bytes + (self._kept_bytes if is_received else 0)
        self.seconds_to_go = kept * elapsed_seconds / (moved - self._moved_at_tick + 1)
        self._moved_at_tick = moved
        is_quick = moved - self._moved_when_quick >= self._host.limits.stall_bytes
        if is_quick or not (is_received or unsent):
            self._moved_when_quick, self._slow_seconds = moved, 0.0
        else:
            self._slow_seconds += elapsed_seconds


def _keep_alive(connected: socket.socket | None) -> None:
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
