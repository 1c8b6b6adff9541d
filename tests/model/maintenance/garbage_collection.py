"""The tasks that give back the space of extents, as one."""

from kyanite.engine.api import Engine
from kyanite.extents.api import Reclaimable
from kyanite.membership.api import Membership
from kyanite.model.maintenance.tasks import COMPACTION, extent_steps, step_each, step_of


class GarbageCollector:
    """Compaction of layers, freed extents and dead processes: a step of each."""

    def __init__(self, engine: Engine, extents: Reclaimable, membership: Membership) -> None:
        self._steps = [step_of(engine, COMPACTION), *extent_steps(engine, extents, membership)]

    async def step(self) -> bool:
        return await step_each(self._steps)
