from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.values import TICKS_PER_SECOND, Instant, instant_from_datetime
from kyanite.wire import http_date


def at(*parts: int) -> Instant:
    return instant_from_datetime(datetime(*parts, tzinfo=UTC))  # type: ignore[misc,arg-type]


BOTH_WAYS = [
    ("Wed, 01 May 2024 12:34:56 GMT", at(2024, 5, 1, 12, 34, 56)),
    ("Thu, 01 Jan 1970 00:00:00 GMT", at(1970, 1, 1)),
    ("Sun, 06 Nov 1994 08:49:37 GMT", at(1994, 11, 6, 8, 49, 37)),
    ("Mon, 01 Jan 0001 00:00:00 GMT", Instant(0)),
    ("Fri, 31 Dec 9999 23:59:59 GMT", at(9999, 12, 31, 23, 59, 59)),
    ("Thu, 29 Feb 2024 00:00:00 GMT", at(2024, 2, 29)),
]


@pytest.mark.parametrize(("text", "instant"), BOTH_WAYS)
def test_both_ways(text: str, instant: Instant) -> None:
    assert http_date.encode(instant) == text
    assert http_date.decode(text) == instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("Sunday, 06-Nov-94 08:49:37 GMT", at(1994, 11, 6, 8, 49, 37)),
        ("Wednesday, 01-May-24 12:34:56 GMT", at(2024, 5, 1, 12, 34, 56)),
        ("Sun Nov  6 08:49:37 1994", at(1994, 11, 6, 8, 49, 37)),
        ("Wed May 01 12:34:56 2024", at(2024, 5, 1, 12, 34, 56)),
        ("Wed, 1 May 2024 12:34:56 GMT", at(2024, 5, 1, 12, 34, 56)),
        (" Wed, 01 May 2024 12:34:56 GMT ", at(2024, 5, 1, 12, 34, 56)),
    ],
)
def test_older_forms(text: str, instant: Instant) -> None:
    assert http_date.decode(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "x" * 100_000,
        "2024-05-01T12:34:56Z",
        "Wed, 01 May 2024 12:34:56",
        "Wed, 01 May 2024 12:34:56 CET",
        "Wed, 32 May 2024 12:34:56 GMT",
        "Thu, 30 Feb 2024 12:34:56 GMT",
        "Wed, 01 Mai 2024 12:34:56 GMT",
        "Wed, 01 May 2024 24:00:00 GMT",
        "Wed, 01 May 2024 12:34:60 GMT",
        "Wed, 01 May 2024 12:34:56 GMT, Wed, 01 May 2024 12:34:56 GMT",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert http_date.decode(text) is None


def test_parts_of_a_second_are_cut() -> None:
    whole = at(2024, 5, 1, 12, 34, 56)
    assert http_date.encode(Instant(whole + TICKS_PER_SECOND - 1)) == http_date.encode(whole)


@given(st.datetimes(timezones=st.just(UTC)))
def test_agrees_with_the_standard_library(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)
    instant = instant_from_datetime(moment)
    text = format_datetime(moment, usegmt=True)
    assert http_date.encode(instant) == text
    assert http_date.decode(text) == instant
