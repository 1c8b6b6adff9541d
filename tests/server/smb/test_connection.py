"""The SMB front end over real sockets: bytes to messages and back, and what it does to clients that misbehave."""

import asyncio
import random
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from kyanite.server.gathered_responses import GatheredResponses
from kyanite.server.smb import server as front_end
from kyanite.server.smb.connection import MESSAGES_AT_ONCE
from kyanite.server.smb.limits import Limits
from kyanite.server.smb.server import SmbServer
from kyanite.wire.smb2.frame import frame
from kyanite.wire.smb2.transport import Transport

MIB = 1024 * 1024
needs_gathering = pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")


class Client:
    """The service's side of one connection: it keeps what it receives, and echoes it if told to."""

    def __init__(self, transport: Transport, address: str) -> None:
        self.transport = transport
        self.address = address
        self.received_messages: list[bytes] = []
        self.arrived = asyncio.Event()
        self.is_lost = asyncio.Event()
        self.is_finished = asyncio.Event()
        self.is_finished.set()
        self.longest_message = 1000
        self.is_authenticated = False
        self.echoes = False

    def received(self, message: bytearray) -> None:
        self.received_messages.append(bytes(message))
        self.arrived.set()
        if self.echoes:
            self.transport.send([message])

    def lost(self) -> None:
        self.is_lost.set()

    async def finished(self) -> None:
        await self.is_finished.wait()

    async def messages(self, count: int) -> list[bytes]:
        async with asyncio.timeout(20):
            while len(self.received_messages) < count:
                self.arrived.clear()
                await self.arrived.wait()
        return self.received_messages


class Front:
    def __init__(self, limits: Limits) -> None:
        self.clients: list[Client] = []
        self.server = SmbServer(self._connect, limits=limits)
        self.settings: dict[str, object] = {}

    def _connect(self, transport: Transport, address: str, _port: int) -> Client:
        client = Client(transport, address)
        for name, value in self.settings.items():
            setattr(client, name, value)
        self.clients.append(client)
        return client

    async def connect(self) -> tuple[Client | None, socket.socket]:
        """A new client: its two ends. The first is None if it was refused."""
        listener = socket.create_server(("127.0.0.1", 0))
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        listener.close()
        for each in (ours, theirs):
            each.setblocking(False)
        before, accepted = len(self.clients), self.server.stats.connections_total
        self.server.accept(theirs)
        async with asyncio.timeout(20):
            while self.server.stats.connections_total == accepted:
                await asyncio.sleep(0)
        return (self.clients[-1] if len(self.clients) > before else None), ours


@asynccontextmanager
async def serving(**limits: float) -> AsyncIterator[Front]:
    front = Front(Limits(**limits))  # type: ignore[arg-type]
    try:
        yield front
    finally:
        await front.server.stop(20)


async def send(connected: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connected, data)


async def receive(connected: socket.socket, count: int) -> bytes:
    loop, data = asyncio.get_running_loop(), b""
    async with asyncio.timeout(20):
        while len(data) < count and (more := await loop.sock_recv(connected, 1 << 20)):
            data += more
    return data


def framed(*messages: bytes) -> bytes:
    return b"".join(b"".join(frame([message])) for message in messages)


@pytest.mark.parametrize("piece", [1, 3, 4, 5, 7, 64, 1 << 20])
async def test_frames_in_pieces(piece: int) -> None:
    messages = [b"a", b"bc" * 300, b"", b"d" * 1000, b"e" * 5]
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        data = framed(*messages)
        for at in range(0, len(data), piece):
            await send(connected, data[at : at + piece])
            if piece < 64:
                await asyncio.sleep(0)
        assert await client.messages(4) == [message for message in messages if message]
        connected.close()


async def test_long_messages_in_random_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_end, "_SHARED_BUFFER_BYTES", 4096)
    chance = random.Random(7)
    messages = [chance.randbytes(chance.choice((1, 60, 4000, 4092, 4096, 9000, 300_000))) for _ in range(60)]
    async with serving() as front:
        front.settings["longest_message"] = 1 << 20
        client, connected = await front.connect()
        assert client is not None
        data = framed(*messages)
        while data:
            size = chance.randrange(1, 20_000)
            await send(connected, data[:size])
            data = data[size:]
        assert await client.messages(60) == messages
        connected.close()


