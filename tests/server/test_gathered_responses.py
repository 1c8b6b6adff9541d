"""Short responses that leave together."""

import asyncio
import platform
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import pytest

from kyanite.server.gathered_responses import LENGTH_MAX, GatheredResponses, ShortResponses
from kyanite.server.socket_writes import WRITES_MAX, SocketWrites
from kyanite.slices import next_slice
from kyanite.wire.http import Request, Response
from tests.server.http.blocking_client import read_to_end
from tests.server.http.live_server import LiveHttp, describe

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")


class Transport:
    """A transport of which a test decides what it has left to send."""

    def __init__(self, connected: socket.socket) -> None:
        self.connected = connected
        self.written: list[bytes] = []
        self.unsent = 0
        self.closing = False

    def get_extra_info(self, name: str) -> object:
        return self.connected if name == "socket" else None

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        self.written.append(data)


class Client:
    """A connection of the server, and the client's end of it."""

    def __init__(self, gathered: GatheredResponses) -> None:
        ours, self.end = socket.socketpair()
        ours.setblocking(False)
        self.end.setblocking(False)
        self.transport = Transport(ours)
        short = gathered.of(cast(asyncio.Transport, self.transport))
        assert short is not None
        self.short: ShortResponses = short

    def received(self) -> bytes:
        try:
            return self.end.recv(1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.transport.connected.close()
        self.end.close()


@contextmanager
def connected(count: int) -> Iterator[list[Client]]:
    gathered = GatheredResponses(asyncio.get_running_loop(), SocketWrites(platform.machine()))
    made = [Client(gathered) for _ in range(count)]
    yield made
    for client in made:
        client.close()
    gathered.close()


@pytest.mark.parametrize("count", [1, 2, WRITES_MAX - 1])
async def test_they_leave_at_the_end_of_the_iteration(count: int) -> None:
    with connected(count) as clients:
        for number, client in enumerate(clients):
            client.short.send(b"%d" % number)
        assert [client.received() for client in clients] == [b""] * count
        await asyncio.sleep(0)
        assert [client.received() for client in clients] == [b"%d" % number for number in range(count)]
        assert [client.transport.written for client in clients] == [[]] * count


async def test_they_leave_when_no_more_fit_into_a_call() -> None:
    with connected(2 * WRITES_MAX + 1) as clients:
        for client in clients:
            client.short.send(b"now")
        assert [client.received() for client in clients] == [b"now"] * (2 * WRITES_MAX) + [b""]
        clients[0].short.send(b"later")
        await asyncio.sleep(0)
        assert [client.received() for client in clients] == [b"later"] + [b""] * (2 * WRITES_MAX - 1) + [
            b"now"
        ]
        assert [client.transport.written for client in clients] == [[]] * len(clients)


async def test_what_follows_goes_through_the_transport() -> None:
    """In the order in which it was sent."""
    with connected(3) as clients:
        first, second, third = clients[:3]
        first.short.send(b"one")
        first.short.send(b"two")
        first.short.send(b"three")
        second.short.send(b"one")
        second.short.flush()
        second.short.send(b"two")
        third.short.send(bytes(LENGTH_MAX + 1))
        await asyncio.sleep(0)
        assert [client.received() for client in (first, second, third)] == [b"", b"", b""]
        assert first.transport.written == [b"one", b"two", b"three"]
        assert second.transport.written == [b"one", b"two"]
        assert third.transport.written == [bytes(LENGTH_MAX + 1)]
        for client in (first, second, third):
            client.short.send(b"next")
        await asyncio.sleep(0)
        assert [client.received() for client in (first, second, third)] == [b"next"] * 3


async def test_a_descriptor_is_not_used_once_its_connection_is_closed() -> None:
    """It may be the next connection's by then."""
    with connected(2) as clients:
        first, second = clients[:2]
        first.short.send(b"not for you")
        second.short.send(b"for you")
        first.transport.closing = True
        await asyncio.sleep(0)
        assert (first.received(), first.transport.written, second.received()) == (b"", [], b"for you")


async def test_nothing_overtakes_what_the_transport_has_left() -> None:
    with connected(2) as clients:
        first, second = clients[:2]
        first.transport.unsent = 1
        first.short.send(b"later")
        second.short.send(b"now")
        await asyncio.sleep(0)
        assert (first.received(), first.transport.written, second.received()) == (b"", [b"later"], b"now")


async def test_the_transport_gets_what_a_client_has_no_room_for() -> None:
    with connected(2) as clients:
        first, second = clients
        sent = 0
        while not first.transport.written:
            first.short.send(bytes(LENGTH_MAX))
            second.short.send(b"x")
            await asyncio.sleep(0)
            sent += LENGTH_MAX
        (rest,) = first.transport.written
        received = 0
        while data := first.received():
            received += len(data)
        assert received + len(rest) == sent
        assert second.received() == b"x" * (sent // LENGTH_MAX)


async def waits(client: Client) -> bool:
    """Whether a response waits that the client alone gets, in an iteration of its own."""
    client.short.send(b"x")
    waited = client.transport.written == []
    client.transport.written.clear()
    await asyncio.sleep(0)
    assert client.received() == (b"x" if waited else b"")
    return waited


async def test_few_wait_where_a_client_is_alone() -> None:
    with connected(1) as (client,):
        waited = [await waits(client) for _ in range(66)]
        assert waited == ([True] * 2 + [False] * 30) * 2 + [True] * 2


@pytest.mark.parametrize("others", range(1, 8))
async def test_they_wait_again_when_other_clients_come(others: int) -> None:
    """However many come at once, so whichever of them is the first that waits again."""
    with connected(1 + others) as clients:
        while await waits(clients[0]):
            pass
        for _ in range(33):
            for client in clients:
                client.short.send(b"y")
            await asyncio.sleep(0)
        for client in clients:
            client.received()
            client.transport.written.clear()
            client.short.send(b"z")
        await asyncio.sleep(0)
        assert [client.received() for client in clients] == [b"z"] * len(clients)


async def test_they_do_not_wait_for_slices_of_long_work() -> None:
    with connected(2) as clients:
        for _ in range(3):
            await next_slice()
            for client in clients:
                client.short.send(b"x")
            assert [client.transport.written for client in clients] == [[b"x"], [b"x"]]
            for client in clients:
                client.transport.written.clear()
        assert [await waits(clients[0]) for _ in range(28)] == [False] * 28
        assert await waits(clients[0])


@pytest.fixture
def server() -> Iterator[LiveHttp]:
    with LiveHttp(describe) as live:
        yield live


def heads(paths: Sequence[str]) -> bytes:
    return b"".join(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode() for path in paths)


def last(path: str) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode()


def test_clients_that_are_answered_together() -> None:
    """The loop is busy until all have sent something, so that all are answered in one iteration."""

    async def slow_once(request: Request) -> Response:
        if request.path == "/slow":
            time.sleep(0.3)
        return await describe(request)

    with LiveHttp(slow_once) as live:
        clients = [live.connect() for _ in range(2 * WRITES_MAX)]
        for number, client in enumerate(clients):
            client.sendall(last(f"/{number}" if number else "/slow"))
        bodies = [read_to_end(client).partition(b"\r\n\r\n")[2] for client in clients]
        assert bodies == [
            b"GET /%b " % (str(number).encode() if number else b"slow") for number in range(len(clients))
        ]
        for client in clients:
            client.close()


def test_a_pipeline_is_answered_in_order(server: LiveHttp) -> None:
    paths = [f"/{number}" for number in range(100)]
    received = server.talk(heads(paths) + last("/last"))
    bodies = [line for line in received.split(b"\r\n") if line.startswith(b"GET ")]
    answered = received.replace(b"HTTP/1.1 200", b"\r\nHTTP/1.1 200")
    assert answered.count(b"HTTP/1.1 200") == 101
    assert (
        b"".join(bodies).replace(b"HTTP/1.1 200 OK", b"")
        == b"".join(b"GET /%d " % n for n in range(100)) + b"GET /last "
    )


def test_who_stops_sending_behind_a_request_is_answered(server: LiveHttp) -> None:
    for _ in range(50):
        with server.connect() as client:
            client.sendall(heads(["/one"]))
            client.shutdown(socket.SHUT_WR)
            assert read_to_end(client).endswith(b"GET /one ")
