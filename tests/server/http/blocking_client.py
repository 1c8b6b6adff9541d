"""What a client with a blocking socket reads, and waiting for what other threads bring about."""

import re
import socket
import time
from collections.abc import Callable

PATIENCE_SECONDS = 10.0
"""How long a client waits for anything before its test fails."""


def read_to_end(client: socket.socket) -> bytes:
    data = bytearray()
    while piece := client.recv(65536):
        data += piece
    return bytes(data)


def read_some(client: socket.socket, ending: bytes) -> bytes:
    """Read until what came ends like this."""
    data = bytearray()
    while not data.endswith(ending):
        piece = client.recv(65536)
        assert piece, f"the server closed after {bytes(data)!r}"
        data += piece
    return bytes(data)


def undated(answer: bytes) -> bytes:
    """Answers without what depends on the clock."""
    return re.sub(rb"Date: [^\r]*GMT\r\n", b"", answer)


def statuses(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other threads bring about."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
