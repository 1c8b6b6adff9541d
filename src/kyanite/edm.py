"""The entity data model: the types a property of an entity can have, the order of texts, and filters as trees.

This is what the wire formats read, the rules judge and the model compiles. No bytes of a protocol and no storage here.
"""

from dataclasses import dataclass
from enum import Enum


class EdmType(Enum):
    """The eight types, by the names that annotations give them."""

    BINARY = "Edm.Binary"
    BOOLEAN = "Edm.Boolean"
    DATETIME = "Edm.DateTime"
    DOUBLE = "Edm.Double"
    GUID = "Edm.Guid"
    INT32 = "Edm.Int32"
    INT64 = "Edm.Int64"
    STRING = "Edm.String"


ANNOTATION = "@odata.type"
"""What follows a property's name in the name of its annotation."""

PARTITION_KEY = "PartitionKey"
ROW_KEY = "RowKey"
TIMESTAMP = "Timestamp"


def ordinal(text: str) -> bytes:
    """Bytes that sort like the text does in the service: by its UTF-16 code units.

    This is UTF-8 but for characters beyond the basic plane. Those are written as their two surrogates, three bytes
    each (the form known as CESU-8), because in UTF-16 they come before U+E000, and in UTF-8 they would not.
    """
    octets = text.encode()
    if text.isascii() or max(octets) < _BEYOND_BASIC_PLANE:
        return octets
    units = text.encode("utf-16-be")
    pairs = (chr(int.from_bytes(units[at : at + 2], "big")) for at in range(0, len(units), 2))
    return "".join(pairs).encode("utf-8", "surrogatepass")


def text_of_ordinal(octets: bytes) -> str:
    """The text whose ``ordinal`` these are."""
    text = octets.decode("utf-8", "surrogatepass")
    if text.isascii():
        return text
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


_BEYOND_BASIC_PLANE = 0xF0
"""The first byte, in UTF-8, of every character beyond the basic plane, and of nothing else, is this or more."""


def utf16_units(text: str) -> int:
    """The length of a text as the service counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class SasKeyRange:
    """The entities that a table token opens, ends inclusive; None leaves an end open."""

    start_partition: str | None
    start_row: str | None
    end_partition: str | None
    end_row: str | None


class Operator(Enum):
    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GE = "ge"
    LT = "lt"
    LE = "le"


Value = str | int | float | bool | bytes


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant in a filter. Dates and GUIDs are texts in the one spelling in which they are stored."""

    type: EdmType
    value: Value


@dataclass(frozen=True, slots=True)
class Comparison:
    """A property against a constant, the property on the left."""

    name: str
    operator: Operator
    literal: Literal


@dataclass(frozen=True, slots=True)
class And:
    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    inner: "Filter"


@dataclass(frozen=True, slots=True)
class Constant:
    """Every entity, or none."""

    holds: bool


Filter = Comparison | And | Or | Not | Constant
