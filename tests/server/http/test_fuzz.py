"""Streams of requests, good and mangled, read by us and by ``h11``, which must agree or differ for a stated reason.

h11 is the oracle: which requests there are, with which headers and bodies, and whether what follows is an error.
Where one of the two is stricter, what it complains of must be in a table here that says why, and up to that point
both must have understood the same.
"""

import contextlib
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

import h11
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from kyanite.server.http.limits import Limits
from kyanite.server.http.request_parser import IncomingRequest, RequestReader
from kyanite.server.memory_budget import MemoryBudget
from tests.profiles import examples
from tests.server.http.blocking_client import statuses
from tests.server.http.flow import StillFlow
from tests.server.http.live_server import LiveHttp, describe

LIMITS = Limits()


class End(Enum):
    """What follows the last complete request."""

    MORE = "nothing wrong so far"
    ERROR = "an error"
    CLOSED = "nothing, for the client said so"


@dataclass(frozen=True)
class Message:
    method: str
    path: bytes
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass(frozen=True)
class Reading:
    """What was understood of a stream."""

    messages: tuple[Message, ...]
    heads: int
    end: End
    complaint: str = field(default="", compare=False)


# Reading with h11


def read_by_h11(stream: bytes) -> Reading:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=LIMITS.head_bytes)
    connection.receive_data(stream)
    messages: list[Message] = []
    heads = 0
    while True:
        try:
            head = connection.next_event()
            if not isinstance(head, h11.Request):
                return Reading(tuple(messages), heads, End.MORE)
            heads += 1
            body = bytearray()
            while not isinstance(part := connection.next_event(), h11.EndOfMessage):
                if not isinstance(part, h11.Data):
                    return Reading(tuple(messages), heads, End.MORE)
                body += part.data
        except h11.RemoteProtocolError as error:
            return Reading(tuple(messages), heads, End.ERROR, str(error))
        headers = without_framing((name, bytes(value)) for name, value in head.headers.raw_items())
        path, _, query = bytes(head.target).partition(b"?")
        messages.append(Message(head.method.decode(), path, query, headers, bytes(body)))
        connection.send(h11.Response(status_code=404, headers=[("Content-Length", "0")]))
        connection.send(h11.EndOfMessage())
        if connection.our_state is not h11.DONE:
            return Reading(tuple(messages), heads, End.CLOSED)
        connection.start_next_cycle()


