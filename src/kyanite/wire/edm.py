"""Entities in JSON: what a request brings, read into one spelling for each value.

The result is a dictionary in the form that JSON with minimal metadata has: a property under its name and, where JSON
alone cannot tell the type, an annotation ``name@odata.type`` before it.

    String, Boolean, Int32     bare
    Double                     bare, with a fraction or an exponent; ``NaN`` and the infinities annotated texts
    Int64, DateTime, Guid      annotated texts
    Binary                     annotated, in base64

So the type can be told from the value and its annotation alone, which is what filters do, and two equal values have one
text. Clients may annotate more than they need to, and send any value as a text if they annotate it.
"""

import json
import math
import re
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from kyanite.edm import ANNOTATION, PARTITION_KEY, ROW_KEY, TIMESTAMP, EdmType
from kyanite.values import iso_text
from kyanite.wire import iso_time
from kyanite.wire.malformed import Malformed

Properties = dict[str, str | int | float | bool]
"""Properties and annotations by name, in the form described above, in the order in which they came."""

FIRST_YEAR = "1601"

_ODATA = "odata."
_ANNOTATES = "@odata."
_MARK = ANNOTATION.encode()
_KEYS_AND_TIME = frozenset((PARTITION_KEY, ROW_KEY, TIMESTAMP))
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_WHOLE = re.compile(r"[-+]?[0-9]{1,20}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_PLAIN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,7})?Z?")
_HEX = frozenset("0123456789abcdef")
_UNUSUAL_DOUBLES = {"NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity"}

_decode_json: Callable[[bytes], Any] = msgspec.json.Decoder().decode


class EntityBody(NamedTuple):
    """What a body says. The keys are None where it does not say them."""

    partition_key: str | None
    row_key: str | None
    properties: Properties


def decode_entity(body: bytes) -> EntityBody:
    """Read the JSON object of one entity. Raises Malformed. What is null counts as not sent."""
    given = _object(body)
    annotated = _MARK in body
    properties: Properties = {}
    texts = 0
    for name, value in given.items():
        kind = value.__class__
        if kind is str:
            texts += 1
        if "@" in name or "." in name:
            _check_annotation(name, value)
        elif name in _KEYS_AND_TIME or value is None:
            continue
        elif annotated and (declared := given.get(name + ANNOTATION)) is not None:
            _add_typed(properties, name, value, declared)
        elif kind is str or kind is bool or kind is float or (kind is int and _is_int32(value)):
            properties[name] = value
        else:
            _add_unusual(properties, name, value)
    if b"\\" in body or body.count(b'"') != 2 * (len(given) + texts):
        _check_no_duplicates(body)
    return EntityBody(_key(given, PARTITION_KEY), _key(given, ROW_KEY), properties)


def _is_int32(number: int) -> bool:
    return _INT32_MIN <= number <= _INT32_MAX


def decode_table_name(body: bytes) -> str:
    """The name in the body of Create Table."""
    name = _object(body).get("TableName")
    if not isinstance(name, str):
        raise _invalid("The body names no table: it must be an object with a text TableName.")
    return name


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = _decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(f"The body is not valid JSON: {error}.") from None
    if not isinstance(found, dict):
        raise _invalid("The body is not a JSON object.")
    return found


def _check_no_duplicates(body: bytes) -> None:
    """Refuse a name that comes twice.

    The fast decoder keeps the last of equal names and says nothing. Counting quotation marks shows that there are none,
    if no text holds any; only otherwise is the body read a second time.
    """
    pairs: list[tuple[str, object]] = _decode_pairs(body.decode())
    if len({name for name, _ in pairs}) < len(pairs):
        raise Malformed("DuplicatePropertiesSpecified")


_decode_pairs = json.JSONDecoder(object_pairs_hook=list).decode


