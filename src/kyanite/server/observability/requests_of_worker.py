"""What a worker knows of its requests, for people: why some were refused, and all of them while somebody watches."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Self

import msgspec

from kyanite.engine.api import Engine
from kyanite.model import members
from kyanite.model.requests.questions import Questions
from kyanite.model.requests.refusals import Refusals
from kyanite.model.requests.tail import Collector, Completed, Wanted, watch
from kyanite.server.dispatch import Dispatcher
from kyanite.server.http.connection import OnMalformed
from kyanite.server.http.server import HttpServer
from kyanite.server.observability.observer import all_of, collecting
from kyanite.server.processes.process_table import Slot, State
from kyanite.server.store.api import Clock, Store

if TYPE_CHECKING:
    from kyanite.services.smb.environment import SmbEnvironment


class RequestsOfWorker(msgspec.Struct, frozen=True):
    refusals: Refusals
    questions: Questions
    collector: Collector
    clock: Clock
    engine: Engine

    @classmethod
    def begin(cls, store: Store, workers: Mapping[str, Slot], clock: Clock) -> Self:
        """``workers`` are those of this node, this one among them."""
        engine, owner = store.engine, store.membership.id
        refusals = Refusals()

        async def processes() -> int:
            if store.node is not None:
                return await _living(engine)
            return sum(slot.state is not State.GONE for slot in workers.values())

        return cls(
            refusals, Questions(engine, owner, refusals, processes), Collector(engine, owner), clock, engine
        )

    def watch(self, wanted: Wanted) -> AsyncGenerator[Completed, None]:
        """The requests of all processes and nodes, as they are completed."""
        return watch(self.engine, wanted)

    def show(
        self, server: HttpServer, dispatcher: Dispatcher, on_malformed: OnMalformed | None = None
    ) -> None:
        """Let the requests of a server be seen by those who watch, and log what is no request."""
        server.on_malformed = on_malformed
        always = server.on_completed

        def switch(is_watched: bool) -> None:
            watchers = [] if always is None else [always]
            if is_watched:
                watchers.append(collecting(dispatcher, self.collector, self.clock))
            server.on_completed = all_of(watchers)

        self.collector.on_watched.append(switch)

    def show_smb(self, environment: "SmbEnvironment") -> None:
        """The same for those of SMB, which begins later than the rest: somebody may watch already."""
        # Imported here, since most servers have no client of SMB.
        from kyanite.server.observability.smb_observer import smb_collecting

        always = environment.on_completed

        def switch(is_watched: bool) -> None:
            watching = smb_collecting(self.collector, self.clock, always) if is_watched else None
            environment.on_completed = watching or always

        self.collector.on_watched.append(switch)
        switch(self.collector.is_watched)

    def tasks(self) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.questions.follow()), asyncio.create_task(self.collector.follow())]


async def _living(engine: Engine) -> int:
    return len((await engine.read(members.load)).living)
