import pytest

from kyanite.rules import metadata
from kyanite.rules.refusals import Reason, Refused

FULL = metadata.MAX_BYTES


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [("a", "1")],
        [("A", ""), ("_b", "x y"), ("c1", "\t"), ("d", "caf\u00e9")],
        [("class", "a word of C#")],
        [("a", "x" * (FULL - 1))],
        [("a", "x" * 4095), ("b", "x" * 4095)],
    ],
)
def test_what_is_allowed(pairs: list[tuple[str, str]]) -> None:
    metadata.check(pairs)


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([("", "1")], Reason.EMPTY_METADATA_KEY),
        ([("a", "1"), ("", "1")], Reason.EMPTY_METADATA_KEY),
        ([("1a", "1")], Reason.INVALID_METADATA),
        ([("a-b", "1")], Reason.INVALID_METADATA),
        ([("a.b", "1")], Reason.INVALID_METADATA),
        ([("a b", "1")], Reason.INVALID_METADATA),
        ([("é", "1")], Reason.INVALID_METADATA),
        ([("a\n", "1")], Reason.INVALID_METADATA),
        ([("a", "1"), ("a", "1")], Reason.INVALID_METADATA),
        ([("Name", "1"), ("nAME", "2")], Reason.INVALID_METADATA),
        ([("a", "x\x01")], Reason.INVALID_METADATA),
        ([("a", "x\x7f")], Reason.INVALID_METADATA),
        ([("a", "x" * FULL)], Reason.METADATA_TOO_LARGE),
        ([("a", "x" * 4096), ("b", "x" * 4096)], Reason.METADATA_TOO_LARGE),
    ],
)
def test_what_is_refused(pairs: list[tuple[str, str]], reason: Reason) -> None:
    with pytest.raises(Refused) as caught:
        metadata.check(pairs)
    assert caught.value.reason is reason
