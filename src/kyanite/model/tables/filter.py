"""Filters over entities, compiled once to a function of an entity's text.

Only the properties that the filter names are decoded. Types must match: an Int32 constant is compared with Int32, Int64
and Double properties, any other constant with properties of its own type only. A property of another type is not equal
and neither more nor less; a missing property matches no comparison, not even ``ne``. Texts compare by their UTF-16 code
units.
"""

import operator
from base64 import b64decode
from collections.abc import Callable
from operator import attrgetter
from typing import Any, assert_never

import msgspec
from msgspec import UNSET

from kyanite.edm import (
    ANNOTATION,
    TIMESTAMP,
    And,
    Comparison,
    Constant,
    EdmType,
    Filter,
    Literal,
    Not,
    Operator,
    Or,
    ordinal,
)

Predicate = Callable[[bytes], bool]
"""Of the text of an entity."""

_Row = Any
"""A struct of the properties that a filter names: value and annotation of each, or UNSET."""
_Test = Callable[[_Row], bool]
_Read = Callable[[Any, Any], Any]
"""From a property's value and annotation the value to compare, or None when it is of another type."""

_OPERATIONS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
}
_FIRST_IN_OTHER_ORDER = "\ue000"
"""From here on code points and UTF-16 code units are not in the same order."""


def compile_filter(wanted: Filter) -> Predicate:
    names: dict[str, int] = {}
    test = _compile(wanted, names)
    decode = msgspec.json.Decoder(_struct(list(names))).decode
    return lambda text: test(decode(text))


def _struct(names: list[str]) -> type[msgspec.Struct]:
    """Decoding skips all properties but these."""
    fields: list[tuple[str, Any, Any]] = []
    rename: dict[str, str] = {}
    for number, name in enumerate(names):
        for field, property_name in ((f"v{number}", name), (f"a{number}", name + ANNOTATION)):
            fields.append((field, Any, UNSET))
            rename[field] = property_name
    return msgspec.defstruct("Row", fields, rename=rename, gc=False)


def _compile(wanted: Filter, names: dict[str, int]) -> _Test:
    match wanted:
        case Comparison():
            number = names.setdefault(wanted.name, len(names))
            return _comparison(wanted, attrgetter(f"v{number}", f"a{number}"))
        case Constant():
            value = wanted.value
            return lambda _: value
        case Not():
            inner = _compile(wanted.inner, names)
            return lambda row: not inner(row)
        case And():
            return _all([_compile(part, names) for part in wanted.parts])
        case Or():
            return _any([_compile(part, names) for part in wanted.parts])
        case _:
            assert_never(wanted)


def _all(tests: list[_Test]) -> _Test:
    if len(tests) == 2:
        first, second = tests
        return lambda row: first(row) and second(row)

    def test(row: _Row) -> bool:
        for each in tests:  # noqa: SIM110 - a generator would cost more than the tests.
            if not each(row):
                return False
        return True

    return test


def _any(tests: list[_Test]) -> _Test:
    if len(tests) == 2:
        first, second = tests
        return lambda row: first(row) or second(row)

    def test(row: _Row) -> bool:
        for each in tests:  # noqa: SIM110
            if each(row):
                return True
        return False

    return test


def _comparison(wanted: Comparison, get: Callable[[_Row], tuple[Any, Any]]) -> _Test:
    read, constant = _reading(wanted.literal)
    if wanted.name == TIMESTAMP:
        read = _read_own_time if wanted.literal.type is EdmType.DATETIME else _read_nothing
    elif wanted.operator is Operator.EQ and wanted.literal.type is EdmType.STRING:
        expected = (wanted.literal.value, UNSET)
        return lambda row: get(row) == expected
    if wanted.operator is Operator.NE:
        return _inequality(read, constant, get)
    operation = _OPERATIONS[wanted.operator]

    def test(row: _Row) -> bool:
        value = read(*get(row))
        return value is not None and operation(value, constant)

    return test


def _inequality(read: _Read, constant: Any, get: Callable[[_Row], tuple[Any, Any]]) -> _Test:
    def test(row: _Row) -> bool:
        value, annotation = get(row)
        if value is UNSET:
            return False
        value = read(value, annotation)
        return value is None or bool(value != constant)

    return test


def _reading(literal: Literal) -> tuple[_Read, Any]:
    """How to read a property in order to compare it with the constant, and the constant in the same form."""
    value = literal.value
    match literal.type:
        case EdmType.STRING:
            text = str(value)
            return (
                (_read_text, text)
                if max(text, default="") < _FIRST_IN_OTHER_ORDER
                else (_read_ordinal, ordinal(text))
            )
        case EdmType.INT32:
            return _read_number, value
        case EdmType.INT64:
            return _read_int64, value
        case EdmType.DOUBLE:
            return _read_double, value
        case EdmType.BOOLEAN:
            return _read_boolean, value
        case EdmType.DATETIME:
            return _read_time, str(value)[:-1]
        case EdmType.GUID:
            return _read_guid, value
        case EdmType.BINARY:
            return _read_binary, value
        case _:
            assert_never(literal.type)


def _read_text(value: Any, annotation: Any) -> Any:
    return value if annotation is UNSET and value.__class__ is str else None


def _read_ordinal(value: Any, annotation: Any) -> Any:
    return ordinal(value) if annotation is UNSET and value.__class__ is str else None


def _read_number(value: Any, annotation: Any) -> Any:
    kind = value.__class__
    if kind is int or kind is float:
        return value
    return _read_int64(value, annotation) if annotation == "Edm.Int64" else _read_double(value, annotation)


def _read_int64(value: Any, annotation: Any) -> Any:
    return int(value) if annotation == "Edm.Int64" else None


def _read_double(value: Any, annotation: Any) -> Any:
    if value.__class__ is float:
        return value
    return float(value) if annotation == "Edm.Double" else None


def _read_boolean(value: Any, _: Any) -> Any:
    return value if value.__class__ is bool else None


def _read_time(value: Any, annotation: Any) -> Any:
    """Without the ``Z``, so that texts compare like times."""
    return value[:-1] if annotation == "Edm.DateTime" else None


def _read_own_time(value: Any, _: Any) -> Any:
    """The time of the last change has no annotation, and always seven decimals. Tables have none."""
    return None if value is UNSET else value[:-1].rstrip("0").rstrip(".")


def _read_guid(value: Any, annotation: Any) -> Any:
    return value if annotation == "Edm.Guid" else None


def _read_binary(value: Any, annotation: Any) -> Any:
    return b64decode(value) if annotation == "Edm.Binary" else None


def _read_nothing(_: Any, __: Any) -> Any:
    return None
