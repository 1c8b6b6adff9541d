"""Regions of keys: making one takes a bounded number of steps, and a region that was widened still finds everything."""

import sys
from types import FrameType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kyanite.model.tables import key_ranges, query
from kyanite.model.tables.key_ranges import MAX_INTERVALS
from kyanite.wire.odata import decode_filter
from tests.model.tables.test_query import at_once, filled, find_all, keys_of
from tests.model.tables.world import ENTITIES, FILTERS, Entity, in_order, is_true_of, written
from tests.profiles import examples


def any_of(name: str, count: int, operator: str = "eq", step: int = 1) -> str:
    keys = [f"{name} {operator} '{number * step:05}'" for number in range(count)]
    return f"({' or '.join(keys)})"


def calls_of_planning(text: str) -> int:
    """How many functions are called and generators resumed, whatever the machine."""
    wanted = decode_filter(text)
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        query.plan(wanted)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    "text",
    [
        f"{any_of('PartitionKey', 1000)} and {any_of('RowKey', 1000)}",
        f"{any_of('RowKey', 1000)} and {any_of('PartitionKey', 1000)}",
        f"not ({any_of('PartitionKey', 1000)} and {any_of('RowKey', 1000)})",
        f"{any_of('PartitionKey', 1000)} or not {any_of('RowKey', 1000)}",
        f"{any_of('PartitionKey', 1000)} and {any_of('RowKey', 1000)} and n eq 5",
        # Each partition has few rows, and none of them is among the thousand.
        f"{any_of('PartitionKey', 700)} and (RowKey eq '1' or RowKey eq '2') and not {any_of('RowKey', 1000)}",
        " and ".join(f"({any_of('PartitionKey', 100, 'ne')} or RowKey eq '{n}')" for n in range(15)),
        " and ".join([any_of("PartitionKey", 40, "ne") + " or " + any_of("RowKey", 40, "ne")] * 10),
    ],
)
def test_planning_is_not_quadratic(text: str) -> None:
    assert calls_of_planning(text) < 400_000


def test_a_plan_of_many_keys_seeks_each() -> None:
    plan = query.plan(decode_filter(any_of("PartitionKey", MAX_INTERVALS)))
    assert len(plan.key_ranges) == MAX_INTERVALS
    assert plan.matches is None
    plan = query.plan(decode_filter(f"{any_of('PartitionKey', 40)} and {any_of('RowKey', 50, step=2)}"))
    assert len(plan.key_ranges) == 40 * 50
    assert plan.matches is None


def test_a_product_of_many_keys_reads_the_partitions_that_are_named() -> None:
    for text in (
        f"{any_of('PartitionKey', 100)} and {any_of('RowKey', 100)}",
        f"{any_of('RowKey', 100)} and {any_of('PartitionKey', 100)}",
    ):
        plan = query.plan(decode_filter(text))
        assert len(plan.key_ranges) == 100
        assert plan.matches is not None


@settings(max_examples=examples(200))
@given(ENTITIES, FILTERS, st.integers(0, 3), st.integers(0, 20))
def test_a_widened_region_finds_what_the_filter_means(
    entities: list[Entity], wanted: Any, intervals: int, steps: int
) -> None:
    engine = at_once(filled(entities))
    expected = [each for each in in_order(entities) if is_true_of(wanted, each)]
    with patch.object(key_ranges, "MAX_INTERVALS", intervals), patch.object(key_ranges, "MAX_STEPS", steps):
        assert at_once(find_all(engine, written(wanted))) == keys_of(expected)
