"""The small values that every layer uses: instants, ETags and ids.

An instant is a whole number of 100 ns ticks since 0001-01-01 UTC, the resolution and the epoch that Azure Storage shows
in its ETags and snapshot times.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NewType

Instant = NewType("Instant", int)
"""100 ns ticks since 0001-01-01T00:00:00Z."""

ETag = NewType("ETag", str)
"""An entity tag without its quotes, such as ``0x8DE24A1B2C3D4E5``."""

LeaseId = NewType("LeaseId", str)
"""A lease id in its canonical spelling: a lower-case GUID with hyphens."""

TICKS_PER_SECOND: Final = 10_000_000
UNIX_EPOCH: Final = Instant(621_355_968_000_000_000)

_YEAR_ONE: Final = datetime(1, 1, 1, tzinfo=UTC)


def instant_from_unix_ns(nanoseconds: int) -> Instant:
    return Instant(UNIX_EPOCH + nanoseconds // 100)


def instant_from_unix_seconds(seconds: int) -> Instant:
    return Instant(UNIX_EPOCH + seconds * TICKS_PER_SECOND)


def unix_seconds(instant: Instant) -> int:
    """Whole seconds since 1970, rounded down, as in RFC 1123 dates."""
    return (instant - UNIX_EPOCH) // TICKS_PER_SECOND


def instant_from_datetime(moment: datetime) -> Instant:
    since = moment.astimezone(UTC) - _YEAR_ONE
    return Instant((since.days * 86_400 + since.seconds) * TICKS_PER_SECOND + since.microseconds * 10)


def datetime_from_instant(instant: Instant) -> datetime:
    return _YEAR_ONE + timedelta(microseconds=instant // 10)


def iso_text(instant: Instant) -> str:
    """``2024-05-01T12:34:56.1234567Z``: ISO 8601 in the full resolution of an instant."""
    seconds, ticks = divmod(instant, TICKS_PER_SECOND)
    return f"{_iso_second(seconds)}.{str(ticks).zfill(7)}Z"


@lru_cache(maxsize=256)
def _iso_second(seconds: int) -> str:
    """Cached, since instants that are formatted together often share a second."""
    return datetime_from_instant(Instant(seconds * TICKS_PER_SECOND)).isoformat()[:19]


def later(instant: Instant, seconds: float) -> Instant:
    return Instant(instant + round(seconds * TICKS_PER_SECOND))


def etag_of(instant: Instant) -> ETag:
    """The ETag of a resource written at this instant. Instants of transactions are unique, and so are ETags."""
    return ETag("0x%X" % instant)  # noqa: UP031 (compiled, a format takes five times as long)
