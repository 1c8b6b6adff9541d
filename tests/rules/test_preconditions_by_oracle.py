"""Preconditions against a formula over sets, for every combination of headers there is.

The universe is a handful of resources. A header denotes the set of those that satisfy it, and a request is
the service's formula over these sets; the rule must admit exactly the resources in it. The oracle knows whole
seconds only, so a fraction in a stored time must not matter.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import pytest

from kyanite.rules import preconditions
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason
from kyanite.rules.tag_expressions import decode_condition
from kyanite.values import TICKS_PER_SECOND, ETag, Instant
from tests.rules.refusing import reason_of


class Resource(NamedTuple):
    etag: str
    second: int


NOON = 63_850_032_000
RESOURCES = frozenset(Resource(etag, NOON + second) for etag in ("x", "y") for second in (0, 1, 2))
FRACTIONS = (0, 9_999_999)

TAGS: tuple[tuple[str, ...] | None, ...] = (None, ("*",), ("x",), ("z",), ("x", "y"), ("z", "*"))
SECONDS = (None, NOON, NOON + 1, NOON + 2)

Sets = dict[str, frozenset[Resource]]


def every_request() -> Iterator[tuple[Conditions, Sets]]:
    """All requests over these values, each with the set that every header in it denotes."""
    for match, none_match, modified, unmodified in product(TAGS, TAGS, SECONDS, SECONDS):
        sets: Sets = {}
        if match is not None:
            sets["match"] = frozenset(r for r in RESOURCES if {r.etag, "*"} & set(match))
        if none_match is not None:
            sets["none_match"] = frozenset(r for r in RESOURCES if not {r.etag, "*"} & set(none_match))
        if modified is not None:
            sets["modified"] = frozenset(r for r in RESOURCES if r.second > modified)
        if unmodified is not None:
            sets["unmodified"] = frozenset(r for r in RESOURCES if r.second <= unmodified)
        yield Conditions(match, none_match, instant(modified), instant(unmodified)), sets


def instant(second: int | None) -> Instant | None:
    return None if second is None else Instant(second * TICKS_PER_SECOND)


def refusal(check: Callable[[ETag, Instant], None], resource: Resource) -> Reason | None:
    """What is refused, whatever the fraction of the second."""
    etag = ETag(resource.etag)
    times = [Instant(resource.second * TICKS_PER_SECOND + fraction) for fraction in FRACTIONS]
    (reason,) = {reason_of(partial(check, etag, time)) for time in times}
    return reason


def strong(sets: Sets) -> frozenset[Resource]:
    return sets.get("match", RESOURCES) & sets.get("unmodified", RESOURCES)


def weak(sets: Sets) -> frozenset[Resource]:
    present = [sets[name] for name in ("none_match", "modified") if name in sets]
    return frozenset[Resource]().union(*present) if present else RESOURCES


def test_a_read() -> None:
    for conditions, sets in every_request():
        for resource in RESOURCES:
            if "*" in (conditions.if_none_match or ()):
                expected: Reason | None = Reason.UNSATISFIABLE_CONDITION
            elif resource not in strong(sets):
                expected = Reason.CONDITION_NOT_MET
            else:
                expected = None if resource in weak(sets) else Reason.NOT_MODIFIED
            actual = refusal(partial(preconditions.check_read, conditions), resource)
            assert actual is expected, (conditions, resource)


def test_a_source() -> None:
    for conditions, sets in every_request():
        for resource in RESOURCES:
            admitted = resource in strong(sets) & weak(sets)
            expected = None if admitted else Reason.SOURCE_CONDITION_NOT_MET
            actual = refusal(partial(preconditions.check_source, conditions), resource)
            assert actual is expected, (conditions, resource)


def test_a_source_that_is_read_by_its_url() -> None:
    for conditions, sets in every_request():
        for resource in RESOURCES:
            expected = None if resource in weak(sets) else Reason.COPY_SOURCE_NOT_MODIFIED
            if resource not in strong(sets):
                expected = Reason.COPY_SOURCE_CONDITION_NOT_MET
            actual = refusal(partial(preconditions.check_source_read, conditions), resource)
            assert actual is expected, (conditions, resource)


RED = (("colour", "red"),)
MET, UNMET = decode_condition("colour = 'red'"), decode_condition("colour <> 'red'")


def test_a_condition_on_tags_beside_all_others() -> None:
    """If it is met it changes nothing, otherwise only faults of the request itself are stronger."""
    checks: list[tuple[Callable[..., None], Reason, frozenset[Reason]]] = [
        (preconditions.check_read, Reason.CONDITION_NOT_MET, frozenset({Reason.UNSATISFIABLE_CONDITION})),
        (preconditions.check_tags_read, Reason.CONDITION_NOT_MET, frozenset()),
        (preconditions.check_source, Reason.CONDITION_NOT_MET, frozenset({Reason.SOURCE_CONDITION_NOT_MET})),
        (preconditions.check_source_read, Reason.COPY_SOURCE_CONDITION_NOT_MET, frozenset()),
        (preconditions.check_delete, Reason.CONDITION_NOT_MET, frozenset({Reason.MULTIPLE_CONDITIONS})),
        *[
            (
                partial(preconditions.check_write, creates=creates, holds_lease=holds_lease),
                Reason.CONDITION_NOT_MET,
                frozenset({Reason.MULTIPLE_CONDITIONS, Reason.BLOB_ALREADY_EXISTS}),
            )
            for creates in (False, True)
            for holds_lease in (False, True)
        ],
    ]
    etag, time = ETag("x"), Instant((NOON + 1) * TICKS_PER_SECOND)
    for conditions, _ in every_request():
        for check, not_met, stronger in checks:
            without = reason_of(partial(check, conditions, etag, time, RED))
            met = reason_of(partial(check, replace(conditions, if_tags=MET), etag, time, RED))
            assert met is without, conditions
            unmet = reason_of(partial(check, replace(conditions, if_tags=UNMET), etag, time, RED))
            assert unmet is (without if without in stronger else not_met), conditions


def test_what_does_not_exist_meets_no_condition_on_tags() -> None:
    for conditions, _ in every_request():
        check = partial(preconditions.check_write, creates=True)
        without = reason_of(partial(check, conditions, None, None))
        for if_tags in (MET, UNMET):
            actual = reason_of(partial(check, replace(conditions, if_tags=if_tags), None, None))
            assert actual is (without or Reason.CONDITION_NOT_MET), conditions


ALLOWED: dict[frozenset[str], str | None] = {
    frozenset(): None,
    frozenset({"match"}): "match",
    frozenset({"none_match"}): "none_match",
    frozenset({"modified"}): "modified",
    frozenset({"unmodified"}): "unmodified",
    frozenset({"match", "unmodified"}): "match",
    frozenset({"none_match", "modified"}): "none_match",
}
"""The combinations that a write may carry, and the header that decides."""


def is_allowed(conditions: Conditions, sets: Sets) -> bool:
    lengths = [len(tags) for tags in (conditions.if_match, conditions.if_none_match) if tags is not None]
    return max(lengths, default=1) == 1 and sets.keys() in [set(names) for names in ALLOWED]


@pytest.mark.parametrize("creates", [False, True])
@pytest.mark.parametrize("holds_lease", [False, True])
def test_a_write(creates: bool, holds_lease: bool) -> None:
    for conditions, sets in every_request():
        for resource in RESOURCES:
            if not is_allowed(conditions, sets):
                expected: Reason | None = Reason.MULTIPLE_CONDITIONS
            elif creates and conditions.if_none_match == ("*",):
                expected = None if holds_lease else Reason.BLOB_ALREADY_EXISTS
            else:
                decider = ALLOWED[frozenset(sets)]
                admitted = decider is None or resource in sets[decider]
                expected = None if admitted else Reason.CONDITION_NOT_MET
            check = partial(preconditions.check_write, conditions, creates=creates, holds_lease=holds_lease)
            assert refusal(check, resource) is expected, (conditions, resource)


@pytest.mark.parametrize("holds_lease", [False, True])
def test_a_write_where_nothing_exists(holds_lease: bool) -> None:
    for conditions, sets in every_request():
        expected: Reason | None = None
        if not is_allowed(conditions, sets):
            expected = Reason.MULTIPLE_CONDITIONS
        elif "match" in sets:
            expected = Reason.CONDITION_NOT_MET
        check = partial(
            preconditions.check_write, conditions, None, None, creates=True, holds_lease=holds_lease
        )
        assert reason_of(check) is expected, conditions


def test_a_write_that_minds_only_time() -> None:
    for conditions, sets in every_request():
        for resource in RESOURCES:
            times = [sets[name] for name in ("modified", "unmodified") if name in sets]
            admitted = all(resource in met for met in times)
            expected = None if admitted else Reason.CONDITION_NOT_MET
            if len(times) == 2:
                expected = Reason.MULTIPLE_CONDITIONS
            actual = refusal(partial(check_time, conditions), resource)
            assert actual is expected, (conditions, resource)


def check_time(conditions: Conditions, _: ETag, modified_at: Instant) -> None:
    preconditions.check_time_write(conditions, modified_at)
