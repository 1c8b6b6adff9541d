"""The clock of a testing server: the wall clock and an offset that all its processes share.

The offset lies in memory that is mapped before the first fork. The admin process moves it; every process reads it
whenever it needs the time. It only grows, so the clock never goes back.
"""

import mmap

from kyanite.engine.clock import wall_clock
from kyanite.values import TICKS_PER_SECOND, Instant


class TestingClock:
    """Calling it returns the time."""

    __test__ = False  # The name is no invitation to pytest.

    def __init__(self) -> None:
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")

    def __call__(self) -> Instant:
        return Instant(wall_clock() + self._words[0])

    @property
    def offset_seconds(self) -> float:
        return self._words[0] / TICKS_PER_SECOND

    def advance(self, seconds: float) -> bool:
        """Go on from so many seconds later. Returns False, having changed nothing, if that is earlier."""
        return self._move(self._words[0] + round(seconds * TICKS_PER_SECOND))

    def advance_to(self, instant: Instant) -> bool:
        """Go on from this instant. Returns False, having changed nothing, if it has passed already."""
        return self._move(instant - wall_clock())

    def _move(self, offset: int) -> bool:
        if offset < self._words[0]:
            return False
        self._words[0] = offset
        return True
