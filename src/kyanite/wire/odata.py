"""The filters of the Table service (OData, version 3): text to tree.

    filter     := conjunction ("or" conjunction)*
    conjunction:= term ("and" term)*
    term       := "not" term | "(" filter ")" | comparison
    comparison := operand [("eq" | "ne" | "gt" | "ge" | "lt" | "le") operand]
    operand    := property | constant

One operand of a comparison is a property and the other a constant; the reference requires the property on the left,
Azure accepts either order. A property alone is a comparison with true. Words are case-sensitive. There are no
functions, for which Azure returns NotImplemented, no arithmetic and no null.

The documentation allows 15 comparisons; Azure is known to accept more, so they are not counted here. The depth and the
length are bounded: in a batch a filter may be no longer than in a URL.
"""

import re
from typing import NamedTuple

from kyanite.edm import And, Comparison, Constant, EdmType, Filter, Literal, Not, Operator, Or
from kyanite.wire import edm
from kyanite.wire.malformed import Malformed

MAX_DEPTH = 100
MAX_CHARACTERS = 64 * 1024
"""As many as the HTTP front end accepts in a URL."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<bracket>[()])
    | (?P<typed>(?:datetime|guid|binary|X)'(?:[^']|'')*')
    | (?P<text>'(?:[^']|'')*')
    | (?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[LlDd]?(?!\w))
    | (?P<word>[^\W\d]\w*)
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_OPERATORS = {operator.value: operator for operator in Operator}
_FLIPPED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
}
_TRUE, _FALSE = Literal(EdmType.BOOLEAN, True), Literal(EdmType.BOOLEAN, False)
_RESERVED = frozenset((*_OPERATORS, "and", "or", "not", "null"))
_WHITE_SPACE_AHEAD = re.compile(r"\s*")


def decode_filter(text: str) -> Filter | None:
    """The filter, or None when the text is blank: some clients send an empty one."""
    if len(text) > MAX_CHARACTERS:
        raise _invalid(f"A filter may have {MAX_CHARACTERS} characters at the most.")
    return _Reader(text).read() if text.strip() else None


class _Token(NamedTuple):
    kind: str
    text: str
    ends_at: int


class _Property(NamedTuple):
    name: str


class _Reader:
    """A recursive descent with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._token = self._next(0)

    def read(self) -> Filter:
        found = self._disjunction(0)
        if self._token.kind != "end":
            raise self._syntax_error()
        return found

    def _disjunction(self, depth: int) -> Filter:
        parts = [self._conjunction(depth)]
        while self._consumed("or"):
            parts.append(self._conjunction(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self, depth: int) -> Filter:
        parts = [self._term(depth)]
        while self._consumed("and"):
            parts.append(self._term(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _term(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise _invalid(f"The filter is nested more than {MAX_DEPTH} levels deep.")
        if self._consumed("not"):
            return Not(self._term(depth + 1))
        if not self._consumed("("):
            return self._comparison()
        found = self._disjunction(depth + 1)
        if not self._consumed(")"):
            raise self._syntax_error()
        return found

    def _comparison(self) -> Filter:
        left = self._operand()
        operator = _OPERATORS.get(self._token.text) if self._token.kind == "word" else None
        if operator is None:
            return self._alone(left)
        self._advance()
        right = self._operand()
        if isinstance(left, _Property) and isinstance(right, Literal):
            return Comparison(left.name, operator, right)
        if isinstance(left, Literal) and isinstance(right, _Property):
            return Comparison(right.name, _FLIPPED[operator], left)
        raise _invalid(
            f"A property can be compared with a constant only, at position {self._token.ends_at} in '{self._text}'."
        )

    def _alone(self, operand: "_Property | Literal") -> Filter:
        if isinstance(operand, _Property):
            return Comparison(operand.name, Operator.EQ, _TRUE)
        if operand.type is EdmType.BOOLEAN:
            return Constant(operand is _TRUE)
        raise self._syntax_error()

    def _operand(self) -> "_Property | Literal":
        kind, text, _ = token = self._token
        if kind == "word":
            if text in _RESERVED:
                raise self._syntax_error()
            self._advance()
            if self._token.text == "(":
                raise Malformed("NotImplemented", Reason=f"Filters have no functions, and so no '{text}'.")
            constant = {"true": _TRUE, "false": _FALSE}.get(text)
            return constant or _Property(text)
        if kind not in {"text", "typed", "number"}:
            raise self._syntax_error()
        literal = _number(text) if kind == "number" else _quoted(text)
        if literal is None:
            raise self._bad_literal(token)
        self._advance()
        return literal

    def _consumed(self, text: str) -> bool:
        """Whether the next token is this word or bracket; if so, it is consumed."""
        if self._token.text != text or self._token.kind == "text":
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        self._token = self._next(self._token.ends_at)

    def _next(self, position: int) -> _Token:
        match = _TOKEN.match(self._text, position)
        if match is None:
            space = _WHITE_SPACE_AHEAD.match(self._text, position)
            raise self._error_at(position if space is None else space.end())
        kind = match.lastgroup or ""
        return _Token(kind, match[kind], match.end())

    def _syntax_error(self) -> Malformed:
        """In Azure's own words. The position is after the unexpected token."""
        return self._error_at(self._token.ends_at)

    def _error_at(self, position: int) -> Malformed:
        return _invalid(f"Syntax error at position {position} in '{self._text}'.")

    def _bad_literal(self, token: _Token) -> Malformed:
        kind = (
            _NUMBER_TYPES.get(token.text[-1], "Edm.Int32")
            if token.kind == "number"
            else _type_name(token.text)
        )
        position = token.ends_at - len(token.text)
        return _invalid(f"Unrecognized '{kind}' literal '{token.text}' at '{position}' in '{self._text}'.")


def _type_name(text: str) -> str:
    return _PREFIXES[text.partition("'")[0]].value


_PREFIXES = {
    "datetime": EdmType.DATETIME,
    "guid": EdmType.GUID,
    "binary": EdmType.BINARY,
    "X": EdmType.BINARY,
}
_NUMBER_TYPES = {"L": "Edm.Int64", "l": "Edm.Int64"}


def _quoted(text: str) -> Literal | None:
    prefix, _, rest = text.partition("'")
    inner = rest[:-1].replace("''", "'")
    match prefix:
        case "":
            return Literal(EdmType.STRING, inner)
        case "datetime":
            moment = edm.datetime_text(inner)
            return None if moment is None else Literal(EdmType.DATETIME, moment)
        case "guid":
            guid = edm.guid_text(inner)
            return None if guid is None else Literal(EdmType.GUID, guid)
        case _:
            return _binary(inner)


def _binary(digits: str) -> Literal | None:
    try:
        return Literal(EdmType.BINARY, bytes.fromhex(digits))
    except ValueError:
        return None


def _number(text: str) -> Literal | None:
    """A whole number is an Int32, with ``L`` an Int64; with a fraction, an exponent or ``D`` it is a Double."""
    digits = text.rstrip("LlDd")
    suffix = text[len(digits) :].upper()
    if not digits.lstrip("+-").isdecimal():
        return None if suffix == "L" else Literal(EdmType.DOUBLE, float(digits))
    if suffix == "D":
        return Literal(EdmType.DOUBLE, float(digits))
    type_, bits = (EdmType.INT64, 63) if suffix == "L" else (EdmType.INT32, 31)
    if len(digits) > _DIGITS_MAX or not -(1 << bits) <= int(digits) < 1 << bits:
        return None
    return Literal(type_, int(digits))


_DIGITS_MAX = 40
"""No longer number fits any type, with a plausible number of leading zeros."""


def _invalid(sentence: str) -> Malformed:
    return Malformed("InvalidInput", Reason=sentence)
