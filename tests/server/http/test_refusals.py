"""What is no request, or one that we do not take: the status it gets, and that nothing after it is read."""

from collections.abc import Iterator

import pytest

from kyanite.server.http.limits import Limits
from tests.server.http.blocking_client import read_to_end, statuses, undated
from tests.server.http.live_server import LiveHttp, describe

GET = b"GET / HTTP/1.1\r\nHost: h\r\n"
PUT = b"PUT / HTTP/1.1\r\nHost: h\r\n"
CHUNKED = PUT + b"Transfer-Encoding: chunked\r\n\r\n"

REFUSED = {
    "noise": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01"),
    "no version": (505, b"GET /\r\n\r\n"),
    "an old version": (505, b"GET / HTTP/0.9\r\n\r\n"),
    "a new version": (505, b"GET / HTTP/2.0\r\nHost: h\r\n\r\n"),
    "an unknown version": (400, b"GET / HTTP/1.2\r\nHost: h\r\n\r\n"),
    "the preface of HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "an unknown method": (400, b"FOO / HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a method in lower case": (400, b"get / HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a tunnel": (501, b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, GET + b"Host: h\r\n\r\n"),
    "two hosts, spelt differently": (400, GET + b"hOST: i\r\n\r\n"),
    "a list of hosts": (400, b"GET / HTTP/1.1\r\nHost: h,i\r\n\r\n"),
    "a list of hosts in HTTP/1.0": (400, b"GET / HTTP/1.0\r\nHost: h,i\r\n\r\n"),
    "a URL with a list of hosts": (400, b"GET http://h,i/ HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a URL with a user": (400, b"GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a URL with a backslash in its host": (400, b"GET http://h\\i/ HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a fragment": (400, b"GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a target that is not ASCII": (400, b"GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a control character in the target": (400, b"GET /a\x01 HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a star for a get": (400, b"GET * HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a target of another scheme": (400, b"GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a URL without a host": (400, b"GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n"),
    "bare line feeds": (400, b"GET / HTTP/1.1\nHost: h\n\n"),
    "a folded header": (400, GET + b"A: b\r\n c\r\n\r\n"),
    "a bare carriage return": (400, GET + b"A: b\rc\r\n\r\n"),
    "a NUL in a value": (400, GET + b"A: b\0c\r\n\r\n"),
    "a NUL in a name": (400, GET + b"A\0: b\r\n\r\n"),
    "a space before the colon": (400, GET + b"A : b\r\n\r\n"),
    "a header without a name": (400, GET + b": b\r\n\r\n"),
    "a header without a colon": (400, GET + b"A\r\n\r\n"),
    "two lengths": (400, PUT + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
    "the same length twice": (400, PUT + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    "a list of lengths": (400, PUT + b"Content-Length: 3, 3\r\n\r\nabc"),
    "a negative length": (400, PUT + b"Content-Length: -1\r\n\r\n"),
    "a signed length": (400, PUT + b"Content-Length: +1\r\n\r\na"),
    "an empty length": (400, PUT + b"Content-Length:\r\n\r\n"),
    "a length beyond all bounds": (400, PUT + b"Content-Length: 99999999999999999999\r\n\r\n"),
    "length, then chunks": (400, PUT + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "chunks, then length": (400, PUT + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"),
    "chunks in HTTP/1.0": (400, b"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "a compressed body": (501, PUT + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
    "a body to the end": (501, PUT + b"Transfer-Encoding: identity\r\n\r\n"),
    "chunked twice": (400, PUT + b"Transfer-Encoding: chunked, chunked\r\n\r\n"),
    "another expectation": (417, PUT + b"Expect: the-unexpected\r\nContent-Length: 1\r\n\r\na"),
    "a chunk size that is none": (400, CHUNKED + b"x\r\n"),
    "a chunk size that is empty": (400, CHUNKED + b"\r\n"),
    "a huge chunk size": (400, CHUNKED + b"fffffffffffffffff\r\n"),
    "a chunk longer than it says": (400, CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n"),
    "a chunk ended by a line feed": (400, CHUNKED + b"3\nabc\n0\n\n"),
    "an endless chunk extension": (400, CHUNKED + b"1;" + b"a" * 150_000),
    "an endless trailer": (400, CHUNKED + b"0\r\nA: " + b"a" * 150_000),
    "a long target": (431, b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a long header": (431, GET + b"A: " + b"a" * 5000 + b"\r\n\r\n"),
    "an endless header": (431, GET + b"A: " + b"a" * 20_000),
    "a long header name": (431, GET + b"a" * 5000 + b": b\r\n\r\n"),
    "many headers": (431, GET + b"".join(b"a%d:\r\n" % number for number in range(20)) + b"\r\n"),
}

table = pytest.mark.parametrize(("status", "request_bytes"), REFUSED.values(), ids=REFUSED)


@pytest.fixture(scope="module")
def live() -> Iterator[LiveHttp]:
    with LiveHttp(describe, limits=Limits(head_bytes=4096, header_count=20)) as live:
        yield live


@table
def test_refused(live: LiveHttp, status: int, request_bytes: bytes) -> None:
    assert statuses(live.talk(request_bytes)) == [status]


@table
def test_refused_in_small_parts(live: LiveHttp, status: int, request_bytes: bytes) -> None:
    size = max(1, len(request_bytes) // 50)
    parts = (request_bytes[at : at + size] for at in range(0, len(request_bytes), size))
    assert statuses(live.talk(*parts)) == [status]


@table
def test_refused_behind_a_good_one(live: LiveHttp, status: int, request_bytes: bytes) -> None:
    answers = live.talk(b"GET /good HTTP/1.1\r\nHost: h\r\n\r\n" + request_bytes)
    assert statuses(answers) == [200, status]
    assert b"GET /good " in answers


def test_nothing_after_a_refusal_is_parsed(live: LiveHttp) -> None:
    served = live.server.stats.requests_total
    refused = live.server.stats.requests_malformed
    answer = live.talk(b"GET / HTTP/1.1\r\n\r\n" + GET + b"\r\n")
    assert undated(answer) == b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert live.server.stats.requests_total == served
    assert live.server.stats.requests_malformed == refused + 1


@pytest.mark.parametrize("size", [4096, 4097])
def test_where_the_bound_of_a_head_lies(live: LiveHttp, size: int) -> None:
    """Target, names, values and four bytes for each header; the same in one piece and in many."""
    fixed = len(b"/") + len(b"Host: h\r\n") + len(b"A: \r\n") + len(b"Connection: close\r\n")
    head = GET + b"A: " + b"a" * (size - fixed) + b"\r\nConnection: close\r\n\r\n"
    expected = [200] if size == 4096 else [431]
    assert statuses(live.talk(head)) == expected
    assert statuses(live.talk(head[:1000], head[1000:3000], head[3000:])) == expected


def test_too_many_connections() -> None:
    with LiveHttp(describe, limits=Limits(connections=2)) as live:
        with live.connect() as first, live.connect() as second:
            first.sendall(GET + b"\r\n")
            second.sendall(GET + b"\r\n")
            assert first.recv(12) == second.recv(12) == b"HTTP/1.1 200"
            assert undated(live.talk(GET + b"\r\n")).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert live.server.stats.connections_refused == 1


def test_far_too_many_connections_are_cut() -> None:
    with LiveHttp(describe, limits=Limits(connections=1)) as live:
        with live.connect(), live.connect(), live.connect() as third:
            assert read_to_end(third) == b"", "cut without a word"
        assert live.server.stats.connections_refused == 2
