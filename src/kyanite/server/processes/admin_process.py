"""The process that answers on the admin port."""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import uvloop

from kyanite.server.http.limits import Limits
from kyanite.server.http.server import serve
from kyanite.server.observability.admin import Admin
from kyanite.server.processes.process import ProcessContext, until_stopped
from kyanite.server.processes.process_table import Slot

_LIMITS = Limits(connections=64)
_STOP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class AdminProcess:
    """What the process needs to begin; calling it is its life."""

    listener: socket.socket
    slots: Mapping[str, Slot]
    workers: frozenset[str]

    def __call__(self, post: ProcessContext) -> None:
        uvloop.run(self._serve(post))

    async def _serve(self, post: ProcessContext) -> None:
        admin = Admin(self.slots, self.workers)
        server = await serve(admin, [self.listener], limits=_LIMITS)
        heart = asyncio.create_task(post.beat(admin.look_up))
        post.ready()
        await until_stopped()
        await server.stop(_STOP_SECONDS)
        heart.cancel()
