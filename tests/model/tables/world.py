"""Random tables and filters, and what a filter means, written down independently of how the server computes it."""

import json
import math
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

STRING, INT32, INT64, DOUBLE, BOOLEAN, DATETIME, GUID, BINARY = (
    "String",
    "Int32",
    "Int64",
    "Double",
    "Boolean",
    "DateTime",
    "Guid",
    "Binary",
)
KEY_CHARACTERS = "aAb'é\ud7ff\ue000\uffff😀"
KEYS = st.text(st.sampled_from(KEY_CHARACTERS), max_size=3)
NAMES = st.sampled_from(["a", "b", "größe"])


@dataclass(frozen=True)
class Typed:
    type: str
    value: Any

    def as_json(self, name: str) -> dict[str, Any]:
        match self.type:
            case "Double" if not math.isfinite(self.value):
                text = "NaN" if math.isnan(self.value) else "Infinity" if self.value > 0 else "-Infinity"
                return {f"{name}@odata.type": "Edm.Double", name: text}
            case "Double":
                return {f"{name}@odata.type": "Edm.Double", name: self.value}
            case "DateTime":
                return {
                    f"{name}@odata.type": "Edm.DateTime",
                    name: f"{self.value:%Y-%m-%dT%H:%M:%S.%fZ}".zfill(27),
                }
            case "Guid":
                return {f"{name}@odata.type": "Edm.Guid", name: str(self.value)}
            case "Binary":
                return {f"{name}@odata.type": "Edm.Binary", name: b64encode(self.value).decode()}
            case "Int64":
                return {name: str(self.value), f"{name}@odata.type": "Edm.Int64"}
            case _:
                return {name: self.value}

    def as_constant(self) -> str:
        match self.type:
            case "String":
                return "'{}'".format(self.value.replace("'", "''"))
            case "Int64":
                return f"{self.value}L"
            case "Boolean":
                return "true" if self.value else "false"
            case "DateTime":
                return f"datetime'{self.value.isoformat().removesuffix('+00:00')}Z'"
            case "Guid":
                return f"guid'{self.value}'"
            case "Binary":
                return f"X'{self.value.hex()}'"
            case _:
                return repr(self.value)


MOMENTS = st.sampled_from(
    [datetime(2024, 5, 1, 12, 0, second, micro, UTC) for second in (0, 1) for micro in (0, 500_000, 500_100)]
)
CONSTANTS = st.one_of(
    KEYS.map(lambda text: Typed(STRING, text)),
    st.integers(-2, 2).map(lambda number: Typed(INT32, number)),
    st.integers(-2, 2).map(lambda number: Typed(INT64, number)),
    st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1e20]).map(lambda number: Typed(DOUBLE, number)),
    st.booleans().map(lambda flag: Typed(BOOLEAN, flag)),
    MOMENTS.map(lambda moment: Typed(DATETIME, moment)),
    st.sampled_from([UUID(int=1), UUID(int=2**100)]).map(lambda guid: Typed(GUID, guid)),
    st.binary(max_size=2).map(lambda octets: Typed(BINARY, octets)),
)
VALUES = CONSTANTS | st.sampled_from([math.nan, math.inf, -math.inf]).map(
    lambda number: Typed(DOUBLE, number)
)


@dataclass(frozen=True)
class Entity:
    partition_key: str
    row_key: str
    properties: dict[str, Typed]

    def as_json(self) -> bytes:
        body: dict[str, Any] = {"PartitionKey": self.partition_key, "RowKey": self.row_key}
        for name, value in self.properties.items():
            body |= value.as_json(name)
        return json.dumps(body).encode()

    def get(self, name: str) -> Typed | None:
        if name in ("PartitionKey", "RowKey"):
            return Typed(STRING, self.partition_key if name == "PartitionKey" else self.row_key)
        return self.properties.get(name)


ENTITIES = st.lists(
    st.builds(Entity, KEYS, KEYS, st.dictionaries(NAMES, VALUES, max_size=3)),
    max_size=12,
    unique_by=lambda entity: (entity.partition_key, entity.row_key),
)

# Filters are nested tuples: ("and", left, right), ("or", left, right), ("not", inner), (operator, name, constant).
OPERATORS = ("eq", "ne", "gt", "ge", "lt", "le")
KEY_COMPARISONS = st.tuples(
    st.sampled_from(OPERATORS),
    st.sampled_from(["PartitionKey", "RowKey"]),
    KEYS.map(lambda text: Typed(STRING, text)) | CONSTANTS,
)
COMPARISONS = st.tuples(st.sampled_from(OPERATORS), NAMES, CONSTANTS)


def filters(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: (
            st.tuples(st.sampled_from(("and", "or")), inner, inner) | st.tuples(st.just("not"), inner)
        ),
        max_leaves=8,
    )


FILTERS = filters(KEY_COMPARISONS | COMPARISONS)
KEY_FILTERS = filters(KEY_COMPARISONS)


def written(wanted: Any) -> str:
    match wanted:
        case ("and" | "or" as word, left, right):
            return f"({written(left)}) {word} ({written(right)})"
        case ("not", inner):
            return f"not ({written(inner)})"
        case (operator, name, constant):
            return f"{name} {operator} {constant.as_constant()}"
    raise AssertionError(wanted)


def is_true_of(wanted: Any, entity: Entity) -> bool:
    match wanted:
        case ("and", left, right):
            return is_true_of(left, entity) and is_true_of(right, entity)
        case ("or", left, right):
            return is_true_of(left, entity) or is_true_of(right, entity)
        case ("not", inner):
            return not is_true_of(inner, entity)
        case (operator, name, constant):
            return compares(operator, entity.get(name), constant)
    raise AssertionError(wanted)


def compares(operator: str, value: Typed | None, constant: Typed) -> bool:
    if value is None:
        return False
    if value.type != constant.type and (constant.type, value.type) not in ((INT32, INT64), (INT32, DOUBLE)):
        return operator == "ne"
    one, other = comparable(value), comparable(constant)
    return bool(
        {
            "eq": one == other,
            "ne": one != other,
            "gt": one > other,
            "ge": one >= other,
            "lt": one < other,
            "le": one <= other,
        }[operator]
    )


def comparable(value: Typed) -> Any:
    if value.type == STRING:
        return utf16(value.value)
    return str(value.value) if value.type == GUID else value.value


def utf16(text: str) -> list[int]:
    octets = text.encode("utf-16-be")
    return [int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2)]


def in_order(entities: list[Entity]) -> list[Entity]:
    return sorted(entities, key=lambda entity: (utf16(entity.partition_key), utf16(entity.row_key)))
