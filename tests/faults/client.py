"""A small client for violent tests: quick, without retries, and exact about every response.

Requests carry an account SAS made once, so nothing is signed per request. A connection knows which worker process
serves it, as the system tells.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlsplit

from azure.storage.blob import generate_account_sas

from tests.server_process import ServerProcess

BROKEN = (ConnectionError, asyncio.IncompleteReadError, TimeoutError)
"""What a client meets when the server dies: nothing can be said of what it had asked for."""

PUT = {"x-ms-blob-type": "BlockBlob"}
_SECONDS = 60


def token_of(server: ServerProcess, permissions: str = "racwdlup") -> str:
    """An account SAS that allows everything, or some of it, for a while."""
    return generate_account_sas(
        server.account,
        server.account_key,
        resource_types="sco",
        permission=permissions,
        services="bqtf",
        expiry=datetime.now(UTC) + timedelta(hours=2),
    )


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class Connection:
    """One connection to a service, kept alive from request to request."""

    def __init__(self, server: ServerProcess, token: str, service: str = "blob") -> None:
        parts = urlsplit(server.endpoints[service])
        self._host, self._port, self._root = parts.hostname, parts.port, parts.path
        self._token = token
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self) -> Self:
        connecting = asyncio.open_connection(self._host, self._port)
        self._reader, self._writer = await asyncio.wait_for(connecting, _SECONDS)
        return self

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    @property
    def socket(self) -> socket.socket:
        found = self._writer.get_extra_info("socket")
        assert found is not None
        return socket.fromfd(found.fileno(), socket.AF_INET, socket.SOCK_STREAM)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        query: str = "",
    ) -> Answer:
        """Send a request and read the whole answer. If the server then wants to part, there is a new connection."""
        async with asyncio.timeout(_SECONDS):
            await self.begin(method, path, len(body), headers, query)
            self._writer.write(body)
            await self._writer.drain()
            status, found = await self.head()
            length = 0 if method == "HEAD" or status == 204 else int(found["content-length"])
            rest = await self._reader.readexactly(length)
            if found.get("connection") == "close":
                await self.close()
                await self.open()
            return Answer(status, found, rest)

    async def begin(
        self, method: str, path: str, length: int, headers: Mapping[str, str] | None = None, query: str = ""
    ) -> None:
        """Send a head only."""
        target = f"{self._root}/{quote(path)}?{query}{'&' if query else ''}{self._token}"
        lines = {"Host": f"{self._host}:{self._port}", "Content-Length": str(length), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1"))
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        raw = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
        pairs = (line.partition(": ") for line in lines)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}

    async def receive(self, count: int) -> bytes:
        return await self._reader.readexactly(count)

    def worker(self, server: ServerProcess) -> int:
        """The process that serves this connection."""
        with self.socket as ours:
            return worker_of(server, ours)


def worker_of(server: ServerProcess, ours: socket.socket) -> int:
    """The worker that holds the other end of a connection to the server."""
    local, remote = _in_hex(ours.getsockname()), _in_hex(ours.getpeername())
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == remote and fields[2] == local:
            wanted = f"socket:[{fields[9]}]"
            for pid in server.worker_pids():
                if wanted in open_files(pid):
                    return pid
    raise AssertionError("no worker has the connection")


def open_files(pid: int) -> list[str]:
    """What the descriptors of a process refer to."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                found.append(os.readlink(entry.path))
    return found


def _in_hex(address: tuple[str, int]) -> str:
    host, port = address
    return f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"


def files_of(location: Path) -> dict[Path, int]:
    """The segment files of a store and the bytes that each takes on the disk. The server may remove some meanwhile,
    and their folders: ``os.walk`` passes over those."""
    found = {}
    for folder, _, names in os.walk(location / "extents" / "segments"):
        for path in (Path(folder, name) for name in names):
            with suppress(FileNotFoundError):
                found[path] = path.stat().st_blocks * 512
    return found
