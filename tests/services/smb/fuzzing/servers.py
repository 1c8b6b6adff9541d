"""The other side of a fuzzed connection: one in memory, or the socket of a real server."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.transport import Connect, Transport

_FRAME_BYTES_MAX = 200_000
_ANSWERED_SECONDS = 0.2
"""A request may have no answer: the client goes on after this time."""


class Server(Protocol):
    async def pass_on(self, frame: bytearray) -> None:
        """Let the server have a message, and the time to answer it."""

    async def lose(self) -> None:
        """The connection is lost, and everything of it has ended."""


class ServerInMemory:
    def __init__(self, connect: Connect, client: Transport, address: str) -> None:
        self._connection = connect(client, address)

    async def pass_on(self, frame: bytearray) -> None:
        if len(frame) <= self._connection.longest_message:
            self._connection.received(frame)
        for _ in range(3):
            await asyncio.sleep(0)

    async def lose(self) -> None:
        self._connection.lost()
        await self._connection.finished()


class ServerSocket(asyncio.Protocol):
    """To be opened before it is used."""

    _transport: asyncio.Transport

    def __init__(self, port: int, client: Transport) -> None:
        self._port = port
        self._client = client
        self._received = bytearray()
        self._is_answered = asyncio.Event()

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self._port)

    async def pass_on(self, frame: bytearray) -> None:
        if len(frame) > _FRAME_BYTES_MAX or self._transport.is_closing():
            return
        self._is_answered.clear()
        self._transport.write(len(frame).to_bytes(4, "big") + frame)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_answered.wait(), _ANSWERED_SECONDS)

    async def lose(self) -> None:
        self._transport.abort()

    # Called by the loop.

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[1:4], "big")
            if len(self._received) < end:
                return
            message: Sequence[Data] = [bytes(self._received[4:end])]
            del self._received[:end]
            self._client.send(message)
            self._is_answered.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.close()
        self._is_answered.set()