def without_framing(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    """h11 rewrites the headers that frame the body. Whether we take them alike, the body shows."""
    framing = {b"content-length", b"transfer-encoding"}
    return tuple((name, value) for name, value in headers if name.lower() not in framing)


# Reading with our own reader


def read_by_us(pieces: list[bytes]) -> Reading:
    reader = RequestReader(LIMITS, StillFlow(), MemoryBudget(1 << 30), peer="", secure=False, local_port=1)
    requests: list[IncomingRequest] = []
    for piece in pieces:
        reader.feed(piece)
        while reader.requests:
            requests.append(reader.requests.popleft())
            reader.feed_rest()
    complete = [request for request in requests if request.incoming is None or request.incoming.complete]
    messages = tuple(message_of(request) for request in complete)
    if reader.error is not None:
        return Reading(messages, len(requests), End.ERROR, str(reader.error))
    return Reading(messages, len(requests), End.CLOSED if reader.closed else End.MORE)


def message_of(request: IncomingRequest) -> Message:
    headers = without_framing((name, value.rstrip(b" \t")) for name, value in request.raw_headers)
    path, query = request.path.encode(), request.query.encode()
    return Message(request.method, path, query, headers, whole_body(request))


def whole_body(request: IncomingRequest) -> bytes:
    """A complete body needs no loop to be read: nothing is waited for."""
    bodies: list[bytes | None] = []

    async def read() -> None:
        bodies.append(await request.body.read_all(1 << 30))

    with contextlib.suppress(StopIteration):
        read().send(None)
    (body,) = bodies
    assert body is not None
    return body


# Streams


NAMES = st.sampled_from(
    [b"Accept", b"x-ms-meta-Aa", b"X", b"Connection", b"Upgrade", b"TE", b"Content-Type", b"Trailer"]
)
VALUES = st.sampled_from(
    [b"", b"a", b"a b", b"\xe9", b"close", b"keep-alive", b"h2c", b"Upgrade", b"trailers", b'"x,y"']
)
HEADERS = st.lists(st.tuples(NAMES, st.sampled_from([b"", b" ", b"\t "]), VALUES), max_size=4)
BODIES = st.sampled_from(
    [b"", b"x", b"hello world", b"GET / HTTP/1.1\r\n\r\n", b"\r\n" * 20, b"0\r\n\r\n", b"y" * 9000]
)
TARGETS = st.sampled_from([b"/", b"/a/b?c=d", b"/%2F?", b"/~!$&'()*+,;=:@", b"/a?b?c"])
METHODS = st.sampled_from([b"GET", b"PUT", b"POST", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH"])
VERSIONS = st.sampled_from([b"1.1"] * 9 + [b"1.0"])


@st.composite
def request_bytes(draw: st.DrawFn) -> bytes:
    method, target, version = draw(METHODS), draw(TARGETS), draw(VERSIONS)
    lines = [b"Host: h"] * draw(st.sampled_from([1] * 30 + [0, 2]))
    lines += [b"%b:%b%b" % header for header in draw(HEADERS)]
    body = draw(BODIES)
    match draw(st.sampled_from(["none", "length", "chunks"] * 8 + ["both", "twice", "coded"])):
        case "none":
            payload = b""
        case "length":
            lines.append(b"Content-Length: %d" % len(body))
            payload = body
        case "chunks":
            lines.append(b"Transfer-Encoding: " + draw(st.sampled_from([b"chunked", b"Chunked"])))
            payload = chunks_of(body, draw(st.integers(1, 5000)), draw(st.booleans()))
        case "both":
            lines += [b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked"]
            payload = chunks_of(body, 4000, False)
        case "twice":
            lines += [b"Content-Length: %d" % len(body)] * 2
            payload = body
        case _:
            lines.append(
                b"Transfer-Encoding: " + draw(st.sampled_from([b"gzip, chunked", b"identity", b"chunked, x"]))
            )
            payload = chunks_of(body, 4000, False)
    lines = draw(st.permutations(lines))
    head = b"%b %b HTTP/%b\r\n" % (method, target, version)
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + payload


def chunks_of(body: bytes, size: int, decorated: bool) -> bytes:
    extension, trailer = (b";a=b", b"Trailer: t\r\n") if decorated else (b"", b"")
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)
    return chunks + b"0%b\r\n%b\r\n" % (extension, trailer)


INTERESTING = st.sampled_from(
    [
        b"\r",
        b"\n",
        b"\r\n",
        b" ",
        b"\t",
        b"\0",
        b":",
        b"\x7f",
        b"\x80",
        b"#",
        b",",
        b";",
        b"0",
        b"f",
        b"%",
        b"?",
        b"\r\n\r\n",
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    stream = b"".join(draw(st.lists(request_bytes(), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(stream)))
        match draw(st.sampled_from(["insert", "delete", "cut", "repeat"])):
            case "insert":
                stream = stream[:at] + draw(INTERESTING) + stream[at:]
            case "delete":
                stream = stream[:at] + stream[at + draw(st.integers(1, 3)) :]
            case "cut":
                stream = stream[:at]
            case _:
                stream = stream[:at] + stream[at : at + 40] + stream[at:]
    return stream


@st.composite
def split_streams(draw: st.DrawFn) -> list[bytes]:
    stream = draw(streams())
    cuts = sorted(draw(st.sets(st.integers(0, len(stream)), max_size=6)))
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


# Where the two differ


STRICTER = {
    "Invalid method encountered": "any token is a method to h11; no storage service has others than the parser knows",
    "Expected space after method": "any token is a method to h11",
    "Duplicate Content-Length": "h11 takes the same length twice for one; RFC 9112 lets us refuse",
    "Content-Length can't be present with Transfer-Encoding": "h11 drops the length; it may be smuggling",
    "Transfer-Encoding can't be present with Content-Length": "the same, the other way round",
    "Request has invalid `Transfer-Encoding`": "the same, in the trailers",
    "HTTP/1.0 knows no Transfer-Encoding": "RFC 9112 6.1: such a message is to be taken as faulty",
    "a request target has no fragment": "h11 takes any visible bytes for a target",
    "a request target is a path or a URL": "h11 takes any visible bytes for a target",
    "Invalid char in url path": "h11 takes bytes beyond ASCII in a target",
    "Invalid characters in url": "h11 takes any visible bytes for a target",
    "Unexpected start char in url": "h11 takes any visible bytes for a target",
    "Unexpected whitespace after header value": "h11 unfolds folded headers, as RFC 9112 5.2 lets it",
    "Missing expected CR after header value": "h11 takes a bare line feed for the end of a line",
    "Invalid header value char": "h11 takes a bare line feed for the end of a line",
    "Invalid header field char": "h11 takes a bare line feed for the end of a line",
    "Invalid header token": "h11 takes a bare line feed for the end of a line",
    "Expected CRLF after version": "h11 takes a bare line feed for the end of a line",
    "Expected LF after headers": "h11 takes a bare line feed for the end of a line",
    "Unexpected char in url schema": "h11 takes any visible bytes for a target",
    "Invalid character in chunk size": "h11 allows white space after a chunk's size",
    "Invalid character in chunk extensions": "h11 does not look into chunk extensions",
    "Invalid character in chunk extensions name": "h11 does not look into chunk extensions",
    "Invalid character in chunk extensions value": "h11 does not look into chunk extensions",
    "Expected LF after chunk size": "h11 takes a carriage return for a part of the extension",
}

LAXER = (
    (r"no request line received", "RFC 9112 2.2: a server should ignore an empty line before a request"),
    (r"illegal request line: bytearray\(b.\\r", "the parser skips lone carriage returns there too"),
    (r"illegal request line$", "the same, before the rest has come"),
    (r"illegal request line: .*  ", "the parser allows several spaces between the parts of a request line"),
)


def reason_for_difference(stream: bytes, ours: Reading, theirs: Reading) -> str | None:
    """Why the two may differ, or None if nothing explains it."""
    kept = re.search(rb"HTTP/1\.0\r\n.*keep-alive", stream, re.DOTALL)
    if theirs.end is End.CLOSED and extent(ours) >= extent(theirs) and kept:
        assert ours.messages[: len(theirs.messages)] == theirs.messages
        return "h11 never keeps an HTTP/1.0 connection; we do when asked"
    if ours.end is End.ERROR and extent(ours) <= extent(theirs):
        assert theirs.messages[: len(ours.messages)] == ours.messages
        if ours.messages == theirs.messages and read_by_h11(stream + b"\r\n\r\n").end is End.ERROR:
            return "we complain at the byte that is wrong, h11 at the end of its line"
        return STRICTER.get(ours.complaint)
    assert ours.messages[: len(theirs.messages)] == theirs.messages
    for pattern, reason in LAXER:
        if re.match(pattern, theirs.complaint):
            return reason
    return None


def extent(reading: Reading) -> tuple[int, int]:
    return reading.heads, len(reading.messages)


quick = settings(
    max_examples=examples(250),
    derandomize=True,  # The same streams every time: what fails then is what was changed.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@quick
@given(split_streams())
def test_we_read_what_h11_reads(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    ours, theirs = read_by_us(pieces), read_by_h11(stream)
    if ours != theirs:
        reason = reason_for_difference(stream, ours, theirs)
        assert reason is not None, (ours, theirs)
        event(reason)


@quick
@given(split_streams())
def test_how_a_stream_is_cut_up_does_not_matter(pieces: list[bytes]) -> None:
    assert read_by_us(pieces) == read_by_us([b"".join(pieces)])


@settings(quick, max_examples=examples(40))
@given(st.lists(request_bytes(), min_size=1, max_size=3))
def test_good_streams_are_read_in_full(requests: list[bytes]) -> None:
    """Guards the other tests: if nothing were ever understood, they would all hold."""
    stream = b"".join(requests)
    theirs = read_by_h11(stream)
    assume(theirs.end is End.MORE and len(theirs.messages) == len(requests))
    ours = read_by_us([stream])
    assert ours == theirs or reason_for_difference(stream, ours, theirs) is not None
    event(f"{len(ours.messages)} understood")


@settings(quick, max_examples=examples(60))
@given(split_streams())
def test_the_server_answers_what_the_reader_reads(fuzzed: LiveHttp, pieces: list[bytes]) -> None:
    """One answer for each request, one more for an error, whatever comes; then the connection ends.

    Who sends on after having said that nothing would follow may be met by a reset, behind the answer.
    """
    expected = read_by_us(pieces)
    received = bytearray()
    with fuzzed.connect() as client, contextlib.suppress(ConnectionResetError):
        with contextlib.suppress(OSError):
            for piece in pieces:
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
        while data := client.recv(65536):
            received += data
    answers = statuses(bytes(received))
    assert answers[: len(expected.messages)] == [200] * len(expected.messages)
    rest = answers[len(expected.messages) :]
    assert len(rest) == (1 if expected.end is End.ERROR else 0)
    assert all(status >= 400 for status in rest)


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[LiveHttp]:
    with LiveHttp(describe) as live:
        yield live
