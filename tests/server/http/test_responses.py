"""Answers on their way out: how each is framed, that none is padded or cut silently, and that all are released."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from kyanite.wire.http import FileSlice, Piece, Request, Response, Unfinished
from tests.server.http.blocking_client import read_some, read_to_end, statuses, undated, until
from tests.server.http.live_server import LiveHttp, Pieces

GET = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
HEAD = GET.replace(b"GET", b"HEAD")
OLD = b"GET / HTTP/1.0\r\n\r\n"
OLD_KEPT = b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"

ANSWERS: dict[str, tuple[bytes, Callable[[], Response], bytes]] = {
    "nothing": (GET, lambda: Response(200), b"200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    "headers in order, case kept": (
        GET,
        lambda: Response(201, [("x-B", "1"), ("A", ""), ("x-B", "é")]),
        b"201 Created\r\nx-B: 1\r\nA: \r\nx-B: \xe9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ),
    "a reason of its own": (
        GET,
        lambda: Response(404, reason="The blob is\r\nEvil: gone → é"),
        b"404 The blob is  Evil: gone ? \xe9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ),
    "an unknown status": (
        GET,
        lambda: Response(799),
        b"799 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ),
    "no content": (GET, lambda: Response(204), b"204 No Content\r\nConnection: close\r\n\r\n"),
    "no content, though given": (
        GET,
        lambda: Response(204, body=b"x"),
        b"204 No Content\r\nConnection: close\r\n\r\n",
    ),
    "not modified": (GET, lambda: Response(304), b"304 Not Modified\r\nConnection: close\r\n\r\n"),
    "not modified, with a length": (
        GET,
        lambda: Response(304, length=7),
        b"304 Not Modified\r\nContent-Length: 7\r\nConnection: close\r\n\r\n",
    ),
    "head": (
        HEAD,
        lambda: Response(200, length=1234),
        b"200 OK\r\nContent-Length: 1234\r\nConnection: close\r\n\r\n",
    ),
    "head of a body": (
        HEAD,
        lambda: Response(404, body=b"<Error/>"),
        b"404 Not Found\r\nContent-Length: 8\r\nConnection: close\r\n\r\n",
    ),
    "head of a stream": (
        HEAD,
        lambda: Response(200, body=Pieces(b"abc"), length=3),
        b"200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n",
    ),
    "head of chunks": (
        HEAD,
        lambda: Response(200, body=Pieces(b"abc")),
        b"200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    ),
    "a stream": (
        GET,
        lambda: Response(200, body=Pieces(b"ab", b"", memoryview(b"cde")), length=5),
        b"200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde",
    ),
    "an empty stream": (
        GET,
        lambda: Response(200, body=Pieces(), length=0),
        b"200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ),
    "chunks": (
        GET,
        lambda: Response(200, body=Pieces(b"ab", b"", memoryview(b"c" * 17))),
        b"200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n11\r\n"
        + b"c" * 17
        + b"\r\n0\r\n\r\n",
    ),
    "no chunks": (
        GET,
        lambda: Response(200, body=Pieces()),
        b"200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    ),
    "a body for HTTP/1.0": (
        OLD,
        lambda: Response(200, body=b"abc"),
        b"200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
    ),
    "a stream for HTTP/1.0 ends with the connection": (
        OLD_KEPT,
        lambda: Response(200, body=Pieces(b"ab", b"c")),
        b"200 OK\r\nConnection: close\r\n\r\nabc",
    ),
}


@pytest.mark.parametrize(("request_bytes", "make", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_answer(request_bytes: bytes, make: Callable[[], Response], expected: bytes) -> None:
    released: list[int] = []

    async def answer(request: Request) -> Response:
        if request.headers.get("x-late"):
            await asyncio.sleep(0)
        response = make()
        response.release = lambda: released.append(1)
        return response

    with LiveHttp(answer) as live:
        assert undated(live.talk(request_bytes)) == b"HTTP/1.1 " + expected
        late = request_bytes.replace(b"\r\n\r\n", b"\r\nX-Late: 1\r\n\r\n")
        assert undated(live.talk(late)) == b"HTTP/1.1 " + expected
    assert len(released) == 2


def test_http_1_0_may_stay() -> None:
    async def answer(request: Request) -> Response:
        return Response(200, body=b"abc")

    with LiveHttp(answer) as live, live.connect() as client:
        for _ in range(2):
            client.sendall(OLD_KEPT)
            assert b"\r\nConnection: keep-alive\r\n" in read_some(client, b"abc")


def test_the_date_is_today() -> None:
    async def answer(request: Request) -> Response:
        return Response(200)

    with LiveHttp(answer) as live:
        lines = live.talk(GET).decode().split("\r\n")
    (date,) = [line.removeprefix("Date: ") for line in lines if line.startswith("Date: ")]
    assert abs(parsedate_to_datetime(date).timestamp() - time.time()) < 5


# Files


@pytest.fixture
def content() -> bytes:
    return os.urandom(3_000_000)


@pytest.fixture
def fd(content: bytes, tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "content"
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("chunked", [False, True])
def test_spans_and_bytes_in_any_order(content: bytes, fd: int, chunked: bool) -> None:
    spans = [(0, 10), (1_000_001, 1_999_999), (2_999_999, 1), (5, 0), (0, 3_000_000)]
    expected = b"<" + b"|".join(content[at : at + size] for at, size in spans) + b"|>"

    def pieces() -> list[Piece]:
        pieces: list[Piece] = [b"<"]
        for offset, length in spans:
            pieces += [FileSlice(fd, offset, length), b"|"]
        return [*pieces, b">"]

    async def answer(request: Request) -> Response:
        return Response(200, body=Pieces(*pieces()), length=None if chunked else len(expected))

    with LiveHttp(answer) as live, live.nothing_left():
        head, _, body = live.talk(GET).partition(b"\r\n\r\n")
        assert (b"chunked" in head) == chunked
        assert (dechunked(body) if chunked else body) == expected


def dechunked(data: bytes) -> bytes:
    body = bytearray()
    while True:
        size, _, data = data.partition(b"\r\n")
        if size == b"0":
            assert data == b"\r\n"
            return bytes(body)
        body += data[: int(size, 16)]
        assert data[int(size, 16) :][:2] == b"\r\n"
        data = data[int(size, 16) + 2 :]


def test_a_file_follows_what_the_transport_still_holds(content: bytes, fd: int) -> None:
    """More than the socket buffers take. Writing resumes while the last of it waits, and then the file begins."""
    count, part = 80, bytes(100_000)

    async def answer(request: Request) -> Response:
        if request.path == "/part":
            return Response(200, body=part)
        return Response(200, body=Pieces(FileSlice(fd, 0, len(content))), length=len(content))

    with LiveHttp(answer) as live, live.nothing_left(), live.connect(receive_buffer_bytes=4096) as client:
        client.sendall(b"GET /part HTTP/1.1\r\nHost: h\r\n\r\n" * count + GET)
        until(lambda: live.server.stats.requests_total > 1)
        time.sleep(0.05)
        rest = read_to_end(client)
    for _ in range(count):
        head, _, rest = rest.partition(b"\r\n\r\n")
        assert head.endswith(b"Content-Length: %d" % len(part))
        assert rest.startswith(part)
        rest = rest[len(part) :]
    assert rest.partition(b"\r\n\r\n")[2] == content


def test_a_slow_reader_gets_everything(content: bytes, fd: int) -> None:
    async def answer(request: Request) -> Response:
        return Response(200, body=Pieces(*[FileSlice(fd, 0, len(content))] * 4), length=4 * len(content))

    with LiveHttp(answer) as live, live.nothing_left():
        with live.connect(receive_buffer_bytes=4096) as client:
            client.sendall(GET)
            received = bytearray()
            while piece := client.recv(500_000):
                received += piece
                if len(received) % 7 == 0:
                    time.sleep(0.001)
        assert received.partition(b"\r\n\r\n")[2] == 4 * content


def test_many_downloads_and_other_requests_share_the_loop(content: bytes, fd: int) -> None:
    async def answer(request: Request) -> Response:
        if request.path == "/small":
            return Response(200, body=b"small")
        return Response(200, body=Pieces(FileSlice(fd, 0, len(content))), length=len(content))

    with LiveHttp(answer) as live, live.nothing_left():
        clients = [live.connect() for _ in range(8)]
        for client in clients:
            client.sendall(GET)
        assert live.talk(GET.replace(b"/ ", b"/small ")).endswith(b"small")
        for client in clients:
            with client:
                assert read_to_end(client).partition(b"\r\n\r\n")[2] == content


# Answers that cannot be sent as announced


async def broken_stream() -> AsyncIterator[Piece]:
    yield b"abc"
    raise RuntimeError("half way")


UNKEPT = {
    "too short": lambda fd: Response(200, body=Pieces(b"abc"), length=4),
    "too long": lambda fd: Response(200, body=Pieces(b"abc", b"de"), length=4),
    "a file too short": lambda fd: Response(200, body=Pieces(b"abc", FileSlice(fd, 2_999_999, 2)), length=5),
    "chunks from a file too short": lambda fd: Response(
        200, body=Pieces(b"abc", FileSlice(fd, 2_999_999, 2))
    ),
    "a stream that fails": lambda fd: Response(200, body=broken_stream(), length=10),
    "chunks that fail": lambda fd: Response(200, body=broken_stream()),
    "chunks that fail at once": lambda fd: Response(200, body=Pieces(FileSlice(-1, 0, 2))),
    "a descriptor that is none": lambda fd: Response(200, body=Pieces(b"abc", FileSlice(-1, 0, 2)), length=5),
}


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("make", UNKEPT.values(), ids=UNKEPT)
def test_the_connection_is_reset_when_an_answer_fails_half_way(
    make: Callable[[int], Response], fd: int, version: bytes
) -> None:
    released: list[int] = []
    errors: list[str] = []

    async def answer(request: Request) -> Response:
        response = make(fd)
        response.release = lambda: released.append(1)
        return response

    def note(request: Request, error: Exception) -> Response:
        errors.append(type(error).__name__)
        return Response(500)

    with LiveHttp(answer, on_error=note) as live, live.nothing_left(), live.connect() as client:
        client.sendall(b"GET / HTTP/%b\r\nHost: h\r\nConnection: keep-alive\r\n\r\n" % version)
        with pytest.raises(ConnectionResetError):
            read_to_end(client)
    assert len(errors) == 1
    assert len(released) == 1


UNSENDABLE = {
    "a line break in a value": lambda: Response(200, [("A", "b\r\nEvil: 1")]),
    "a line feed in a name": lambda: Response(200, [("A\nEvil", "b")]),
    "a bare carriage return": lambda: Response(200, [("A", "b\rc")]),
    "a NUL": lambda: Response(200, [("A", "b\0c")]),
    "beyond latin-1": lambda: Response(200, [("A", "→")]),
    "an interim status": lambda: Response(101),
    "a length that is not the body's": lambda: Response(200, body=b"abc", length=4),
    "a stream with a bad header": lambda: Response(200, [("A", "\n")], Pieces(b"abc"), 3),
}


@pytest.mark.parametrize("make", UNSENDABLE.values(), ids=UNSENDABLE)
def test_an_answer_that_cannot_be_sent_is_a_500(
    make: Callable[[], Response], caplog: pytest.LogCaptureFixture
) -> None:
    released: list[int] = []

    async def answer(request: Request) -> Response:
        response = make()
        response.release = lambda: released.append(1)
        return response

    with LiveHttp(answer) as live:
        expected = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        assert undated(live.talk(GET)) == expected
    assert len(released) == 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


# Handlers that fail


@pytest.mark.parametrize("late", [False, True])
def test_a_failing_handler_is_a_500_and_the_connection_lives_on(
    late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Request) -> Response:
        if late:
            await asyncio.sleep(0)
        raise LookupError("a bug")

    with LiveHttp(fail) as live, live.connect() as client:
        for _ in range(2):
            client.sendall(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
            assert undated(read_some(client, b"\r\n\r\n")) == (
                b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
            )
    assert [record.getMessage() for record in caplog.records] == ["GET /x failed"] * 2


def test_the_answer_to_an_error_can_be_given() -> None:
    async def fail(request: Request) -> Response:
        raise LookupError("a bug")

    def words(request: Request, error: Exception) -> Response:
        if request.path == "/worse":
            raise error
        if request.path == "/unsendable":
            return Response(200, [("A", "\n")])
        return Response(503, [("X-Error", str(error))], b"sorry")

    with LiveHttp(fail, on_error=words) as live:
        answer = undated(live.talk(GET))
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\nX-Error: a bug\r\n")
        assert answer.endswith(b"\r\n\r\nsorry")
        assert statuses(live.talk(GET.replace(b"/ ", b"/worse "))) == [500]
        assert statuses(live.talk(GET.replace(b"/ ", b"/unsendable "))) == [500]


@pytest.mark.parametrize("late", [False, True])
def test_a_handler_that_cancels_itself_answers_nothing(late: bool) -> None:
    async def cancel(request: Request) -> Response:
        if late:
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    with LiveHttp(cancel) as live, live.nothing_left(), live.connect() as client:
        client.sendall(GET)
        assert read_to_end(client) == b""


@pytest.mark.parametrize("late", [False, True])
def test_a_handler_that_sends_no_answer_resets_the_connection(late: bool) -> None:
    async def drop(request: Request) -> Response:
        if late:
            await asyncio.sleep(0)
        raise Unfinished

    def note(request: Request, error: Exception) -> Response:
        raise AssertionError("it is no error")

    with LiveHttp(drop, on_error=note) as live, live.nothing_left(), live.connect() as client:
        client.sendall(GET)
        with pytest.raises(ConnectionResetError):
            read_to_end(client)


# What observers get


def test_completed_requests_are_reported(content: bytes, fd: int) -> None:
    reports: list[tuple[str, int, float, int]] = []

    async def answer(request: Request) -> Response:
        match request.path:
            case "/file":
                return Response(200, body=Pieces(FileSlice(fd, 0, len(content))), length=len(content))
            case "/hang":
                await asyncio.sleep(60)
        return Response(404, body=b"abc")

    def report(request: Request, status: int, seconds: float, sent_bytes: int) -> None:
        reports.append((request.path, status, seconds, sent_bytes))

    with LiveHttp(answer, on_completed=report) as live, live.nothing_left():
        sizes = [len(live.talk(GET)), len(live.talk(GET.replace(b"/ ", b"/file ")))]
        with live.connect() as client:
            client.sendall(GET.replace(b"/ ", b"/hang "))
            until(lambda: live.server.stats.requests_in_flight == 1)
        until(lambda: len(reports) == 3)
        assert live.server.stats.bytes_out == sum(sizes)
        assert live.server.stats.requests_total == live.server.stats.connections_total == 3
    assert [(path, status, size) for path, status, _, size in reports] == [
        ("/", 404, sizes[0]),
        ("/file", 200, sizes[1]),
        ("/hang", 499, 0),
    ]
    assert all(0 <= seconds < 10 for _, _, seconds, _ in reports)
