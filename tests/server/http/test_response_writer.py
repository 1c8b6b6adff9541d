"""The sending side by itself, over a transport that sends on command."""

import asyncio
import socket
from collections.abc import Iterator
from typing import cast

import pytest

from kyanite.server.http.limits import Limits, Stats
from kyanite.server.http.response_writer import ResponseWriter
from tests.server.http.live_server import Pieces


class SlowTransport:
    """Keeps some bytes back, and reports that to the writer as a transport does."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.writer: ResponseWriter | None = None
        self.unsent = 0
        self.limits: list[int] = []

    def get_extra_info(self, name: str) -> socket.socket:
        assert name == "socket"
        return self._socket

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def set_write_buffer_limits(self, high: int) -> None:
        self.limits.append(high)
        if self.writer is not None and self.unsent > high:
            self.writer.pause()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


def writer_over(transport: SlowTransport, stats: Stats | None = None) -> ResponseWriter:
    loop = asyncio.get_running_loop()
    writer = ResponseWriter(cast(asyncio.Transport, transport), loop, stats or Stats(), None, secure=False)
    transport.writer = writer
    return writer


async def test_a_stream_waits_for_what_the_transport_holds(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    transport, stats = SlowTransport(ours), Stats()
    writer = writer_over(transport, stats)
    transport.unsent = 5
    sending = asyncio.create_task(writer.send(b"head", Pieces(b"body"), length=4, chunked=False))
    await asyncio.sleep(0.01)
    with pytest.raises(BlockingIOError):
        theirs.recv(100)
    transport.unsent = 0
    writer.resume()
    await sending
    assert theirs.recv(100) == b"headbody"
    assert stats.bytes_out == writer.bytes_out == 8
    assert transport.limits[-1] == transport.limits[0] > 0, "the bound of before holds again"


async def test_a_stream_that_is_not_read_is_stalled(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = writer_over(SlowTransport(ends[0]))
    limits = Limits(stall_seconds=10, stall_bytes=1)
    assert not writer.stalled(11, limits), "nothing to take"
    pieces = Pieces(bytes(4 << 20))
    sending = asyncio.create_task(writer.send(b"head", pieces, length=4 << 20, chunked=False))
    await asyncio.sleep(0.01)
    assert not writer.stalled(11, limits), "some of it went into the socket"
    assert not writer.stalled(9, limits)
    assert writer.stalled(2, limits)
    sending.cancel()
    await asyncio.wait([sending])
    assert not writer.stalled(100, limits), "and nothing again"
