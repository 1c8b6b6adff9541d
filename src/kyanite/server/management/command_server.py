"""Carries out the commands that come in through the management socket, in the worker that does the maintenance."""

import asyncio
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

import msgspec

from kyanite.server.failures import Failure
from kyanite.server.management.command import Command, Management, carry_out
from kyanite.server.management.messages import (
    MESSAGE_BYTES_MAX,
    ResultMessage,
    decode_request,
    encode,
)

REQUEST_SECONDS = 10.0
"""How long a client may take to send its request."""
CONNECTIONS_MAX = 16

_log = logging.getLogger("kyanite.management")


class CommandServer:
    """Serves the socket from ``start`` until ``stop``."""

    def __init__(self, commands: Mapping[str, Command], management: Management) -> None:
        self._commands = commands
        self._management = management
        self._open = asyncio.Semaphore(CONNECTIONS_MAX)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(
        cls, listener: socket.socket, commands: Mapping[str, Command], management: Management
    ) -> Self:
        server = cls(commands, management)
        server._server = await asyncio.start_unix_server(
            server._serve, sock=listener, limit=MESSAGE_BYTES_MAX
        )
        return server

    async def stop(self, seconds: float) -> None:
        """Accept no more, and let commands end within this time."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            async with self._open:
                writer.write(encode(await self._answer(reader)))
                await writer.drain()
        except OSError:
            pass  # The client has gone. What it wanted is done all the same.
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> ResultMessage:
        try:
            request = decode_request(await asyncio.wait_for(reader.readline(), REQUEST_SECONDS))
        except (msgspec.DecodeError, ValueError, TimeoutError):
            return ResultMessage(failure="The request cannot be read.", exit_code=2)
        try:
            result = await carry_out(self._commands, self._management, request.command, request.arguments)
        except Failure as failure:
            return ResultMessage(failure=failure.sentence, exit_code=failure.exit_code)
        return ResultMessage(result)
