"""Bodies of requests: when they are requested, how much is buffered, and what happens to those that are not read."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable

import pytest

from kyanite.server.http.limits import Limits
from kyanite.wire.http import BodyError, Request, Response
from tests.server.http.blocking_client import read_some, read_to_end, statuses, undated, until
from tests.server.http.live_server import LiveHttp, Pieces, describe

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CHUNKED_PUT = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


def put(path: bytes, length: int, *more: bytes) -> bytes:
    lines = b"".join(line + b"\r\n" for line in more)
    return b"PUT %b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n%b\r\n" % (path, length, lines)


async def refuse(request: Request) -> Response:
    """Answers by the path alone; /late does so after a while."""
    if request.path == "/late":
        await asyncio.sleep(0.05)
    return Response(409, body=b"no")


# 100-continue


def test_continue_is_said_when_the_body_is_pulled() -> None:
    with LiveHttp(describe) as live, live.connect() as client:
        client.sendall(put(b"/", 5, b"Expect: 100-Continue"))
        assert client.recv(1000) == CONTINUE
        client.sendall(b"hello")
        assert read_some(client, b"PUT / hello").startswith(b"HTTP/1.1 200 OK\r\n")
        client.sendall(put(b"/again", 2, b"Expect: 100-continue"))
        assert client.recv(1000) == CONTINUE
        client.sendall(b"hi")
        assert read_some(client, b"PUT /again hi").startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("path", [b"/", b"/late"])
def test_a_refusal_comes_instead_of_continue(path: bytes) -> None:
    with LiveHttp(refuse) as live:
        answer = undated(live.talk(put(path, 5, b"Expect: 100-continue")))
    assert answer == b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"


def test_no_continue_for_a_body_that_has_come() -> None:
    with LiveHttp(describe) as live:
        answer = live.talk(put(b"/", 5, b"Expect: 100-continue", b"Connection: close") + b"hello")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_no_continue_for_a_body_that_has_begun_to_come() -> None:
    with LiveHttp(describe) as live, live.connect() as client:
        client.sendall(put(b"/", 5, b"Expect: 100-continue") + b"he")
        until(lambda: live.server.stats.requests_in_flight == 1)
        client.sendall(b"llo")
        assert read_some(client, b"PUT / hello").startswith(b"HTTP/1.1 200 OK\r\n")


def test_no_continue_without_a_body_or_in_http_1_0() -> None:
    with LiveHttp(describe) as live:
        none = live.talk(put(b"/", 0, b"Expect: 100-continue", b"Connection: close"))
        assert statuses(none) == [200]
        with live.connect() as client:
            client.sendall(b"PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            client.settimeout(0.1)
            with pytest.raises(TimeoutError):
                client.recv(1)
            client.settimeout(5)
            client.sendall(b"hi")
            assert read_to_end(client).endswith(b"\r\n\r\nPUT / hi")


def test_continue_and_chunks() -> None:
    with LiveHttp(describe) as live, live.connect() as client:
        client.sendall(
            b"PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert client.recv(1000) == CONTINUE
        client.sendall(b"2\r\nhi\r\n0\r\n\r\n")
        read_some(client, b"PUT / hi")


# Bodies that no handler reads


@pytest.mark.parametrize("path", [b"/", b"/late"])
@pytest.mark.parametrize("together", [True, False])
def test_a_short_unread_body_is_dropped(path: bytes, together: bool) -> None:
    head, body = put(path, 50_000), b"x" * 50_000
    with LiveHttp(refuse) as live, live.connect() as client:
        for _ in range(3):
            client.sendall(head + body if together else head)
            answer = read_some(client, b"no")
            assert b"Connection" not in answer
            if not together:
                client.sendall(body)


def test_a_long_unread_body_ends_the_connection_but_not_before_the_answer() -> None:
    """Four times what the buffers of both sides hold: the client reads only when it has sent everything."""
    size = 64 << 20
    with LiveHttp(refuse) as live, live.nothing_left(), live.connect() as client:
        client.sendall(put(b"/", size))
        for _ in range(64):
            client.sendall(b"x" * (size // 64))
        answer = undated(read_to_end(client))
        assert answer == b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"


def test_unread_chunks_end_the_connection() -> None:
    with LiveHttp(refuse) as live:
        head = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert b"Connection: close\r\n" in live.talk(head + b"2\r\nhi\r\n")
        with live.connect() as client:
            client.sendall(head + b"2\r\nhi\r\n0\r\n\r\n")
            assert b"Connection" not in read_some(client, b"no"), "these chunks had all come"


def test_a_client_that_never_stops_sending_is_cut() -> None:
    limits = Limits(linger_seconds=0.2, linger_idle_seconds=0.2, tick_seconds=0.02)
    with LiveHttp(refuse, limits=limits) as live, live.nothing_left(), live.connect() as client:
        client.sendall(put(b"/", 1 << 40))
        assert read_to_end(client).endswith(b"no")
        with pytest.raises(ConnectionError):
            until(lambda: client.send(b"x" * 100_000) == 0)


def test_a_pipeline_behind_the_last_answer_is_heard_out() -> None:
    """The connection ends with the first answer, while megabytes of further requests are still being sent."""

    async def stream(request: Request) -> Response:
        return Response(200, body=Pieces(b"the end"))

    request = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    with LiveHttp(stream) as live, live.nothing_left(), live.connect() as client:
        client.sendall(request * 100_000)
        answer = undated(read_to_end(client))
    assert answer == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthe end"


def test_a_silent_client_is_not_waited_for_long() -> None:
    limits = Limits(linger_idle_seconds=0.1, tick_seconds=0.02)
    with LiveHttp(refuse, limits=limits) as live, live.connect() as client:
        client.sendall(put(b"/", 1 << 40))
        assert read_to_end(client).endswith(b"no")
        until(lambda: live.server.stats.connections_open == 0)


def test_part_of_a_body_read_and_the_rest_dropped() -> None:
    async def first_piece(request: Request) -> Response:
        return Response(200, body=(await request.body.read())[:1])

    with LiveHttp(first_piece) as live, live.connect() as client:
        for letter in (b"a", b"b"):
            client.sendall(put(b"/", 40_000) + letter * 10_000)
            read_some(client, b"\r\n\r\n" + letter)
            client.sendall(b"-" * 30_000)


# Sizes and bounds


def test_read_all_within_and_beyond_its_limit() -> None:
    async def measure(request: Request) -> Response:
        body = await request.body.read_all(100_000)
        return Response(200 if body is not None else 413, body=b"%d" % len(body or b""))

    chunked = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with LiveHttp(measure) as live:
        for size, status in ((0, 200), (1, 200), (100_000, 200), (100_001, 413)):
            body = b"x" * size
            assert statuses(live.talk(put(b"/", size, b"Connection: close") + body)) == [status]
            ended = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body) if size else b"0\r\n\r\n"
            assert statuses(live.talk(chunked + ended)) == [status]
        assert statuses(live.talk(put(b"/", 1 << 40))) == [413], "known from the head"


def chunks_of(body: bytes, size: int) -> bytes:
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_handler_that_does_not_read_holds_little(is_chunked: bool) -> None:
    """Of a long body of known length even less: it could be received into the handler's own buffer."""
    go_on = threading.Event()
    sizes: list[int] = []

    async def wait_then_read(request: Request) -> Response:
        await asyncio.to_thread(go_on.wait, 10)
        total = 0
        while piece := await request.body.read():
            sizes.append(len(piece))
            total += len(piece)
        return Response(200, body=b"%d" % total)

    size = 64 << 20
    body = b"x" * size
    message = CHUNKED_PUT + chunks_of(body, 1 << 20) if is_chunked else put(b"/", size) + body
    limits = Limits(body_buffer_bytes=300_000)
    with LiveHttp(wait_then_read, limits=limits) as live, live.connect() as client:
        sender = threading.Thread(target=client.sendall, args=(message,))
        sender.start()
        until(lambda: live.server.stats.bytes_in > (300_000 if is_chunked else 64 * 1024))
        received = live.server.stats.bytes_in
        assert received < 1_000_000, "one read beyond the bound"
        go_on.set()
        read_some(client, b"%d" % size)
        sender.join()
    assert sum(sizes) == size


