"""Dates in HTTP headers and XML lists (RFC 9110 §5.6.7): RFC 1123 out; RFC 1123, RFC 850 and asctime in.

Whole seconds only: an instant is truncated, never rounded, so that a client that sends a Last-Modified back as a
condition compares with the same second.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from kyanite.values import TICKS_PER_SECOND, Instant, instant_from_datetime

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH_NUMBERS: Final = {name: number for number, name in enumerate(_MONTHS, start=1)}

_MONTH: Final = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME: Final = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMS: Final = (
    re.compile(rf"[A-Z][a-z]{{2}}, (?P<day>\d\d?) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{5,8}}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{2}} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})"),
)
_TWO_DIGIT_YEARS_FROM: Final = 70
_MAX_LENGTH: Final = 40


def encode(instant: Instant) -> str:
    """``Wed, 01 May 2024 12:34:56 GMT``."""
    return _encode_second(instant // TICKS_PER_SECOND)


def decode(text: str) -> Instant | None:
    """The instant, or None when the text is not a date: which error that is depends on the header."""
    text = text.strip()
    return _decode(text) if len(text) <= _MAX_LENGTH else None


@lru_cache(maxsize=1024)
def _encode_second(second: int) -> str:
    """``second`` counts from the same day as instants do."""
    moment = _moment(second)
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day:02} {_MONTHS[moment.month - 1]} {moment.year:04} "
        f"{moment.hour:02}:{moment.minute:02}:{moment.second:02} GMT"
    )


def _moment(second: int) -> datetime:
    days, rest = divmod(second, 86_400)
    day = datetime.fromordinal(days + 1)
    return day.replace(hour=rest // 3600, minute=rest // 60 % 60, second=rest % 60, tzinfo=UTC)


@lru_cache(maxsize=1024)
def _decode(text: str) -> Instant | None:
    for form in _FORMS:
        match = form.fullmatch(text)
        if match is not None:
            return _read(match)
    return None


def _read(match: re.Match[str]) -> Instant | None:
    year = int(match["year"])
    if len(match["year"]) == 2:
        year += 1900 if year >= _TWO_DIGIT_YEARS_FROM else 2000
    month = _MONTH_NUMBERS[match["month"]]
    clock = int(match["hour"]), int(match["minute"]), int(match["second"])
    try:
        return instant_from_datetime(datetime(year, month, int(match["day"]), *clock, tzinfo=UTC))
    except ValueError:
        return None
