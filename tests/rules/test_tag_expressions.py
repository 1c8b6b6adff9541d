"""Tag expressions: the published examples, every fault, and random expressions against an independent evaluation."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.rules.tag_expressions import (
    CONTAINER,
    MAX_CHARACTERS,
    MAX_COMPARISONS,
    Bound,
    Comparison,
    Condition,
    InvalidExpression,
    Operator,
    Search,
    ValueRange,
    decode_condition,
    decode_search,
)
from kyanite.rules.tags import Tags

EQ, NE, GT, GE, LT, LE = Operator.EQ, Operator.NE, Operator.GT, Operator.GE, Operator.LT, Operator.LE
DONE: Tags = (("Age", "032"), ("Name", "C"), ("Status", "Done"))


def exactly(key: str, value: str) -> ValueRange:
    bound = Bound(value, is_included=True)
    return ValueRange(key, bound, bound)


# Conditions


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [
        ("Status = 'Done'", (("Status", EQ, "Done"),)),
        ("\"Status\" <> 'Done'", (("Status", NE, "Done"),)),
        ("\"Last Modified\" > '2026-01-01'", (("Last Modified", GT, "2026-01-01"),)),
        ("Priority >= '05'", (("Priority", GE, "05"),)),
        ("Age < '032'", (("Age", LT, "032"),)),
        ("Age <= '100'", (("Age", LE, "100"),)),
        ("a='1'", (("a", EQ, "1"),)),
        ("  a \t=\r\n '1'  ", (("a", EQ, "1"),)),
        ("_a1 = ''", (("_a1", EQ, ""),)),
        ("a = 'it''s'", (("a", EQ, "it's"),)),
        ("a = ''''", (("a", EQ, "'"),)),
        ("a = 'x AND b'", (("a", EQ, "x AND b"),)),
        ("\"AND\" = 'or'", (("AND", EQ, "or"),)),
        ("Name >= 'C' AND Name < 'D'", (("Name", GE, "C"), ("Name", LT, "D"))),
        ("a='1' and b='2' And c='3'", (("a", EQ, "1"), ("b", EQ, "2"), ("c", EQ, "3"))),
        ("a='1'AND b='2'", (("a", EQ, "1"), ("b", EQ, "2"))),
    ],
)
def test_what_a_condition_means(text: str, alternatives: tuple[tuple[str, Operator, str], ...]) -> None:
    assert decode_condition(text) == Condition((tuple(Comparison(*each) for each in alternatives),))


def test_and_binds_tighter_than_or() -> None:
    a, b, c, d = (Comparison(key, EQ, "1") for key in "abcd")
    assert decode_condition("a='1' OR b='1' AND c='1' or d='1'") == Condition(((a,), (b, c), (d,)))


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        ("Status = 'Done'", True),
        ("Status = 'done'", False),
        ("status = 'Done'", False),
        ("Status <> 'Done'", False),
        ("Status <> 'Open'", True),
        ("Missing = ''", False),
        ("Missing <> 'x'", False),
        ("Missing < 'x'", False),
        ("Missing = 'x' OR Status = 'Done'", True),
        ("Missing <> 'x' AND Status = 'Done'", False),
        ("Age > '03'", True),
        ("Age > '032'", False),
        ("Age >= '032'", True),
        ("Age <= '032'", True),
        ("Age < '032'", False),
        ("Age < '1'", True),
        ("Name >= 'C' AND Name < 'D'", True),
        ("Name < 'a'", True),
        ("Name > 'A' AND Age = '0' OR Status = 'Done'", True),
        ("Status = 'Done' OR Name > 'A' AND Age = '0'", True),
        ("Status = 'Open' OR Name > 'A' AND Age = '0'", False),
    ],
)
def test_whether_a_condition_is_met(text: str, is_met: bool) -> None:
    assert decode_condition(text).is_met(DONE) is is_met
    assert not decode_condition(text).is_met(())


# Searches


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("Status = 'Done'", Search((exactly("Status", "Done"),))),
        (
            "\"Project\" = 'Contoso' AND Status='Unprocessed'",
            Search((exactly("Project", "Contoso"), exactly("Status", "Unprocessed"))),
        ),
        ("age >= '032'", Search((ValueRange("age", Bound("032", is_included=True)),))),
        (
            "age > '032' AND age <= '100'",
            Search((ValueRange("age", Bound("032", is_included=False), Bound("100", is_included=True)),)),
        ),
        (
            "rank < '100' AND rank >= '032'",
            Search((ValueRange("rank", Bound("032", is_included=True), Bound("100", is_included=False)),)),
        ),
        (
            "@container='videofiles' AND Status = 'Done'",
            Search((exactly("Status", "Done"),), "videofiles"),
        ),
        ("Status = 'Done' and @CONTAINER = 'a-b'", Search((exactly("Status", "Done"),), "a-b")),
        (
            "Empty = '' AND \"a/b c\" < 'x'",
            Search((exactly("Empty", ""), ValueRange("a/b c", None, Bound("x", is_included=False)))),
        ),
    ],
)
def test_what_a_search_means(text: str, search: Search) -> None:
    assert decode_search(text, names_container=True) == search


def test_a_search_shows_the_tags_that_it_names() -> None:
    search = decode_search("Status = 'Done' AND Age > '0'", names_container=False)
    assert search.is_met(DONE)
    assert search.named(DONE) == (("Age", "032"), ("Status", "Done"))
    assert not search.is_met((("Status", "Done"),))


@pytest.mark.parametrize(
    ("lower", "upper", "contained"),
    [
        (None, None, "0125"),
        (Bound("1", is_included=True), None, "125"),
        (Bound("1", is_included=False), None, "25"),
        (None, Bound("2", is_included=True), "012"),
        (None, Bound("2", is_included=False), "01"),
        (Bound("1", is_included=False), Bound("2", is_included=False), ""),
        (Bound("1", is_included=True), Bound("1", is_included=True), "1"),
        (Bound("5", is_included=True), Bound("0", is_included=True), ""),
    ],
)
def test_what_a_range_contains(lower: Bound | None, upper: Bound | None, contained: str) -> None:
    wanted = ValueRange("k", lower, upper)
    assert [value for value in "0125" if wanted.contains(value)] == list(contained)
    assert wanted.value == (contained if lower == upper and lower is not None else None)


# Faults

BOTH_REFUSE = [
    "",
    " ",
    "a",
    "a =",
    "a = 1",
    'a = "1"',
    "= '1'",
    "'1' = a",
    "'a' = '1'",
    "\"\" = '1'",
    "\"a = '1'",
    "a = '1",
    "a = 'x' y",
    "a == '1'",
    "a != '1'",
    "a LIKE '1'",
    "a = '1' AND",
    "a = '1' OR",
    "AND a = '1'",
    "a = '1' AND AND b = '1'",
    "a = '1' b = '1'",
    "a = '1', b = '1'",
    "a = '1' && b = '1'",
    "AND = '1'",
    "or = '1'",
    "1a = '1'",
    "a-b = '1'",
    "a b = '1'",
    "\"a,b\" = '1'",
    "\"a\u00e9\" = '1'",
    "\u00e9 = '1'",
    "(a = '1')",
    "NOT a = '1'",
    "a = '1';",
    "a = '1'\0",
    "@account = 'x'",
    "@ = 'x'",
    f"{'k' * 129} = '1'",
    f"\"{'k' * 129}\" = '1'",
    f"a = '{'v' * 257}'",
    "a = 'x\0'",
    "a > '\n'",
    "a = '" + "x" * MAX_CHARACTERS + "'",
    " AND ".join(["a > '1'"] * (MAX_COMPARISONS + 1)),
]


def search_account(text: str) -> Search:
    return decode_search(text, names_container=True)


def search_container(text: str) -> Search:
    return decode_search(text, names_container=False)


@pytest.mark.parametrize("decode", [decode_condition, search_account, search_container])
@pytest.mark.parametrize("text", BOTH_REFUSE)
def test_what_no_expression_may_be(decode: Callable[[str], object], text: str) -> None:
    with pytest.raises(InvalidExpression):
        decode(text)


@pytest.mark.parametrize(
    "text",
    [
        "a <> '1'",
        "a = '1' OR b = '1'",
        "a = '1' AND a = '1'",
        "a = '1' AND a = '2'",
        "a = '1' AND a > '0'",
        "a > '1' AND a > '2'",
        "a > '1' AND a >= '2'",
        "a < '1' AND a <= '2'",
        "a > '1' AND a < '5' AND a < '4'",
        "@container = 'x'",
        "@container = 'x' AND @container = 'x' AND a = '1'",
        "@container > 'x' AND a = '1'",
        " AND ".join(f"key{number} = '1'" for number in range(11)),
    ],
)
def test_what_a_search_may_not_be(text: str) -> None:
    with pytest.raises(InvalidExpression):
        search_account(text)


def test_ten_keys_may_be_searched() -> None:
    text = " AND ".join(f"key{number} > '1' AND key{number} < '3'" for number in range(10))
    assert len(search_account(text).ranges) == 10


def test_a_search_of_a_container_and_a_condition_name_no_container() -> None:
    text = "@container = 'x' AND a = '1'"
    search_account(text)
    for decode in (search_container, decode_condition):
        with pytest.raises(InvalidExpression, match="container"):
            decode(text)


def test_a_condition_may_have_many_comparisons() -> None:
    text = " OR ".join(["a = '1'"] * MAX_COMPARISONS)
    assert len(decode_condition(text).alternatives) == MAX_COMPARISONS


# Against an evaluation that replaces comparisons by 0 and 1 and lets Python add up the rest

KEYS = ["a", "b", "c d", "AND"]
VALUES = ["", "1", "10", "2", "A", "a", "x y", "it's"]
tags_of_blobs = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)).map(
    lambda found: tuple(sorted(found.items()))
)
comparisons = st.tuples(st.sampled_from(KEYS), st.sampled_from(list(Operator)), st.sampled_from(VALUES))
spaces = st.sampled_from(["", " ", "\t ", "  "])


@st.composite
def conditions(draw: st.DrawFn) -> str:
    parts: list[str] = []
    for number in range(draw(st.integers(1, 6))):
        if number:
            parts.append(draw(st.sampled_from([" AND ", " and ", " OR ", " Or "])))
        key, operator, value = draw(comparisons)
        bare = key.isidentifier() and key != "AND" and draw(st.booleans())
        written = key if bare else f'"{key}"'
        quoted = value.replace("'", "''")
        parts.append(f"{draw(spaces)}{written}{draw(spaces)}{operator.value}{draw(spaces)}'{quoted}'")
    return "".join(parts)


_PART = re.compile(r"""\s*(?:"([^"]*)"|(\w+))\s*(<>|<=|>=|=|<|>)\s*'((?:[^']|'')*)'""")


