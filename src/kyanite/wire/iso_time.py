"""ISO 8601 times in UTC, as snapshots, SAS fields and stored access policies write them.

Written with seven decimals, the full resolution of an instant. Read in any form from a bare day to seven
decimals: ``2024-05-01``, ``2024-05-01T12:34Z``, ``2024-05-01T12:34:56Z``,
``2024-05-01T12:34:56.1234567Z``.
"""

import re
from datetime import UTC, datetime

from kyanite.values import Instant, instant_from_datetime, iso_text

_FORM = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:T(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<ticks>\d{1,7}))?)?(?P<zone>Z|[+-]\d\d:\d\d))?",
    re.ASCII,
)


def encode(instant: Instant) -> str:
    """``2024-05-01T12:34:56.1234567Z``."""
    return iso_text(instant)


def decode(text: str) -> Instant | None:
    """The instant, or None when the text has none of these forms."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    try:
        whole = instant_from_datetime(_moment(match))
    except (ValueError, OverflowError):
        return None
    return Instant(whole + int((match["ticks"] or "").ljust(7, "0")))


def _moment(match: re.Match[str]) -> datetime:
    moment = datetime(int(match["year"]), int(match["month"]), int(match["day"]), tzinfo=UTC)
    if match["hour"] is None:
        return moment
    moment = moment.replace(
        hour=int(match["hour"]), minute=int(match["minute"]), second=int(match["second"] or 0)
    )
    if match["zone"] == "Z":
        return moment
    return datetime.fromisoformat(f"{moment:%Y-%m-%dT%H:%M:%S}{match['zone']}")
