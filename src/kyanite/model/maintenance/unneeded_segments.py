"""Segments that nothing refers to, kept for some time and then removed.

Pins say which bytes the readers of one machine need. Where a store is shared by many machines (an object store) the
time says it instead: a read that takes longer than a few seconds has a row, which is looked at here, and every other
has ended long before ``Reclaimable.keep_seconds`` have passed. The same time lets a database that was restored from a
backup find the bytes that it refers to.

A segment gets its row when it was found sealed and without references, so no reference can come any more.
"""

from functools import partial

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import Reclaimable
from kyanite.model import keys
from kyanite.model.maintenance.slow_reads import kept_by_slow_reads
from kyanite.values import later

REMOVED_PER_STEP = 64
_SEGMENT_AT = len(keys.unneeded_segment(0, b""))


class UnneededSegments:
    """Removes segments, the oldest first."""

    def __init__(self, engine: Engine, extents: Reclaimable) -> None:
        self._engine = engine
        self._extents = extents

    async def step(self) -> bool:
        find = partial(_find_old, keep_seconds=self._extents.keep_seconds)
        found = await self._engine.read(find)
        if not found:
            return False
        busy = {segment for segment, _ in await kept_by_slow_reads(self._engine)}
        for key in found:
            if (segment := key[_SEGMENT_AT:]) not in busy:
                await self._extents.remove(segment)
        await self._engine.run(partial(_forget, removed=found, busy=busy))
        return True


def keep_for_a_time(tx: Transaction, segments: list[bytes]) -> None:
    """Nothing refers to these segments from now on: remove them later."""
    for segment in segments:
        tx.put(keys.unneeded_segment(tx.now, segment), b"")


def _find_old(snapshot: Snapshot, keep_seconds: float) -> list[bytes]:
    """Keys of some segments that were kept long enough."""
    before = later(snapshot.now, -keep_seconds)
    rows = snapshot.scan(keys.UNNEEDED_SEGMENTS, keys.unneeded_segment(before, b""), limit=REMOVED_PER_STEP)
    return [key for key, _ in rows]


def _forget(tx: Transaction, removed: list[bytes], busy: set[bytes]) -> None:
    """What a slow read keeps waits once more."""
    for key in removed:
        tx.delete(key)
    keep_for_a_time(tx, [segment for key in removed if (segment := key[_SEGMENT_AT:]) in busy])
