"""Entities in the JSON of requests, decoded to one spelling for each value.

The result is a dictionary in the form that JSON with minimal metadata has: a property under its name and, where JSON
alone cannot tell the type, an annotation ``name@odata.type`` before it.

    String, Boolean, Int32     bare
    Double                     bare, with a fraction or an exponent; ``NaN`` and the infinities annotated texts
    Int64, DateTime, Guid      annotated texts
    Binary                     annotated, in base64

So the type follows from the value and its annotation alone, which filters rely on, and two equal values have one text.
Clients may annotate more than necessary, and may send any value as an annotated text.
"""

import json
import math
import re
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from kyanite.edm import ANNOTATION, PARTITION_KEY, ROW_KEY, TIMESTAMP, EdmType
from kyanite.values import iso_text
from kyanite.wire import iso_time
from kyanite.wire.malformed import Malformed

Properties = dict[str, str | int | float | bool]
"""Properties and annotations by name, in the form described above, in the order of the request."""

FIRST_YEAR: Final = "1601"

_ODATA: Final = "odata."
_ANNOTATES: Final = "@odata."
_CACHED_NAMES: Final = 64
_KEYS_AND_TIME: Final = frozenset((PARTITION_KEY, ROW_KEY, TIMESTAMP))
_2_31: Final = 2**31
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT64_DIGITS: Final = 19
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_PLAIN_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,7})?Z?")
_HEX: Final = frozenset("0123456789abcdef")
_BACKSLASH: Final = ord("\\")
"""A number, because looking for bytes in bytes makes and drops an error first."""
_BOOLEANS: Final = {"true": True, "false": False}
_UNUSUAL_DOUBLES: Final = {"NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity"}

_decode_json: Final[Callable[[bytes], dict[str, Any]]] = msgspec.json.Decoder(
    dict[str, bool | int | float | str | None]
).decode
"""Ends at the first value that no property can have, however long it is."""

_SHORT_BYTES: Final = 8 * 1024
_QUOTES_MAX: Final = 4_000
"""More than 255 properties with their annotations have. Every name has two, of which the count may miss one."""


EntityBody = tuple[str | None, str | None, Properties]
"""Partition key and row key, None where the body lacks them, and the properties. A plain tuple, because it is hot."""


def decode_entity(body: bytes) -> EntityBody:
    """Read the JSON object of one entity. Raises Malformed. A null counts as missing."""
    given, properties = _read(body)
    return (
        _key(given, PARTITION_KEY, _PARTITION_KEY_TYPE),
        _key(given, ROW_KEY, _ROW_KEY_TYPE),
        properties,
    )


def decode_properties(body: bytes) -> Properties:
    """Read the same object where the path has the keys: those in the object are ignored, whatever their type."""
    return _read(body)[1]


def _read(body: bytes) -> tuple[dict[str, Any], Properties]:
    given = _object(body)
    names = tuple(given)
    fields = _cached_fields(names) if len(names) <= _CACHED_NAMES else _fields(names)
    properties: Properties = {}
    texts = len(names) - len(fields)
    for name, annotation in fields:
        value = given[name]
        kind = value.__class__
        if kind is str:
            texts += 1
        if annotation is not None and value is not None and (declared := given[annotation]) is not None:
            _add_typed(properties, name, value, annotation, declared)
        elif kind is str or kind is bool or kind is float or (kind is int and -_2_31 <= value < _2_31):
            properties[name] = value
        elif value is not None:
            _add_unusual(properties, name, value)
    if _BACKSLASH in body or body.count(b'"') != 2 * (len(names) + texts):
        _check_no_duplicates(body)
    return given, properties


def _fields(names: tuple[str, ...]) -> list[tuple[str, str | None]]:
    """The names of properties, each with the name of its annotation if there is one.

    Names that begin with ``odata.`` and other annotations were added by the server and are ignored. Clients send many
    entities of the same few forms, so results are cached.
    """
    there = set(names)
    fields: list[tuple[str, str | None]] = []
    for name in names:
        if "@" in name or "." in name:
            if not (_ANNOTATES in name or name.startswith(_ODATA)):
                raise Malformed("PropertyNameInvalid", Reason=f"The property name is invalid: '{name}'.")
        elif name not in _KEYS_AND_TIME:
            annotation = name + ANNOTATION
            fields.append((name, annotation if annotation in there else None))
    return fields


_cached_fields: Final = lru_cache(maxsize=512)(_fields)


def decode_table_name(body: bytes) -> str:
    """The name in the body of Create Table."""
    name = _object(body).get("TableName")
    if not isinstance(name, str):
        raise _invalid("The body names no table: it must be an object with a text TableName.")
    return name


