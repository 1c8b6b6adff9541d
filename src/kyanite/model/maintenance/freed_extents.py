"""Giving back the space of freed extents: their last reference was removed, and their bytes are still there.

A sealed segment that has no extent row left is removed. In other segments the space of the freed extents is given back.
Whether a segment is sealed is read before its rows are: a sealed segment gets no new ones.

A segment without rows that is still open has to be removed later. One of its rows for freed extents is kept for that,
with no space left to give back.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import SEGMENT_BYTES, Mark, Reclaimable, Stretch
from kyanite.model import keys

FREED_PER_STEP = 256

_SEGMENT_AT = len(keys.freed_extent(0, b"", 0)) - 8
_encode_length = msgspec.msgpack.Encoder().encode
_decode_length: Callable[[bytes], int] = msgspec.msgpack.Decoder(int).decode


class _Freed(NamedTuple):
    key: bytes
    stretch: Stretch


class _Work(NamedTuple):
    """What to do about freed extents that were read at some moment."""

    removed: list[bytes]
    """Segments."""
    punched: dict[bytes, list[Stretch]]
    done: list[bytes]
    """Keys of freed extents that are then no longer needed."""
    kept: list[bytes]
    """Keys of freed extents that then have no space left to give back."""
    mark: Mark


class FreedExtents:
    def __init__(self, engine: Engine, extents: Reclaimable) -> None:
        self._engine = engine
        self._extents = extents
        self._work: _Work | None = None

    async def step(self) -> bool:
        if self._work is None:
            self._work = await self._read()
            return self._work is not None
        if not self._extents.passed(self._work.mark):
            return False
        await self._do(self._work)
        self._work = None
        return True

    async def _read(self) -> _Work | None:
        freed = await self._engine.read(_first_freed)
        if not freed:
            return None
        sealed = await self._extents.sealed(freed)
        unreferred = await self._engine.read(partial(_unreferred, segments=freed))
        work = _Work([], {}, [], [], self._extents.mark())
        for segment, dead in freed.items():
            _plan(work, segment, dead, is_sealed=segment in sealed, is_unreferred=segment in unreferred)
        return work if work.done or work.kept else None

    async def _do(self, work: _Work) -> None:
        for segment in work.removed:
            await self._extents.remove(segment)
        for segment, stretches in work.punched.items():
            await self._extents.punch(segment, stretches)
        await self._engine.run(partial(_store, work=work))


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


def _first_freed(snapshot: Snapshot) -> dict[bytes, list[_Freed]]:
    """The oldest freed extents by their segments."""
    freed: dict[bytes, list[_Freed]] = {}
    for key, value in snapshot.scan(keys.FREED_EXTENTS, keys.after(keys.FREED_EXTENTS), limit=FREED_PER_STEP):
        segment = key[_SEGMENT_AT : _SEGMENT_AT + SEGMENT_BYTES]
        start = int.from_bytes(key[_SEGMENT_AT + SEGMENT_BYTES :], "big")
        freed.setdefault(segment, []).append(_Freed(key, Stretch(start, _decode_length(value))))
    return freed


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
