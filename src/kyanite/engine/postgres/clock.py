"""The clock of the database, as this process knows it from its last answers.

Between answers it goes on by the machine's own count. It is never ahead of the database's clock by more than the two
machines drift apart; and when another server with a slower clock takes over, it goes on steadily and approaches that
clock slowly. That instants ascend does not depend on this: the database keeps the last one.
"""

from typing import Final

from kyanite.engine.clock import ticks_since_boot
from kyanite.engine.transaction import Clock
from kyanite.values import Instant

_SLOWER_BY: Final = 1_000
"""It loses at most one part in so many."""


class DatabaseClock:
    """Calling it returns the time; with a clock of its own, as tests give one, that clock's."""

    __slots__ = ("_given", "_observed_at", "_offset", "last")

    def __init__(self, given: Clock | None = None) -> None:
        self._given = given
        self._offset = 0
        self._observed_at = 0
        self.last = Instant(0)
        """The latest instant that is known to be used."""

    def observe(self, last: Instant, clock: Instant) -> None:
        """What an answer of the database says."""
        self.last = max(self.last, last)
        ticks = ticks_since_boot()
        slower = self._offset - (ticks - self._observed_at) // _SLOWER_BY
        self._offset = max(clock - ticks, slower)
        self._observed_at = ticks

    def __call__(self) -> Instant:
        if self._given is not None:
            return self._given()
        return Instant(self._offset + ticks_since_boot())

    @property
    def is_known(self) -> bool:
        """Whether the database has answered anything yet."""
        return self._observed_at > 0
