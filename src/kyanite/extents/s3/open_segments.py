"""The segments of this process that are still written, or have extents that are neither committed nor discarded.

A segment is an object, which is there as a whole or not at all. It is *sealed* when it was written, every extent of it
was committed or discarded, and it was removed if none was committed. Which ones are sealed other processes learn from
``seals.py``: after the death of this one they visit those that were not.

A removal that fails is tried again, for as long as the process runs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from kyanite.engine.api import EngineError
from kyanite.extents.api import Extent
from kyanite.extents.s3.names import number_of
from kyanite.extents.s3.seals import SealState

AGAIN_SECONDS = 10.0
"""After so long failed removals are tried again."""
UNNEEDED_MAX = 10_000
"""So many segments that could not be removed are remembered."""


class _Open:
    __slots__ = ("has_committed", "is_written", "uncommitted")

    def __init__(self) -> None:
        self.is_written = False
        self.uncommitted = 0
        self.has_committed = False


class OpenSegments:
    def __init__(
        self, owner: bytes, remove: Callable[[bytes, bool], Awaitable[None]], on_sealed: Callable[[], None]
    ) -> None:
        """``remove`` is told whether the object was sent in parts, some of which may be there without it."""
        self._owner = owner
        self._remove = remove
        self._on_sealed = on_sealed
        self._count = 0
        self._segments: dict[bytes, _Open] = {}
        self._unneeded: dict[bytes, bool] = {}
        """Those that are to be removed and may still be there, and whether they were sent in parts."""
        self._unknown_from: int | None = None
        """From this number on some segments may be there that are not known any more: none counts as sealed."""
        self._removals: set[asyncio.Future[None]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._is_closing = False

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

    def not_sent(self, segment: bytes) -> None:
        """It was never sent, or the store has refused it: there is nothing to remove."""
        del self._segments[segment]

    def failed(self, segment: bytes, *, in_parts: bool = False) -> "asyncio.Future[None]":
        """It was not written, or the outcome is unknown: no extent of it will be committed."""
        del self._segments[segment]
        return self._begin_removal(segment, in_parts)

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
        return segment not in self._segments and segment not in self._unneeded

    @property
    def state(self) -> SealState:
        opened = sorted(number_of(segment) for segment in (*self._segments, *self._unneeded))
        return SealState(self._unknown_from or self._count + 1, opened)

    async def close(self) -> None:
        """What could not be removed is found when this process has ended."""
        self._is_closing = True
        if self._again is not None:
            self._again.cancel()
        if self._removals:
            await asyncio.wait(self._removals)

    def _retire(self, segment: bytes, opened: _Open) -> "asyncio.Future[None] | None":
        if opened.uncommitted or not opened.is_written:
            return None
        del self._segments[segment]
        if opened.has_committed:
            self._on_sealed()
            return None
        return self._begin_removal(segment, False)

    def _begin_removal(self, segment: bytes, in_parts: bool) -> "asyncio.Future[None]":
        self._unneeded[segment] = in_parts
        if len(self._unneeded) > UNNEEDED_MAX:
            forgotten = next(iter(self._unneeded))
            del self._unneeded[forgotten]
            self._unknown_from = min(self._unknown_from or self._count, number_of(forgotten))
        return self._begin(self._try_to_remove(segment))

    def _begin(self, removing: Coroutine[None, None, None]) -> "asyncio.Future[None]":
        removal = asyncio.ensure_future(removing)
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        return removal

    async def _try_to_remove(self, segment: bytes) -> None:
        try:
            await self._remove(segment, self._unneeded.get(segment, False))
        except EngineError:
            if self._again is None and not self._is_closing:
                self._again = asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._remove_again)
        else:
            self._unneeded.pop(segment, None)

    def _remove_again(self) -> None:
        self._again = None
        self._begin(self._remove_unneeded())

    async def _remove_unneeded(self) -> None:
        """One after the other, until one fails."""
        for segment in sorted(self._unneeded):
            if self._again is None and not self._is_closing:
                await self._try_to_remove(segment)
