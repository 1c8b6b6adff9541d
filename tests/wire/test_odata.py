"""Filters: the grammar of the reference as a table of texts and trees, and what is no filter, with the place."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.edm import And, Comparison, Constant, EdmType, Filter, Literal, Not, Operator, Or
from kyanite.wire.malformed import Malformed
from kyanite.wire.odata import MAX_DEPTH, decode_filter

EQ, NE, GT, GE, LT, LE = Operator


def compare(name: str, operator: Operator, type_: EdmType, value: str | float | bool | bytes) -> Comparison:
    return Comparison(name, operator, Literal(type_, value))


def is_one(name: str) -> Comparison:
    return compare(name, EQ, EdmType.INT32, 1)


A, B, C = is_one("a"), is_one("b"), is_one("c")
ONE_OF_EACH: list[tuple[str, Filter]] = [
    ("a eq 1", A),
    ("a ne 1", compare("a", NE, EdmType.INT32, 1)),
    ("a gt 1", compare("a", GT, EdmType.INT32, 1)),
    ("a ge 1", compare("a", GE, EdmType.INT32, 1)),
    ("a lt 1", compare("a", LT, EdmType.INT32, 1)),
    ("a le 1", compare("a", LE, EdmType.INT32, 1)),
    # Constants
    ("a eq 'text'", compare("a", EQ, EdmType.STRING, "text")),
    ("a eq ''", compare("a", EQ, EdmType.STRING, "")),
    ("a eq 'it''s'", compare("a", EQ, EdmType.STRING, "it's")),
    ("a eq '('", compare("a", EQ, EdmType.STRING, "(")),
    ("a eq ' and '", compare("a", EQ, EdmType.STRING, " and ")),
    ("a eq 'é😀'", compare("a", EQ, EdmType.STRING, "é😀")),
    ("a eq -2147483648", compare("a", EQ, EdmType.INT32, -(2**31))),
    ("a eq +5", compare("a", EQ, EdmType.INT32, 5)),
    ("a eq 42L", compare("a", EQ, EdmType.INT64, 42)),
    ("a eq 9223372036854775807L", compare("a", EQ, EdmType.INT64, 2**63 - 1)),
    ("a eq -9223372036854775808L", compare("a", EQ, EdmType.INT64, -(2**63))),
    ("a eq 1.5", compare("a", EQ, EdmType.DOUBLE, 1.5)),
    ("a eq -1e3", compare("a", EQ, EdmType.DOUBLE, -1000.0)),
    ("a eq 2.5E-1", compare("a", EQ, EdmType.DOUBLE, 0.25)),
    ("a eq 7D", compare("a", EQ, EdmType.DOUBLE, 7.0)),
    ("a eq true", compare("a", EQ, EdmType.BOOLEAN, True)),
    ("a eq false", compare("a", EQ, EdmType.BOOLEAN, False)),
    (
        "a gt datetime'2024-05-01T00:00:00Z'",
        compare("a", GT, EdmType.DATETIME, "2024-05-01T00:00:00Z"),
    ),
    (
        "a gt datetime'2024-05-01T02:00:00.1230+02:00'",
        compare("a", GT, EdmType.DATETIME, "2024-05-01T00:00:00.123Z"),
    ),
    (
        "a eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'",
        compare("a", EQ, EdmType.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
    ),
    ("a eq binary'00fF'", compare("a", EQ, EdmType.BINARY, b"\x00\xff")),
    ("a eq X'00fF'", compare("a", EQ, EdmType.BINARY, b"\x00\xff")),
    ("a eq X''", compare("a", EQ, EdmType.BINARY, b"")),
    # The constant on the left
    ("1 lt a", compare("a", GT, EdmType.INT32, 1)),
    ("1 ge a", compare("a", LE, EdmType.INT32, 1)),
    ("1 eq a", A),
    # Names
    ("_x1 eq 1", is_one("_x1")),
    ("größe eq 1", is_one("größe")),
    ("android eq 1", is_one("android")),
    ("notes eq 1", is_one("notes")),
    ("X eq 1", is_one("X")),
    # Alone
    ("active", compare("active", EQ, EdmType.BOOLEAN, True)),
    ("not active", Not(compare("active", EQ, EdmType.BOOLEAN, True))),
    ("true", Constant(True)),
    ("false", Constant(False)),
    # Precedence and grouping
    ("a eq 1 and b eq 1 or c eq 1", Or((And((A, B)), C))),
    ("a eq 1 or b eq 1 and c eq 1", Or((A, And((B, C))))),
    ("(a eq 1 or b eq 1) and c eq 1", And((Or((A, B)), C))),
    ("a eq 1 and b eq 1 and c eq 1", And((A, B, C))),
    ("not a eq 1 and b eq 1", And((Not(A), B))),
    ("not (a eq 1 and b eq 1)", Not(And((A, B)))),
    ("not not a eq 1", Not(Not(A))),
    ("((a eq 1))", A),
    # White space
    ("  a\teq\n1  ", A),
    ("(a eq 1)and(b eq 1)", And((A, B))),
]


@pytest.mark.parametrize(("text", "expected"), ONE_OF_EACH)
def test_a_filter_is_read(text: str, expected: Filter) -> None:
    assert decode_filter(text) == expected


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_a_blank_filter_is_none(text: str) -> None:
    assert decode_filter(text) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        # As the service was seen to say it.
        ("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'."),
        ("a eq", "Syntax error at position 4 in 'a eq'."),
        ("eq 1", "Syntax error at position 2 in 'eq 1'."),
        ("a eq 1 and", "Syntax error at position 10 in 'a eq 1 and'."),
        ("a eq 1 b eq 1", "Syntax error at position 8 in 'a eq 1 b eq 1'."),
        ("(a eq 1", "Syntax error at position 7 in '(a eq 1'."),
        ("a eq 1)", "Syntax error at position 7 in 'a eq 1)'."),
        ("a EQ 1", "Syntax error at position 4 in 'a EQ 1'."),
        ("a eq 1 AND b eq 1", "Syntax error at position 10 in 'a eq 1 AND b eq 1'."),
        ("a eq null", "Syntax error at position 9 in 'a eq null'."),
        ("a eq 'open", "Syntax error at position 5 in 'a eq 'open'."),
        ("a eq 5abc", "Syntax error at position 5 in 'a eq 5abc'."),
        ("a eq 1 # b", "Syntax error at position 7 in 'a eq 1 # b'."),
        ("a add 1 eq 2", "Syntax error at position 5 in 'a add 1 eq 2'."),
        ("'text'", "Syntax error at position 6 in ''text''."),
        ("a eq b", "A property can be compared with a constant only, at position 6 in 'a eq b'."),
        ("1 eq 1", "A property can be compared with a constant only, at position 6 in '1 eq 1'."),
        # The service's own words again: a number that does not fit is no Int32.
        (
            "id eq 5454161346626",
            "Unrecognized 'Edm.Int32' literal '5454161346626' at '6' in 'id eq 5454161346626'.",
        ),
        (
            "a eq 9223372036854775808L",
            "Unrecognized 'Edm.Int64' literal '9223372036854775808L' at '5' in 'a eq 9223372036854775808L'.",
        ),
        (
            "a eq datetime'yesterday'",
            "Unrecognized 'Edm.DateTime' literal 'datetime'yesterday'' at '5' in 'a eq datetime'yesterday''.",
        ),
        ("a eq guid'1'", "Unrecognized 'Edm.Guid' literal 'guid'1'' at '5' in 'a eq guid'1''."),
        ("a eq X'0'", "Unrecognized 'Edm.Binary' literal 'X'0'' at '5' in 'a eq X'0''."),
    ],
)
def test_what_is_no_filter_is_refused_with_the_position(text: str, sentence: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode_filter(text)
    assert (caught.value.code, caught.value.detail) == ("InvalidInput", {"Reason": sentence})


@pytest.mark.parametrize(
    "text", ["startswith(a, 'x')", "a eq 1 and substringof('x', a)", "not (length (a) eq 5)"]
)
def test_functions_are_not_implemented(text: str) -> None:
    with pytest.raises(Malformed, match="NotImplemented"):
        decode_filter(text)


@pytest.mark.parametrize(
    "deep", ["(" * 5000, "not " * 5000, "(" * (MAX_DEPTH + 2) + "a" + ")" * (MAX_DEPTH + 2)]
)
def test_depth_is_bounded(deep: str) -> None:
    with pytest.raises(Malformed, match="InvalidInput"):
        decode_filter(deep)


def test_length_is_not() -> None:
    found = decode_filter(" or ".join(["a eq 1"] * 3000))
    assert found == Or((A,) * 3000)


@given(
    st.text()
    | st.lists(st.sampled_from(["a", "'", "eq", "and", "(", ")", " ", "not", "1", "L", ".", "X'"])).map(
        "".join
    )
)
def test_garbage_is_read_or_malformed(text: str) -> None:
    with suppress(Malformed):
        decode_filter(text)
