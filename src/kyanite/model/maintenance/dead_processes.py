"""Cleaning up after dead processes: handles that their clients had open, uploads that were never committed, pinned
reads, and space that was reserved for later.

Each dead process is cleaned up once. Its handles are closed first, since other clients may wait for them. Then in each
of its segments only what extent rows refer to is kept, and a segment without rows is removed. No other process adds
rows for bytes of a dead one, so what was read stays true while readers finish.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import SEGMENT_BYTES, Mark, Reclaimable, Stretch
from kyanite.membership.api import Membership
from kyanite.model import keys
from kyanite.model.content import reading
from kyanite.model.content.references import decode_extent
from kyanite.model.files.opens import handles, sessions
from kyanite.model.maintenance.slow_reads import kept_by_slow_reads
from kyanite.model.maintenance.unneeded_segments import keep_for_a_time

SEGMENTS_AT_ONCE = 64
_ROWS_AT_ONCE = 500
_HANDLES_AT_ONCE = 8
"""Closing the last handle of a file may delete a row for each directory above it."""
_PINNED_READS_AT_ONCE = 64


class _Part(NamedTuple):
    """Some segments of a dead process, what is referred to in each, and when that was read."""

    kept: dict[bytes, list[Stretch]]
    mark: Mark


class DeadProcesses:
    """Cleans up after one dead process at a time."""

    def __init__(self, engine: Engine, extents: Reclaimable, membership: Membership) -> None:
        self._engine = engine
        self._extents = extents
        self._membership = membership
        self._owner = b""
        self._segments: AsyncIterator[bytes] | None = None
        self._part: _Part | None = None

    async def step(self) -> bool:
        if not self._owner and not await self._begin():
            return False
        if self._part is None:
            self._part = await self._read()
            return True
        if not self._extents.passed(self._part.mark):
            return False
        is_last = not self._part.kept
        await self._reclaim(self._part, await kept_by_slow_reads(self._engine))
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
        close = partial(handles.close_handles_of_owner, owner=owner, limit=_HANDLES_AT_ONCE)
        while await self._engine.run(close, durable=False):
            pass
        remove = partial(sessions.remove_some, owner=owner, limit=_ROWS_AT_ONCE)
        while await self._engine.run(remove, durable=False):
            pass

    async def _read(self) -> _Part:
        kept: dict[bytes, list[Stretch]] = {}
        assert self._segments is not None, "An owner was found."
        try:
            while len(kept) < SEGMENTS_AT_ONCE and (segment := await anext(self._segments, None)) is not None:
                kept[segment] = await self._referred_to(segment)
        except BaseException:
            self._owner = b""  # The listing has ended before all were found: it begins again.
            raise
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

    async def _reclaim(self, part: _Part, busy: dict[tuple[bytes, int], int]) -> None:
        """What other processes read slowly is kept too. If it is freed, its row says so."""
        unneeded = []
        for segment, referred_to in part.kept.items():
            read = [Stretch(start, length) for (each, start), length in busy.items() if each == segment]
            if stretches := sorted({*referred_to, *read}):
                await self._extents.keep_only(segment, stretches)
            elif self._extents.keep_seconds:
                unneeded.append(segment)
            else:
                await self._extents.remove(segment)
        if unneeded:
            await self._engine.run(partial(keep_for_a_time, segments=unneeded))

    async def _finish(self) -> None:
        owner, self._owner = self._owner, b""
        while await self._engine.run(partial(_release_pinned_reads, owner=owner)):
            pass
        while await self._engine.run(partial(_forget_slow_reads, owner=owner), durable=False):
            pass
        await self._extents.drop_owner(owner)
        self._membership.forget(owner)


def _extents(snapshot: Snapshot, segment: bytes, start: bytes) -> list[Stretch]:
    end = keys.after(keys.extents_of(segment))
    return [
        Stretch(int.from_bytes(key[1 + SEGMENT_BYTES :], "big"), decode_extent(value).length)
        for key, value in snapshot.scan(start, end, limit=_ROWS_AT_ONCE)
    ]


def _release_pinned_reads(tx: Transaction, owner: bytes) -> bool:
    """Release some pinned reads of a dead process. False when there were none."""
    prefix = keys.pinned_reads_of(owner)
    numbers = [
        int.from_bytes(key[len(prefix) :], "big")
        for key, _ in tx.scan(prefix, keys.after(prefix), limit=_PINNED_READS_AT_ONCE)
    ]
    for number in numbers:
        reading.release_content(tx, owner, number)
    return bool(numbers)


def _forget_slow_reads(tx: Transaction, owner: bytes) -> bool:
    """Forget some slow reads of a dead process. False when there were none."""
    prefix = keys.slow_reads_of(owner)
    found = [key for key, _ in tx.scan(prefix, keys.after(prefix), limit=_PINNED_READS_AT_ONCE)]
    for key in found:
        tx.delete(key)
    return bool(found)