async def test_connections_do_not_mix() -> None:
    """They receive into one buffer."""
    async with serving() as front:
        first, first_end = await front.connect()
        second, second_end = await front.connect()
        assert first is not None
        assert second is not None
        data = [framed(b"first" * 20, b"more"), framed(b"second" * 20, b"still more")]
        for at in range(0, 120, 7):
            await send(first_end, data[0][at : at + 7])
            await send(second_end, data[1][at : at + 7])
            await asyncio.sleep(0)
        await send(first_end, data[0][126:])
        await send(second_end, data[1][126:])
        assert await first.messages(2) == [b"first" * 20, b"more"]
        assert await second.messages(2) == [b"second" * 20, b"still more"]
        first_end.close()
        second_end.close()


@pytest.mark.parametrize("data", [b"\1\0\0\0", b"\x85", framed(b"x" * 1001), b"GET / HTTP/1.1\r\n"])
async def test_what_is_no_frame_or_too_long_ends_the_connection(data: bytes) -> None:
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        await send(connected, framed(b"good") + data)
        assert await receive(connected, 1) == b""
        async with asyncio.timeout(20):
            await client.is_lost.wait()
        assert client.received_messages == [b"good"]
        connected.close()


async def test_responses_are_frames() -> None:
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        client.transport.send([b"head", bytearray(b"body"), memoryview(b"data")])
        client.transport.send([b"next"])
        assert await receive(connected, 24) == b"\0\0\0\x0cheadbodydata\0\0\0\x04next"
        client.transport.send([b"last"])
        client.transport.close()
        assert await receive(connected, 100) == b"\0\0\0\x04last"
        async with asyncio.timeout(20):
            await client.is_lost.wait()
        connected.close()


async def test_a_client_that_does_not_read_is_not_read() -> None:
    async with serving(unsent_bytes=100_000) as front:
        front.settings.update(echoes=True, longest_message=1 << 20)
        client, connected = await front.connect()
        assert client is not None
        sending = asyncio.ensure_future(send(connected, framed(b"x" * 100_000) * 200))
        done, _ = await asyncio.wait([sending], timeout=1)
        assert not done
        count = len(client.received_messages)
        assert count < 150
        total = 200 * 100_004
        assert len(await receive(connected, total)) == total
        await sending
        connected.close()


