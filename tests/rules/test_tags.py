import pytest

from kyanite.rules import tags
from kyanite.rules.refusals import Reason
from tests.rules.refusing import reason_of

Pairs = list[tuple[str, str]]
TEN: Pairs = [(f"key{number}", "value") for number in range(10)]


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [("a", "1")],
        [("a", "")],
        TEN,
        [("k" * 128, "v" * 256)],
        [("Status", "1"), ("status", "2")],
        [("azAZ09 +-./:=_", "azAZ09 +-./:=_")],
        [(" ", " ")],
    ],
)
def test_what_is_allowed(pairs: Pairs) -> None:
    assert tags.checked(pairs) == tuple(sorted(pairs))


def test_tags_are_in_the_order_of_their_keys_by_code_point() -> None:
    assert tags.checked([("b", "1"), ("a", "2"), ("B", "3"), ("1", "4")]) == (
        ("1", "4"),
        ("B", "3"),
        ("a", "2"),
        ("b", "1"),
    )


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([*TEN, ("one more", "")], Reason.TAGS_TOO_LARGE),
        ([("k" * 129, "v")], Reason.TAGS_TOO_LARGE),
        ([("k", "v" * 257)], Reason.TAGS_TOO_LARGE),
        ([("", "v")], Reason.EMPTY_TAG_NAME),
        ([("a", "v"), ("", "v")], Reason.EMPTY_TAG_NAME),
        ([("a", "1"), ("a", "1")], Reason.DUPLICATE_TAG_NAMES),
        ([("a", "1"), ("b", "1"), ("a", "2")], Reason.DUPLICATE_TAG_NAMES),
        *[
            ([(f"a{sign}", "1")], Reason.INVALID_TAG)
            for sign in "\0\t\n,;!?'\"#&%@*()[]{}<>\\^~|$\u00e9\u4e00"
        ],
        *[
            ([("a", f"{sign}1")], Reason.INVALID_TAG)
            for sign in "\0\t\n,;!?'\"#&%@*()[]{}<>\\^~|$\u00e9\u4e00"
        ],
    ],
)
def test_what_is_refused(pairs: Pairs, reason: Reason) -> None:
    assert reason_of(lambda: tags.checked(pairs)) is reason
