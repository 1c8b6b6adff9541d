"""Writes to many sockets by one call of the kernel."""

import platform
import socket
import sys
from collections.abc import Iterator

import pytest

from kyanite.server.socket_writes import FAILED, WRITES_MAX, SocketWrites

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def writes() -> Iterator[SocketWrites]:
    made = SocketWrites(platform.machine())
    yield made
    made.close()


@pytest.fixture
def pairs() -> Iterator[list[Pair]]:
    """Our ends, which do not block, and theirs."""
    made = [socket.socketpair() for _ in range(WRITES_MAX)]
    for ours, theirs in made:
        ours.setblocking(False)
        theirs.settimeout(10)
    yield made
    for pair in made:
        for end in pair:
            end.close()


def write(writes: SocketWrites, pairs: list[Pair], pieces: list[bytes]) -> list[int]:
    return writes.write([ours.fileno() for ours, _ in pairs], pieces)


@pytest.mark.parametrize("count", [1, 2, WRITES_MAX])
def test_each_socket_gets_its_own(writes: SocketWrites, pairs: list[Pair], count: int) -> None:
    for round_ in range(3):
        pieces = [b"%d %d " % (round_, number) * (number + 1) for number in range(count)]
        assert write(writes, pairs[:count], pieces) == [len(piece) for piece in pieces]
        assert [theirs.recv(1000) for _, theirs in pairs[:count]] == pieces


def test_they_may_be_long(writes: SocketWrites, pairs: list[Pair]) -> None:
    pieces = [bytes([number]) * (100_000 + number) for number in range(WRITES_MAX)]
    assert write(writes, pairs, pieces) == [len(piece) for piece in pieces]
    for piece, (_, theirs) in zip(pieces, pairs, strict=True):
        assert theirs.recv(len(piece), socket.MSG_WAITALL) == piece


@pytest.fixture
def connections() -> Iterator[list[Pair]]:
    """The same over TCP, which takes a part of what it has no room for."""
    made: list[Pair] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(3):
            theirs = socket.create_connection(listener.getsockname(), timeout=10)
            ours, _ = listener.accept()
            ours.setblocking(False)
            made.append((ours, theirs))
    yield made
    for ours, theirs in made:
        ours.close()
        theirs.close()


def test_what_a_client_has_no_room_for(writes: SocketWrites, connections: list[Pair]) -> None:
    """It is known how much a client got that does not read, and the others are not affected."""
    full, reader = connections[0]
    piece, sent = bytes(8000), 0
    while (written := writes.write([full.fileno()], [piece])[0]) == len(piece):
        sent += written
    sent += max(written, 0)
    while (written := write(writes, connections, [b"ab", b"c", b"d"])[0]) != FAILED:
        sent += written
    assert write(writes, connections, [b"ab", b"c", b"d"]) == [FAILED, 1, 1]
    while sent:
        sent -= len(reader.recv(sent))
    reader.setblocking(False)
    with pytest.raises(BlockingIOError):
        reader.recv(1)
    assert write(writes, connections, [b"ab", b"c", b"d"]) == [2, 1, 1]


@pytest.mark.parametrize("gone", [0, 1])
def test_a_client_that_has_left(writes: SocketWrites, pairs: list[Pair], gone: int) -> None:
    pairs[gone][1].close()
    results = write(writes, pairs[:3], [b"data"] * 3)
    assert results == [FAILED if number == gone else 4 for number in range(3)]


def test_a_descriptor_that_is_closed(writes: SocketWrites, pairs: list[Pair]) -> None:
    """Those behind it are not written, and may be written again."""
    closed = pairs[1][0].fileno()
    pairs[1][0].close()
    assert writes.write([pairs[0][0].fileno(), closed, pairs[2][0].fileno()], [b"x"] * 3) == [
        1,
        FAILED,
        FAILED,
    ]
    assert writes.write([closed, pairs[2][0].fileno()], [b"x"] * 2) == [FAILED, FAILED]
    assert writes.write([closed], [b"x"]) == [FAILED]
    pairs[2][1].setblocking(False)
    with pytest.raises(BlockingIOError):
        pairs[2][1].recv(1)


def test_nothing_is_written_after_the_end(pairs: list[Pair]) -> None:
    writes = SocketWrites(platform.machine())
    writes.close()
    assert write(writes, pairs[:2], [b"x", b"y"]) == [FAILED, FAILED]


def test_a_processor_whose_calls_are_unknown() -> None:
    with pytest.raises(OSError, match="no such calls"):
        SocketWrites("pdp11")
