"""Fair accepting: which process waits, for how long, and for which it does not wait."""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from kyanite.server import fair_accept
from kyanite.server.config import Tls
from kyanite.server.fair_accept import PAUSES_SECONDS, SPARE_BEYOND, FairAccept, FairServer
from kyanite.server.http.limits import Limits
from kyanite.server.processes.process_table import ProcessTable, Slot, State
from kyanite.server.tls import tls_context
from kyanite.wire.http import Request, Response
from tests.server.http.certificates import write_certificate


class Listener(socket.socket):
    """A listening socket that fails on command."""

    failures: list[int]

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            number = self.failures.pop()
            raise OSError(number, os.strerror(number))
        return super().accept()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as made:
        made.failures = []
        made.bind(("127.0.0.1", 0))
        made.listen()
        made.setblocking(False)
        yield made


def slots(own: int, other: int, state: State) -> tuple[Slot, Slot]:
    first, second = ProcessTable(["own", "other"]).slots.values()
    first.connections, second.connections = own, other
    first.state, second.state = State.SERVING, state
    return first, second


async def steps_back(listener: Listener, own: Slot, other: Slot, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the listener steps back before it takes a connection."""
    accepted: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
    pauses = []
    pause = FairAccept._pause

    def counted(accepting: FairAccept, seconds: float) -> None:
        pauses.append(seconds)
        pause(accepting, seconds)

    monkeypatch.setattr(FairAccept, "_pause", counted)
    accepting = FairAccept(listener, accepted.set_result, own, [other])
    with socket.create_connection(listener.getsockname()):
        async with asyncio.timeout(30):
            (await accepted).close()
    accepting.close()
    return len(pauses)


@pytest.mark.parametrize(
    ("own", "other", "state", "expected"),
    [
        (0, 0, State.SERVING, 0),
        (3, 3, State.SERVING, 0),
        (3, 4, State.SERVING, 0),
        (3, 2, State.SERVING, len(PAUSES_SECONDS)),
        (3, 2, State.GONE, 0),
        (3, 2, State.STARTING, 0),
        (3, 2, State.STOPPING, 0),
    ],
)
def test_stepping_back(
    own: int, other: int, state: State, expected: int, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other process accepts the connection here, so in the end it is accepted all the same."""
    pair = slots(own, other, state)
    assert asyncio.run(steps_back(listener, *pair, monkeypatch)) == expected


@pytest.mark.parametrize(
    ("own", "other", "spare", "expected"),
    [
        (0, SPARE_BEYOND - 1, "own", len(PAUSES_SECONDS)),
        (0, SPARE_BEYOND, "own", 0),
        (5, SPARE_BEYOND + 4, "own", len(PAUSES_SECONDS)),
        (5, SPARE_BEYOND + 5, "own", 0),
        (SPARE_BEYOND, 0, "other", 0),
        (SPARE_BEYOND + 1, 0, "other", len(PAUSES_SECONDS)),
    ],
)
def test_a_spare_process_leaves_connections_to_the_others_until_they_have_many(
    own: int, other: int, spare: str, expected: int, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = slots(own, other, State.SERVING)
    pair[spare == "other"].is_spare = True
    assert asyncio.run(steps_back(listener, *pair, monkeypatch)) == expected


def test_a_spare_process_is_patient_again_when_the_others_accept(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = slots(0, 0, State.SERVING)
    own.is_spare = True
    monkeypatch.setattr(fair_accept, "PAUSES_SECONDS", (0.001,) * len(PAUSES_SECONDS))
    accept_in_the_pauses = iter(range(1, 4))
    pause = FairAccept._pause

    def accepting_meanwhile(accepting: FairAccept, seconds: float) -> None:
        other.connections = next(accept_in_the_pauses, other.connections)
        pause(accepting, seconds)

    monkeypatch.setattr(FairAccept, "_pause", accepting_meanwhile)
    assert asyncio.run(steps_back(listener, own, other, monkeypatch)) == 3 + len(PAUSES_SECONDS)


@pytest.mark.parametrize("failure", [errno.ECONNABORTED, errno.EAGAIN, errno.EMFILE, errno.ENOBUFS])
def test_accepting_goes_on_after_a_failure(
    failure: int, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_accept, "_EXHAUSTED_SECONDS", 0.01)
    listener.failures = [failure]
    pair = slots(0, 0, State.SERVING)
    assert asyncio.run(steps_back(listener, *pair, monkeypatch)) == (failure in (errno.EMFILE, errno.ENOBUFS))
    assert listener.failures == []


def test_nothing_is_accepted_after_close(listener: Listener) -> None:
    async def close_while_stepping_back() -> list[socket.socket]:
        accepted: list[socket.socket] = []
        accepting = FairAccept(listener, accepted.append, *_pair())
        with socket.create_connection(listener.getsockname()):
            await asyncio.sleep(0)
            accepting.close()
            await asyncio.sleep(0.05)
        return accepted

    def _pair() -> tuple[Slot, list[Slot]]:
        own, other = slots(1, 0, State.SERVING)
        return own, [other]

    assert asyncio.run(close_while_stepping_back()) == []
    assert listener.fileno() == -1


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    return write_certificate(tmp_path)


async def with_and_without_tls(
    certificate: tuple[Path, Path], listener: Listener, limits: Limits
) -> tuple[FairServer, ssl.SSLContext]:
    """A server that takes both on its port, and the context of a client that trusts it."""

    async def answer(request: Request) -> Response:
        return Response(200, [("X-Secure", str(request.secure))])

    own, other = slots(0, 0, State.GONE)
    server = FairServer(answer, limits=limits, own=own, others=[other])
    await server.accept_on(listener, tls_context(Tls(*certificate)), plain_too=True)
    return server, ssl.create_default_context(cafile=str(certificate[0]))


async def secure_of(port: int, context: ssl.SSLContext | None, *, in_pieces: bool = False) -> str:
    name = "localhost" if context else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    for piece in [request[:1], request[1:]] if in_pieces else [request]:
        writer.write(piece)
        await asyncio.sleep(0.05 if in_pieces else 0)
    answer = (await reader.read()).decode()
    writer.close()
    return answer.partition("X-Secure: ")[2].partition("\r\n")[0]


async def test_a_port_for_tls_and_plain_http(listener: Listener, certificate: tuple[Path, Path]) -> None:
    port = listener.getsockname()[1]
    server, context = await with_and_without_tls(certificate, listener, Limits())
    assert await secure_of(port, None) == "False"
    assert await secure_of(port, context) == "True"
    assert await secure_of(port, None, in_pieces=True) == "False"
    # One that sends nothing stops no other, and neither does one that leaves.
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    (await asyncio.open_connection("127.0.0.1", port))[1].close()
    assert await secure_of(port, context) == "True"
    await server.stop(1)
    assert await reader.read() == b""
    writer.close()


async def test_a_client_that_sends_nothing_is_disconnected(
    listener: Listener, certificate: tuple[Path, Path]
) -> None:
    port = listener.getsockname()[1]
    server, _ = await with_and_without_tls(certificate, listener, Limits(idle_seconds=0.1))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()
    await server.stop(0)


async def test_too_many_clients_that_send_nothing(listener: Listener, certificate: tuple[Path, Path]) -> None:
    port = listener.getsockname()[1]
    server, _ = await with_and_without_tls(certificate, listener, Limits(connections=2))
    clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    async with asyncio.timeout(30):
        closed = await asyncio.wait(
            [asyncio.ensure_future(reader.read()) for reader, _ in clients],
            return_when=asyncio.FIRST_COMPLETED,
        )
    assert len(closed[0]) == 1
    await server.stop(0)
    for _, writer in clients:
        writer.close()