def expected(text: str, tags: dict[str, str]) -> bool:
    """Comparisons become digits; what is left are the words between them, of which OR separates products."""

    def digit(found: re.Match[str]) -> str:
        key, operator, value = found[1] or found[2], found[3], found[4].replace("''", "'")
        if key not in tags:
            return " 0 "
        less, same = tags[key] < value, tags[key] == value
        met = {
            "=": same,
            "<>": not same,
            "<": less,
            "<=": less or same,
            ">": not less and not same,
            ">=": not less,
        }
        return f" {int(met[operator])} "

    products = re.split(r"\bor\b", _PART.sub(digit, text).lower())
    return any("0" not in product for product in products)


@given(text=conditions(), tags=tags_of_blobs)
def test_conditions_by_oracle(text: str, tags: Tags) -> None:
    assert decode_condition(text).is_met(tags) is expected(text, dict(tags))


@given(text=conditions(), tags=tags_of_blobs)
def test_a_search_finds_what_the_same_condition_admits(text: str, tags: Tags) -> None:
    try:
        search = search_account(text)
    except InvalidExpression:
        return
    assert search.is_met(tags) is expected(text, dict(tags))


@given(st.text(alphabet="ab1 '\"<>=@ANDORandor_\t", max_size=60))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    for decode in (decode_condition, search_account, search_container):
        try:
            decoded = decode(text)
        except InvalidExpression:
            continue
        assert isinstance(decoded, Condition | Search)
        decoded.is_met((("a", "1"), ("b", "")))
        assert CONTAINER not in {each.key for each in getattr(decoded, "ranges", ())}
