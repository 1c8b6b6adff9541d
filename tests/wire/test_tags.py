from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import tags
from kyanite.wire.malformed import Malformed

Pairs = list[tuple[str, str]]

CASES: list[tuple[Pairs, str]] = [
    ([], "<Tags><TagSet /></Tags>"),
    ([("a", "1")], "<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>"),
    ([("a", "")], "<Tags><TagSet><Tag><Key>a</Key><Value /></Tag></TagSet></Tags>"),
    (
        [(" b ", "+-./:=_ "), ("a", "2")],
        "<Tags><TagSet><Tag><Key> b </Key><Value>+-./:=_ </Value></Tag>"
        "<Tag><Key>a</Key><Value>2</Value></Tag></TagSet></Tags>",
    ),
]


@pytest.mark.parametrize(("pairs", "text"), CASES)
def test_documents(pairs: Pairs, text: str) -> None:
    assert tags.encode(pairs) == f'\ufeff<?xml version="1.0" encoding="utf-8"?>{text}'.encode()
    assert tags.decode(tags.encode(pairs)) == pairs
    assert tags.decode(text.encode()) == pairs


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("", "InvalidXmlDocument"),
        ("<Tags>", "InvalidXmlDocument"),
        ("<TagSet />", "InvalidXmlDocument"),
        ("<Tags />", "MissingRequiredXmlNode"),
        ("<Tags><TagSet><Other /></TagSet></Tags>", "UnsupportedXmlNode"),
        ("<Tags><TagSet><Tag><Key>a</Key></Tag></TagSet></Tags>", "MissingRequiredXmlNode"),
        ("<Tags><TagSet><Tag><Value>a</Value></Tag></TagSet></Tags>", "MissingRequiredXmlNode"),
        ('<!DOCTYPE x [<!ENTITY e "e">]><Tags><TagSet /></Tags>', "InvalidXmlDocument"),
    ],
)
def test_malformed_documents(document: str, code: str) -> None:
    with pytest.raises(Malformed) as caught:
        tags.decode(document.encode())
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("a=1", [("a", "1")]),
        ("a=1&b=2", [("a", "1"), ("b", "2")]),
        ("a=", [("a", "")]),
        ("=1", [("", "1")]),
        ("a=1=2", [("a", "1=2")]),
        ("a+b=c+d", [("a b", "c d")]),
        ("a%20b=c%20d", [("a b", "c d")]),
        ("%2B-.%2F:=%2B-.%2F%3A%3D_", [("+-./:", "+-./:=_")]),
        ("a=1&a=2", [("a", "1"), ("a", "2")]),
        ("a=%C3%A9", [("a", "\u00e9")]),
        ("a=%zz", [("a", "%zz")]),
    ],
)
def test_forms(text: str, pairs: Pairs) -> None:
    assert tags.decode_form(text) == pairs


@pytest.mark.parametrize("text", ["a", "&", "a=1&", "a=1&&b=2", "a=1&b", "a=%FF"])
def test_malformed_forms(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        tags.decode_form(text)
    assert (caught.value.code, caught.value.detail["HeaderName"]) == ("InvalidHeaderValue", "x-ms-tags")


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), min_size=1))
def test_forms_of_any_text(pairs: Pairs) -> None:
    assert tags.decode_form(urlencode(pairs)) == pairs
    assert tags.decode_form(urlencode(pairs, quote_via=quote)) == pairs
