"""Clients that leave at any point whatsoever: the handler hears of it, and nothing is left behind."""

import asyncio
import os
import re
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from kyanite.wire.http import FileSlice, Piece, Request, Response
from tests.server.http.blocking_client import read_to_end, until
from tests.server.http.live_server import LiveHttp


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


leaving = pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["close", "reset"])


class Stream:
    """What became of one streamed answer."""

    begun = False
    sent = False
    closed = False


class Everything:
    """A handler that reads, waits and streams, and counts how its exchanges ended."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._size = size
        self.begun = 0
        self.ended = 0
        self.released = 0
        self.released_while_open = 0
        self.disturbed = 0

    async def __call__(self, request: Request) -> Response:
        self.begun += 1
        try:
            await request.body.read_all(1 << 20)
            if request.path == "/wait":
                await asyncio.sleep(0.02)
        finally:
            self.ended += 1
        stream = Stream()
        pieces = self._pieces(stream)
        return Response(200, body=pieces, length=2 * self._size + 3, release=partial(self._release, stream))

    async def _pieces(self, stream: Stream) -> AsyncIterator[Piece]:
        stream.begun = True
        try:
            yield b"abc"
            yield FileSlice(self._fd, 0, self._size)
            await asyncio.sleep(0)
            yield FileSlice(self._fd, 0, self._size)
            stream.sent = True
        finally:
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                # At its own end a stream may be cancelled like any handler; once it is being closed, no more.
                self.disturbed += not stream.sent
                raise
            finally:
                stream.closed = True

    def _release(self, stream: Stream) -> None:
        self.released += 1
        if stream.begun and not stream.closed:
            self.released_while_open += 1


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Everything]:
    size = 6 << 20
    path = tmp_path / "content"
    path.write_bytes(bytes(size))
    fd = os.open(path, os.O_RDONLY)
    yield Everything(fd, size)
    os.close(fd)


PUT = b"PUT %b HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20_000


@leaving
@pytest.mark.parametrize("path", [b"/", b"/wait"])
def test_while_sending(everything: Everything, leave: Callable[[socket.socket], None], path: bytes) -> None:
    request = PUT % path
    cuts = [0, 1, 5, 20, 40, 54, 55, 60, 8192, 8193, 15_000, len(request) - 1, len(request)]
    with LiveHttp(everything) as live, live.nothing_left():
        for cut in cuts:
            client = live.connect()
            client.sendall(request[:cut])
            leave(client)
        until(lambda: live.server.stats.connections_total == len(cuts))
    assert everything.begun == everything.ended
    assert everything.released <= everything.ended
    assert everything.released_while_open == everything.disturbed == 0


@leaving
@pytest.mark.parametrize("received", [1, 200, 1_000_000, 7_000_000])
def test_while_receiving(
    everything: Everything, leave: Callable[[socket.socket], None], received: int
) -> None:
    with LiveHttp(everything) as live, live.nothing_left():
        client = live.connect()
        client.sendall(PUT % b"/")
        for _ in range(received):
            received -= len(client.recv(min(65536, received)))
            if received == 0:
                break
        leave(client)
        until(lambda: everything.released == 1)
    assert everything.begun == everything.ended == 1
    assert everything.released_while_open == everything.disturbed == 0


@leaving
def test_while_the_handler_waits(leave: Callable[[socket.socket], None]) -> None:
    ends: list[str] = []

    async def hang(request: Request) -> Response:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ends.append(request.path)
            raise
        return Response(200)

    with LiveHttp(hang) as live, live.nothing_left():
        clients = [live.connect() for _ in range(5)]
        for number, client in enumerate(clients):
            client.sendall(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number)
        until(lambda: live.server.stats.requests_in_flight == 5)
        for client in clients:
            leave(client)
        until(lambda: len(ends) == 5)
    assert sorted(ends) == ["/0", "/1", "/2", "/3", "/4"]


def test_an_answer_without_a_client_is_released() -> None:
    released: list[int] = []

    async def stubborn(request: Request) -> Response:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
        return Response(200, body=b"too late", release=lambda: released.append(1))

    with LiveHttp(stubborn) as live, live.nothing_left():
        with live.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            until(lambda: live.server.stats.requests_in_flight == 1)
        until(lambda: released == [1])


def test_a_client_that_stops_sending_still_gets_an_answer_that_has_begun(everything: Everything) -> None:
    with LiveHttp(everything) as live, live.nothing_left(), live.connect() as client:
        client.sendall(PUT % b"/")
        begun = client.recv(10)
        client.shutdown(socket.SHUT_WR)
        whole = begun + read_to_end(client)
        assert len(whole.partition(b"\r\n\r\n")[2]) == (12 << 20) + 3


@pytest.mark.parametrize(
    ("behind", "statuses"),
    [
        pytest.param(b"no request\r\n\r\n", [b"200", b"400"], id="bytes that are no request"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", [b"200", b"200"], id="a request"),
        pytest.param(b"GET / HTTP/1.1\r\nHo", [b"200"], id="a part of one"),
    ],
)
def test_what_came_before_the_end_is_answered(behind: bytes, statuses: list[bytes]) -> None:
    """The end is there when the request before is over and the next one has not begun."""
    is_at_end = threading.Event()

    async def slow(request: Request) -> Response:
        await request.body.read_all(10)
        is_at_end.wait(10)
        return Response(200)

    with LiveHttp(slow) as live, live.nothing_left(), live.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
        until(lambda: live.server.stats.requests_in_flight == 1)
        client.sendall(b"hello" + behind)
        client.shutdown(socket.SHUT_WR)
        is_at_end.set()
        answers = read_to_end(client)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == statuses


def test_a_crowd_leaves_nothing_behind(everything: Everything) -> None:
    with LiveHttp(everything) as live, live.nothing_left():
        for round_number in range(40):
            client = live.connect()
            client.sendall((PUT % b"/wait") * 2)
            if round_number % 3 == 0:
                client.recv(100)
            (reset if round_number % 2 else socket.socket.close)(client)
    assert everything.begun == everything.ended
    assert everything.released_while_open == everything.disturbed == 0