def _object(body: bytes) -> dict[str, Any]:
    if len(body) > _SHORT_BYTES:
        quotes = body.count(b'"')
        if quotes > _QUOTES_MAX and quotes - body.count(b'\\"') > _QUOTES_MAX:
            raise _invalid("The body has more names and texts than any entity.")
    try:
        return _decode_json(body)
    except msgspec.ValidationError as error:
        if str(error).startswith("Expected `object`"):
            raise _invalid("The body is not a JSON object.") from None
        raise _invalid(f"A value is an array, an object or a number without bounds: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(f"The body is not valid JSON: {error}.") from None


def _check_no_duplicates(body: bytes) -> None:
    """Refuse a name that occurs twice.

    The fast decoder silently keeps the last of equal names. Counting quotation marks proves that there are none, if no
    text contains any and if all that is no property is a text; only otherwise is the body decoded a second time.
    """
    pairs: list[tuple[str, object]] = _decode_pairs(body.decode())
    if len({name for name, _ in pairs}) < len(pairs):
        raise Malformed("DuplicatePropertiesSpecified")


_decode_pairs: Final = json.JSONDecoder(object_pairs_hook=list).decode


def _key(given: dict[str, Any], name: str, annotation: str) -> str | None:
    value = given.get(name)
    if value.__class__ is not str:
        if value is None:
            return None
        raise _invalid(f"The property {name} must be a text.")
    if given.get(annotation, _STRING) != _STRING:
        raise Malformed("InvalidValueType", Reason=f"{annotation} must be {_STRING}.")
    return str(value)


_STRING: Final = EdmType.STRING.value
_DATETIME: Final = EdmType.DATETIME.value
_PARTITION_KEY_TYPE: Final = PARTITION_KEY + ANNOTATION
_ROW_KEY_TYPE: Final = ROW_KEY + ANNOTATION


def _add_unusual(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is not int:
        raise _invalid(f"The value of {name} is an array or an object.")
    # Azure treats a bare whole number that is no Int32 as a Double.
    _add_double(properties, name, value)


def _add_typed(properties: Properties, name: str, value: Any, annotation: str, declared: Any) -> None:
    try:
        reader = _TEXT_READERS.get(declared)
        if reader is None:
            _BARE_READERS[declared](properties, name, value)
            return
    except (KeyError, TypeError):
        raise Malformed("InvalidValueType", Reason=f"{annotation} names no type: {declared!r}.") from None
    text = reader(value) if value.__class__ is str else reader(str(value)) if value.__class__ is int else None
    if text is None:
        raise _unfit(name, declared)
    if declared == _DATETIME and text < FIRST_YEAR:
        raise Malformed(
            "OutOfRangeInput", Reason=f"The '{name}' parameter of value '{value}' is out of range."
        )
    properties[annotation] = declared
    properties[name] = text


def _add_string(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is not str:
        raise _unfit(name, EdmType.STRING.value)
    properties[name] = value


def _add_boolean(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is not bool:
        value = _BOOLEANS.get(value.lower()) if value.__class__ is str else None
    if value is None:
        raise _unfit(name, EdmType.BOOLEAN.value)
    properties[name] = value


def _add_int32(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is str and _WHOLE.fullmatch(value):
        value = int(value)
    if value.__class__ is not int or not -_2_31 <= value < _2_31:
        raise _unfit(name, EdmType.INT32.value)
    properties[name] = value


def _add_double(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is str:
        if value in _UNUSUAL_DOUBLES:
            properties[name + ANNOTATION] = EdmType.DOUBLE.value
            properties[name] = value
            return
        value = float(value) if _NUMBER.fullmatch(value) else None
    try:
        number = float(value) if value.__class__ in (int, float) else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise _unfit(name, EdmType.DOUBLE.value)
    properties[name] = number


def int64_text(text: str) -> str | None:
    """A whole number in its one spelling; None when the text is none, or does not fit into 64 bits."""
    if text.isascii() and text.isdigit() and len(text) < _INT64_DIGITS and text[0] != "0":
        return text
    if _WHOLE.fullmatch(text) is None:
        return None
    number = int(text)
    return str(number) if _INT64_MIN <= number <= _INT64_MAX else None


def binary_text(text: str) -> str | None:
    """Base64 in its one spelling; None when the text is none."""
    try:
        return b64encode(a2b_base64(text, strict_mode=True)).decode("ascii")
    except (Base64Error, ValueError):
        return None


def datetime_text(text: str) -> str | None:
    """A time in its one spelling: UTC, ending in ``Z``, without trailing zeros. None when the text is no time.

    Without the ``Z`` two such texts compare like their times. A time without a zone is UTC.
    """
    if _PLAIN_TIME.fullmatch(text) is None:
        instant = iso_time.decode(text)
        return None if instant is None else _trimmed(iso_text(instant))
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return None
    return _trimmed(text if text[-1] == "Z" else text + "Z")


def _trimmed(text: str) -> str:
    return text if len(text) == 20 else text[:-1].rstrip("0").rstrip(".") + "Z"


def guid_text(text: str) -> str | None:
    """A GUID in lower case with hyphens, from any spelling; None when the text is none."""
    digits = text.strip("{}()").replace("-", "").lower()
    if len(digits) != 32 or not _HEX.issuperset(digits):
        return None
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_TEXT_READERS: Final[dict[str, Callable[[str], str | None]]] = {
    EdmType.BINARY.value: binary_text,
    EdmType.DATETIME.value: datetime_text,
    EdmType.GUID.value: guid_text,
    EdmType.INT64.value: int64_text,
}
_BARE_READERS: Final[dict[str, Callable[[Properties, str, Any], None]]] = {
    EdmType.BOOLEAN.value: _add_boolean,
    EdmType.DOUBLE.value: _add_double,
    EdmType.INT32.value: _add_int32,
    EdmType.STRING.value: _add_string,
}


def _unfit(name: str, type_: str) -> Malformed:
    return _invalid(f"The value of {name} is no {type_}.")


def _invalid(sentence: str) -> Malformed:
    return Malformed("InvalidInput", Reason=sentence)
