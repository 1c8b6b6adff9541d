"""A TCP proxy in front of a database, which tests cut in the middle of a commit."""

import asyncio
from collections.abc import Callable
from contextlib import suppress


class Proxy:
    """Forwards connections to a port of this machine. It counts what clients send, and may swallow the answers.

    ``cut_when`` is called with each piece that a client sends; once it returns True nothing comes back any more, and
    all connections end.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_when: Callable[[bytes], bool] = lambda _piece: False
        self.forwards_last = True
        """Whether the piece at which it is cut still arrives."""
        self.is_refusing = False
        """Whether new connections end at once."""
        self.cuts = 0
        self.connections = 0
        """How many clients have made."""
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self._end_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        if self.is_refusing:
            writer.close()
            return
        try:
            upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, upstream}
        answers = asyncio.create_task(self._forward(upstream_reader, writer, False))
        try:
            await self._forward(reader, upstream, True)
        finally:
            answers.cancel()
            with suppress(asyncio.CancelledError):
                await answers
            for each in (writer, upstream):
                each.close()
                self._writers.discard(each)
            self._tasks.discard(task)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, from_client: bool
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                if from_client and self.cut_when(piece):
                    self.cut_when = lambda _piece: False
                    self.cuts += 1
                    if self.forwards_last:
                        writer.write(piece)
                        await writer.drain()
                    self._end_all(but=writer)
                    await asyncio.sleep(0.2)  # The database may finish what has arrived.
                    return
                writer.write(piece)
                await writer.drain()

    def _end_all(self, but: asyncio.StreamWriter | None = None) -> None:
        for writer in self._writers:
            if writer is not but:
                writer.transport.abort()
