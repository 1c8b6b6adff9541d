"""Short responses of one iteration of the loop leave together, by one call of the kernel.

A response waits until what arrived with its request has been read, or until no more of them fit into a call. What
cannot leave in this way goes through the transport: what a client has no room for, what is too long, and whatever
follows on a connection whose response still waits here. Most others go through their transports as well where few
clients are active, so that responses seldom meet and one by itself takes less, and where long work runs on the loop,
for whose slices they would wait.
"""

import asyncio
import platform
from typing import Final

from kyanite.server.socket_writes import WRITES_MAX, SocketWrites
from kyanite.slices import slices_of

LENGTH_MAX: Final = 128 * 1024
"""Of one response."""

_ALONE_MIN: Final = 2
"""So many in succession meet no other before some do not wait. One could be the last of an iteration whose others have
not waited."""
_DIRECT: Final = 30
"""So many do not wait then, and so many after each slice of long work."""


class GatheredResponses:
    """Those of all connections of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writes: SocketWrites) -> None:
        self._loop = loop
        self._writes = writes
        self._slices = slices_of(loop)
        self._long_count = 0
        """How many slices of long work there had been at the last response."""
        self._waiting: list[ShortResponses] = []
        self._alone = 0
        """How many that waited met no other, one after the other."""
        self._direct_left = 0
        """How many responses their transports send before one waits again, to see whether others come with it."""

    def close(self) -> None:
        self._writes.close()

    def of(self, transport: asyncio.Transport) -> "ShortResponses | None":
        """None for a transport that encrypts, or has no socket."""
        connected = transport.get_extra_info("socket")
        if connected is None or transport.get_extra_info("sslcontext") is not None:
            return None
        return ShortResponses(self, transport, connected.fileno())

    def add(self, connection: "ShortResponses") -> bool:
        """Whether the response of the connection waits here from now on; otherwise its transport has to send it."""
        waiting, long_count = self._waiting, self._slices.long_count
        if long_count != self._long_count:
            self._long_count, self._direct_left = long_count, _DIRECT
        if not waiting:
            if self._direct_left:
                self._direct_left -= 1
                return False
            self._loop.call_soon(self._end_iteration)
        waiting.append(connection)
        if len(waiting) == WRITES_MAX:
            self._alone = 0
            self._send()
        return True

    def _end_iteration(self) -> None:
        if self._waiting:
            self._alone = self._alone + 1 if len(self._waiting) == 1 else 0
            if self._alone == _ALONE_MIN:
                self._alone, self._direct_left = 0, _DIRECT
            self._send()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        # Whether it is open is asked right before its descriptor is used, which the next connection may get.
        ready = [each for each in waiting if each.is_ready()]
        written = self._writes.write([each.descriptor for each in ready], [each.unsent for each in ready])
        for each, count in zip(ready, written, strict=True):
            each.sent(count)


class ShortResponses:
    """Those of one connection. The first of an iteration waits for those of other connections."""

    __slots__ = ("_gathered", "_is_listed", "_transport", "descriptor", "unsent")

    def __init__(self, gathered: GatheredResponses, transport: asyncio.Transport, descriptor: int) -> None:
        self._gathered = gathered
        self._transport = transport
        self._is_listed = False
        self.descriptor = descriptor
        self.unsent = b""

    def send(self, data: bytes) -> None:
        if self._is_listed or len(data) > LENGTH_MAX:
            self.flush()
            self._transport.write(data)
            return
        self.unsent = data
        self._is_listed = True
        if not self._gathered.add(self):
            self._is_listed = False
            self.flush()

    def flush(self) -> None:
        """What waits is the transport's from now on: something else will be written, or the connection closed."""
        if self.unsent:
            data, self.unsent = self.unsent, b""
            if not self._transport.is_closing():
                self._transport.write(data)

    def is_ready(self) -> bool:
        """Whether something waits that can be written to the descriptor. What cannot is the transport's."""
        self._is_listed = False
        if self.unsent and (self._transport.is_closing() or self._transport.get_write_buffer_size()):
            self.flush()
        return self.unsent != b""

    def sent(self, count: int) -> None:
        """So many bytes have left; none, if the count is negative."""
        data, self.unsent = self.unsent, b""
        if count < len(data):
            self._transport.write(data[max(count, 0) :])


def gathered_responses(loop: asyncio.AbstractEventLoop) -> GatheredResponses | None:
    """None where the kernel takes no more than one write by a call."""
    try:
        return GatheredResponses(loop, SocketWrites(platform.machine()))
    except OSError:
        return None
