"""What runs in the background of a worker for each stamp: following its accounts, and maintenance in one worker."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from kyanite.model.maintenance.scrub import Scrub
from kyanite.model.maintenance.tasks import Step
from kyanite.server.accounts.removal import removal_step
from kyanite.server.management.command import Management
from kyanite.server.nodes.node import Node
from kyanite.server.stamps.served import ServedStamp
from kyanite.server.store import maintenance
from kyanite.server.store.api import Store


@dataclass(slots=True)
class StampWork:
    management: Management
    maintains: bool
    scrub_mib_per_second: float
    requests_in_flight: Callable[[], int]
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def scrub_of(self, store: Store) -> Scrub | None:
        """Only the worker that maintains a store reads everything in it."""
        if not self.maintains or not self.scrub_mib_per_second:
            return None
        return maintenance.scrub_of(store, self.scrub_mib_per_second, self.requests_in_flight)

    def begin(self, stamp: ServedStamp, scrub: Scrub | None = None) -> None:
        """Begin the work for a stamp that was opened, with a new scrub unless one is given."""
        self.tasks.append(asyncio.create_task(stamp.directory.follow()))
        if not self.maintains:
            return
        engine = stamp.opened.engine
        scrub = scrub or self.scrub_of(stamp.opened)
        steps = [*maintenance.steps_of(stamp.opened)]
        steps.append(removal_step(engine, partial(self.management.obeyed, engine)))
        steps += [] if scrub is None else [scrub.step]
        self.tasks.append(asyncio.create_task(_maintain(stamp.opened.node, steps)))


async def _maintain(node: Node | None, steps: Sequence[Step]) -> None:
    """Do the maintenance. One process does it for all nodes."""
    if node is not None:
        await node.until_maintainer()
    await asyncio.gather(*map(maintenance.repeat, steps))
