"""Bytes in, bytes out: every exchange of this table at once, a byte at a time, and one behind the other."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from kyanite.wire.http import Request, Response
from tests.server.http.blocking_client import read_some, read_to_end, undated
from tests.server.http.live_server import LiveHttp, describe

CLOSE = b"Connection: close\r\n"


def ok(body: bytes, connection: bytes = CLOSE) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n%b" % (len(body), connection, body)


def filled(request: bytes, connection: bytes) -> bytes:
    return request.replace(b"...", connection, 1)


CASES = {
    "a get": (b"GET /a/b?c=d HTTP/1.1\r\nHost: h\r\n...\r\n", ok(b"GET /a/b?c=d ")),
    "raw path and query": (
        b"GET /A%2fb//../%7E?q=%20+&?&x HTTP/1.1\r\nHost: h\r\n...\r\n",
        ok(b"GET /A%2fb//../%7E?q=%20+&?&x "),
    ),
    "odd characters stay": (
        b"GET /\"<>[]^`{|}\\' HTTP/1.1\r\nHost: h\r\n...\r\n",
        ok(b"GET /\"<>[]^`{|}\\' "),
    ),
    "an empty query": (b"GET /? HTTP/1.1\r\nHost: h\r\n...\r\n", ok(b"GET / ")),
    "an absolute target": (b"GET http://other:1/p?q HTTP/1.1\r\nHost: h\r\n...\r\n", ok(b"GET /p?q ")),
    "an absolute target with no path": (b"GET http://other HTTP/1.1\r\nHost: h\r\n...\r\n", ok(b"GET / ")),
    "an absolute target with only a query": (
        b"GET HTTPS://other?a/b HTTP/1.1\r\nHost: h\r\n...\r\n",
        ok(b"GET /?a/b "),
    ),
    "the server itself": (b"OPTIONS * HTTP/1.1\r\nHost: h\r\n...\r\n", ok(b"OPTIONS * ")),
    "an empty host": (b"GET / HTTP/1.1\r\nHost:\r\n...\r\n", ok(b"GET / ")),
    "empty lines first": (b"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n...\r\n", ok(b"GET / ")),
    "a put": (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n...\r\nhello", ok(b"PUT / hello")),
    "a put of nothing": (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n...\r\n", ok(b"PUT / ")),
    "a get with a body": (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n...\r\nhi", ok(b"GET / hi")),
    "chunks": (
        b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n...\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ok(b"PUT / hello"),
    ),
    "chunks with extensions and trailers": (
        b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n...\r\n"
        b'5;a=b;c="d"\r\nhello\r\n0;e\r\nTrailer: x\r\nAnother: y\r\n\r\n',
        ok(b"PUT / hello"),
    ),
    "an upgrade that is ignored": (
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n...\r\n",
        ok(b"GET / "),
    ),
    "an upgrade with a body": (
        b"PUT / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n...\r\nhello",
        ok(b"PUT / hello"),
    ),
    "an upgrade with chunks": (
        b"PUT / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n...\r\n"
        b"5\r\nhello\r\n0\r\n\r\n",
        ok(b"PUT / hello"),
    ),
}

table = pytest.mark.parametrize(("request_bytes", "answer"), CASES.values(), ids=CASES)


@pytest.fixture(scope="module")
def live() -> Iterator[LiveHttp]:
    with LiveHttp(describe) as live:
        yield live


@table
def test_all_at_once(live: LiveHttp, request_bytes: bytes, answer: bytes) -> None:
    assert undated(live.talk(filled(request_bytes, CLOSE))) == answer


@table
def test_a_byte_at_a_time(live: LiveHttp, request_bytes: bytes, answer: bytes) -> None:
    whole = filled(request_bytes, CLOSE)
    assert undated(live.talk(*(whole[at : at + 1] for at in range(len(whole))))) == answer


@table
def test_with_bytes_after_the_last_request(live: LiveHttp, request_bytes: bytes, answer: bytes) -> None:
    """The client said it would send no more, so what it sends is not looked at."""
    assert undated(live.talk(filled(request_bytes, CLOSE) + b"GET \0 trailing")) == answer


@table
def test_twice_on_one_connection(live: LiveHttp, request_bytes: bytes, answer: bytes) -> None:
    kept = answer.replace(CLOSE, b"")
    with live.connect() as client:
        client.sendall(filled(request_bytes, b""))
        assert undated(read_some(client, kept[-5:])) == kept
        client.sendall(filled(request_bytes, CLOSE))
        assert undated(read_to_end(client)) == answer


def test_everything_in_one_pipeline(live: LiveHttp) -> None:
    requests = b"".join(filled(request_bytes, b"") for request_bytes, _ in CASES.values())
    answers = b"".join(answer.replace(CLOSE, b"") for _, answer in CASES.values())
    last_request, last_answer = CASES["a get"]
    assert undated(live.talk(requests + filled(last_request, CLOSE))) == answers + last_answer


def test_a_long_pipeline_is_answered_in_order(live: LiveHttp) -> None:
    """Far more than is parsed at a time, so that most of it waits unread."""
    count = 3000
    requests = b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(count))
    answers = b"".join(ok(b"GET /%d " % number, b"") for number in range(count))
    with live.connect() as client:
        sender = threading.Thread(target=client.sendall, args=(requests,))
        sender.start()
        received = undated(read_some(client, b"GET /%d " % (count - 1)))
        sender.join()
    assert received == answers


def test_a_pipeline_for_handlers_that_wait() -> None:
    """Each begins when the one before has answered, and outside its task."""
    under_way: list[str] = []

    async def wait(request: Request) -> Response:
        assert not under_way
        assert asyncio.current_task() is None
        under_way.append(request.path)
        await asyncio.sleep(0.001)
        assert under_way.pop() == request.path
        return await describe(request)

    requests = [
        b"PUT /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" % number for number in range(300)
    ]
    answers = b"".join(ok(b"PUT /%d abc" % number, b"") for number in range(300))
    with LiveHttp(wait) as live, live.connect() as client:
        client.sendall(b"".join(requests[:200]))
        for request_bytes in requests[200:]:
            client.sendall(request_bytes)
        assert undated(read_some(client, b"PUT /299 abc")) == answers


def test_a_pipeline_is_answered_to_its_end() -> None:
    """Also if the client has said meanwhile that nothing follows."""
    requests = [b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(100)]
    with LiveHttp(describe) as live:
        for count in range(1, 100, 7):
            with live.connect() as client:
                client.sendall(b"".join(requests[:count]))
                client.shutdown(socket.SHUT_WR)
                received = b"".join(iter(lambda: client.recv(65536), b""))
                assert received.count(b"HTTP/1.1 200") == count


def test_a_pipeline_leaves_room_for_others() -> None:
    """In one iteration of the loop a connection gets a few answers, and then it is another's turn."""
    answered: list[int] = [0]

    def next_iteration() -> None:
        answered.append(0)
        asyncio.get_running_loop().call_soon(next_iteration)

    async def count(request: Request) -> Response:
        if len(answered) == 1:
            next_iteration()
        answered[-1] += 1
        return await describe(request)

    requests = [b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(200)]
    with LiveHttp(count) as live, live.connect() as client:
        client.sendall(b"".join(requests))
        read_some(client, b"GET /199 ")
    assert sum(answered) == 200
    assert max(answered[1:]) <= 8
