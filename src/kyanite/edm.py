"""The entity data model: the types a property of an entity can have, the order of texts, and filters as trees.

The wire formats read these values, the rules check them and the model compiles them.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


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


ANNOTATION: Final = "@odata.type"
"""The suffix of a property's name in the name of its annotation."""

PARTITION_KEY: Final = "PartitionKey"
ROW_KEY: Final = "RowKey"
TIMESTAMP: Final = "Timestamp"


def ordinal(text: str) -> bytes:
    """Bytes that sort like the text does in Azure: by its UTF-16 code units.

    This is UTF-8 except for characters beyond the basic plane, which are encoded as two surrogates of three bytes each
    (CESU-8): in UTF-16 they sort before U+E000, and in UTF-8 they would not.
    """
    octets = text.encode()
    if text.isascii() or max(octets) < _BEYOND_BASIC_PLANE:
        return octets
    units = text.encode("utf-16-be")
    pairs = [chr(int.from_bytes(units[at : at + 2], "big")) for at in range(0, len(units), 2)]
    return "".join(pairs).encode("utf-8", "surrogatepass")


def text_of_ordinal(octets: bytes) -> str:
    """The text whose ``ordinal`` these are."""
    text = octets.decode("utf-8", "surrogatepass")
    if text.isascii():
        return text
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


_BEYOND_BASIC_PLANE: Final = 0xF0
"""A byte of UTF-8 is this or more only where it begins a character beyond the basic plane."""


def utf16_units(text: str) -> int:
    """The length of a text as Azure counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class SasKeyRange:
    """The entities that a shared access signature of a table allows, ends inclusive; None leaves an end open."""

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
    """A constant in a filter. Dates and GUIDs are texts, spelled as they are stored."""

    type: EdmType
    value: Value


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a property with a constant; the property is on the left."""

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

    value: bool


Filter = Comparison | And | Or | Not | Constant
