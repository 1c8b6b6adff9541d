"""Kyanite's services in this process, without a server: a request goes straight to the service that it is for."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from email.utils import formatdate
from pathlib import Path

from bench.load import site
from bench.signing import authorization
from kyanite.engine.api import Engine
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model.accounts import Account, Store
from kyanite.server.guids import FreshGuids
from kyanite.services.blob.service import blob_service
from kyanite.services.files.service import file_service
from kyanite.services.queue.service import queue_service
from kyanite.services.rest.environment import Environment
from kyanite.services.table.service import table_service
from kyanite.values import Instant
from kyanite.wire.http import FileSlice, Request

ACCOUNT, KEY = "acme", b"the key of acme"
VERSION = "2025-05-05"


class Body:
    """A request body that is all there, in pieces as long as those of a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def length(self) -> int | None:
        return len(self._data)

    async def read(self) -> bytes:
        data, self._data = self._data[:262_144], self._data[262_144:]
        return data

    async def read_into(self, buffer: memoryview) -> int:
        count = min(len(buffer), len(self._data))
        buffer[:count], self._data = self._data[:count], self._data[count:]
        return count

    async def read_all(self, limit: int) -> bytes | None:
        data, self._data = self._data, b""
        return data if len(data) <= limit else None


class InProcess:
    """The services over a store of their own: an engine and local extents. Opened on the loop that will use it."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], int],
        account: str = ACCOUNT,
        key: bytes = KEY,
        engine: Engine | None = None,
        observed: Callable[[Engine], Engine] = lambda engine: engine,
    ) -> None:
        """Another engine may be given; it is closed with the services. ``observed`` may put something between the
        services and the engine."""

        def now() -> Instant:
            return Instant(clock())

        self._date = formatdate(
            usegmt=True
        )  # One for all requests, since services cache the last date they have read.
        self._engine = engine or SqliteEngine.open(folder / "engine", clock=now)
        self._membership = LocalMembership(folder / "extents" / "owners")
        self._extents = LocalExtents(folder / "extents", self._membership)
        store = Store(observed(self._engine), self._extents, self._membership)
        environment = Environment(
            accounts={account: Account(account, (key,), store)},
            clock=now,
            wall_clock=now,
            fresh_guid=FreshGuids(),
        )
        builders = {
            "blob": blob_service,
            "queue": queue_service,
            "table": table_service,
            "file": file_service,
        }
        self.handlers = {name: build(environment) for name, build in builders.items()}

    @classmethod
    def for_sites(cls, folder: Path, clock: Callable[[], int]) -> "InProcess":
        """With the account whose token the sites of the benchmark have."""
        return cls(folder, clock, site.ACCOUNT, b64decode(site.KEY))

    def request(
        self, service: str, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Request:
        """A signed request, ready to be sent once."""
        path, _, query = f"/{ACCOUNT}{target}".partition("?")
        sent = {
            "Host": "localhost:10000",
            "x-ms-version": VERSION,
            "x-ms-date": self._date,
            **headers,
        }
        if body or method in ("PUT", "POST"):
            sent["Content-Length"] = str(len(body))
        lower = {name.lower(): value for name, value in sent.items()}
        sent["Authorization"] = lower["authorization"] = authorization(
            ACCOUNT, KEY, method, path, query, lower, table=service == "table"
        )
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        return Request(method, path, query, lower, raw, Body(body), "127.0.0.1", False, 10000)

    async def send(self, service: str, request: Request) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by lower-case name, and body of the answer, but for bytes that the kernel would send."""
        response = await self.handlers[service](request)
        try:
            body = response.body
            if not isinstance(body, bytes):
                pieces = [piece async for piece in body]
                body = b"".join(piece for piece in pieces if not isinstance(piece, FileSlice))
        finally:
            if response.release is not None:
                response.release()
        return response.status, {name.lower(): value for name, value in response.headers}, body

    async def close(self) -> None:
        await self._extents.close()
        self._membership.close()
        await self._engine.close()
