"""``docs/security.md`` says what is so: its limits are those of the code, and the tests that it names exist."""

import re
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text()
UNITS = {"": 1, "s": 1, "KiB": 1024, "MiB": 1024 * 1024}
LIMITS = [
    line.split(" | ") for line in PAGE.splitlines() if re.search(r"\| `[a-z0-9_.]+\.[A-Za-z_.]+` \|", line)
]
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


def value_of(name: str) -> object:
    """Of a constant below ``kyanite``, or of a default of a class there."""
    parts = name.split(".")
    end = next(at for at in range(1, len(parts)) if parts[at][0].isupper())
    found: object = import_module(".".join(["kyanite", *parts[:end]]))
    if parts[end] == "Limits":
        found = reduce(getattr, parts[end : end + 1], found)
        assert callable(found)
        return getattr(found(), parts[end + 1])
    return reduce(getattr, parts[end:], found)


@cache
def names_in(path: str) -> set[str]:
    return set(re.findall(r"def (test_\w+)\(", (ROOT / path).read_text()))


def test_the_page_has_tables() -> None:
    assert len(LIMITS) >= 15
    assert len(TESTS) >= 30


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row[0].lstrip("| "))
def test_limits(row: list[str]) -> None:
    number, _, unit = row[1].partition(" ")
    assert value_of(row[2].strip("`")) == int(number) * UNITS[unit]


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_tests_exist(path: str, name: str) -> None:
    assert name in names_in(path)