async def test_pause_and_resume() -> None:
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        client.transport.pause()
        await send(connected, framed(b"later"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert client.received_messages == []
        client.transport.resume()
        assert await client.messages(1) == [b"later"]
        connected.close()


@pytest.mark.parametrize("is_authenticated", [False, True])
async def test_a_stranger_is_disconnected(is_authenticated: bool) -> None:
    async with serving(logon_seconds=0.05, tick_seconds=0.01) as front:
        front.settings["is_authenticated"] = is_authenticated
        client, connected = await front.connect()
        assert client is not None
        try:
            async with asyncio.timeout(0.3 if is_authenticated else 20):
                await client.is_lost.wait()
        except TimeoutError:
            assert is_authenticated
        else:
            assert not is_authenticated
        connected.close()


@pytest.mark.parametrize("data", [b"\0\0", b"\0\0\0\x64half"])
async def test_a_message_that_does_not_go_on(data: bytes) -> None:
    async with serving(stall_seconds=0.05, tick_seconds=0.01) as front:
        front.settings["is_authenticated"] = True
        client, connected = await front.connect()
        assert client is not None
        await send(connected, data)
        async with asyncio.timeout(20):
            await client.is_lost.wait()
        assert front.server.stats.stalls_total == 1
        connected.close()


async def test_a_client_that_never_reads_is_disconnected() -> None:
    async with serving(stall_seconds=0.05, tick_seconds=0.01) as front:
        front.settings["is_authenticated"] = True
        client, connected = await front.connect()
        assert client is not None
        client.transport.send([bytes(8_000_000)])
        async with asyncio.timeout(20):
            await client.is_lost.wait()
        connected.close()


async def test_too_many_connections() -> None:
    async with serving(connections=2, address_part=1) as front:
        ends: list[socket.socket] = []
        for expected in (True, True, False):
            client, connected = await front.connect()
            ends.append(connected)
            assert (client is not None) == expected
        assert await receive(ends[-1], 1) == b""
        assert front.server.stats.connections_refused == 1
        for each in ends:
            each.close()


async def test_too_many_connections_of_one_address() -> None:
    async with serving(connections=4) as front:
        ends: list[socket.socket] = []
        for expected in (True, True, False):
            client, connected = await front.connect()
            ends.append(connected)
            assert (client is not None) == expected
        ends[0].close()
        async with asyncio.timeout(20):
            await front.clients[0].is_lost.wait()
        client, connected = await front.connect()
        assert client is not None
        for each in (*ends, connected):
            each.close()


async def test_a_stop_waits_for_what_is_cleaned_up() -> None:
    front = Front(Limits())
    client, connected = await front.connect()
    assert client is not None
    client.is_finished.clear()
    stopping = asyncio.ensure_future(front.server.stop(20))
    await client.is_lost.wait()
    assert not stopping.done()
    client.is_finished.set()
    await stopping
    connected.close()


async def test_a_stop_does_not_wait_for_ever() -> None:
    front = Front(Limits())
    client, connected = await front.connect()
    assert client is not None
    client.is_finished.clear()
    await front.server.stop(0.05)
    client.is_finished.set()
    connected.close()


def test_counts_are_published() -> None:
    async def counts() -> Sequence[int]:
        counted: list[int] = []
        front = Front(Limits())
        server = SmbServer(
            front._connect, limits=Limits(), on_count=lambda: counted.append(server.connection_count)
        )
        front.server._ticking.cancel()
        front.server = server
        _, connected = await front.connect()
        connected.close()
        await server.stop(20)
        return counted

    found = asyncio.run(counts())
    assert max(found) == 1
    assert found[-1] == 0


# Turns and memory


async def test_a_client_with_many_messages_does_not_keep_others_waiting() -> None:
    """A few of its messages are passed on in each iteration of the loop."""
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        await send(connected, framed(b"x") * 1000)
        counts = [0]
        async with asyncio.timeout(20):
            while counts[-1] < 1000:
                await asyncio.sleep(0)
                counts.append(len(client.received_messages))
        assert max(later - before for before, later in pairwise(counts)) <= 2 * MESSAGES_AT_ONCE
        connected.close()


async def test_a_client_that_has_to_wait_gets_nothing_more_of_what_it_sent() -> None:
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        await send(connected, framed(*(b"%d" % number for number in range(100))))
        await client.messages(1)
        client.transport.pause()
        count = len(client.received_messages)
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert len(client.received_messages) == count < 100
        client.transport.resume()
        assert await client.messages(100) == [b"%d" % number for number in range(100)]
        connected.close()


async def test_long_messages_wait_for_memory() -> None:
    """Short ones do not."""
    async with serving(memory_bytes=4 * MIB, tick_seconds=0.02) as front:
        front.settings["longest_message"] = 2 * MIB
        ends = [await front.connect() for _ in range(3)]
        message = framed(b"x" * (2 * MIB))
        for _, connected in ends:
            await send(connected, message[:300_000])
        budget = front.server.budget
        assert budget.used_bytes <= 2 * MIB
        short, short_end = await front.connect()
        assert short is not None
        await send(short_end, framed(b"short" * 100))
        assert await short.messages(1) == [b"short" * 100]
        for client, connected in ends:
            assert client is not None
            await send(connected, message[300_000:])
            assert await client.messages(1) == [message[4:]]
        assert budget.used_bytes == 0
        for connected in (short_end, *(connected for _, connected in ends)):
            connected.close()


async def test_a_long_message_that_comes_slowly_keeps_no_memory_from_others() -> None:
    limits = {"memory_bytes": 3 * MIB, "tick_seconds": 0.02, "tight_seconds": 0.1}
    async with serving(**limits) as front:
        front.settings["longest_message"] = 2 * MIB
        slow, slow_end = await front.connect()
        other, other_end = await front.connect()
        assert slow is not None
        assert other is not None
        await send(slow_end, framed(b"x" * (2 * MIB))[:1000])
        await asyncio.sleep(0.01)
        await send(other_end, framed(b"y" * (2 * MIB)))
        assert await other.messages(1) == [b"y" * (2 * MIB)]
        async with asyncio.timeout(20):
            await slow.is_lost.wait()
        slow_end.close()
        other_end.close()


async def test_what_clients_do_not_read_counts_as_memory() -> None:
    async with serving(memory_bytes=64 * MIB) as front:
        client, connected = await front.connect()
        assert client is not None
        client.transport.send([bytes(8 * MIB)])
        assert 0 < front.server.budget.used_bytes <= 8 * MIB + 4
        connected.close()
        async with asyncio.timeout(20):
            await client.is_lost.wait()
        assert front.server.budget.used_bytes == 0


async def test_what_a_client_reads_at_once_is_not_counted_for_long() -> None:
    async with serving(tick_seconds=1000) as front:
        front.settings.update(echoes=True, longest_message=16 * MIB)
        client, connected = await front.connect()
        assert client is not None
        for size in (30_000, 100_000, 8 * MIB):
            message = framed(bytes(size))
            sending = asyncio.ensure_future(send(connected, message))
            assert len(await receive(connected, len(message))) == len(message)
            await sending
            async with asyncio.timeout(20):
                while front.server.budget.used_bytes:
                    await asyncio.sleep(0.001)
        connected.close()


class NotedWrites:
    """What leaves by one call of the kernel, and how often."""

    def __init__(self, gathered: GatheredResponses) -> None:
        self.calls: list[list[bytes]] = []
        self._write = gathered._writes.write
        gathered._writes.write = self.write  # type: ignore[method-assign]

    def write(self, descriptors: Sequence[int], pieces: Sequence[bytes]) -> list[int]:
        self.calls.append(list(pieces))
        return self._write(descriptors, pieces)


@asynccontextmanager
async def gathering(count: int) -> AsyncIterator[tuple[NotedWrites, list[tuple[Client, socket.socket]]]]:
    async with serving() as front:
        assert front.server.gathered is not None
        pairs = [await front.connect() for _ in range(count)]
        yield (
            NotedWrites(front.server.gathered),
            [(client, end) for client, end in pairs if client is not None],
        )
        for _, end in pairs:
            end.close()


@needs_gathering
@pytest.mark.interpreted("replaces a method of a compiled class")
async def test_short_messages_to_several_clients_leave_together() -> None:
    async with gathering(3) as (noted, pairs):
        for number, (client, _) in enumerate(pairs):
            client.transport.send([b"one ", b"%d" % number])
        for number, (_, end) in enumerate(pairs):
            assert await receive(end, 9) == framed(b"one %d" % number)
        assert noted.calls == [[framed(b"one %d" % number) for number in range(3)]]


@needs_gathering
@pytest.mark.interpreted("replaces a method of a compiled class")
async def test_a_message_can_leave_before_those_that_wait() -> None:
    async with gathering(3) as (noted, pairs):
        (first, first_end), (second, second_end), (third, third_end) = pairs
        first.transport.send([b"response"])
        second.transport.send([b"break"], at_once=True)
        third.transport.send([b"earlier"])
        third.transport.send([b"break"], at_once=True)
        assert await receive(first_end, 12) == framed(b"response")
        assert await receive(second_end, 9) == framed(b"break")
        assert await receive(third_end, 20) == framed(b"earlier", b"break")
        assert noted.calls == [[framed(b"response")]]


@pytest.mark.parametrize("length", [10, 20_000, 300_000])
async def test_messages_to_one_client_keep_their_order(length: int) -> None:
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        messages = [b"short", b"x" * length, b"y" * length, b"short again"]
        for message in messages:
            client.transport.send([message])
        expected = framed(*messages)
        assert await receive(connected, len(expected)) == expected
        connected.close()


async def test_what_was_sent_leaves_before_the_connection_is_closed() -> None:
    async with serving() as front:
        client, connected = await front.connect()
        assert client is not None
        client.transport.send([b"good bye"])
        client.transport.close()
        assert await receive(connected, 1000) == framed(b"good bye")
        connected.close()
