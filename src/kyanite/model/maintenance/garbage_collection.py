"""Giving space back, a bounded piece of work at a time.

Those who have no time leave things behind: *chores* on layers (``compaction.py``), *graves* of extents that
nobody refers to any more (``freed_extents.py``), and the *estates* of processes that died (``dead_processes.py``).

Bytes may go only when nobody reads them. A sweeper looks first, and what it finds unreferred to stays so;
then it marks the moment, and it acts when all readers that had pinned before the mark have finished.
Everything it does may be done twice. So any number of sweepers may be at work, in any processes, and may stop
anywhere.
"""

from functools import partial

from kyanite.engine.api import Engine, Snapshot
from kyanite.extents.api import Reclaimable
from kyanite.membership.api import Membership
from kyanite.model import keys
from kyanite.model.maintenance import compaction
from kyanite.model.maintenance.dead_processes import DeadProcesses
from kyanite.model.maintenance.freed_extents import FreedExtents


class GarbageCollector:
    """To be stepped by a background task: at once while it has work, now and then while it has none."""

    def __init__(self, engine: Engine, extents: Reclaimable, membership: Membership) -> None:
        self._engine = engine
        self._last_layer = 0
        self._freed_extents = FreedExtents(engine, extents)
        self._dead_processes = DeadProcesses(engine, extents, membership)

    async def step(self) -> bool:
        """Do a little of everything. False when there is nothing to do, or only readers to wait for.

        Looking counts as work: readers are seldom waited for longer than a moment, and what is looked at together is
        bounded, so whoever gave up space faster than a look a second would never get it back.
        """
        worked = await self._compact()
        worked |= await self._freed_extents.step()
        worked |= await self._dead_processes.step()
        return worked

    async def _compact(self) -> bool:
        """Take a step in the next chore, so that a long one does not keep the others waiting."""
        layer_id = await self._engine.read(partial(_next_compaction, after=self._last_layer))
        self._last_layer = layer_id or 0
        if layer_id is not None:
            await self._engine.run(partial(compaction.step, layer_id=layer_id))
        return layer_id is not None


def _next_compaction(snapshot: Snapshot, after: int) -> int | None:
    """The layer of the first chore behind this one, or of the first of all."""
    for start in (keys.pending_compaction(after + 1), keys.PENDING_COMPACTIONS):
        for key, _ in snapshot.scan(start, keys.after(keys.PENDING_COMPACTIONS), limit=1):
            return int.from_bytes(key[len(keys.PENDING_COMPACTIONS) :], "big")
    return None
