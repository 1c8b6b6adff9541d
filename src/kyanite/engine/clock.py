"""The wall clock, in the ticks of ``kyanite.values``. An engine can be opened with another clock instead."""

import time

from kyanite.values import Instant, instant_from_unix_ns


def wall_clock() -> Instant:
    return instant_from_unix_ns(time.time_ns())
