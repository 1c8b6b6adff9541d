"""The four services in this process: front end, sockets, memory engine, and a clock that the run moves."""

import asyncio
import logging
import socket
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from kyanite.engine.api import Damaged
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model import settings
from kyanite.model.accounts import Account, AccountSettings, Store
from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.verification.extent_check import extent_of
from kyanite.model.verification.rows import check_page, describe_difference
from kyanite.server.dispatch import Dispatcher
from kyanite.server.http.limits import Limits
from kyanite.server.http.server import HttpServer, serve
from kyanite.server.identity.verifier import TrustedIdentity
from kyanite.server.service_table import SERVICES
from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from kyanite.services.rest.environment import Environment
from kyanite.wire.http import Request
from tests.services.fuzzing import bearer
from tests.services.harness import ACCOUNT, OTHER, Clock

WORDS = ("blob", "queue", "table", "file")
HOSTS = {word: f"127.0.0.1:{10000 + number}" for number, word in enumerate(WORDS)}
"""What requests call the services, whatever the ports of their sockets are, so that they can be sent again."""
KEPT = ServiceProperties(
    container_retention=Retention(days=1),
    versioning=True,
    delete_retention=DeleteRetention(Retention(days=7), allow_permanent_delete=True),
)
"""What an operator sets for the account, because no request can."""
TRACKED = AccountSettings(last_access_tracking=True)
_TICK_SECONDS = 0.25


class Failures(logging.Handler):
    """What the server logs as an error is one, whatever the client is answered."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.setFormatter(logging.Formatter())
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))

    def on_loop(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.found.append(f"{context.get('message')}: {context.get('exception')!r}")


class LocalServer:
    """A store and its services. ``start`` and ``close`` belong to one event loop."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.engine = MemoryEngine(clock=self.clock)
        self.membership = LocalMembership(folder / "owners")
        self.extents = LocalExtents(folder, self.membership)
        self._server: HttpServer | None = None
        self.ports: dict[str, int] = {}
        self.failures = Failures()
        self.operation = ""
        """That of the last request."""
        self._guids = 0

    async def start(self) -> None:
        sockets = {word: socket.create_server(("127.0.0.1", 0)) for word in WORDS}
        self.ports = {word: each.getsockname()[1] for word, each in sockets.items()}
        await self._make_vault()
        by_port = {port: word for word, port in self.ports.items()}
        store = Store(self.engine, self.extents, self.membership)
        await settings.update(self.engine, ACCOUNT.name, "blob", KEPT)
        environment = Environment(
            accounts={each.name: Account(each.name, each.keys, store, TRACKED) for each in (ACCOUNT, OTHER)},
            clock=self.clock,
            wall_clock=self.clock,
            fresh_guid=self._guid,
            services_by_port={int(host.rpartition(":")[2]): word for word, host in HOSTS.items()},
            identity=TrustedIdentity(bearer.TRUSTED),
        )
        loaders = {word: SERVICES[word].load for word in WORDS}
        handlers = {word: load()(environment) for word, load in loaders.items() if load is not None}
        self._server = await serve(
            Dispatcher(handlers, by_port),
            list(sockets.values()),
            limits=Limits(tick_seconds=_TICK_SECONDS),
            on_completed=self._completed,
        )
        await bearer.give_key(self.engine, ACCOUNT.name)
        for name in ("kyanite", "asyncio"):
            logging.getLogger(name).addHandler(self.failures)
        asyncio.get_running_loop().set_exception_handler(self.failures.on_loop)

    async def _make_vault(self) -> None:
        """A container with version-level immutability, which no client can create in an account like this one."""
        for account in (ACCOUNT, OTHER):
            await settings.update(self.engine, account.name, "blob", ServiceProperties(versioning=True))
            key = ContainerKey(account.name, "vault")
            await container.create(self.engine, key, metadata={}, public_access="", is_version_level=True)
            await settings.update(self.engine, account.name, "blob", ServiceProperties(versioning=False))

    async def close(self) -> None:
        for name in ("kyanite", "asyncio"):
            logging.getLogger(name).removeHandler(self.failures)
        if self._server is not None:
            await self._server.stop(1.0)
        await self.engine.close()
        await self.extents.close()
        self.membership.close()

    async def findings(self) -> list[str]:
        """What verification finds in the rows of the store."""
        found: list[str] = []
        stated: Counter[bytes] = Counter()
        counted: Counter[bytes] = Counter()
        key: bytes | None = b""
        while key is not None:
            page = await self.engine.read(partial(check_page, start=key))
            key = page.next_key
            found += page.findings
            stated.update(page.stated)
            counted.update(page.counted)
            for extent_key, row in page.extents:
                extent = extent_of(extent_key, row)
                try:
                    await self.extents.read(extent, 0, extent.length)
                except Damaged as damage:
                    found.append(str(damage))
        subjects = sorted(stated.keys() | counted.keys())
        found += [
            describe_difference(each, stated[each], counted[each])
            for each in subjects
            if stated[each] != counted[each]
        ]
        return found

    def _completed(self, request: Request, _status: int, _seconds: float, _sent_bytes: int) -> None:
        self.operation = request.operation

    def _guid(self) -> str:
        self._guids += 1
        return f"00000000-0000-4000-8000-{self._guids:012x}"
