"""The order of texts, against the one that UTF-16 itself gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.edm import ordinal, text_of_ordinal, utf16_units
from kyanite.model import keys

INTERESTING = "a b\x20\x7f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
TEXTS = st.text(st.sampled_from(INTERESTING), max_size=6) | st.text(max_size=6)


def units(text: str) -> list[int]:
    octets = text.encode("utf-16-be")
    return [int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2)]


@given(TEXTS, TEXTS)
def test_texts_sort_by_their_utf_16_code_units(one: str, other: str) -> None:
    assert (ordinal(one) < ordinal(other)) is (units(one) < units(other))


@given(TEXTS)
def test_an_ordinal_tells_its_text(text: str) -> None:
    assert text_of_ordinal(ordinal(text)) == text
    assert utf16_units(text) == len(units(text))


KEY_TEXTS = TEXTS.map(lambda text: "".join(character for character in text if character >= " "))


@given(KEY_TEXTS, KEY_TEXTS, KEY_TEXTS, KEY_TEXTS)
def test_keys_of_entities_sort_by_partition_and_then_by_row(a: str, b: str, c: str, d: str) -> None:
    in_order = (units(a), units(b)) < (units(c), units(d))
    assert (keys.entity(a, b) < keys.entity(c, d)) is in_order
    assert (keys.entity(a, b) == keys.entity(c, d)) is ((a, b) == (c, d))


@pytest.mark.parametrize("text", ["", "plain", "é", "\uffff", "😀"])
def test_only_what_is_beyond_the_basic_plane_is_not_utf_8(text: str) -> None:
    assert (ordinal(text) == text.encode()) is (text != "😀")
