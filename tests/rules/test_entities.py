"""Tables and entities: the reference's table of acts and conditions, its limits, and the ranges of tokens."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.edm import SasKeyRange
from kyanite.rules.entities import (
    MAX_ENTITY_BYTES,
    Act,
    Properties,
    check_act,
    check_group,
    check_keys,
    check_properties,
    check_size,
    check_table_name,
    check_within,
    is_within,
    may_be_too_large,
    merge,
)
from kyanite.rules.refusals import Reason, Refused

OWN, OLD = "datetime'2024-05-01T12%3A34%3A56.1234567Z'", "datetime'2024-05-01T12%3A34%3A55.1234567Z'"
EXISTS, MISSING, STALE = (
    Reason.ENTITY_ALREADY_EXISTS,
    Reason.ENTITY_NOT_FOUND,
    Reason.UPDATE_CONDITION_NOT_SATISFIED,
)


@pytest.mark.parametrize(
    ("act", "if_match", "missing", "there"),
    [
        (Act.INSERT, "*", None, EXISTS),
        (Act.UPDATE, OWN, MISSING, None),
        (Act.UPDATE, OLD, MISSING, STALE),
        (Act.UPDATE, "*", MISSING, None),
        (Act.MERGE, OWN, MISSING, None),
        (Act.MERGE, OLD, MISSING, STALE),
        (Act.MERGE, "*", MISSING, None),
        (Act.INSERT_OR_REPLACE, "*", None, None),
        (Act.INSERT_OR_MERGE, "*", None, None),
        (Act.DELETE, OWN, MISSING, None),
        (Act.DELETE, OLD, MISSING, STALE),
        (Act.DELETE, "*", MISSING, None),
    ],
)
def test_an_act_by_what_is_there(
    act: Act, if_match: str, missing: Reason | None, there: Reason | None
) -> None:
    assert refusal(lambda: check_act(act, if_match, None)) is missing
    assert refusal(lambda: check_act(act, if_match, OWN)) is there


def refusal(check: object) -> Reason | None:
    assert callable(check)
    try:
        check()
    except Refused as refused:
        return refused.reason
    return None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("abc", None),
        ("A1B", None),
        ("a" * 63, None),
        ("ab", Reason.NAME_LENGTH_OUT_OF_RANGE),
        ("", Reason.NAME_LENGTH_OUT_OF_RANGE),
        ("a" * 64, Reason.NAME_LENGTH_OUT_OF_RANGE),
        ("1ab", Reason.INVALID_RESOURCE_NAME),
        ("a-b", Reason.INVALID_RESOURCE_NAME),
        ("a_b", Reason.INVALID_RESOURCE_NAME),
        ("größe", Reason.INVALID_RESOURCE_NAME),
        ("abc\n", Reason.INVALID_RESOURCE_NAME),
        ("tables", Reason.INVALID_RESOURCE_NAME),
        ("Tables", Reason.INVALID_RESOURCE_NAME),
    ],
)
def test_names_of_tables(name: str, reason: Reason | None) -> None:
    assert refusal(lambda: check_table_name(name)) is reason


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", None),
        ("it's a key: (é) 😀 %", None),
        ("k" * 512, None),
        ("é" * 512, None),
        ("😀" * 256, None),
        ("k" * 513, Reason.KEY_VALUE_TOO_LARGE),
        ("😀" * 257, Reason.KEY_VALUE_TOO_LARGE),
        ("a/b", Reason.KEY_OUT_OF_RANGE),
        ("a\\b", Reason.KEY_OUT_OF_RANGE),
        ("a#b", Reason.KEY_OUT_OF_RANGE),
        ("a?b", Reason.KEY_OUT_OF_RANGE),
        ("\x00", Reason.KEY_OUT_OF_RANGE),
        ("\x1f", Reason.KEY_OUT_OF_RANGE),
        ("\x7f", Reason.KEY_OUT_OF_RANGE),
        ("\x9f", Reason.KEY_OUT_OF_RANGE),
        ("\xa0", None),
    ],
)
def test_keys(key: str, reason: Reason | None) -> None:
    assert refusal(lambda: check_keys(key, "r")) is reason
    assert refusal(lambda: check_keys("p", key)) is reason


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, None),
        ({"_a1": 1, "größe": 2, "啊齄丂": "x"}, None),
        ({"n" * 255: 1}, None),
        ({"n" * 256: 1}, Reason.PROPERTY_NAME_TOO_LONG),
        ({"a-b": 1}, Reason.PROPERTY_NAME_INVALID),
        ({"1a": 1}, Reason.PROPERTY_NAME_INVALID),
        ({"": 1}, Reason.PROPERTY_NAME_INVALID),
        ({"a b": 1}, Reason.PROPERTY_NAME_INVALID),
        ({f"p{n}": n for n in range(252)}, None),
        ({f"p{n}": n for n in range(253)}, Reason.TOO_MANY_PROPERTIES),
        ({name: "1" for n in range(252) for name in (f"p{n}@odata.type", f"p{n}")}, None),
        ({"a": "x" * 32768}, None),
        ({"a": "x" * 32769}, Reason.PROPERTY_VALUE_TOO_LARGE),
        ({"a": "😀" * 16384}, None),
        ({"a": "😀" * 16385}, Reason.PROPERTY_VALUE_TOO_LARGE),
        ({"a@odata.type": "Edm.Binary", "a": b64encode(bytes(65536)).decode()}, None),
        (
            {"a@odata.type": "Edm.Binary", "a": b64encode(bytes(65537)).decode()},
            Reason.PROPERTY_VALUE_TOO_LARGE,
        ),
    ],
)
def test_properties(properties: Properties, reason: Reason | None) -> None:
    json_bytes = sum(len(name) + len(str(value)) for name, value in properties.items())
    for _ in range(2):
        assert refusal(lambda: check_properties(properties, json_bytes)) is reason


def texts(count: int, last: int) -> Properties:
    """So many of the largest texts, and one of that length. Each costs 8 + 2 × 3 + 4 bytes beside its text."""
    return {**{f"t{n:02}": "x" * 32750 for n in range(count)}, "zzz": "x" * last}


FULL = (MAX_ENTITY_BYTES - 4 - 2 * 2 - 16 * 18 - 15 * 2 * 32750) // 2


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (texts(15, FULL), None),
        (texts(15, FULL + 1), Reason.ENTITY_TOO_LARGE),
        ({**texts(15, FULL - 9), "abc": True}, None),
        ({**texts(15, FULL - 7), "abc": True}, Reason.ENTITY_TOO_LARGE),
        ({**texts(15, FULL - 9), "abc": 1}, None),
        ({**texts(15, FULL - 8), "abc": 1}, Reason.ENTITY_TOO_LARGE),
        ({**texts(15, FULL - 11), "abc": 1.0}, None),
        ({**texts(15, FULL - 10), "abc": 1.0}, Reason.ENTITY_TOO_LARGE),
        ({**texts(15, FULL - 11), "abc@odata.type": "Edm.Int64", "abc": "1"}, None),
        ({**texts(15, FULL - 10), "abc@odata.type": "Edm.Int64", "abc": "1"}, Reason.ENTITY_TOO_LARGE),
        ({**texts(15, FULL - 15), "abc@odata.type": "Edm.Guid", "abc": "g" * 36}, None),
        ({**texts(15, FULL - 14), "abc@odata.type": "Edm.Guid", "abc": "g" * 36}, Reason.ENTITY_TOO_LARGE),
        ({**texts(15, FULL - 10), "abc@odata.type": "Edm.Binary", "abc": "AAA="}, None),
        ({**texts(15, FULL - 9), "abc@odata.type": "Edm.Binary", "abc": "AAAA"}, Reason.ENTITY_TOO_LARGE),
    ],
)
def test_the_size_of_an_entity_is_the_documented_one(properties: Properties, reason: Reason | None) -> None:
    assert refusal(lambda: check_size("p", "r", properties)) is reason
    json_bytes = sum(len(name) + len(str(value)) + 5 for name, value in properties.items())
    assert may_be_too_large(json_bytes)


def test_small_entities_need_not_be_measured() -> None:
    assert not may_be_too_large(500_000)


@pytest.mark.parametrize(
    ("present", "change", "expected"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {}, {"a": 1}),
        (
            {"a@odata.type": "Edm.Int64", "a": "1", "b": 2},
            {"a": "text"},
            {"a": "text", "b": 2},
        ),
        (
            {"a": "text"},
            {"a@odata.type": "Edm.Int64", "a": "1"},
            {"a@odata.type": "Edm.Int64", "a": "1"},
        ),
        (
            {"a@odata.type": "Edm.Guid", "a": "g"},
            {"a@odata.type": "Edm.Int64", "a": "1"},
            {"a@odata.type": "Edm.Int64", "a": "1"},
        ),
    ],
)
def test_merging_takes_annotations_along(
    present: Properties, change: Properties, expected: Properties
) -> None:
    assert merge(present, change) == expected


class Keys:
    def __init__(self, partition_key: str, row_key: str) -> None:
        self.partition_key, self.row_key = partition_key, row_key


@pytest.mark.parametrize(
    ("keys", "index", "reason"),
    [
        ([("p", "a"), ("p", "b")], None, None),
        ([("p", str(n)) for n in range(100)], None, None),
        ([("p", str(n)) for n in range(101)], 99, Reason.TOO_MANY_CHANGES),
        ([("p", "a"), ("p", "b"), ("q", "c")], 2, Reason.DIFFERENT_PARTITIONS),
        ([("p", "a"), ("P", "b")], 1, Reason.DIFFERENT_PARTITIONS),
        ([("p", "a"), ("p", "b"), ("p", "a")], 2, Reason.DUPLICATE_ROW),
        ([("p", "a"), ("p", "A")], None, None),
    ],
)
def test_groups(keys: list[tuple[str, str]], index: int | None, reason: Reason | None) -> None:
    found = check_group([Keys(*pair) for pair in keys])
    assert (None if found is None else (found[0], found[1].reason)) == (
        None if index is None else (index, reason)
    )


@pytest.mark.parametrize(
    ("keys", "inside", "outside"),
    [
        ((None, None, None, None), [("", ""), ("z", "z")], []),
        (("b", None, None, None), [("b", ""), ("c", "")], [("a", "z"), ("", "")]),
        (("b", "m", None, None), [("b", "m"), ("b", "n"), ("c", "a")], [("b", "l"), ("a", "z")]),
        ((None, None, "b", None), [("a", ""), ("b", "zzz")], [("b1", ""), ("c", "")]),
        ((None, None, "b", "m"), [("a", "z"), ("b", "m")], [("b", "m1"), ("b", "n"), ("c", "")]),
        (("b", "m", "b", "m"), [("b", "m")], [("b", "l"), ("b", "n"), ("a", "m"), ("c", "m")]),
        (("\ue000", None, None, None), [("\ue000", ""), ("\uffff", "")], [("😀", "")]),
    ],
)
def test_the_range_of_a_token(
    keys: tuple[str | None, ...], inside: list[tuple[str, str]], outside: list[tuple[str, str]]
) -> None:
    shared = SasKeyRange(*keys)
    assert all(is_within(shared, *pair) for pair in inside)
    assert not any(is_within(shared, *pair) for pair in outside)
    for pair in outside:
        with pytest.raises(Refused, match="AUTHORIZATION_FAILURE"):
            check_within(shared, *pair)


def test_without_a_range_everything_is_inside() -> None:
    check_within(None, "p", "r")


@given(st.text(max_size=40), st.text(max_size=40))
def test_forbidden_keys_are_recognised_by_their_text(partition_key: str, row_key: str) -> None:
    forbidden = set("/\\#?") | {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))}
    assert (refusal(lambda: check_keys(partition_key, row_key)) is None) is (
        not forbidden & set(partition_key + row_key)
    )
