"""Search patterns: cases by hand, and patterns at random against a matcher that tries everything."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.rules import wildcards


def matches(pattern: str, name: str) -> bool:
    return wildcards.parse(pattern).matches(name)


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("*", ["A", "A.B", ".", "A.B.C"], []),
        ("*.*", ["A.B", "A.", ".B", "A.B.C"], ["A", "AB"]),
        ("A", ["A"], ["AB", "", "B"]),
        ("A*", ["A", "AB", "A.B"], ["BA"]),
        ("*A", ["A", "BA", "B.A"], ["AB"]),
        ("AB*BA", ["ABBA", "AB.BA", "ABCBA"], ["ABA", "ABBAC"]),
        ("?", ["A", "."], ["", "AB"]),
        ("A?C", ["ABC", "A.C"], ["AC", "ABBC"]),
        ("*A*B*", ["AB", "XAXBX", "BAB"], ["BA", "A", "B"]),
        ('<"*', ["A", "A.B", "A.B.C", ".", ".A", "A."], []),
        ("<", ["A", "AB", "A.", "."], ["A.B", ".B"]),
        ("<.TXT", ["A.TXT", "A.B.TXT", ".TXT"], ["A.TXT.B", "TXT"]),
        ("A.<", ["A.B", "A.B.", "A."], ["A.B.C", "B.A"]),
        (">", ["A", ""], ["AB", "A.B"]),
        (">>>", ["A", "AB", "ABC"], ["ABCD", "A.B"]),
        (">>>.>>>", ["A.B", "ABC.ABC", "A."], ["ABCD.A", "A", "A.B.C"]),
        ('>>>">>>', ["A.B", "ABC.ABC", "A", "A."], ["ABCD.A", "A.B.C"]),
        ('A"', ["A", "A."], ["AB", "A.B"]),
        ('A"B', ["A.B"], ["AB", "A"]),
    ],
)
def test_which_names_match(pattern: str, names: list[str], others: list[str]) -> None:
    assert [name for name in names if not matches(pattern, name)] == []
    assert [name for name in others if matches(pattern, name)] == []


@pytest.mark.parametrize(
    ("pattern", "prefix", "is_exact"),
    [("AB", "AB", True), ("AB*", "AB", False), ("*", "", False), ('A.B"', "A.B", False), (">", "", False)],
)
def test_what_every_match_begins_with(pattern: str, prefix: str, is_exact: bool) -> None:
    parsed = wildcards.parse(pattern)
    assert (parsed.prefix, parsed.is_exact) == (prefix, is_exact)


def tries_everything(pattern: str, name: str) -> bool:
    last_dot = name.rfind(".")

    @cache
    def match(at: int, of: int) -> bool:
        if at == len(pattern):
            return of == len(name)
        element, left = pattern[at], name[of:]
        if element == "*":
            return any(match(at + 1, end) for end in range(of, len(name) + 1))
        if element == "<":
            last = len(name) if last_dot < of else last_dot + 1
            return any(match(at + 1, end) for end in range(of, last + 1))
        if element == "?":
            return left != "" and match(at + 1, of + 1)
        if element == ">":
            nothing = (left == "" or left[0] == ".") and match(at + 1, of)
            return nothing or ((left[:1] not in ("", ".") or left == ".") and match(at + 1, of + 1))
        if element == '"':
            return (left == "" and match(at + 1, of)) or (left[:1] == "." and match(at + 1, of + 1))
        return left[:1] == element and match(at + 1, of + 1)

    return match(0, 0)


@given(st.text('AB.*?<>"', max_size=9), st.text("AB.", max_size=9))
def test_patterns_at_random(pattern: str, name: str) -> None:
    assert matches(pattern, name) == tries_everything(pattern, name)
    if matches(pattern, name):
        assert name.startswith(wildcards.parse(pattern).prefix)


def test_a_pattern_that_would_take_ages_by_trying() -> None:
    assert not matches("*A" * 120 + "*B", "A" * 255)
    assert matches(">" * 255, "A" * 255)
