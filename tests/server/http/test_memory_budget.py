"""Bodies of all connections together take only so much memory, and give it back."""

import socket
from contextlib import ExitStack

import pytest

from kyanite.server.http.limits import Limits
from kyanite.server.memory_budget import MemoryBudget
from kyanite.wire.http import Request, Response
from tests.server.http.blocking_client import read_some, statuses, until
from tests.server.http.live_server import LiveHttp

MIB = 1024 * 1024
LIMITS = Limits(memory_bytes=4 * MIB)


async def length_of(request: Request) -> Response:
    body = await request.body.read_all(16 * MIB)
    return Response(200, body=str(None if body is None else len(body)).encode())


async def many_bytes(request: Request) -> Response:
    return Response(200, body=bytes(8 * MIB))


def put(length: int, sent: int) -> bytes:
    return b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % length + bytes(sent)


def chunked(sent: int) -> bytes:
    return b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % (2 * sent) + bytes(sent)


def status_of(client: socket.socket) -> int:
    return statuses(client.recv(65536))[0]


@pytest.mark.parametrize("is_chunked", [False, True])
def test_half_sent_bodies_share_a_budget(is_chunked: bool) -> None:
    with LiveHttp(length_of, limits=LIMITS) as live, ExitStack() as clients:
        half_sent = []
        for _ in range(6):
            client = clients.enter_context(live.connect())
            client.sendall(chunked(MIB // 2) if is_chunked else put(MIB, MIB // 2))
            half_sent.append(client)
        budget = live.server.budget
        until(lambda: budget.used_bytes == 3 * MIB)
        refused = clients.enter_context(live.connect())
        refused.sendall(chunked(MIB // 2) if is_chunked else put(MIB, MIB // 2))
        assert status_of(refused) == 503
        short = clients.enter_context(live.connect())
        for _ in range(50):
            short.sendall(put(60_000, 60_000))
            assert read_some(short, b"60000").startswith(b"HTTP/1.1 200 OK")
        assert budget.used_bytes == 3 * MIB
        half_sent.pop().close()
        until(lambda: budget.used_bytes < 3 * MIB)
        again = clients.enter_context(live.connect())
        again.sendall(put(MIB // 4, MIB // 4))
        read_some(again, str(MIB // 4).encode())
        for client in half_sent:
            client.close()
        until(lambda: budget.used_bytes == 0)


def test_a_body_counts_until_its_request_is_answered() -> None:
    used: list[int] = []

    async def note(request: Request) -> Response:
        await request.body.read_all(16 * MIB)
        used.append(live.server.budget.used_bytes)
        return Response(200)

    with LiveHttp(note, limits=LIMITS) as live, live.connect() as client:
        for size in (10, 100_000, 2 * MIB):
            client.sendall(put(size, size))
            read_some(client, b"\r\n\r\n")
        assert used == [10, 100_000, 2 * MIB]
        until(lambda: live.server.budget.used_bytes == 0)


def test_a_streamed_body_counts_only_while_it_waits() -> None:
    async def drop(request: Request) -> Response:
        while await request.body.read():
            assert live.server.budget.used_bytes <= 2 * MIB
        return Response(200)

    with LiveHttp(drop, limits=LIMITS) as live, live.connect() as client:
        client.sendall(put(40 * MIB, 40 * MIB))
        read_some(client, b"\r\n\r\n")
        assert live.server.budget.used_bytes == 0


def test_responses_that_are_not_read_share_it_too() -> None:
    limits = Limits(memory_bytes=32 * MIB)
    with LiveHttp(many_bytes, limits=limits) as live, ExitStack() as clients:
        request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        slow = [clients.enter_context(live.connect(receive_buffer_bytes=4096)) for _ in range(12)]
        for client in slow:
            client.sendall(request)
        budget = live.server.budget
        until(lambda: live.server.stats.requests_in_flight == 0 and live.server.stats.requests_total == 12)
        assert 0 < budget.used_bytes <= limits.memory_bytes
        answers = [status_of(client) for client in slow]
        assert set(answers) == {200, 503}
        for client in slow:
            client.close()
        until(lambda: budget.used_bytes == 0)


def test_what_was_used_is_given_back() -> None:
    given_back: list[int] = []
    budget = MemoryBudget(1 << 30, lambda: given_back.append(1))
    for used, expected in ((0, 0), (200, 0), (100, 0), (1, 1), (1, 1), (0, 1), (17, 1), (0, 2)):
        budget.add(used * MIB - budget.used_bytes)
        budget.tick()
        assert len(given_back) == expected
    budget.add(100 * MIB)
    budget.add(-100 * MIB)  # Between two ticks.
    budget.tick()
    assert len(given_back) == 3
