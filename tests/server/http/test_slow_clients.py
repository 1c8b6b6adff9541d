"""Slow and silent clients, with limits small enough to be met in a test."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kyanite.server.http.limits import Limits, Progress
from kyanite.wire.http import BodyError, Request, Response
from tests.server.http.blocking_client import read_some, read_to_end, statuses, undated, until
from tests.server.http.live_server import LiveHttp, Pieces, describe

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
NEVER = 1000.0


def only(**limits: float) -> Limits:
    """These limits small, all others out of reach."""
    base: dict[str, float] = {"idle_seconds": NEVER, "head_seconds": NEVER, "stall_seconds": NEVER}
    return Limits(**(base | limits), tick_seconds=0.02)  # type: ignore[arg-type]


@contextmanager
def drip(send: Callable[[bytes], object], data: bytes) -> Iterator[None]:
    """Send a byte now and then, until the block is left or the other side has had enough."""
    stop = threading.Event()

    def run() -> None:
        for at in range(len(data)):
            if stop.wait(0.01):
                return
            try:
                send(data[at : at + 1])
            except OSError:
                return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_silent_client_is_disconnected() -> None:
    with (
        LiveHttp(describe, limits=only(idle_seconds=0.1)) as live,
        live.nothing_left(),
        live.connect() as client,
    ):
        assert read_to_end(client) == b""


def test_an_idle_connection_is_closed_but_not_before() -> None:
    with (
        LiveHttp(describe, limits=only(idle_seconds=0.8)) as live,
        live.nothing_left(),
        live.connect() as client,
    ):
        for _ in range(3):
            client.sendall(GET)
            read_some(client, b"GET / ")
            threading.Event().wait(0.4)
        client.sendall(GET)
        assert statuses(read_to_end(client)) == [200]


def test_empty_lines_do_not_keep_a_connection() -> None:
    limits = only(idle_seconds=0.2)
    with (
        LiveHttp(describe, limits=limits) as live,
        live.connect() as client,
        drip(client.sendall, b"\r\n" * 10_000),
    ):
        assert read_to_end(client) == b""


def test_a_head_that_does_not_end() -> None:
    with LiveHttp(describe, limits=only(head_seconds=0.2)) as live, live.nothing_left():
        with live.connect() as client, drip(client.sendall, b"GET / HTTP/1.1\r\nA: " + b"a" * 10_000):
            answer = undated(read_to_end(client))
        assert answer == b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        assert live.server.stats.stalls_total == 1


def test_many_quick_heads_are_no_slow_one() -> None:
    with LiveHttp(describe, limits=only(head_seconds=0.5)) as live, live.connect() as client:
        for _ in range(40):
            client.sendall(GET[:10])
            threading.Event().wait(0.015)
            client.sendall(GET[10:])
            read_some(client, b"GET / ")


def test_a_body_that_stalls() -> None:
    errors: list[str] = []

    async def read(request: Request) -> Response:
        try:
            await request.body.read_all(1000)
        except BodyError as error:
            errors.append(f"{error.status} {error}")
            raise
        return Response(200)

    head = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n"
    with LiveHttp(read, limits=only(stall_seconds=0.2)) as live, live.nothing_left():
        answer = undated(live.talk(head + b"x"))
        assert answer == b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        assert errors == ["408 the body stalled"]


def test_a_body_that_drips() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n"
    with (
        LiveHttp(describe, limits=only(stall_seconds=0.2, stall_bytes=100)) as live,
        live.connect() as client,
    ):
        client.sendall(head)
        with drip(client.sendall, b"x" * 10_000):
            assert statuses(read_to_end(client)) == [408]


def test_a_steady_body_is_not_stalled() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 80\r\n\r\n"
    with LiveHttp(describe, limits=only(stall_seconds=0.5, stall_bytes=2)) as live, live.connect() as client:
        client.sendall(head)
        with drip(client.sendall, b"x" * 80):
            read_some(client, b"PUT / " + b"x" * 80)


def test_a_slow_handler_is_not_the_clients_fault() -> None:
    async def think(request: Request) -> Response:
        await asyncio.sleep(0.4)
        return await describe(request)

    limits = only(stall_seconds=0.1, idle_seconds=0.1, head_seconds=0.1)
    with LiveHttp(think, limits=limits) as live, live.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nh")
        threading.Event().wait(0.3)
        client.sendall(b"i")
        read_some(client, b"PUT / hi")


def test_an_unread_body_that_stalls() -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, body=b"no")

    with (
        LiveHttp(refuse, limits=only(stall_seconds=0.1)) as live,
        live.nothing_left(),
        live.connect() as client,
    ):
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n")
        assert read_to_end(client).endswith(b"no")


def test_a_client_that_does_not_take_its_answer() -> None:
    size = 32 << 20
    released: list[int] = []

    async def large(request: Request) -> Response:
        if request.path == "/whole":
            return Response(200, body=bytes(size), release=lambda: released.append(1))
        pieces = Pieces(*[bytes(1 << 20)] * 32)
        return Response(200, body=pieces, length=size, release=lambda: released.append(1))

    with LiveHttp(large, limits=only(stall_seconds=0.2)) as live, live.nothing_left():
        for path in (b"/whole", b"/streamed"):
            with live.connect() as client:
                client.sendall(GET.replace(b"/ ", path + b" "))
                until(lambda: live.server.stats.connections_open == 1)
                until(lambda: live.server.stats.connections_open == 0)
        assert live.server.stats.stalls_total == 2
    assert released == [1, 1]


def test_no_answers_pile_up_for_a_client_that_does_not_read() -> None:
    """A pipeline whose answers are not taken is not worked through: at most the buffers are filled."""
    count = 200
    size = 1 << 20

    async def large(request: Request) -> Response:
        return Response(200, body=bytes(size))

    with LiveHttp(large) as live, live.connect() as client:
        client.sendall(GET * count)
        until(lambda: live.server.stats.requests_total > 1)
        threading.Event().wait(0.1)
        assert live.server.stats.requests_total < 30
        received = 0
        while received < count * size:
            received += len(client.recv(1 << 20))
        assert live.server.stats.requests_total == count


def test_progress_counts_only_the_time_of_waiting() -> None:
    limits = Limits(stall_seconds=10, stall_bytes=100)
    progress = Progress()
    assert not progress.stalled(50, 6, limits)
    assert not progress.stalled(100, 6, limits), "moved enough: a new start"
    assert not progress.stalled(199, 9, limits)
    assert not progress.stalled(199, 1, limits)
    assert progress.stalled(199, 1, limits)
