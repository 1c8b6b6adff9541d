"""Which LOCK requests are repeats."""

import pytest

from kyanite.rules.lock_sequences import is_repeated, remembered


@pytest.mark.parametrize(
    ("index", "number", "repeated"),
    [(1, 5, True), (64, 5, True), (1, 6, False), (2, 5, False), (0, 5, False), (65, 5, False)],
)
def test_a_request_is_a_repeat_if_its_index_and_number_are_known(
    index: int, number: int, repeated: bool
) -> None:
    numbers = remembered(remembered(b"", 1, 5), 64, 5)
    assert is_repeated(numbers, index, number) is repeated


@pytest.mark.parametrize("number", range(16))
def test_nothing_is_a_repeat_at_first(number: int) -> None:
    assert not is_repeated(b"", 1, number)
    assert not is_repeated(remembered(b"", 2, 0), 1, number)


def test_a_request_that_has_begun_or_failed_may_come_again() -> None:
    numbers = remembered(remembered(b"", 3, 5), 3, None)
    assert not is_repeated(numbers, 3, 5)
    assert is_repeated(remembered(numbers, 3, 5), 3, 5)


def test_an_index_out_of_range_is_not_remembered() -> None:
    assert remembered(b"", 0, 1) == remembered(b"", 65, 1) == b""
