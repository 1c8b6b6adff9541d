"""Expressions over the tags of a blob: conditions of requests, and the search for blobs by their tags.

    condition  := conjunction ("OR" conjunction)*        x-ms-if-tags, x-ms-source-if-tags
    search     := conjunction                            the ``where`` of Find Blobs by Tags
    conjunction:= comparison ("AND" comparison)*
    comparison := key operator value
    operator   := "=" | ">" | ">=" | "<" | "<=";         in a condition also "<>"
    key        := a word of letters, digits and underscores that does not begin with a digit, or any key in double
                  quotes; in a search of an account also "@container"
    value      := text in single quotes, in which two of them stand for one

AND binds tighter than OR, and there are no brackets. The words are read without case. All values are texts and compare
by code point. A comparison with a tag that the blob does not have is false, also that with ``<>``.

A search must be answered from an index, so each key may have one equality, or one lower and one upper bound, or one of
the two; ``@container`` has one equality. ``Search`` is what is left to find then: a range of values for each key.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from kyanite.rules.tags import KEY_MAX_CHARACTERS, VALUE_MAX_CHARACTERS, Tags, is_legal

MAX_CHARACTERS = 64 * 1024
"""As many as the HTTP front end accepts in a head."""
MAX_COMPARISONS = 100
MAX_SEARCHED_KEYS = 10
CONTAINER = "@container"

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<operator><=|>=|<>|=|<|>)
    | (?P<value>'(?:[^']|'')*')
    | (?P<key>"[^"]*")
    | (?P<word>@?[A-Za-z_][A-Za-z0-9_]*)
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_WHITE_SPACE = re.compile(r"[ \t\r\n]*")


class Operator(Enum):
    EQ = "="
    NE = "<>"
    GT = ">"
    GE = ">="
    LT = "<"
    LE = "<="


class InvalidExpression(Exception):
    """The text is no expression of this kind. The message is a sentence for the client."""


class Comparison(NamedTuple):
    key: str
    operator: Operator
    value: str

    def is_met(self, tags: Mapping[str, str]) -> bool:
        actual = tags.get(self.key)
        if actual is None:
            return False
        match self.operator:
            case Operator.EQ:
                return actual == self.value
            case Operator.NE:
                return actual != self.value
            case Operator.GT:
                return actual > self.value
            case Operator.GE:
                return actual >= self.value
            case Operator.LT:
                return actual < self.value
            case Operator.LE:
                return actual <= self.value


class Condition(msgspec.Struct, frozen=True):
    """What a request requires of the tags of a blob: any of these conjunctions."""

    alternatives: tuple[tuple[Comparison, ...], ...]

    def is_met(self, tags: Tags) -> bool:
        by_key = dict(tags)
        return any(all(each.is_met(by_key) for each in parts) for parts in self.alternatives)


class Bound(NamedTuple):
    value: str
    is_included: bool


class ValueRange(msgspec.Struct, frozen=True):
    """The values of one key that a search wants: one, or those between two bounds, of which one may be missing."""

    key: str
    lower: Bound | None = None
    upper: Bound | None = None

    @property
    def value(self) -> str | None:
        """The one value that is wanted, if it is one."""
        lower = self.lower
        return lower.value if lower is not None and lower == self.upper and lower.is_included else None

    def contains(self, value: str) -> bool:
        lower, upper = self.lower, self.upper
        return (lower is None or value > lower.value or (lower.is_included and value == lower.value)) and (
            upper is None or value < upper.value or (upper.is_included and value == upper.value)
        )


class Search(msgspec.Struct, frozen=True):
    """What Find Blobs by Tags looks for: blobs that have a value of every range."""

    ranges: tuple[ValueRange, ...]
    """At least one, and each of another key."""
    container: str | None = None
    """The only container to search, if the expression names one."""

    def is_met(self, tags: Tags) -> bool:
        by_key = dict(tags)
        return all(each.key in by_key and each.contains(by_key[each.key]) for each in self.ranges)

    def named(self, tags: Tags) -> Tags:
        """Those tags of a blob whose keys the expression names."""
        keys = {each.key for each in self.ranges}
        return tuple(each for each in tags if each[0] in keys)


def decode_condition(text: str) -> Condition:
    """The condition that the text states. Raises InvalidExpression."""
    alternatives = _Reader(text, allows_or=True).read()
    for each in (each for parts in alternatives for each in parts):
        if each.key == CONTAINER:
            raise InvalidExpression("A condition cannot name a container.")
    return Condition(alternatives)


def decode_search(text: str, *, names_container: bool) -> Search:
    """The search that the text states. Raises InvalidExpression.

    ``names_container``: it may be limited to one container, because it is a search of the whole account.
    """
    (comparisons,) = _Reader(text, allows_or=False).read()
    container, by_key = None, dict[str, list[Comparison]]()
    for each in comparisons:
        if each.operator is Operator.NE:
            raise InvalidExpression("A search cannot use <>.")
        if each.key != CONTAINER:
            by_key.setdefault(each.key, []).append(each)
        elif not names_container or container is not None or each.operator is not Operator.EQ:
            raise InvalidExpression(
                "@container can be compared once, with =, in a search of the whole account."
            )
        else:
            container = each.value
    if not by_key:
        raise InvalidExpression("A search needs a comparison with a tag.")
    if len(by_key) > MAX_SEARCHED_KEYS:
        raise InvalidExpression(f"A search may name {MAX_SEARCHED_KEYS} tags at the most.")
    return Search(tuple(_range_of(key, found) for key, found in by_key.items()), container)


def _range_of(key: str, comparisons: Sequence[Comparison]) -> ValueRange:
    lower: Bound | None = None
    upper: Bound | None = None
    for _, operator, value in comparisons:
        bounds_below = operator in (Operator.EQ, Operator.GT, Operator.GE)
        bounds_above = operator in (Operator.EQ, Operator.LT, Operator.LE)
        if (bounds_below and lower is not None) or (bounds_above and upper is not None):
            raise InvalidExpression(
                f"The tag '{key}' can be compared once with =, or once from below and once from above."
            )
        bound = Bound(value, operator not in (Operator.GT, Operator.LT))
        lower = bound if bounds_below else lower
        upper = bound if bounds_above else upper
    return ValueRange(key, lower, upper)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Reader:
    """Reads comparisons one after the other, with one token of look-ahead. Nothing is nested."""

    def __init__(self, text: str, *, allows_or: bool) -> None:
        if len(text) > MAX_CHARACTERS:
            raise InvalidExpression(f"An expression may have {MAX_CHARACTERS} characters at the most.")
        self._text = text
        self._allows_or = allows_or
        self._token = self._next(0)

    def read(self) -> tuple[tuple[Comparison, ...], ...]:
        alternatives = [[self._comparison()]]
        count = 1
        while self._token.kind != "end":
            word = self._token.text.upper() if self._token.kind == "word" else ""
            if word not in ("AND", "OR"):
                raise self._unexpected()
            if word == "OR" and not self._allows_or:
                raise InvalidExpression("A search cannot use OR.")
            count += 1
            if count > MAX_COMPARISONS:
                raise InvalidExpression(f"An expression may have {MAX_COMPARISONS} comparisons at the most.")
            self._take()
            if word == "AND":
                alternatives[-1].append(self._comparison())
            else:
                alternatives.append([self._comparison()])
        return tuple(map(tuple, alternatives))

    def _comparison(self) -> Comparison:
        key = self._key()
        if self._token.kind != "operator":
            raise self._unexpected()
        operator = Operator(self._take())
        if self._token.kind != "value":
            raise self._unexpected()
        value = self._take()[1:-1].replace("''", "'")
        if len(value) > VALUE_MAX_CHARACTERS:
            raise InvalidExpression(f"A value has {VALUE_MAX_CHARACTERS} characters at the most.")
        if min(value, default=" ") < " ":
            raise InvalidExpression("A value has no control characters.")
        return Comparison(key, operator, value)

    def _key(self) -> str:
        if self._token.kind == "key":
            key = self._take()[1:-1]
            if not key or len(key) > KEY_MAX_CHARACTERS or not is_legal(key):
                raise InvalidExpression(f'No tag can have the key "{key}".')
            return key
        if self._token.kind != "word" or self._token.text.upper() in ("AND", "OR"):
            raise self._unexpected()
        word = self._take()
        if not word.startswith("@"):
            if len(word) > KEY_MAX_CHARACTERS:
                raise InvalidExpression(f'No tag can have the key "{word}".')
            return word
        if word.lower() != CONTAINER:
            raise InvalidExpression(f"There is no {word}, only {CONTAINER}.")
        return CONTAINER

    def _take(self) -> str:
        """The text of the current token; then the next one is the current."""
        current = self._token
        self._token = self._next(current.at + len(current.text))
        return current.text

    def _next(self, start: int) -> _Token:
        found = _TOKEN.match(self._text, start)
        if found is None:
            white_space = _WHITE_SPACE.match(self._text, start)
            at = start if white_space is None else white_space.end()
            return _Token("unknown", self._text[at : at + 1], at)
        kind = found.lastgroup or "end"
        return _Token(kind, found[kind], found.start(kind))

    def _unexpected(self) -> InvalidExpression:
        kind, text, at = self._token
        what = "end" if kind == "end" else repr(text)
        return InvalidExpression(f"Unexpected {what} at character {at} of the expression.")
