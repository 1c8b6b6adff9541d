"""The segments of this process that are still written, or have extents that are neither committed nor discarded.

A segment is an object, which is there as a whole or not at all. It is *sealed* when it was written and every extent of
it was committed or discarded. Which ones are sealed other processes learn from ``seals.py``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from kyanite.engine.api import EngineError
from kyanite.extents.api import Extent
from kyanite.extents.s3.seals import SealState
from kyanite.membership.api import OWNER_BYTES


class _Open:
    __slots__ = ("has_committed", "is_written", "uncommitted")

    def __init__(self) -> None:
        self.is_written = False
        self.uncommitted = 0
        self.has_committed = False


class OpenSegments:
    def __init__(
        self, owner: bytes, remove: Callable[[bytes], Awaitable[None]], on_sealed: Callable[[], None]
    ) -> None:
        self._owner = owner
        self._remove = remove
        self._on_sealed = on_sealed
        self._count = 0
        self._segments: dict[bytes, _Open] = {}
        self._removals: set[asyncio.Future[None]] = set()

    def new_segment(self) -> bytes:
        self._count += 1
        segment = self._owner + self._count.to_bytes(4, "big")
        self._segments[segment] = _Open()
        return segment

    def written(self, segment: bytes, extents: int) -> None:
        """The store has confirmed the object, with so many extents."""
        opened = self._segments[segment]
        opened.is_written = True
        opened.uncommitted += extents

    def failed(self, segment: bytes) -> "asyncio.Future[None]":
        """It was not written, or the outcome is unknown: no extent of it will be committed."""
        del self._segments[segment]
        return self._begin_removal(segment)

    def commit(self, extents: Sequence[Extent]) -> None:
        for extent in extents:
            opened = self._segments[extent.segment]
            opened.uncommitted -= 1
            opened.has_committed = True
            self._retire(extent.segment, opened)

    def discard(self, extents: Sequence[Extent]) -> "list[asyncio.Future[None]]":
        """The removals that this begins: a segment is removed when all of its extents were discarded."""
        removals = []
        for extent in extents:
            opened = self._segments[extent.segment]
            opened.uncommitted -= 1
            if (removal := self._retire(extent.segment, opened)) is not None:
                removals.append(removal)
        return removals

    def orphaned(self, extent: Extent) -> None:
        """Discard an extent whose caller has gone."""
        self.discard([extent])

    def is_sealed(self, segment: bytes) -> bool:
        return segment not in self._segments

    @property
    def state(self) -> SealState:
        opened = sorted(int.from_bytes(segment[OWNER_BYTES:], "big") for segment in self._segments)
        return SealState(self._count + 1, opened)

    async def close(self) -> None:
        if self._removals:
            await asyncio.wait(self._removals)

    def _retire(self, segment: bytes, opened: _Open) -> "asyncio.Future[None] | None":
        if opened.uncommitted or not opened.is_written:
            return None
        del self._segments[segment]
        if opened.has_committed:
            self._on_sealed()
            return None
        return self._begin_removal(segment)

    def _begin_removal(self, segment: bytes) -> "asyncio.Future[None]":
        """What cannot be removed now is found when this process has ended."""
        removal = asyncio.ensure_future(self._try_to_remove(segment))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        return removal

    async def _try_to_remove(self, segment: bytes) -> None:
        with suppress(EngineError):
            await self._remove(segment)
