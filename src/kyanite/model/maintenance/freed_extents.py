"""Giving back the space of freed extents: their last reference was removed, and their bytes are still there.

A sealed segment that has no extent row left is removed. In other segments the space of the freed extents is given back.
Whether a segment is sealed is read before its rows are: a sealed segment gets no new ones.

A segment without rows that is still open has to be removed later. One of its rows for freed extents is kept for that,
with no space left to give back. What a slow read keeps stays as it is, with its row.

A store that cannot know all readers keeps a segment for some time after nothing refers to it any more: it gets a row
as an unneeded segment, and ``unneeded_segments.py`` removes it.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import SEGMENT_BYTES, Mark, Reclaimable, Stretch
from kyanite.model import keys
from kyanite.model.maintenance.slow_reads import kept_by_slow_reads
from kyanite.model.maintenance.unneeded_segments import keep_for_a_time

FREED_PER_STEP = 256

_SEGMENT_AT = len(keys.freed_extent(0, b"", 0)) - 8
_encode_length = msgspec.msgpack.Encoder().encode
_decode_length: Callable[[bytes], int] = msgspec.msgpack.Decoder(int).decode


class _Freed(NamedTuple):
    key: bytes
    stretch: Stretch


class _Found(NamedTuple):
    """Freed extents that were read at some moment, by their segments."""

    freed: dict[bytes, list[_Freed]]
    sealed: set[bytes]
    unreferred: set[bytes]
    """Segments that have no extent row."""
    mark: Mark


class _Work(NamedTuple):
    """What to do about freed extents that no reader needs any more."""

    removed: list[bytes]
    """Segments."""
    punched: dict[bytes, list[Stretch]]
    done: list[bytes]
    """Keys of freed extents that are then no longer needed."""
    kept: list[bytes]
    """Keys of freed extents that then have no space left to give back."""


class FreedExtents:
    """Goes through the freed extents, some at a time, and begins again when it has come to the end."""

    def __init__(self, engine: Engine, extents: Reclaimable) -> None:
        self._engine = engine
        self._extents = extents
        self._found: _Found | None = None
        self._start = b""

    async def step(self) -> bool:
        if self._found is None:
            self._found = await self._read()
            return self._found is not None or self._start != b""
        if not self._extents.passed(self._found.mark):
            return False
        found, self._found = self._found, None
        await self._free(found)
        return True

    async def _read(self) -> _Found | None:
        """The next freed extents, if there is anything to do about them."""
        freed, self._start = await self._engine.read(partial(_some_freed, start=self._start))
        if not freed:
            return None
        sealed = await self._extents.sealed(freed)
        unreferred = await self._engine.read(partial(_unreferred, segments=freed))
        found = _Found(freed, sealed, unreferred, self._extents.mark())
        work = _work_for(found, await kept_by_slow_reads(self._engine))
        return found if work.done or work.kept else None

    async def _free(self, found: _Found) -> None:
        """Readers that began before the mark have ended, or their slow reads say what they still need."""
        work = _work_for(found, await kept_by_slow_reads(self._engine))
        if self._extents.keep_seconds:
            await self._engine.run(partial(keep_for_a_time, segments=work.removed))
        else:
            for segment in work.removed:
                await self._extents.remove(segment)
        for segment, stretches in work.punched.items():
            await self._extents.punch(segment, stretches)
        if work.done or work.kept:
            await self._engine.run(partial(_store, work=work))


def _work_for(found: _Found, busy: Mapping[tuple[bytes, int], int]) -> _Work:
    work = _Work([], {}, [], [])
    busy_segments = {segment for segment, _ in busy}
    for segment, dead in found.freed.items():
        is_whole = segment not in busy_segments
        _plan(
            work,
            segment,
            [each for each in dead if (segment, each.stretch.start) not in busy],
            is_sealed=is_whole and segment in found.sealed,
            is_unreferred=is_whole and segment in found.unreferred,
        )
    return work


def _plan(work: _Work, segment: bytes, dead: list[_Freed], *, is_sealed: bool, is_unreferred: bool) -> None:
    """Add what is to be done about one segment."""
    if is_sealed and is_unreferred:
        work.removed.append(segment)
        work.done.extend(freed_extent.key for freed_extent in dead)
        return
    if stretches := [freed_extent.stretch for freed_extent in dead if freed_extent.stretch.length]:
        work.punched[segment] = stretches
    if is_unreferred:
        kept, *dead = sorted(dead, key=lambda freed_extent: freed_extent.stretch.length)
        if kept.stretch.length:
            work.kept.append(kept.key)
    work.done.extend(freed_extent.key for freed_extent in dead)


def _some_freed(snapshot: Snapshot, start: bytes) -> tuple[dict[bytes, list[_Freed]], bytes]:
    """Freed extents by their segments, the oldest first, and where the next ones begin; b"" after the last."""
    freed: dict[bytes, list[_Freed]] = {}
    key, count = b"", 0
    end = keys.after(keys.FREED_EXTENTS)
    for key, value in snapshot.scan(start or keys.FREED_EXTENTS, end, limit=FREED_PER_STEP):
        count += 1
        segment = key[_SEGMENT_AT : _SEGMENT_AT + SEGMENT_BYTES]
        extent_start = int.from_bytes(key[_SEGMENT_AT + SEGMENT_BYTES :], "big")
        freed.setdefault(segment, []).append(_Freed(key, Stretch(extent_start, _decode_length(value))))
    return freed, key + b"\0" if count == FREED_PER_STEP else b""


def _unreferred(snapshot: Snapshot, segments: Iterable[bytes]) -> set[bytes]:
    """Those of the segments that have no extent row."""
    return {segment for segment in segments if not _has_rows(snapshot, keys.extents_of(segment))}


def _has_rows(snapshot: Snapshot, prefix: bytes) -> bool:
    return any(True for _ in snapshot.scan(prefix, keys.after(prefix), limit=1))


def _store(tx: Transaction, work: _Work) -> None:
    for key in work.done:
        tx.delete(key)
    for key in work.kept:
        tx.put(key, _encode_length(0))
