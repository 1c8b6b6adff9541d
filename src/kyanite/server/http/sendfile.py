"""Sending on a socket beside its transport: bytes and file spans straight into the kernel.

uvloop has no ``sendfile`` of its own and refuses to watch a descriptor that one of its transports uses. It accepts a
duplicate of the descriptor: the same connection under another number. The transport must have nothing left to send
while this is used.
"""

import asyncio
import os
import socket
from collections.abc import Callable

from kyanite.wire.http import FileSlice

_CALL_BYTES = 4 * 1024 * 1024
"""The most that one call sends, so that one fast client does not block the loop."""

_MORE: int = getattr(socket, "MSG_MORE", 0)


class SpanError(Exception):
    """The file ends before the file_slice does."""


class DirectSender:
    """A duplicate of a connected, non-blocking stream socket. Close it when done."""

    __slots__ = ("_loop", "_on_sent", "_socket", "waiting")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, original: socket.socket, on_sent: Callable[[int], None]
    ) -> None:
        self._loop = loop
        self._socket = socket.socket(
            original.family, original.type, original.proto, fileno=os.dup(original.fileno())
        )
        self._on_sent = on_sent
        self.waiting = False
        """Whether the peer has yet to make room."""

    def close(self) -> None:
        self._socket.close()

    async def send(self, data: bytes | memoryview, *, more: bool = False) -> None:
        """``more``: something follows immediately, so the kernel need not send a packet yet."""
        flags = _MORE if more else 0
        view = memoryview(data)
        while view:
            try:
                sent = self._socket.send(view[:_CALL_BYTES], flags)
            except BlockingIOError:
                await self._writable()
                continue
            self._on_sent(sent)
            view = view[sent:]
            if view:
                await self._writable()

    async def send_slice(self, file_slice: FileSlice) -> None:
        out, offset, left = self._socket.fileno(), file_slice.offset, file_slice.length
        while left:
            try:
                sent = os.sendfile(out, file_slice.fd, offset, min(left, _CALL_BYTES))
            except BlockingIOError:
                await self._writable()
                continue
            if sent == 0:
                raise SpanError
            self._on_sent(sent)
            offset += sent
            left -= sent
            if left:
                await self._writable()

    async def _writable(self) -> None:
        fd = self._socket.fileno()
        ready = self._loop.create_future()
        self._loop.add_writer(fd, _set, ready)
        self.waiting = True
        try:
            await ready
        finally:
            self.waiting = False
            self._loop.remove_writer(fd)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
