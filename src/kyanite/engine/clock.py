"""The time, in the ticks of ``kyanite.values``. An engine can be opened with another clock instead.

The wall clock may step back: an operator sets it, or a time server corrects it. Stored instants would then be in the
future, leases and hidden messages would stay as they are until the clock has caught up, and every transaction would
have an instant that is one tick after the last. A ``SteadyClock`` goes on instead: while the machine is up, at the rate
of the clock that counts since its start; after a restart of the machine, from the last instant that was stored.

When the wall clock jumps forward, the steady clock follows: the machine may have been suspended, or its clock was slow.
What expires by then has expired. It cannot follow back from a jump that was a mistake, because what was written
meanwhile has those times: it goes on from there until the wall clock has caught up.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from kyanite.values import Instant, instant_from_unix_ns

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts the time in which the machine is suspended, where the system can."""


def wall_clock() -> Instant:
    return instant_from_unix_ns(time.time_ns())


def ticks_since_boot() -> int:
    return time.clock_gettime_ns(_SINCE_BOOT) // 100


def boot_number() -> int:
    """A number below 2**63 for this start of the machine; 0 where the system has none."""
    with suppress(OSError, ValueError):
        return UUID(_BOOT_ID.read_text().strip()).int >> 65 | 1
    return 0


class ClockBase(Protocol):
    """What the steady clocks of all processes of a store share."""

    clock_base: int
    """The instant at which the machine started, by the steady clock."""


class SteadyClock:
    """Calling it returns the time."""

    __slots__ = ("_base", "_ticks", "_wall")

    def __init__(self, wall: Callable[[], Instant], ticks: Callable[[], int], base: ClockBase) -> None:
        self._wall = wall
        self._ticks = ticks
        self._base = base

    def begin(self, last: Instant) -> None:
        """Begin anew, after the last instant that was stored."""
        self._base.clock_base = max(self._wall(), last) - self._ticks()

    def __call__(self) -> Instant:
        wall = self._wall()  # First: a pause between the two lines must not count as a jump forward.
        ticks = self._ticks()
        base = self._base.clock_base
        if wall - ticks > base:
            self._base.clock_base = base = wall - ticks
        return Instant(base + ticks)


class OwnBase:
    """The base of a clock that no other process shares."""

    __slots__ = ("clock_base",)

    def __init__(self) -> None:
        self.clock_base = 0
