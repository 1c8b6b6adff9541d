"""Whole numbers: every spelling, and numbers of any length."""

import pytest

from kyanite.wire.numbers import decode


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("-5", -5),
        ("9223372036854775808", 2**63),
        ("0" * 5000 + "12", 12),
        ("-" + "0" * 40, 0),
        ("1" * 30, int("1" * 30)),
    ],
)
def test_a_number(text: str, number: int) -> None:
    assert decode(text) == number


@pytest.mark.parametrize(
    "text", ["", "-", "+1", " 1", "1 ", "1.5", "1e3", "1_000", "0x1", "²", "١٢٣", "x", "--1"]
)
def test_no_number(text: str) -> None:
    assert decode(text) is None


def test_a_number_of_any_length_is_beyond_every_limit() -> None:
    """Python converts 4,300 digits at most."""
    for digits in (31, 4301, 60_000):
        assert (decode("9" * digits) or 0) >= 10**30
        assert (decode("-" + "9" * digits) or 0) <= -(10**30)
