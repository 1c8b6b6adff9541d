"""The wall clock of a node, in the ticks of ``kyanite.values``. Engines take any other clock in its place."""

import time

from kyanite.values import Instant, instant_from_unix_ns


def wall_clock() -> Instant:
    return instant_from_unix_ns(time.time_ns())