def _key(given: dict[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if value.__class__ is not str:
        raise _invalid(f"The property {name} must be a text.")
    return str(value)


def _check_annotation(name: str, value: object) -> None:
    """What begins with ``odata.`` or annotates otherwise than with a type was added by the service, and is ignored."""
    if not name.endswith(ANNOTATION):
        if name.startswith(_ODATA) or _ANNOTATES in name:
            return
        raise Malformed("PropertyNameInvalid", Reason=f"The property name is invalid: '{name}'.")
    if value.__class__ is not str or value not in _READERS:
        raise Malformed("InvalidValueType", Reason=f"{name} names no type: {value!r}.")
    if name in _KEY_ANNOTATIONS and value != EdmType.STRING.value:
        raise Malformed("InvalidValueType", Reason=f"{name} must be Edm.String.")


_KEY_ANNOTATIONS = frozenset((PARTITION_KEY + ANNOTATION, ROW_KEY + ANNOTATION))


def _add_unusual(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is not int:
        raise _invalid(f"The value of {name} is an array or an object.")
    # A bare whole number that is no Int32 is a Double to the service.
    _add_double(properties, name, value)


def _add_typed(properties: Properties, name: str, value: Any, declared: Any) -> None:
    reader = _READERS.get(declared) if declared.__class__ is str else None
    if reader is None:
        raise Malformed("InvalidValueType", Reason=f"{name}{ANNOTATION} names no type: {declared!r}.")
    reader(properties, name, value)


def _add_string(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is not str:
        raise _unfit(name, EdmType.STRING)
    properties[name] = value


def _add_boolean(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is not bool:
        value = {"true": True, "false": False}.get(value) if value.__class__ is str else None
    if value is None:
        raise _unfit(name, EdmType.BOOLEAN)
    properties[name] = value


def _add_int32(properties: Properties, name: str, value: Any) -> None:
    number = _whole_number(value)
    if number is None or not _INT32_MIN <= number <= _INT32_MAX:
        raise _unfit(name, EdmType.INT32)
    properties[name] = number


def _add_int64(properties: Properties, name: str, value: Any) -> None:
    number = _whole_number(value)
    if number is None or not _INT64_MIN <= number <= _INT64_MAX:
        raise _unfit(name, EdmType.INT64)
    _annotate(properties, name, EdmType.INT64, str(number))


def _whole_number(value: Any) -> int | None:
    if value.__class__ is int:
        return int(value)
    return int(value) if value.__class__ is str and _WHOLE.fullmatch(value) else None


def _add_double(properties: Properties, name: str, value: Any) -> None:
    if value.__class__ is str:
        if value in _UNUSUAL_DOUBLES:
            _annotate(properties, name, EdmType.DOUBLE, value)
            return
        value = float(value) if _NUMBER.fullmatch(value) else None
    try:
        number = float(value) if value.__class__ in (int, float) else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise _unfit(name, EdmType.DOUBLE)
    properties[name] = number


def _add_datetime(properties: Properties, name: str, value: Any) -> None:
    text = datetime_text(value) if value.__class__ is str else None
    if text is None:
        raise _unfit(name, EdmType.DATETIME)
    if text < FIRST_YEAR:
        raise Malformed(
            "OutOfRangeInput", Reason=f"The '{name}' parameter of value '{value}' is out of range."
        )
    _annotate(properties, name, EdmType.DATETIME, text)


def _add_guid(properties: Properties, name: str, value: Any) -> None:
    text = guid_text(value) if value.__class__ is str else None
    if text is None:
        raise _unfit(name, EdmType.GUID)
    _annotate(properties, name, EdmType.GUID, text)


def _add_binary(properties: Properties, name: str, value: Any) -> None:
    octets = binary_of(value) if value.__class__ is str else None
    if octets is None:
        raise _unfit(name, EdmType.BINARY)
    _annotate(properties, name, EdmType.BINARY, b64encode(octets).decode("ascii"))


def _annotate(properties: Properties, name: str, type_: EdmType, text: str) -> None:
    properties[name + ANNOTATION] = type_.value
    properties[name] = text


_READERS: dict[str, Callable[[Properties, str, Any], None]] = {
    EdmType.BINARY.value: _add_binary,
    EdmType.BOOLEAN.value: _add_boolean,
    EdmType.DATETIME.value: _add_datetime,
    EdmType.DOUBLE.value: _add_double,
    EdmType.GUID.value: _add_guid,
    EdmType.INT32.value: _add_int32,
    EdmType.INT64.value: _add_int64,
    EdmType.STRING.value: _add_string,
}


def datetime_text(text: str) -> str | None:
    """A time in its one spelling: UTC, ending in ``Z``, without needless zeros. None when it is no time.

    Without the ``Z`` two such texts compare like the times they name. A time without a zone is taken as UTC.
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
    """A GUID in lower case with hyphens, whatever spelling it came in; None when it is none."""
    digits = text.strip("{}()").replace("-", "").lower()
    if len(digits) != 32 or not _HEX.issuperset(digits):
        return None
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def binary_of(text: str) -> bytes | None:
    try:
        return a2b_base64(text, strict_mode=True)
    except (Base64Error, ValueError):
        return None


def _unfit(name: str, type_: EdmType) -> Malformed:
    return _invalid(f"The value of {name} is no {type_.value}.")


def _invalid(sentence: str) -> Malformed:
    return Malformed("InvalidInput", Reason=sentence)
