"""A pace for work in the background: so many bytes in a second on average, and less while the server is busy."""

from collections.abc import Awaitable, Callable

from kyanite.slices import next_slice

BURST_SECONDS = 0.25
"""How much may be done at once after a pause."""
BUSY_SHARE = 0.25
"""Of the pace, while the server is busy: never nothing, or the work would never end on a busy server."""
WAIT_SECONDS_MAX = 1.0


class Pace:
    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """``clock`` counts seconds and never steps back."""
        self._rate = bytes_per_second
        self.clock = clock
        self._sleep = sleep
        self._is_busy = is_busy
        self._credit = 0.0
        self._at = clock()

    async def spend(self, count: int) -> None:
        """So many bytes were read. Returns when the next may be."""
        self._earn()
        self._credit -= count
        while self._credit < 0:
            rate = self._rate * (BUSY_SHARE if self._is_busy() else 1.0)
            await self._sleep(min(-self._credit / rate, WAIT_SECONDS_MAX))
            self._earn()
        await next_slice()

    def _earn(self) -> None:
        now = self.clock()
        rate = self._rate * (BUSY_SHARE if self._is_busy() else 1.0)
        self._credit = min(self._credit + rate * (now - self._at), self._rate * BURST_SECONDS)
        self._at = now
