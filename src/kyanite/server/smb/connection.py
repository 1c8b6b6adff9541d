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

from kyanite.server.gathered_responses import GatheredResponses, ShortResponses
from kyanite.server.memory_budget import MemoryBudget
from kyanite.server.smb.limits import Limits, Stats
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import frame
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.buffers import new_buffer
from kyanite.wire.smb2.frame import PREFIX_BYTES
from kyanite.wire.smb2.transport import ClientConnection, Connect

_JOINED_BYTES = 16 * 1024
"""Up to here it is faster to copy a message into one piece than to send its pieces."""
MESSAGES_AT_ONCE = 4
"""How many messages of one client are passed on before other connections are served."""
_NOTHING = memoryview(b"")
_SMALL_UNSENT_BYTES = 16 * 1024
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
"""A client that vanished is found out after two minutes, and then what it has open is closed."""


class Host(Protocol):
    """What a connection uses of its server."""

    connect: Connect
    limits: Limits
    stats: Stats
    budget: MemoryBudget
    gathered: GatheredResponses | None
    shared_buffer: memoryview

    def opened(self, connection: "SmbConnection") -> bool:
        """Whether there is room for one more."""

    def closed(self, connection: "SmbConnection", client: ClientConnection | None) -> None: ...

    def wait_for_room(self, connection: "SmbConnection") -> None:
        """Call ``go_on_with_room`` when memory is free again."""

    def released(self) -> None:
        """Some memory is free again."""


