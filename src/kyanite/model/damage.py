"""Damage that requests have met: counted each time, and logged once in a while for each damaged thing."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from kyanite.engine.api import Damaged

_AGAIN_SECONDS = 600.0
"""The same damage is logged again after so long."""
_REMEMBERED = 1_000

_log = logging.getLogger("kyanite.damage")


class DamageReports:
    """Of one process."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.reads = 0
        """How many requests have met damage."""
        self._clock = clock
        self._logged_at: OrderedDict[str, float] = OrderedDict()

    def add(self, damaged: Damaged, **request: object) -> None:
        """A request has met this damage. ``request`` is what the log should tell about it."""
        self.reads += 1
        text, now = str(damaged), self._clock()
        if now - self._logged_at.get(text, float("-inf")) < _AGAIN_SECONDS:
            return
        self._logged_at[text] = now
        self._logged_at.move_to_end(text)
        if len(self._logged_at) > _REMEMBERED:
            self._logged_at.popitem(last=False)
        _log.error("damaged", extra={"damage": text, **request})


reports = DamageReports()
"""Those of this process."""
