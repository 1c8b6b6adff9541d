"""The SMB front end of a worker: it accepts fairly with those of other processes on the same listener.

Most servers have no client of SMB, so the service is imported when the first one connects. Another thread does that,
since it takes longer than a step of the loop may. Clients that come meanwhile wait for it.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NoReturn

from kyanite.server.fair_accept import FairAccept
from kyanite.server.memory_budget import MemoryBudget
from kyanite.server.processes.process_table import Slot
from kyanite.server.smb.limits import Limits
from kyanite.server.smb.server import SmbServer
from kyanite.wire.smb2.transport import Connect, Transport

_log = logging.getLogger("kyanite.smb")


class FairSmbServer(SmbServer):
    def __init__(
        self,
        load: Callable[[], object],
        build: Callable[[], Connect],
        *,
        limits: Limits,
        budget: MemoryBudget,
        own: Slot,
        others: Sequence[Slot],
    ) -> None:
        """``load`` imports the service, in a thread, and ``build`` then makes it, on the loop."""
        super().__init__(_not_loaded, limits=limits, budget=budget, on_count=self._publish_count)
        self._load = load
        self._build = build
        self._loading: asyncio.Task[None] | None = None
        self._own = own
        self._others = others
        self._accepting: list[FairAccept] = []

    def accept_on(self, listener: socket.socket) -> None:
        self._accepting.append(
            FairAccept(listener, self.accept, self._own, self._others, attrgetter("smb_connections"))
        )

    async def stop(self, seconds: float) -> None:
        for each in self._accepting:
            each.close()
        await super().stop(seconds)

    async def prepare(self) -> None:
        if self._loading is None:
            self._loading = asyncio.create_task(self._load_service())
        # A client that leaves does not end what others wait for.
        await asyncio.shield(self._loading)

    async def _load_service(self) -> None:
        try:
            await asyncio.to_thread(self._load)
            self.connect = self._build()
        except Exception:
            self._loading = None
            _log.exception("SMB cannot be loaded, and its clients cannot connect")
            raise

    def _publish_count(self) -> None:
        self._own.smb_connections = self.connection_count


def _not_loaded(_transport: Transport, _address: str, _port: int) -> NoReturn:
    raise AssertionError("no connection is opened before the service is loaded")
