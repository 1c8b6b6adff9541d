from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.values import Instant, instant_from_datetime
from kyanite.wire import iso_time

NOON = instant_from_datetime(datetime(2024, 5, 1, 12, 34, 56, tzinfo=UTC))
LAST = Instant(3_155_378_975_999_999_999)

BOTH_WAYS = [
    ("2024-05-01T12:34:56.1234567Z", Instant(NOON + 1_234_567)),
    ("2024-05-01T12:34:56.0000000Z", NOON),
    ("2024-05-01T12:34:56.0000001Z", Instant(NOON + 1)),
    ("0001-01-01T00:00:00.0000000Z", Instant(0)),
    ("9999-12-31T23:59:59.9999999Z", LAST),
]


@pytest.mark.parametrize(("text", "instant"), BOTH_WAYS)
def test_both_ways(text: str, instant: Instant) -> None:
    assert iso_time.encode(instant) == text
    assert iso_time.decode(text) == instant


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01T12:34Z", datetime(2024, 5, 1, 12, 34, tzinfo=UTC)),
        ("2024-05-01T12:34:56Z", datetime(2024, 5, 1, 12, 34, 56, tzinfo=UTC)),
        ("2024-05-01T12:34:56.5Z", datetime(2024, 5, 1, 12, 34, 56, 500_000, tzinfo=UTC)),
        ("2024-05-01T12:34:56.123Z", datetime(2024, 5, 1, 12, 34, 56, 123_000, tzinfo=UTC)),
        ("2024-05-01T12:34:56+02:00", datetime(2024, 5, 1, 10, 34, 56, tzinfo=UTC)),
    ],
)
def test_shorter_forms(text: str, moment: datetime) -> None:
    assert iso_time.decode(text) == instant_from_datetime(moment)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-5-1",
        "2024-05-01T12:34:56",
        "2024-05-01T12Z",
        "2024-05-01 12:34:56Z",
        "2024-13-01",
        "2024-02-30",
        "2024-05-01T24:00Z",
        "2024-05-01T12:34:56.12345678Z",
        "2024-05-01T12:34:56.Z",
        "2024-05-01Z",
        "0001-01-01T00:00:00+02:00",
        "２０２４-05-01",
        "Wed, 01 May 2024 12:34:56 GMT",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert iso_time.decode(text) is None


@given(st.integers(0, LAST).map(Instant))
def test_every_instant_survives(instant: Instant) -> None:
    assert iso_time.decode(iso_time.encode(instant)) == instant


@given(st.integers(0, LAST), st.integers(0, LAST))
def test_texts_order_as_instants_do(one: int, other: int) -> None:
    assert (iso_time.encode(Instant(one)) < iso_time.encode(Instant(other))) == (one < other)