class SmbConnection(asyncio.BufferedProtocol):
    __slots__ = (
        "_client",
        "_host",
        "_is_closing",
        "_is_counting_later",
        "_is_held",
        "_is_paused",
        "_is_scheduled",
        "_is_unread",
        "_is_without_room",
        "_message",
        "_moved_bytes",
        "_partial",
        "_received_at_tick",
        "_received_bytes",
        "_rest",
        "_short",
        "_slow_seconds",
        "_stranger_seconds",
        "_tight_seconds",
        "_transport",
        "_unsent_at_tick",
        "_unsent_bytes",
        "address",
    )

    _transport: asyncio.Transport

    def __init__(self, host: Host) -> None:
        self._host = host
        self.address = ""
        self._client: ClientConnection | None = None
        self._short: ShortResponses | None = None
        self._partial = b""
        """The beginning of a prefix."""
        self._message: bytearray | None = None
        """The message that is being received into a buffer of its own."""
        self._received_bytes = 0
        self._rest = _NOTHING
        """What was received and is not passed on yet: the client has to wait."""
        self._is_scheduled = False
        """Whether its turn comes in the next iteration of the loop."""
        self._is_without_room = False
        """Whether the next message is too long for the memory that is left."""
        self._is_paused = False
        self._is_unread = False
        """Whether the client has too much to read."""
        self._is_held = False
        """The same while memory is tight."""
        self._is_closing = False
        self._is_counting_later = False
        self._unsent_bytes = 0
        """What the budget counts of the responses that the client has not read."""
        # Since the last tick at which the client was quick enough, or nothing was expected of it.
        self._moved_bytes = 0
        self._unsent_at_tick = 0
        self._slow_seconds = 0.0
        self._stranger_seconds = 0.0
        self._received_at_tick = 0
        self._tight_seconds = 0.0

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # So that the transport tells at once when the client has read what was not sent immediately.
        self._transport.set_write_buffer_limits(high=_SMALL_UNSENT_BYTES, low=_SMALL_UNSENT_BYTES // 4)
        _keep_alive(transport.get_extra_info("socket"))
        peername = transport.get_extra_info("peername")
        self.address, port = peername[:2] if isinstance(peername, tuple) else ("", 0)
        if not self._host.opened(self):
            self.abort()
            return
        if self._host.gathered is not None:
            self._short = self._host.gathered.of(self._transport)
        self._client = self._host.connect(self, self.address, port)

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
                self._receive(self._host.shared_buffer[:count])
            else:
                self._received_bytes += count
                self._pass_on_if_complete(self._message)
        except Malformed:
            self._refuse()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._release_memory()
        client, self._client = self._client, None
        if client is not None:
            client.lost()
        self._host.closed(self, client)

    def pause_writing(self) -> None:
        self._count_unsent()

    def resume_writing(self) -> None:
        self._count_unsent()

    # Receiving

    def _receive(self, data: memoryview) -> None:
        if self._partial:
            data = memoryview(self._partial + bytes(data))
            self._partial = b""
        if rest := self._divide(data):
            self._rest = memoryview(bytes(rest))  # The buffer is shared.
            self._update_reading()

    def _divide(self, data: memoryview) -> memoryview:
        """Pass on some messages, and begin to receive the one that does not end here. What has to wait is returned."""
        at = passed = 0
        client = self._client
        assert client is not None
        while at < len(data) and not self._is_closing:
            if passed == MESSAGES_AT_ONCE or self._must_wait:
                return data[at:]
            length = frame.decode_prefix(data, client.longest_message, at)
            if length is None:
                self._partial = bytes(data[at:])
                break
            start = at + PREFIX_BYTES
            if start + length > len(data):
                if not self._has_room(length):
                    return data[at:]
                self._begin(length, data[start:])
                break
            at = start + length
            passed += 1
            self._pass_on(bytearray(data[start:at]))
        return _NOTHING

    @property
    def _must_wait(self) -> bool:
        return self._is_paused or self._is_unread or self._is_held

    def _go_on(self) -> None:
        """Go on with what has waited."""
        self._is_scheduled = False
        if self._is_closing or self._must_wait:
            return
        data, self._rest = self._rest, _NOTHING
        try:
            self._rest = self._divide(data)
        except Malformed:
            self._refuse()
        self._update_reading()

    def _refuse(self) -> None:
        self._host.stats.malformed_total += 1
        self.close()

    def _has_room(self, length: int) -> bool:
        """Whether there is memory for a message; if not, the connection goes on later."""
        budget = self._host.budget
        if budget.used_bytes + length <= budget.limit_for(length) or not budget.used_bytes:
            return True
        self._is_without_room = True
        self._host.wait_for_room(self)
        return False

    def _begin(self, length: int, data: memoryview) -> None:
        message = new_buffer(length)
        message[: len(data)] = data
        self._message, self._received_bytes = message, len(data)
        self._received_at_tick, self._tight_seconds = len(data), 0.0
        self._host.budget.add(length)

    def _pass_on_if_complete(self, message: bytearray) -> None:
        if self._received_bytes == len(message):
            self._message = None
            self._host.budget.used_bytes -= len(message)
            self._pass_on(message)

    def _pass_on(self, message: bytearray) -> None:
        # An empty message is the keep-alive of old NetBIOS clients.
        if message and self._client is not None:
            self._host.stats.messages_total += 1
            self._client.received(message)

    def _update_reading(self) -> None:
        if self._is_closing:
            return
        if self._must_wait or self._rest:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
        if self._rest and not (self._must_wait or self._is_without_room or self._is_scheduled):
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _count_unsent(self) -> None:
        """Let the budget know what the client has not read."""
        host, unsent = self._host, self._transport.get_write_buffer_size()
        if unsent == self._unsent_bytes:
            return
        host.budget.add(unsent - self._unsent_bytes)
        self._unsent_bytes = unsent
        limits = host.limits
        is_unread = unsent > (limits.unsent_bytes // 4 if self._is_unread else limits.unsent_bytes)
        is_held = unsent > limits.tight_unsent_bytes and host.budget.is_tight
        if (is_unread, is_held) != (self._is_unread, self._is_held):
            self._is_unread, self._is_held = is_unread, is_held
            self._update_reading()

    def _count_later(self) -> None:
        self._is_counting_later = False
        if not self._is_closing:
            self._count_unsent()

    def _release_memory(self) -> None:
        released = self._unsent_bytes + (0 if self._message is None else len(self._message))
        self._unsent_bytes, self._message, self._rest = 0, None, _NOTHING
        if released:
            self._host.budget.used_bytes -= released
            self._host.released()

    # Called by the client's connection: wire.smb2.transport.Transport.

    def send(self, message: Sequence[Data], *, at_once: bool = False) -> None:
        if self._transport.is_closing():
            return
        framed = frame.frame(message)
        size = sum(map(len, framed))
        self._host.stats.bytes_out += size
        if size <= _JOINED_BYTES and self._short is not None and not at_once:
            self._short.send(b"".join(framed))
            return
        self._flush()
        if size <= _JOINED_BYTES:
            self._transport.write(b"".join(framed))
        else:
            self._transport.writelines(framed)
            self._count_unsent()
            if self._unsent_bytes and not self._is_counting_later:
                # What is sent by the end of this iteration of the loop is not announced by the transport.
                self._is_counting_later = True
                asyncio.get_running_loop().call_soon(self._count_later)

    def close(self) -> None:
        self._is_closing = True
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        """What waits to leave with other responses is the transport's to send."""
        if self._short is not None:
            self._short.flush()

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

    def go_on_with_room(self) -> bool:
        """Memory is free again; whether it is enough for the next message."""
        self._is_without_room = False
        if self._rest:
            self._go_on()
        return not self._is_without_room

    def tick(self, elapsed_seconds: float) -> None:
        limits = self._host.limits
        self._count_unsent()
        if self._is_stalled(elapsed_seconds) or self._is_too_slow(elapsed_seconds):
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
        is_received = (self._message is not None or bool(self._partial)) and not self._must_wait
        limits = self._host.limits
        moved = self._moved_bytes + max(self._unsent_at_tick - unsent, 0)
        if moved >= limits.stall_bytes or not (is_received or unsent):
            self._moved_bytes, self._unsent_at_tick, self._slow_seconds = 0, unsent, 0.0
            return False
        self._slow_seconds += elapsed_seconds
        return self._slow_seconds > limits.stall_seconds

    def _is_too_slow(self, elapsed_seconds: float) -> bool:
        """Whether a long message comes too slowly for the memory that it takes."""
        limits = self._host.limits
        moved = self._received_bytes - self._received_at_tick
        if self._message is None or not self._host.budget.is_tight or moved >= limits.tight_bytes:
            self._received_at_tick, self._tight_seconds = self._received_bytes, 0.0
            return False
        self._tight_seconds += elapsed_seconds
        return self._tight_seconds > limits.tight_seconds


def _keep_alive(connected: socket.socket | None) -> None:
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
