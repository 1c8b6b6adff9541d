"""Filling in the graves of extents: the last reference to each was dropped, its bytes are still there.

A segment that was let go and has no extent row left is removed as a whole; of others the dead stretches are
given back. Whether a segment was let go is asked before its rows are looked for: once it was, no new ones
come.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine import keys
from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.engine.extents import SEGMENT_BYTES, Mark, Stretch, Sweepable

GRAVES_AT_ONCE = 256

_SEGMENT_AT = len(keys.grave(0, b"", 0)) - 8
_decode_length: Callable[[bytes], int] = msgspec.msgpack.Decoder(int).decode


class _Seen(NamedTuple):
    """Graves that were found, what is to be done about them, and when they were seen."""

    graves: list[bytes]
    punched: dict[bytes, list[Stretch]]
    removed: set[bytes]
    mark: Mark


class GraveDigger:
    def __init__(self, engine: Engine, extents: Sweepable) -> None:
        self._engine = engine
        self._extents = extents
        self._seen: _Seen | None = None

    async def step(self) -> bool:
        if self._seen is None:
            self._seen = await self._look()
            return self._seen is not None
        if not self._extents.passed(self._seen.mark):
            return False
        await self._fill(self._seen)
        self._seen = None
        return True

    async def _look(self) -> _Seen | None:
        found = await self._engine.read(_first_graves)
        if not found:
            return None
        stretches: dict[bytes, list[Stretch]] = {}
        for key, length in found:
            segment = key[_SEGMENT_AT : _SEGMENT_AT + SEGMENT_BYTES]
            start = int.from_bytes(key[_SEGMENT_AT + SEGMENT_BYTES :], "big")
            stretches.setdefault(segment, []).append(Stretch(start, length))
        let_go = await self._extents.let_go(stretches)
        removed = await self._engine.read(partial(_unreferred, segments=let_go))
        punched = {segment: dead for segment, dead in stretches.items() if segment not in removed}
        return _Seen([key for key, _ in found], punched, removed, self._extents.mark())

    async def _fill(self, seen: _Seen) -> None:
        for segment in seen.removed:
            await self._extents.remove(segment)
        for segment, stretches in seen.punched.items():
            await self._extents.punch(segment, stretches)
        await self._engine.run(partial(_delete, graves=seen.graves))


def _first_graves(snapshot: Snapshot) -> list[tuple[bytes, int]]:
    rows = snapshot.scan(keys.GRAVES, keys.after(keys.GRAVES), limit=GRAVES_AT_ONCE)
    return [(key, _decode_length(value)) for key, value in rows]


def _unreferred(snapshot: Snapshot, segments: Iterable[bytes]) -> set[bytes]:
    """Those of the segments that have no extent row."""
    return {segment for segment in segments if not _has_rows(snapshot, keys.extents_of(segment))}


def _has_rows(snapshot: Snapshot, prefix: bytes) -> bool:
    return any(True for _ in snapshot.scan(prefix, keys.after(prefix), limit=1))


def _delete(tx: Transaction, graves: list[bytes]) -> None:
    for key in graves:
        tx.delete(key)
