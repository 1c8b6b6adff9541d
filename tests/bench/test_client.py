"""The load client against a small server of its own: it counts every answer, and every wrong one as an error."""

import socket
import threading
from collections.abc import Iterator

import pytest
from bench.load.client import LaneWork, Tally, drive
from bench.load.lane import Body, Lane, Request, Work, expecting
from bench.load.site import Site

BIG = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + bytes(3_000_000)
CHUNKY = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"3\r\nabc\r\n" * 50_000 + b"0\r\n\r\n"
ANSWERS = {
    b"/ok": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Turn: 7\r\n\r\nok",
    b"/busy": b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
    b"/big": BIG,
    b"/chunky": CHUNKY,
    b"/cut": BIG[:1_000_000],
}


@pytest.fixture
def site() -> Iterator[Site]:
    """Answers each request by its path; a request body is read as far as Content-Length says."""
    with socket.create_server(("127.0.0.1", 0)) as server_socket:
        accepting = threading.Thread(target=_accept, args=(server_socket,))
        accepting.start()
        yield Site("127.0.0.1", server_socket.getsockname()[1], "", "")
        server_socket.shutdown(socket.SHUT_RDWR)
        accepting.join(10)
        assert not accepting.is_alive()


def _accept(server_socket: socket.socket) -> None:
    threads = []
    while True:
        try:
            connection, _ = server_socket.accept()
        except OSError:
            break
        threads.append(threading.Thread(target=_converse, args=(connection,)))
        threads[-1].start()
    for thread in threads:
        thread.join(10)


def _converse(connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as reader:
        while line := reader.readline():
            length = 0
            while (field := reader.readline()) not in (b"\r\n", b""):
                if field.startswith(b"Content-Length:"):
                    length = int(field.split(b":")[1])
            while length > 0:
                length -= len(reader.read(min(length, 65536)))
            path = line.split()[1]
            connection.sendall(ANSWERS[path])
            if path == b"/cut":
                return


def _load(
    site: Site, work: LaneWork, *, lanes: int, seconds: float | None, requests_per_operation: int = 1
) -> Tally:
    """As the client does it, but in this process: a fork has no place beside the threads of a test."""
    return drive(
        [Lane(site.host, site.port, work(lane)) for lane in range(lanes)], seconds, requests_per_operation
    )


def _times(request: Request, count: int) -> Work:
    for _ in range(count):
        yield request


def test_every_answer_is_counted_in_every_lane(site: Site) -> None:
    request = Request(site.head("GET", "/ok"), expecting(200))
    tally = _load(site, lambda lane: _times(request, 10 + lane), lanes=9, seconds=None)
    assert tally.errors == []
    assert tally.operations == sum(10 + lane for lane in range(9))
    assert len(tally.latencies) == tally.operations
    assert 0 < tally.percentile_ms(0.5) <= tally.percentile_ms(0.99)


def test_tallies_of_processes_add_up() -> None:
    tally = Tally(operations=3, seconds=1.5, client_cpu_seconds=0.5, errors=["a"])
    tally.add(Tally(operations=5, seconds=2.0, client_cpu_seconds=0.25, errors=["b"]))
    assert (tally.rate, tally.client_cpu_seconds, tally.errors) == (4.0, 0.75, ["a", "b"])


@pytest.mark.parametrize("path", ["/big", "/chunky"])
def test_answers_that_come_in_many_pieces(site: Site, path: str) -> None:
    request = Request(site.head("GET", path), expecting(200))
    tally = _load(site, lambda lane: _times(request, 3), lanes=2, seconds=None)
    assert (tally.operations, tally.errors) == (6, [])


def test_a_body_is_sent_whole(site: Site) -> None:
    head = site.head("PUT", "/ok", headers="Content-Length: 8388608\r\n")
    request = Request(head, expecting(200), Body(memoryview(bytes(1 << 20)), 8))
    tally = _load(site, lambda lane: _times(request, 2), lanes=2, seconds=None)
    assert (tally.operations, tally.errors) == (4, [])


def test_an_unexpected_status_is_an_error_and_ends_the_lane(site: Site) -> None:
    request = Request(site.head("GET", "/busy"), expecting(200))
    tally = _load(site, lambda lane: _times(request, 5), lanes=2, seconds=None)
    assert tally.errors == ["HTTP/1.1 503 Busy busy"] * 2


def test_an_answer_cut_short_is_an_error(site: Site) -> None:
    request = Request(site.head("GET", "/cut"), expecting(200))
    tally = _load(site, lambda lane: _times(request, 1), lanes=1, seconds=None)
    assert tally.operations == 0
    assert len(tally.errors) == 1


def test_time_ends_a_work_without_end_after_a_whole_operation(site: Site) -> None:
    requests = [Request(site.head("GET", "/ok"), expecting(200)) for _ in range(3)]

    def cycles(lane: int) -> Work:
        while True:
            for request in requests:
                answer = yield request
                assert answer == ANSWERS[b"/ok"]

    tally = _load(site, cycles, lanes=2, seconds=0.05, requests_per_operation=3)
    assert tally.errors == []
    assert tally.operations >= 2
    assert tally.operations == int(tally.operations)
