"""Which tables, entities and groups of changes are allowed, and when an entity may be changed.

Entities have optimistic concurrency only. An update has an If-Match, an upsert has none:

    act                If-Match      entity is missing     entity exists
    -----------------  ------------  --------------------  ---------------------------------
    insert             refused       created               EntityAlreadyExists
    update, merge      ETag or *     ResourceNotFound      changed if the ETag is its own
    insert or replace  absent        created               replaced
    insert or merge    absent        created               merged
    delete             ETag or *     ResourceNotFound      deleted if the ETag is its own

Properties have the form of the wire and of the store: values by name, with an annotation ``name@odata.type`` where the
value alone does not determine its type.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn, Protocol

from kyanite.edm import ANNOTATION, PARTITION_KEY, ROW_KEY, EdmType, SasKeyRange, ordinal, utf16_units
from kyanite.rules.refusals import Explained, NameFacts, Reason, Refused

ANY: Final = "*"
"""The If-Match that matches every ETag."""

MAX_KEY_UNITS: Final = 512
MAX_PROPERTIES: Final = 252
MAX_NAME_UNITS: Final = 255
MAX_TEXT_UNITS: Final = 32 * 1024
MAX_BINARY_BYTES: Final = 64 * 1024
MAX_ENTITY_BYTES: Final = 1024 * 1024
MAX_CHANGES: Final = 100

Properties = Mapping[str, str | int | float | bool]

_TABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_TABLE_MIN, _TABLE_MAX = 3, 63
_RESERVED_TABLE: Final = "tables"
_NOT_IN_KEYS: Final = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")

# From the documented formula: 4 bytes, both keys in UTF-16, and for each property 8 bytes, its name in UTF-16 and its
# value.
_ENTITY_BYTES, _PROPERTY_BYTES, _LENGTH_BYTES = 4, 8, 4
_VALUE_BYTES: Final = {
    EdmType.DATETIME.value: 8,
    EdmType.DOUBLE.value: 8,
    EdmType.GUID.value: 16,
    EdmType.INT64.value: 8,
}
_BARE_BYTES: Final[Mapping[type, int]] = {bool: 1, int: 4, float: 8}


def check_table_name(name: str) -> None:
    if not _TABLE_MIN <= len(name) <= _TABLE_MAX:
        raise Refused(Reason.NAME_LENGTH_OUT_OF_RANGE, facts=NameFacts(name, "table"))
    if _TABLE.fullmatch(name) is None or name.lower() == _RESERVED_TABLE:
        raise Refused(Reason.INVALID_RESOURCE_NAME, facts=NameFacts(name, "table"))


def check_keys(partition_key: str, row_key: str) -> None:
    """Refuse keys that no entity can have."""
    if (len(partition_key) + len(row_key)) * 2 > MAX_KEY_UNITS or _NOT_IN_KEYS.search(
        partition_key + row_key
    ):
        _check_key(PARTITION_KEY, partition_key)
        _check_key(ROW_KEY, row_key)


def _check_key(name: str, key: str) -> None:
    if utf16_units(key) > MAX_KEY_UNITS:
        raise Refused(
            Reason.KEY_VALUE_TOO_LARGE,
            Explained(
                f"The '{name}' property exceeds the maximum allowed key size (1KB). It is a UTF-16 encoded "
                f"string and the maximum number of characters should be {MAX_KEY_UNITS} or less."
            ),
        )
    if _NOT_IN_KEYS.search(key):
        raise Refused(
            Reason.KEY_OUT_OF_RANGE, Explained(f"The '{name}' parameter of value '{key}' is out of range.")
        )


def check_properties(properties: Properties, json_bytes: int) -> None:
    """Refuse names, numbers of properties and single values that are not allowed.

    ``json_bytes`` is the length of their JSON: in a short one no value can be too long.
    """
    names = tuple(properties)
    if len(names) <= _REMEMBERED_NAMES:
        _cached_names(names)
    else:
        _check_names(names)
    if json_bytes * 2 > MAX_TEXT_UNITS:
        for name, value in properties.items():
            if isinstance(value, str) and len(value) * 2 > MAX_TEXT_UNITS:
                _check_long(value, properties.get(name + ANNOTATION))


def _check_names(names: tuple[str, ...]) -> None:
    """Annotations are not properties. Clients send the same few forms of entities, so allowed ones are cached."""
    own = [name for name in names if "@" not in name]
    for name in own:
        if not name.isidentifier() or len(name) > MAX_NAME_UNITS:
            _refuse_name(name)
    if len(own) > MAX_PROPERTIES:
        raise Refused(Reason.TOO_MANY_PROPERTIES)


_REMEMBERED_NAMES: Final = 64
_cached_names: Final = lru_cache(maxsize=512)(_check_names)


def _refuse_name(name: str) -> NoReturn:
    if utf16_units(name) > MAX_NAME_UNITS:
        raise Refused(Reason.PROPERTY_NAME_TOO_LONG, facts=NameFacts(name, "property"))
    raise Refused(Reason.PROPERTY_NAME_INVALID, Explained(f"The property name is invalid: '{name}'."))


def _check_long(text: str, declared: object) -> None:
    is_binary = declared == EdmType.BINARY.value
    if (_octets(text) > MAX_BINARY_BYTES) if is_binary else (utf16_units(text) > MAX_TEXT_UNITS):
        raise Refused(Reason.PROPERTY_VALUE_TOO_LARGE)


def check_size(partition_key: str, row_key: str, properties: Properties) -> None:
    """Refuse an entity that is too large as a whole, by the documented formula."""
    size = _ENTITY_BYTES + 2 * (utf16_units(partition_key) + utf16_units(row_key))
    for name, value in properties.items():
        if "@" not in name:
            declared = properties.get(name + ANNOTATION)
            size += _PROPERTY_BYTES + 2 * utf16_units(name) + _value_bytes(value, declared)
    if size > MAX_ENTITY_BYTES:
        raise Refused(Reason.ENTITY_TOO_LARGE)


def may_be_too_large(text_bytes: int) -> bool:
    """Whether an entity with JSON of that length must be measured: every character counts two bytes or less."""
    return 2 * text_bytes + MAX_PROPERTIES * _PROPERTY_BYTES > MAX_ENTITY_BYTES


def _value_bytes(value: object, declared: object) -> int:
    if not isinstance(value, str):
        return _BARE_BYTES[value.__class__]
    if declared == EdmType.BINARY.value:
        return _octets(value) + _LENGTH_BYTES
    fixed = _VALUE_BYTES.get(str(declared))
    return 2 * utf16_units(value) + _LENGTH_BYTES if fixed is None else fixed


def _octets(base64: str) -> int:
    """The number of bytes of a canonical base64 text."""
    return len(base64) // 4 * 3 - base64.count("=", -2)


class Act(StrEnum):
    """What a change does to its entity."""

    INSERT = "insert"
    UPDATE = "update"
    MERGE = "merge"
    INSERT_OR_REPLACE = "insert or replace"
    INSERT_OR_MERGE = "insert or merge"
    DELETE = "delete"


_NEED_ENTITY: Final = frozenset((Act.UPDATE, Act.MERGE, Act.DELETE))
MERGING: Final = frozenset((Act.MERGE, Act.INSERT_OR_MERGE))


class EntityFacts(NamedTuple):
    """What a refusal compared: ETags without their weak mark and their quotes."""

    if_match: str
    etag: str


def check_act(act: Act, if_match: str, etag: str | None) -> None:
    """Refuse what the table above refuses. ``etag`` is that of the entity, None when there is none."""
    if etag is None:
        if act in _NEED_ENTITY:
            raise Refused(Reason.ENTITY_NOT_FOUND)
    elif act is Act.INSERT:
        raise Refused(Reason.ENTITY_ALREADY_EXISTS, facts=EntityFacts("", etag))
    elif act in _NEED_ENTITY and if_match not in (ANY, etag):
        raise Refused(Reason.UPDATE_CONDITION_NOT_SATISFIED, facts=EntityFacts(if_match, etag))


def merge(present: Properties, change: Properties) -> Properties:
    """The properties with those of the change. A property may change its type, so annotations follow their values."""
    merged = dict(present)
    for name in change:
        merged.pop(name + ANNOTATION, None)
    merged.update(change)
    return merged


class Keyed(Protocol):
    @property
    def partition_key(self) -> str: ...

    @property
    def row_key(self) -> str: ...


def check_group(changes: Sequence[Keyed]) -> tuple[int, Refused] | None:
    """Why these changes may not be one group and the number of the change at fault, or None."""
    if len(changes) > MAX_CHANGES:
        return MAX_CHANGES - 1, Refused(Reason.TOO_MANY_CHANGES)
    rows: set[str] = set()
    for index, change in enumerate(changes):
        if change.partition_key != changes[0].partition_key:
            return index, Refused(Reason.DIFFERENT_PARTITIONS)
        if change.row_key in rows:
            return index, Refused(Reason.DUPLICATE_ROW)
        rows.add(change.row_key)
    return None


def is_within(keys: SasKeyRange, partition_key: str, row_key: str) -> bool:
    """Whether a key range contains the entity. Ends are inclusive; a row key bounds its own partition only."""
    here = (ordinal(partition_key), ordinal(row_key))
    if keys.start_partition is not None and here < (
        ordinal(keys.start_partition),
        ordinal(keys.start_row or ""),
    ):
        return False
    if keys.end_partition is None:
        return True
    end = ordinal(keys.end_partition)
    return here[0] < end or (here[0] == end and (keys.end_row is None or here[1] <= ordinal(keys.end_row)))


class KeyRangeFacts(NamedTuple):
    """The entities that a token allows, and the one that was requested."""

    allowed: SasKeyRange
    partition_key: str
    row_key: str


def check_within(keys: SasKeyRange | None, partition_key: str, row_key: str) -> None:
    if keys is not None and not is_within(keys, partition_key, row_key):
        raise Refused(Reason.AUTHORIZATION_FAILURE, facts=KeyRangeFacts(keys, partition_key, row_key))
