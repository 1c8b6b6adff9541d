"""The process that answers on the admin port."""

import asyncio
import socket
from collections.abc import Mapping

import msgspec
import uvloop

from kyanite.server.http.limits import Limits
from kyanite.server.http.server import serve
from kyanite.server.management.http_api import HttpApi
from kyanite.server.observability.admin import Admin, not_testing
from kyanite.server.processes.process import ProcessContext, until_stopped
from kyanite.server.processes.process_table import Slot
from kyanite.wire.http import Handler

_LIMITS = Limits(connections=64)
_STOP_SECONDS = 1.0


class AdminProcess(msgspec.Struct, frozen=True):
    """What the process needs to begin; calling it runs the process."""

    listener: socket.socket
    slots: Mapping[str, Slot]
    workers: frozenset[str]
    api: HttpApi
    testing: Handler = not_testing
    """What tests use of a testing server."""

    def __call__(self, context: ProcessContext) -> None:
        uvloop.run(self._serve(context))

    async def _serve(self, context: ProcessContext) -> None:
        admin = Admin(self.slots, self.workers, self.api, self.testing)
        server = await serve(admin, [self.listener], limits=_LIMITS)
        heart = asyncio.create_task(context.beat(admin.note_heartbeats))
        context.ready()
        await until_stopped()
        await server.stop(_STOP_SECONDS)
        heart.cancel()
