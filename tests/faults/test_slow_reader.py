"""A client that reads a public blob slowly, without any credentials, keeps only the bytes that it reads."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.altered_server import PROGRAM
from tests.faults.client import PUT, Connection, files_of, token_of
from tests.faults.workers import until
from tests.server_process import ServerProcess

MIB = 1024 * 1024
LARGE = random.Random(12).randbytes(24 * MIB)
WRITTEN = 5
"""How many versions of another blob are written meanwhile."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    environment = {"ALTERED_SLOW_SECONDS": "0.5"}
    started = ServerProcess(
        "--workers", "2", location=tmp_path / "store", program=PROGRAM, environment=environment
    )
    with started:
        yield started


def occupied_mib(server: ServerProcess) -> float:
    return sum(files_of(server.location).values()) / MIB


async def test_space_is_reclaimed_meanwhile(server: ServerProcess) -> None:
    async with Connection(server, token_of(server)) as client:
        created = await client.request(
            "PUT", "box", headers={"x-ms-blob-public-access": "blob"}, query="restype=container"
        )
        assert created.status == 201
        assert (await client.request("PUT", "box/public", LARGE, PUT)).status == 201
        parts = urlsplit(server.endpoints["blob"])
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60) as reader:
            reader.sendall(f"GET {parts.path}/box/public HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            received = reader.recv(1000)
            assert received.startswith(b"HTTP/1.1 200 ")
            assert (await client.request("PUT", "box/public", b"replaced", PUT)).status == 201
            for number in range(WRITTEN):
                data = LARGE[number:] + LARGE[:number]
                assert (await client.request("PUT", "box/other", data, PUT)).status == 201
            assert (await client.request("DELETE", "box/other")).status == 202
            # What the reader reads is left, and space ahead of what is packed next.
            await until(lambda: occupied_mib(server) <= 24 + 2 * 17 + 1, 60)
            assert occupied_mib(server) >= 24
            body = received.partition(b"\r\n\r\n")[2]
            while len(body) < len(LARGE):
                body += reader.recv(4 * MIB)
            assert body == LARGE
        await until(lambda: occupied_mib(server) < 24, 60)