def test_a_body_arrives_whole_whatever_its_pieces() -> None:
    body = bytes(range(256)) * 4096
    received: list[bytes] = []

    async def keep(request: Request) -> Response:
        while piece := await request.body.read():
            received.append(piece)
            await asyncio.sleep(0)
        return Response(201)

    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(body[at : at + 7777]), body[at : at + 7777])
        for at in range(0, len(body), 7777)
    )
    sends = {
        "length": [put(b"/", len(body), b"Connection: close"), body],
        "length at once": [put(b"/", len(body), b"Connection: close") + body],
        "chunks": [
            b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunks,
            b"0\r\n\r\n",
        ],
    }
    with LiveHttp(keep, limits=Limits(body_buffer_bytes=100_000)) as live:
        for name, parts in sends.items():
            received.clear()
            assert statuses(live.talk(*parts)) == [201], name
            assert b"".join(received) == body, name


# Bodies that break off


class Witness:
    """A handler that reads to the end and remembers how that went."""

    def __init__(self) -> None:
        self.errors: list[type[BaseException]] = []
        self.pieces = 0

    async def __call__(self, request: Request) -> Response:
        try:
            while await request.body.read():
                self.pieces += 1
        except BaseException as error:
            self.errors.append(type(error))
            raise
        return Response(201)


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["close", "reset"])
@pytest.mark.parametrize(
    "sent",
    [
        put(b"/", 10),
        put(b"/", 10) + b"hello",
        put(b"/", 10, b"Expect: 100-continue"),
        b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
    ids=["after the head", "in the body", "before continue", "in a chunk"],
)
def test_a_client_that_leaves_is_a_body_error(sent: bytes, leave: Callable[[socket.socket], None]) -> None:
    witness = Witness()
    with LiveHttp(witness) as live, live.nothing_left():
        client = live.connect()
        client.sendall(sent)
        until(lambda: live.server.stats.requests_in_flight == 1)
        leave(client)
        until(lambda: bool(witness.errors))
    assert witness.errors == [BodyError]


def test_a_body_cut_short_by_a_half_close() -> None:
    witness = Witness()
    with LiveHttp(witness) as live, live.nothing_left(), live.connect() as client:
        client.sendall(put(b"/", 10) + b"hello")
        client.shutdown(socket.SHUT_WR)
        assert read_to_end(client) == b""
    assert witness.errors == [BodyError]


def test_broken_chunks_reach_the_handler_and_the_client() -> None:
    witness = Witness()
    with LiveHttp(witness) as live, live.nothing_left(), live.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
        until(lambda: witness.pieces == 1)
        client.sendall(b"nonsense\r\n")
        answer = undated(read_to_end(client))
    assert answer == b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert witness.errors == [BodyError]


def test_a_handler_may_answer_a_broken_body_itself() -> None:
    async def own_words(request: Request) -> Response:
        try:
            await request.body.read_all(1000)
        except BodyError as error:
            return Response(error.status, [("X-Error", str(error))], b"own words")
        return Response(200)

    with LiveHttp(own_words) as live:
        answer = live.talk(b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nxyz")
    assert statuses(answer) == [400]
    assert answer.endswith(b"own words")
    assert b"Connection: close\r\n" in answer
