"""A worker: one process with one event loop that serves HTTP on the listeners it shares with the others.

It opens the store after the fork, builds the services, and stands at the door until it is told to stop; then it takes
no more connections, finishes what is in flight within the bound, and closes the store.
"""

import asyncio
import gc
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from kyanite.model import accounts
from kyanite.server.config import Config
from kyanite.server.dispatch import FrontDoor
from kyanite.server.fair_accept import FairServer
from kyanite.server.guids import FreshGuids
from kyanite.server.http.limits import Limits
from kyanite.server.observability.metrics import RequestMeter
from kyanite.server.observability.observer import observer
from kyanite.server.observability.published_metrics import Publication
from kyanite.server.processes.descriptor_limit import connections_max
from kyanite.server.processes.process import ProcessContext, until_stopped
from kyanite.server.processes.process_table import Slot
from kyanite.server.service_table import SERVICES
from kyanite.server.store.maintenance import keep_up
from kyanite.server.store.store import Store, open_store
from kyanite.services.rest.environment import Environment
from kyanite.values import Instant, instant_from_unix_ns
from kyanite.wire.http import Handler

_COLLECTED_EVERY_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class Worker:
    """What one worker needs to begin; calling it is its life."""

    config: Config
    folder: Path
    listeners: Mapping[str, socket.socket]
    tls: ssl.SSLContext | None
    maintainer: str
    """The name of the worker that does the upkeep for all."""

    def __call__(self, workers: Mapping[str, Slot], post: ProcessContext) -> None:
        """``workers`` are the slots of all workers by name, this one's among them."""
        uvloop.run(self._serve([slot for name, slot in workers.items() if name != post.slot.name], post))

    async def _serve(self, others: Sequence[Slot], post: ProcessContext) -> None:
        store = open_store(self.folder, in_memory=self.config.location is None)
        door = FrontDoor(
            self._handlers(store), {at.getsockname()[1]: name for name, at in self.listeners.items()}
        )
        meter = None if self.config.admin_port is None else RequestMeter()
        server = FairServer(
            door,
            limits=Limits(connections=connections_max()),
            own=post.slot,
            others=others,
            on_exchange=observer(door, meter, log_requests=self.config.log_requests),
        )
        publication = None if meter is None else Publication(post.slot, meter, server.stats, store.commits)
        background = [asyncio.create_task(post.beat(None if publication is None else publication.publish))]
        if post.slot.name == self.maintainer:
            background += [asyncio.create_task(keep_up(step)) for step in store.upkeep()]
        for listener in self.listeners.values():
            await server.listen(listener, self.tls)
        # What is here now stays: the collector need not look at it again, nor make it unshared. What comes is seldom in
        # a cycle, so it is looked for less often than usual: every few hundred requests.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECTED_EVERY_OBJECTS)
        post.ready()
        await until_stopped()
        await server.stop(self.config.stop_seconds)
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        await store.close()

    def _handlers(self, store: Store) -> dict[str, Handler]:
        main = accounts.Store(store.engine, store.extents, store.membership)
        environment = Environment(
            accounts={
                account.name: accounts.Account(account.name, account.keys, main)
                for account in self.config.accounts
            },
            clock=clock,
            fresh_guid=FreshGuids(),
            services_by_port={at.getsockname()[1]: name for name, at in self.listeners.items()},
        )
        return {name: load()(environment) for name in self.listeners if (load := SERVICES[name].load)}


def clock() -> Instant:
    return instant_from_unix_ns(time.time_ns())
