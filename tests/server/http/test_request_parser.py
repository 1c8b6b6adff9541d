"""The reader by itself: what a request holds, how input is cut up, and how far it reads ahead."""

import pytest

from kyanite.server.http.limits import Limits
from kyanite.server.http.request_parser import SLICE_BYTES, RequestReader
from kyanite.server.memory_budget import MemoryBudget
from kyanite.wire.http import BodyError
from tests.server.http.flow import StillFlow


def reader_with(flow: StillFlow | None = None, limits: Limits | None = None) -> RequestReader:
    return RequestReader(
        limits or Limits(),
        flow or StillFlow(),
        MemoryBudget(1 << 30),
        peer="1.2.3.4",
        secure=True,
        local_port=10000,
    )


def test_everything_a_request_holds() -> None:
    reader = reader_with()
    reader.feed(
        b"PUT /a%20b?c=%31 HTTP/1.1\r\nhOst: h:1\r\nx-ms-meta-Ab: \t caf\xe9\xa0 \t \r\n"
        b"X: 1\r\nx: 2\r\nEmpty:  \r\nContent-Length: 2 \r\n\r\nhi"
    )
    (request,) = reader.requests
    assert (request.method, request.path, request.query) == ("PUT", "/a%20b", "c=%31")
    assert request.headers == {
        "host": "h:1",
        "x-ms-meta-ab": "café\xa0",
        "x": "1,2",
        "empty": "",
        "content-length": "2",
    }
    assert [name for name, _ in request.raw_headers] == [
        b"hOst",
        b"x-ms-meta-Ab",
        b"X",
        b"x",
        b"Empty",
        b"Content-Length",
    ]
    assert (request.peer, request.secure, request.local_port) == ("1.2.3.4", True, 10000)
    assert request.body.length == 2
    assert request.keep_alive


@pytest.mark.parametrize(
    ("head", "host"),
    [
        (b"GET /p HTTP/1.1\r\nHost: h:1\r\n\r\n", "h:1"),
        (b"GET http://other:2/p HTTP/1.1\r\nHost: h:1\r\n\r\n", "other:2"),
        (b"GET HTTPS://other?q HTTP/1.1\r\nHost: h:1\r\n\r\n", "other"),
        (b"GET http://[::1]:2/p HTTP/1.0\r\n\r\n", "[::1]:2"),
        (b"OPTIONS * HTTP/1.1\r\nHost: h:1\r\n\r\n", "h:1"),
    ],
)
def test_the_host_of_a_url_wins_over_the_header(head: bytes, host: str) -> None:
    reader = reader_with()
    reader.feed(head)
    (request,) = reader.requests
    assert request.headers["host"] == host


KEEP_ALIVE = {
    (b"1.1", b""): True,
    (b"1.1", b"Connection: close\r\n"): False,
    (b"1.1", b"Connection: Keep-Alive\r\n"): True,
    (b"1.1", b"Connection: x, CLOSE\r\n"): False,
    (b"1.1", b"Connection: x\r\nConnection: close\r\n"): False,
    (b"1.1", b"Connection: closed\r\n"): True,
    (b"1.0", b""): False,
    (b"1.0", b"Connection: keep-alive\r\n"): True,
    (b"1.0", b"Connection: x, Keep-Alive\r\n"): True,
    (b"1.0", b"Connection: keep-alive, close\r\n"): False,
}


@pytest.mark.parametrize(("version", "lines"), KEEP_ALIVE)
def test_whether_a_connection_is_kept(version: bytes, lines: bytes) -> None:
    reader = reader_with()
    reader.feed(b"GET / HTTP/%b\r\nHost: h\r\n%b\r\n" % (version, lines))
    (request,) = reader.requests
    assert request.keep_alive == KEEP_ALIVE[version, lines]
    assert reader.closed != request.keep_alive


def test_no_more_than_a_slice_is_read_ahead() -> None:
    reader = reader_with()
    get = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    reader.feed(get * 10_000)
    assert len(reader.requests) == SLICE_BYTES // len(get)
    assert reader.rest
    answered = 0
    while reader.requests:
        answered += len(reader.requests)
        reader.requests.clear()
        reader.feed_rest()
    assert answered == 10_000
    assert not reader.rest
    assert reader.error is None


def test_a_body_is_read_on_behind_a_waiting_request() -> None:
    flow = StillFlow()
    reader = reader_with(flow, Limits(body_buffer_bytes=50_000))
    reader.feed(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + b"x" * 60_000)
    body = reader.body
    assert body is not None
    assert body.received == 60_000
    assert flow.calls == ["pause"]
    reader.feed(b"x" * 40_000 + b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    assert body.complete
    assert [request.path for request in reader.requests] == ["/"], "the next has to wait for this one"
    reader.requests.clear()
    reader.feed_rest()
    assert [request.path for request in reader.requests] == ["/next"]


async def test_a_body_resumes_when_half_of_it_is_read() -> None:
    flow = StillFlow()
    reader = reader_with(flow, Limits(body_buffer_bytes=10))
    reader.feed(b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    (request,) = reader.requests
    for piece in (b"aaaa", b"bbbb", b"cccc"):
        reader.feed(b"4\r\n%b\r\n" % piece)
    assert flow.calls == ["pause"]
    assert await request.body.read() == b"aaaa"
    assert flow.calls == ["pause"]
    assert await request.body.read() == b"bbbb"
    assert flow.calls == ["pause", "resume"]
    reader.feed(b"0\r\n\r\n")
    assert await request.body.read() == b"cccc"
    assert await request.body.read() == await request.body.read() == b""


async def test_an_end_in_the_middle_of_a_body() -> None:
    reader = reader_with()
    reader.feed(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
    (request,) = reader.requests
    reader.end(BodyError("gone"))
    for _ in range(2):
        with pytest.raises(BodyError, match="gone"):
            await request.body.read()
    reader.feed(b"world")
    assert request.incoming is not None
    assert request.incoming.received == 5


def test_header_names_are_remembered_up_to_a_bound() -> None:
    reader = reader_with()
    for number in range(6000):
        reader.feed(b"GET / HTTP/1.1\r\nHost: h\r\nX-%d: a\r\n\r\n" % number)
    assert [request.headers[f"x-{number}"] for number, request in enumerate(reader.requests)] == ["a"] * 6000


def test_nothing_is_read_behind_the_last_request() -> None:
    """Not even in the same slice, and not even when the parser would go on."""
    last = b"GET /last HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n"
    for stream in (last * 2, last.replace(b"1.0", b"1.1\r\nHost: h") * 2):
        reader = reader_with()
        reader.feed(stream)
        assert [request.path for request in reader.requests] == ["/last"]
        assert reader.closed
        assert reader.error is None
