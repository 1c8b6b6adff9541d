"""Compiled filters: comparisons of every type with every type, and how they are put together."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kyanite.model.tables.filter import compile_filter
from kyanite.wire.edm import decode_entity
from kyanite.wire.odata import decode_filter
from tests.model.tables.world import (
    CONSTANTS,
    FILTERS,
    KEYS,
    NAMES,
    OPERATORS,
    STRING,
    VALUES,
    Entity,
    Typed,
    compares,
    is_true_of,
    written,
)
from tests.profiles import examples

STRINGS = KEYS.map(lambda text: Typed(STRING, text))


def matches(text: str, properties: dict[str, Any]) -> bool:
    """Whether a filter holds for an entity in the form in which it is stored, as far as filters look at it."""
    wanted = decode_filter(text)
    assert wanted is not None
    return compile_filter(wanted)(json.dumps(properties).encode())


def stored(entity: Entity) -> dict[str, Any]:
    keys = {"PartitionKey": entity.partition_key, "RowKey": entity.row_key}
    return {**keys, **decode_entity(entity.as_json())[2]}


@settings(max_examples=examples(300))
@given(st.sampled_from(OPERATORS), st.tuples(STRINGS, STRINGS) | st.tuples(VALUES, CONSTANTS))
def test_a_comparison_means_what_it_says(operator: str, pair: tuple[Typed, Typed]) -> None:
    value, constant = pair
    entity = Entity("p", "r", {"a": value})
    assert matches(f"a {operator} {constant.as_constant()}", stored(entity)) is compares(
        operator, value, constant
    )


@given(st.builds(Entity, KEYS, KEYS, st.dictionaries(NAMES, VALUES)), FILTERS)
def test_a_filter_means_what_it_says(entity: Entity, wanted: Any) -> None:
    assert matches(written(wanted), stored(entity)) is is_true_of(wanted, entity)


INT64 = {"a@odata.type": "Edm.Int64", "a": "5"}
DATE = {"a@odata.type": "Edm.DateTime", "a": "2024-05-01T00:00:00.5Z"}


@pytest.mark.parametrize(
    ("properties", "text", "expected"),
    [
        # By UTF-16 code units the emoji (D83D DE00) comes before U+FF00, as code points it comes behind.
        ({"a": "😀"}, "a lt '\uff00'", True),
        ({"a": "\uff00"}, "a gt '😀'", True),
        ({"a": "\uff00"}, "a lt '😀'", False),
        ({"a": "Z"}, "a lt 'a'", True),
        ({"a": "a"}, "a lt 'ab'", True),
        ({"a": "é"}, "a eq 'e\u0301'", False),
        # A whole number without a mark is compared with every kind of number; others with their own kind.
        ({"a": 5}, "a eq 5", True),
        (INT64, "a eq 5", True),
        ({"a": 5.0}, "a eq 5", True),
        ({"a": 5}, "a eq 5L", False),
        (INT64, "a eq 5L", True),
        ({"a": 5.0}, "a eq 5L", False),
        ({"a": 5}, "a eq 5.0", False),
        (INT64, "a eq 5.0", False),
        ({"a": 5.0}, "a eq 5.0", True),
        ({"a": True}, "a eq 1", False),
        ({"a": "5"}, "a eq 5", False),
        (INT64, "a eq '5'", False),
        # Another type is not equal, and neither more nor less. The service was seen to let `ne` pass.
        ({"a": "x"}, "a ne 5", True),
        ({"a": 1.5}, "a ne ''", True),
        ({"a": "x"}, "a gt 5", False),
        ({"a": "x"}, "a lt 5", False),
        # What is missing fits nothing, but not fitting can be negated.
        ({}, "a eq 5", False),
        ({}, "a ne 5", False),
        ({}, "not (a eq 5)", True),
        ({}, "a", False),
        # Unusual numbers
        ({"a@odata.type": "Edm.Double", "a": "NaN"}, "a ne 1.0", True),
        ({"a@odata.type": "Edm.Double", "a": "NaN"}, "a ge 1.0 or a lt 1.0", False),
        ({"a@odata.type": "Edm.Double", "a": "Infinity"}, "a gt 1e300", True),
        ({"a@odata.type": "Edm.Double", "a": "-Infinity"}, "a lt 5", True),
        ({"a@odata.type": "Edm.Int64", "a": "9223372036854775807"}, "a eq 9223372036854775807L", True),
        ({"a@odata.type": "Edm.Int64", "a": "9223372036854775807"}, "a gt 9223372036854775806L", True),
        ({"a@odata.type": "Edm.Int64", "a": "10"}, "a gt 9L", True),
        # Times
        (DATE, "a gt datetime'2024-05-01T00:00:00Z'", True),
        (DATE, "a lt datetime'2024-05-01T00:00:01Z'", True),
        (DATE, "a eq datetime'2024-05-01T00:00:00.5000000Z'", True),
        (DATE, "a lt datetime'2024-05-01T00:00:00.51Z'", True),
        (DATE, "a eq '2024-05-01T00:00:00.5Z'", False),
        # Bytes and GUIDs
        ({"a@odata.type": "Edm.Binary", "a": "AP8="}, "a eq X'00ff'", True),
        ({"a@odata.type": "Edm.Binary", "a": "AP8="}, "a gt X'00'", True),
        (
            {"a@odata.type": "Edm.Guid", "a": "c9da6455-213d-42c9-9a79-3e9149a57833"},
            "a gt guid'00000000-0000-0000-0000-000000000001'",
            True,
        ),
        # Names are case-sensitive, and several may stand for the same property.
        ({"A": 5}, "a eq 5", False),
        ({"a": 5}, "a gt 4 and a lt 6 and a ne 7 and a", False),
        ({"a": 5}, "a gt 4 and a lt 6 and a ne 7", True),
        ({"a": 5, "b": 6}, "a eq 1 or a eq 2 or b eq 6", True),
        ({"größe": 5}, "größe eq 5", True),
        ({"a": True}, "a and not false", True),
    ],
)
def test_comparisons(properties: dict[str, Any], text: str, expected: bool) -> None:
    assert matches(text, properties) is expected
