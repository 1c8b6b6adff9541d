"""Streamed responses: pieces of any kind, framed by length or in chunks, over a plain socket or TLS."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Protocol

from kyanite.server.http.sendfile import SpanError
from kyanite.wire.http import FileSlice, Piece

_READ_BYTES = 512 * 1024
"""How much of a file is read at a time when the kernel cannot send it."""


class LengthError(Exception):
    """The pieces do not add up to what the head announced. The connection can only be cut."""


class Sender(Protocol):
    async def send(self, data: bytes | memoryview, *, more: bool = False) -> None:
        """``more``: something follows immediately, so this need not leave by itself."""

    async def send_slice(self, file_slice: FileSlice) -> None: ...


class Writer(Protocol):
    """What a sender over a transport needs of its connection."""

    def write(self, data: bytes | memoryview) -> None: ...

    async def writable(self) -> None: ...


class TransportSender:
    """Sends through the transport, which encrypts. Files are read in a thread, so that the loop never waits for a
    disk.
    """

    __slots__ = ("_loop", "_writer")

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Writer) -> None:
        self._loop = loop
        self._writer = writer

    async def send(self, data: bytes | memoryview, *, more: bool = False) -> None:
        self._writer.write(data)
        if not more:
            await self._writer.writable()

    async def send_slice(self, file_slice: FileSlice) -> None:
        offset, end = file_slice.offset, file_slice.offset + file_slice.length
        while offset < end:
            size = min(_READ_BYTES, end - offset)
            data = await self._loop.run_in_executor(None, os.pread, file_slice.fd, size, offset)
            if not data:
                raise SpanError
            offset += len(data)
            await self.send(data)


async def send_pieces(
    sender: Sender, head: bytes, pieces: AsyncIterator[Piece], *, length: int | None, chunked: bool
) -> None:
    """The head, then the pieces: ``length`` bytes of them exactly, or in chunks, or until the connection
    ends.
    """
    await sender.send(head, more=length != 0)
    total = 0
    async for piece in pieces:
        size = size_of(piece)
        total += size
        if length is not None and total > length:
            raise LengthError
        if not chunked:
            await _send_piece(sender, piece)
        elif size:  # An empty chunk would end the body.
            await sender.send(b"%x\r\n" % size, more=True)
            await _send_piece(sender, piece, more=True)
            await sender.send(b"\r\n")
    if chunked:
        await sender.send(b"0\r\n\r\n")
    elif length is not None and total != length:
        raise LengthError


async def _send_piece(sender: Sender, piece: Piece, *, more: bool = False) -> None:
    if isinstance(piece, FileSlice):
        await sender.send_slice(piece)
    else:
        await sender.send(piece, more=more)


def size_of(piece: Piece) -> int:
    if isinstance(piece, FileSlice):
        return piece.length
    return piece.nbytes if isinstance(piece, memoryview) else len(piece)
