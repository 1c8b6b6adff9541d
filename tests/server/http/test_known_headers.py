"""Headers that are parsed once: a request with known ones is the same as one that the parser has read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.server.http import known_headers
from kyanite.server.http.limits import Limits
from kyanite.server.http.request_parser import IncomingRequest, RequestReader
from kyanite.server.memory_budget import MemoryBudget
from tests.server.http.flow import StillFlow
from tests.server.http.test_fuzz import request_bytes, whole_body

FIRST = b"GET /a HTTP/1.1\r\nHost: h\r\nx-ms-version: 2025-05-05\r\n\r\n"


@pytest.fixture(autouse=True)
def forgotten() -> None:
    known_headers._known.clear()
    known_headers._known_queries.clear()


def reader_with(limits: Limits | None = None) -> RequestReader:
    budget = MemoryBudget(1 << 30)
    return RequestReader(limits or Limits(), StillFlow(), budget, peer="p", secure=False, local_port=1)


def read(reader: RequestReader, data: bytes) -> list[IncomingRequest]:
    reader.feed(data)
    requests = []
    while reader.requests:
        requests.append(reader.requests.popleft())
        reader.feed_rest()
    return requests


def described(request: IncomingRequest) -> tuple[object, ...]:
    body = whole_body(request) if request.incoming is None or request.incoming.complete else None
    return (
        request.method,
        request.path,
        request.query,
        request.headers,
        list(request.raw_headers),
        request.body.length,
        body,
        (request.peer, request.secure, request.local_port),
        (request.http_1_0, request.keep_alive, request.expects_continue),
    )


def outcome(reader: RequestReader, data: bytes) -> tuple[object, ...]:
    requests = [described(request) for request in read(reader, data)]
    error = None if reader.error is None else (reader.error.status, str(reader.error))
    return requests, error, reader.closed, reader.in_head, reader.body is None


def test_the_second_request_is_not_parsed() -> None:
    reader = reader_with()
    (first,) = read(reader, FIRST)
    (second,) = read(reader, FIRST.replace(b"GET /a", b"DELETE /b%20c?d=%31"))
    assert second.headers is first.headers
    assert described(second)[:3] == ("DELETE", "/b%20c", "d=%31")


def test_headers_are_known_to_other_connections() -> None:
    (first,) = read(reader_with(), FIRST)
    other = reader_with()
    read(other, FIRST.replace(b"2025", b"2026"))
    (second,) = read(other, FIRST)
    assert second.headers is first.headers


def test_a_body_with_known_headers_comes_at_once_or_in_parts() -> None:
    reader = reader_with()
    head = b"PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"
    (first,) = read(reader, head + b"hello")
    (second,) = read(reader, head + b"world")
    (third,) = read(reader, head)
    assert read(reader, b"wo") == []
    assert read(reader, b"rld") == []
    assert second.headers is third.headers is first.headers
    assert [whole_body(each) for each in (first, second, third)] == [b"hello", b"world", b"world"]


@pytest.mark.parametrize(
    "line",
    [
        b"GET /a HTTP/1.0",
        b"GET  /a HTTP/1.1",
        b"GET /a  HTTP/1.1",
        b"GET /a b HTTP/1.1",
        b"GET /a#b HTTP/1.1",
        b"GET /a?b#c HTTP/1.1",
        b"GET /a?b c HTTP/1.1",
        b"GET /\xe9 HTTP/1.1",
        b"GET /a?\xe9 HTTP/1.1",
        b"GET /a\tb HTTP/1.1",
        b"GET /\x7f HTTP/1.1",
        b"GET /a?\x00 HTTP/1.1",
        b"GET /a\rb HTTP/1.1",
        b"GET /a?b\nX: HTTP/1.1",
        b"GET http://other/a HTTP/1.1",
        b"GET * HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"CONNECT /a HTTP/1.1",
        b"get /a HTTP/1.1",
        b"GETX /a HTTP/1.1",
        b"GET /a",
        b"/a HTTP/1.1",
        b"\r\nGET /a HTTP/1.1",
        b"",
    ],
)
def test_a_line_that_is_not_plain_is_left_to_the_parser(line: bytes) -> None:
    data = line + FIRST[FIRST.index(b"\r\n") :]
    knowing, fresh = reader_with(), reader_with()
    read(knowing, FIRST)
    read(fresh, b"GET / HTTP/1.1\r\nHost: other\r\n\r\n")
    fresh._repeats = False
    assert outcome(knowing, data) == outcome(fresh, data)


@pytest.mark.parametrize("end", range(len(FIRST)))
def test_a_head_that_is_cut_off_is_not_complete(end: int) -> None:
    reader = reader_with()
    read(reader, FIRST)
    assert read(reader, FIRST[:end]) == []
    (request,) = read(reader, FIRST[end:])
    assert request.path == "/a"


@pytest.mark.parametrize(
    "header",
    [
        b"Connection: close",
        b"Authorization: SharedKey a:b",
        b"x-ms-client-request-id: 1",
        b"Expect: 100-continue\r\nContent-Length: 1",
        b"Transfer-Encoding: chunked",
        b"X: " + b"y" * 1100,
        b"\r\n".join(b"X%d: y" % number for number in range(40)),
    ],
)
def test_what_hardly_repeats_or_is_long_is_not_remembered(header: bytes) -> None:
    read(reader_with(), b"PUT /a HTTP/1.1\r\nHost: h\r\n" + header + b"\r\n\r\n")
    assert known_headers._known == {}


def test_no_more_is_remembered_than_is_bounded() -> None:
    for number in range(2000):
        reader = reader_with()
        read(reader, b"GET /a HTTP/1.1\r\nHost: %d\r\n\r\n" % number)
        read(reader, b"GET /a?%d HTTP/1.1\r\nHost: %d\r\n\r\n" % (number, number))
    assert len(known_headers._known) <= 256
    assert len(known_headers._known_queries) <= 256


def test_a_server_with_fewer_headers_does_not_take_those_of_another() -> None:
    lines = b"".join(b"X%d: y\r\n" % number for number in range(10))
    read(reader_with(), b"GET /a HTTP/1.1\r\nHost: h\r\n" + lines + b"\r\n")
    strict = reader_with(Limits(header_count=5))
    read(strict, FIRST)
    read(strict, b"GET /a HTTP/1.1\r\nHost: h\r\n" + lines + b"\r\n")
    assert strict.error is not None
    assert strict.error.status == 431


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), max_size=8),
    st.lists(request_bytes(), min_size=4, max_size=4),
)
def test_any_requests_are_read_as_by_the_parser_alone(
    chosen: list[tuple[int, int]], requests: list[bytes]
) -> None:
    """Requests that come again, some cut in two, with and without what is remembered."""
    knowing, fresh = reader_with(), reader_with()
    for index, cut in chosen:
        data = requests[index]
        for piece in (data[:cut], data[cut:]):
            fresh._repeats = False
            assert outcome(knowing, piece) == outcome(fresh, piece)
