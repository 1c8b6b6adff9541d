"""Times as people type them: a span from now, such as ``15m`` or ``7d``, or a moment such as ``2030-01-31T12:00Z``."""

import re

from kyanite.server.failures import BadUsage
from kyanite.values import Instant, later
from kyanite.wire import iso_time
from kyanite.wire.user_delegation import seconds_text

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"([0-9]{1,9})([smhdw])")


def moment_text(text: str, now: Instant, option: str) -> str:
    """The moment as a token has it. What is a moment already stays as it is written."""
    match = _SPAN.fullmatch(text)
    if match is not None:
        try:
            return seconds_text(later(now, int(match[1]) * _UNITS[match[2]]))
        except (OverflowError, ValueError):
            raise BadUsage(f"{option} is too far away.") from None
    if iso_time.decode(text) is None:
        raise BadUsage(f"{option} is a span such as 15m, 8h or 7d, or a moment such as 2030-01-31T12:00:00Z.")
    return text
