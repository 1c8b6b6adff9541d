"""Long bodies that are received into the buffers of their handler: what arrives, and what becomes of the buffers."""

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from kyanite.server.http.limits import Limits
from kyanite.wire.direct_reads import DirectReads
from kyanite.wire.http import BodyError, Request, Response
from tests.server.http.blocking_client import PATIENCE_SECONDS, read_some, read_to_end, statuses, until
from tests.server.http.certificates import write_certificate
from tests.server.http.live_server import LiveHttp

KIB = 1024
MIB = 1024 * KIB
SIZE = 5 * MIB + 17
BODY = Random(1).randbytes(SIZE)
AHEAD_BYTES = 64 * KIB + 256_000
"""What is received before the handler has a buffer: the bound, and one read of the event loop."""


def put(length: int, *more: bytes) -> bytes:
    lines = b"".join(line + b"\r\n" for line in more)
    return b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n%b\r\n" % (length, lines)


class Reader:
    """Handlers that keep what they were given."""

    def __init__(self, buffer_bytes: int = MIB) -> None:
        self.buffer_bytes = buffer_bytes
        self.received = bytearray()
        self.counts: list[int] = []
        self.errors: list[type[BaseException]] = []

    async def into_buffers(self, request: Request) -> Response:
        """Everything into one buffer after the other."""
        try:
            while await self.fill(request):
                pass
        except BaseException as error:
            self.errors.append(type(error))
            raise
        return Response(201)

    async def fill(self, request: Request) -> int:
        assert isinstance(request.body, DirectReads)
        buffer = bytearray(self.buffer_bytes)
        count = await request.body.read_into(memoryview(buffer))
        self.received += buffer[:count]
        self.counts.append(count)
        return count

    async def alternately(self, request: Request) -> Response:
        """Buffers and pieces, and a pause after each in which the client goes on sending."""
        while len(self.received) < SIZE:
            await self.fill(request)
            await asyncio.sleep(0.01)
            self.received += await request.body.read()
            await asyncio.sleep(0.01)
        assert await request.body.read() == b""
        assert await self.fill(request) == 0
        return Response(201)


@pytest.mark.parametrize("buffer_bytes", [100, 70_001, MIB, 2 * SIZE])
def test_everything_arrives_in_full_buffers(buffer_bytes: int) -> None:
    size = SIZE if buffer_bytes > 100 else MIB + 1
    reader = Reader(buffer_bytes)
    with LiveHttp(reader.into_buffers) as live, live.connect() as client:
        client.sendall(put(size) + BODY[:size])
        read_some(client, b"\r\n\r\n")
    assert reader.received == BODY[:size]
    *full, last, end = reader.counts
    assert set(full) <= {buffer_bytes}
    assert last == size - len(full) * buffer_bytes
    assert end == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_pipeline_of_bodies_in_any_slices(seed: int) -> None:
    """A body that is received directly ends where it ends: what follows is the next request."""
    random = Random(seed)
    bodies = [BODY[: random.choice([MIB + 1, 2 * MIB, SIZE])] for _ in range(3)]
    stream = b"".join(put(len(body)) + body for body in bodies) + put(3, b"Connection: close") + b"end"
    received: list[bytes] = []

    async def keep(request: Request) -> Response:
        if not isinstance(request.body, DirectReads):
            received.append(await request.body.read_all(10) or b"")
            return Response(201)
        reader = Reader(random.choice([50_000, MIB]))
        await reader.into_buffers(request)
        received.append(bytes(reader.received))
        return Response(201)

    with LiveHttp(keep) as live, live.nothing_left(), live.connect() as client:
        answers: list[bytes] = []
        listener = threading.Thread(target=lambda: answers.append(read_to_end(client)))
        listener.start()
        at = 0
        while at < len(stream):
            step = random.choice([1, 7000, 100_000, 3 * MIB])
            client.sendall(stream[at : at + step])
            at += step
        listener.join(PATIENCE_SECONDS)
        assert statuses(answers[0]) == [201] * 4
    assert received == [*bodies, b"end"]


def test_buffers_and_pieces_alternate() -> None:
    reader = Reader(300_000)
    with LiveHttp(reader.alternately) as live, live.connect() as client:
        client.sendall(put(SIZE) + BODY)
        read_some(client, b"\r\n\r\n")
    assert reader.received == BODY


def test_nothing_is_received_without_a_buffer() -> None:
    go_on = threading.Event()
    reader = Reader()

    async def wait_twice(request: Request) -> Response:
        await asyncio.to_thread(go_on.wait, PATIENCE_SECONDS)
        go_on.clear()
        await reader.fill(request)
        await asyncio.to_thread(go_on.wait, PATIENCE_SECONDS)
        return await reader.into_buffers(request)

    with LiveHttp(wait_twice) as live, live.connect() as client:
        sender = threading.Thread(target=client.sendall, args=(put(SIZE) + BODY,))
        sender.start()
        until(lambda: live.server.stats.bytes_in > 64 * KIB)
        assert live.server.stats.bytes_in <= AHEAD_BYTES
        go_on.set()
        until(lambda: reader.counts == [MIB])
        assert live.server.stats.bytes_in <= AHEAD_BYTES + MIB
        go_on.set()
        read_some(client, b"\r\n\r\n")
        sender.join()
    assert reader.received == BODY


def test_continue_is_said_when_there_is_a_buffer() -> None:
    reader = Reader()
    with LiveHttp(reader.into_buffers) as live, live.connect() as client:
        client.sendall(put(SIZE, b"Expect: 100-continue"))
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(BODY)
        read_some(client, b"\r\n\r\n")
    assert reader.received == BODY


