"""Which settings of accounts are honoured, and what they mean."""

import pytest

from kyanite.rules import account_settings as rules
from kyanite.values import TICKS_PER_SECOND, Instant

SKUS = [
    # sku, is there, has a readable secondary
    ("Standard_LRS", True, False),
    ("Standard_ZRS", True, False),
    ("Standard_GRS", True, False),
    ("Standard_RAGRS", True, True),
    ("Standard_GZRS", True, False),
    ("Standard_RAGZRS", True, True),
    ("Premium_LRS", False, False),
    ("Premium_ZRS", False, False),
    ("PremiumV2_LRS", False, False),
    ("StandardV2_LRS", False, False),
    ("standard_lrs", False, False),
    ("", False, False),
]

KINDS = [
    ("StorageV2", True),
    ("Storage", False),
    ("BlobStorage", False),
    ("BlockBlobStorage", False),
    ("FileStorage", False),
    ("", False),
]

PERIODS = [
    ("1.00:00:00", 86_400),
    ("00:00:01", 1),
    ("0.00:10:00", 600),
    ("365.23:59:59", 365 * 86_400 + 86_399),
    ("12:30:15", 45_015),
    ("00:00:00", None),
    ("24:00:00", None),
    ("1:00:00", None),
    ("1.00:60:00", None),
    ("1.00:00:60", None),
    ("-1.00:00:00", None),
    ("1.00:00:00.5", None),
    ("99999999.00:00:00", None),
    ("٣.00:00:00", None),
    ("1 day", None),
    ("", None),
]


@pytest.mark.parametrize(("sku", "is_there", "is_readable"), SKUS)
def test_skus(sku: str, is_there: bool, is_readable: bool) -> None:
    assert (rules.problem_of_sku(sku) is None) is is_there
    assert rules.has_readable_secondary(sku) is is_readable


@pytest.mark.parametrize(("kind", "is_there"), KINDS)
def test_kinds(kind: str, is_there: bool) -> None:
    assert (rules.problem_of_kind(kind) is None) is is_there


@pytest.mark.parametrize(("text", "seconds"), PERIODS)
def test_periods(text: str, seconds: int | None) -> None:
    assert rules.period_seconds(text) == seconds
    if seconds is not None:
        assert rules.period_seconds(rules.period_text(seconds)) == seconds


@pytest.mark.parametrize(("days", "is_right"), [(-1, False), (0, True), (1, True), (365, True), (366, False)])
def test_days_of_a_retention(days: int, is_right: bool) -> None:
    assert (rules.problem_of_days(days) is None) is is_right


@pytest.mark.parametrize(
    ("starts", "expires", "is_too_long"),
    [
        (1000, 1060, False),
        (1000, 1061, True),
        (None, 1560, False),
        (None, 1561, True),
        # Its start is what counts, however much of the time is over, or still to come.
        (900, 1510, True),
        (2000, 2060, False),
        (2000, 1900, False),
    ],
)
def test_how_long_a_signature_is_valid(starts: int | None, expires: int, is_too_long: bool) -> None:
    def at(seconds: int) -> Instant:
        return Instant(seconds * TICKS_PER_SECOND)

    starts_at = None if starts is None else at(starts)
    assert rules.is_valid_for_too_long(60, starts_at, at(expires), at(1500)) is is_too_long
