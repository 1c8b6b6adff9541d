"""The memory of a worker is bounded, whatever its clients send and do not read, and is given back."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.client import token_of
from tests.server_process import ServerProcess, eventually

MIB = 1024 * 1024
BUDGET_MIB = 32
SLACK_MIB = 30
"""What the process may need besides."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    location = tmp_path_factory.mktemp("store")
    options = ("--workers", "1", "--body-memory-mib", str(BUDGET_MIB))
    with ServerProcess(*options, location=location) as started:
        yield started
        assert not [line for line in started.log if line["level"] == "error"]


def resident_mib(server: ServerProcess) -> float:
    (pid,) = server.worker_pids()
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 1024


@contextmanager
def connected(server: ServerProcess, service: str) -> Iterator[tuple[socket.socket, str]]:
    """A connection, and the path of the account."""
    parts = urlsplit(server.endpoints[service])
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
        yield connection, parts.path


def head(method: str, target: str, length: int) -> bytes:
    return (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n"
        "Content-Type: multipart/mixed; boundary=b\r\nx-ms-blob-type: BlockBlob\r\n\r\n"
    ).encode()


def status_of(connection: socket.socket) -> int:
    return int(connection.recv(65536).split(b" ", 2)[1])


def test_half_sent_batches_do_not_fill_the_memory(server: ServerProcess) -> None:
    before = resident_mib(server)
    with ExitStack() as connections, connected(server, "blob") as (good, path):
        good.sendall(head("PUT", f"{path}/box?restype=container&{token_of(server)}", 0))
        assert status_of(good) == 201
        batches = []
        for _ in range(60):
            batch, path = connections.enter_context(connected(server, "blob"))
            batch.sendall(head("POST", f"{path}/?comp=batch&{token_of(server)}", 4 * MIB))
            batches.append(batch)
        refused = 0
        for batch in batches:
            batch.sendall(bytes(3 * MIB))
            batch.settimeout(0.05)
            with suppress(TimeoutError):  # Of some the server waits for the rest.
                refused += status_of(batch) == 503
        assert refused >= 50
        growth = resident_mib(server) - before
        print(f"60 half-sent batches of 4 MiB cost {growth:.0f} MiB")
        assert growth <= BUDGET_MIB + SLACK_MIB
        for number in range(20):
            good.sendall(head("PUT", f"{path}/box/{number}?{token_of(server)}", 1000) + bytes(1000))
            assert status_of(good) == 201
    eventually(lambda: resident_mib(server) <= before + SLACK_MIB / 2)


def test_who_may_not_change_entities_cannot_send_long_batches(server: ServerProcess) -> None:
    with connected(server, "table") as (connection, path):
        token = token_of(server, permissions="r")
        connection.sendall(head("POST", f"{path}/$batch?{token}", 4 * MIB))
        assert status_of(connection) == 403
