"""The SMB front end, which accepts fairly with those of other processes on the same listener."""

import socket
from collections.abc import Sequence
from operator import attrgetter

from kyanite.server.fair_accept import FairAccept
from kyanite.server.memory_budget import MemoryBudget
from kyanite.server.processes.process_table import Slot
from kyanite.server.smb.limits import Limits
from kyanite.server.smb.server import SmbServer
from kyanite.wire.smb2.transport import Connect


class FairSmbServer(SmbServer):
    def __init__(
        self, connect: Connect, *, limits: Limits, budget: MemoryBudget, own: Slot, others: Sequence[Slot]
    ) -> None:
        super().__init__(connect, limits=limits, budget=budget, on_count=self._publish_count)
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

    def _publish_count(self) -> None:
        self._own.smb_connections = self.connection_count
