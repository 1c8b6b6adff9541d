"""What runs in the background of a worker for each stamp: following its accounts, and maintenance in one worker."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from kyanite.model.maintenance.scrub import ScrubFigures
from kyanite.model.maintenance.tasks import Step
from kyanite.server.accounts.removal import removal_step
from kyanite.server.management.command import Management
from kyanite.server.nodes.node import Node
from kyanite.server.observability.published_metrics import StampFigures
from kyanite.server.stamps.served import ServedStamp
from kyanite.server.store import maintenance
from kyanite.server.store.maintenance import MaintenanceFigures


class StampWork(msgspec.Struct):
    management: Management
    maintains: bool
    scrub_mib_per_second: float
    requests_in_flight: Callable[[], int]
    tasks: list[asyncio.Task[None]] = msgspec.field(default_factory=list)
    _maintained: dict[str, tuple[MaintenanceFigures, ScrubFigures | None]] = msgspec.field(
        default_factory=dict
    )
    """What was counted for each stamp, by its name."""

    def begin(self, stamp: ServedStamp) -> None:
        """Begin the work for a stamp that was opened. Only the worker that maintains a store reads everything in it."""
        self.tasks.append(asyncio.create_task(stamp.directory.follow()))
        if not self.maintains:
            return
        engine = stamp.opened.engine
        steps = [*maintenance.steps_of(stamp.opened)]
        steps.append(removal_step(engine, partial(self.management.obeyed, engine)))
        figures, scrub_figures = MaintenanceFigures(), None
        if self.scrub_mib_per_second:
            scrub = maintenance.scrub_of(stamp.opened, self.scrub_mib_per_second, self.requests_in_flight)
            steps.append(scrub.step)
            scrub_figures = scrub.figures
        self._maintained[stamp.name] = figures, scrub_figures
        self.tasks.append(asyncio.create_task(_maintain(stamp.opened.node, steps, figures)))

    def figures(self) -> list[StampFigures]:
        """What was counted for each stamp that is open."""
        return [
            StampFigures(stamp.name, stamp.opened.counters(), *self._maintained.get(stamp.name, ()))
            for stamp in self.management.stamps.stamps
        ]


async def _maintain(node: Node | None, steps: Sequence[Step], figures: MaintenanceFigures) -> None:
    """Do the maintenance. One process does it for all nodes."""
    if node is not None:
        await node.until_maintainer()
    await asyncio.gather(*(maintenance.repeat(step, figures) for step in steps))