# Which bodies


async def is_direct(request: Request) -> Response:
    answer = b"direct" if isinstance(request.body, DirectReads) else b"pieces"
    size = 0
    while piece := await request.body.read():
        size += len(piece)
    return Response(200, body=b"%b %d." % (answer, size))


def test_only_long_bodies_of_known_length() -> None:
    chunked = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    with LiveHttp(is_direct) as live, live.connect() as client:
        for sent, expected in (
            (put(MIB + 1) + bytes(MIB + 1), b"direct %d." % (MIB + 1)),
            (put(MIB) + bytes(MIB), b"pieces %d." % MIB),
            (chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (2 * MIB, bytes(2 * MIB)), b"pieces %d." % (2 * MIB)),
            (put(0), b"pieces 0."),
        ):
            client.sendall(sent)
            assert read_some(client, b".").endswith(expected)


def test_not_with_tls(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate, key)
    client_context = ssl.create_default_context(cafile=certificate)
    with (
        LiveHttp(is_direct, ssl_context=server_context) as live,
        live.connect() as plain,
        client_context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(put(2 * MIB) + bytes(2 * MIB))
        assert read_some(client, b".").endswith(b"pieces %d." % (2 * MIB))


# Clients that are slow, or leave


def test_a_slow_client_does_not_keep_a_buffer() -> None:
    reader = Reader()

    async def until_slow(request: Request) -> Response:
        while await reader.fill(request) == MIB:
            pass
        assert await reader.fill(request) == 0, "nothing came in two ticks"
        while piece := await request.body.read():
            reader.received += piece
        return Response(201)

    with LiveHttp(until_slow, limits=Limits(tick_seconds=0.02)) as live, live.connect() as client:
        client.sendall(put(SIZE) + BODY[: MIB + 1000])
        until(lambda: len(reader.counts) == 3)
        assert reader.counts == [MIB, 1000, 0]
        client.sendall(BODY[MIB + 1000 :])
        read_some(client, b"\r\n\r\n")
    assert reader.received == BODY


def test_a_client_that_sends_nothing_has_stalled() -> None:
    reader = Reader()
    limits = Limits(tick_seconds=0.02, stall_seconds=0.1)

    async def patient(request: Request) -> Response:
        with suppress(BodyError):
            while True:
                await reader.fill(request)
        return Response(408)

    with LiveHttp(patient, limits=limits) as live, live.connect() as client:
        client.sendall(put(SIZE) + BODY[:100_000])
        assert statuses(read_to_end(client)) == [408]
    assert reader.received == BODY[:100_000]


@pytest.mark.parametrize("sent", [0, 1000, MIB + 1000, 3 * MIB])
@pytest.mark.parametrize("way", [socket.SHUT_WR, None])
def test_a_client_that_leaves(sent: int, way: int | None) -> None:
    reader = Reader()
    with LiveHttp(reader.into_buffers) as live, live.nothing_left(), live.connect() as client:
        client.sendall(put(SIZE) + BODY[:sent])
        until(lambda: live.server.stats.bytes_in > sent)
        if way is None:
            client.close()
        else:
            client.shutdown(way)
        until(lambda: bool(reader.errors))
    assert reader.errors == [BodyError]


@pytest.mark.parametrize("buffers", [0, 1, 2])
def test_an_answer_before_the_end_of_the_body(buffers: int) -> None:
    """The rest is read and dropped, so that the client reads the answer."""
    reader = Reader()

    async def refuse(request: Request) -> Response:
        for _ in range(buffers):
            await reader.fill(request)
        return Response(409, body=b"no")

    size = 64 * MIB
    with LiveHttp(refuse) as live, live.nothing_left(), live.connect() as client:
        client.sendall(put(size))
        for _ in range(64):
            client.sendall(bytes(MIB))
        assert read_to_end(client).endswith(b"\r\n\r\nno")
    assert sum(reader.counts) == buffers * MIB


def test_the_connection_goes_on_after_a_short_rest() -> None:
    """What is left is short enough to be dropped, and the next request is answered."""
    reader = Reader(SIZE - 1000)

    async def leave_the_rest(request: Request) -> Response:
        await reader.fill(request)
        return Response(200, body=b"enough")

    with LiveHttp(leave_the_rest) as live, live.connect() as client:
        for _ in range(3):
            client.sendall(put(SIZE) + BODY)
            assert b"Connection" not in read_some(client, b"enough")
    assert reader.received == BODY[:-1000] * 3


def test_a_cancelled_read_leaves_the_buffer_alone() -> None:
    """Whoever takes the buffer next must not find the bytes of this body in it."""
    buffer = bytearray(MIB)
    rest = bytearray()

    async def give_up(request: Request) -> Response:
        assert isinstance(request.body, DirectReads)
        with suppress(TimeoutError):
            await asyncio.wait_for(request.body.read_into(memoryview(buffer)), 0.05)
        before = bytes(buffer)
        given_up.set()
        while piece := await request.body.read():
            rest.extend(piece)
        assert buffer == before
        return Response(201)

    given_up = threading.Event()
    with LiveHttp(give_up) as live, live.connect() as client:
        client.sendall(put(SIZE) + BODY[:100_000])
        assert given_up.wait(PATIENCE_SECONDS)
        client.sendall(BODY[100_000:])
        assert statuses(read_some(client, b"\r\n\r\n")) == [201]
    assert rest == BODY[100_000:]
    assert buffer[:100_000] == BODY[:100_000]
