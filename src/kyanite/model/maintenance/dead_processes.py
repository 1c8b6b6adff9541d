"""What processes leave when they die: handles that their clients had open, uploads that were never committed, holds,
and space set aside for later.

Every dead owner is gone through once. Its handles are closed first, since somebody may wait for them. In its segments
only what extent rows refer to is kept; a segment with none is removed. Nobody can add a row for bytes of a dead
process, so what was looked up stays true while readers finish.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import SEGMENT_BYTES, Mark, Reclaimable, Stretch
from kyanite.membership.api import Membership
from kyanite.model import keys
from kyanite.model.content import reading
from kyanite.model.content.references import decode_extent
from kyanite.model.files import handles

SEGMENTS_AT_ONCE = 64
_ROWS_AT_ONCE = 2000
_PINNED_READS_AT_ONCE = 64


class _Part(NamedTuple):
    """Some segments of an estate, what is referred to in each, and when that was looked up."""

    kept: dict[bytes, list[Stretch]]
    mark: Mark


class DeadProcesses:
    """Settles one estate after the other."""

    def __init__(self, engine: Engine, extents: Reclaimable, membership: Membership) -> None:
        self._engine = engine
        self._extents = extents
        self._membership = membership
        self._owner = b""
        self._segments: Iterator[bytes] = iter(())
        self._part: _Part | None = None

    async def step(self) -> bool:
        if not self._owner and not await self._begin():
            return False
        if self._part is None:
            self._part = await self._look()
            return True
        if not self._extents.passed(self._part.mark):
            return False
        is_last = not self._part.kept
        await self._settle(self._part)
        self._part = None
        if is_last:
            await self._finish()
        return True

    async def _begin(self) -> bool:
        for owner in self._membership.dead_owners()[:1]:
            await self._close_handles(owner)
            self._owner = owner
            self._segments = self._extents.segments_of(owner)
        return bool(self._owner)

    async def _close_handles(self, owner: bytes) -> None:
        while await self._engine.run(partial(handles.close_handles_of_owner, owner=owner), durable=False):
            pass

    async def _look(self) -> _Part:
        kept = {}
        for segment in islice(self._segments, SEGMENTS_AT_ONCE):
            kept[segment] = await self._referred_to(segment)
        return _Part(kept, self._extents.mark())

    async def _referred_to(self, segment: bytes) -> list[Stretch]:
        stretches: list[Stretch] = []
        start = keys.extents_of(segment)
        while True:
            page = await self._engine.read(partial(_extents, segment=segment, start=start))
            stretches += page
            if len(page) < _ROWS_AT_ONCE:
                return stretches
            start = keys.extent(segment, page[-1].start + 1)

    async def _settle(self, part: _Part) -> None:
        for segment, stretches in part.kept.items():
            if stretches:
                await self._extents.keep_only(segment, stretches)
            else:
                await self._extents.remove(segment)

    async def _finish(self) -> None:
        owner, self._owner = self._owner, b""
        while await self._engine.run(partial(_release_pinned_reads, owner=owner)):
            pass
        self._extents.drop_owner(owner)
        self._membership.forget(owner)


def _extents(snapshot: Snapshot, segment: bytes, start: bytes) -> list[Stretch]:
    end = keys.after(keys.extents_of(segment))
    return [
        Stretch(int.from_bytes(key[1 + SEGMENT_BYTES :], "big"), decode_extent(value).length)
        for key, value in snapshot.scan(start, end, limit=_ROWS_AT_ONCE)
    ]


def _release_pinned_reads(tx: Transaction, owner: bytes) -> bool:
    """Let go of some holds of a dead process; whether there were any."""
    prefix = keys.pinned_reads_of(owner)
    numbers = [
        int.from_bytes(key[len(prefix) :], "big")
        for key, _ in tx.scan(prefix, keys.after(prefix), limit=_PINNED_READS_AT_ONCE)
    ]
    for number in numbers:
        reading.release_content(tx, owner, number)
    return bool(numbers)
