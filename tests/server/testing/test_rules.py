"""Fault rules: which requests they match, and to which of them the fault happens."""

import msgspec
import pytest

from kyanite.server.testing.rules import Counts, FaultRule, Identified, matches, next_counts, problem_of
from kyanite.values import TICKS_PER_SECOND, Instant

PUT = Identified("blob", "Put Blob", "alpha", "photos/2026/cat.jpg", "PUT")
NOW = Instant(10 * TICKS_PER_SECOND)
OPERATIONS = ("Get Blob", "Put Blob")
SERVICES = ("blob", "queue")


def happens(rule: FaultRule, instants: list[Instant]) -> str:
    """One letter for each request in order: X where the fault happens."""
    counts, letters = Counts(), ""
    for now in instants:
        counts, hit = next_counts(rule, counts, now)
        letters += "X" if hit else "."
    assert counts.matched == len(instants)
    assert counts.fired == letters.count("X")
    return letters


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (FaultRule(), True),
        (FaultRule(service="blob"), True),
        (FaultRule(service="queue"), False),
        (FaultRule(operation="Put Blob"), True),
        (FaultRule(operation="Get Blob"), False),
        (FaultRule(account="alpha"), True),
        (FaultRule(account="beta"), False),
        (FaultRule(method="put"), True),
        (FaultRule(method="GET"), False),
        (FaultRule(path="photos/*.jpg"), True),
        (FaultRule(path="/photos/*"), True),
        (FaultRule(path="photos"), False),
        (FaultRule(path="PHOTOS/*"), False),
        (FaultRule(service="blob", operation="Put Blob", account="beta"), False),
    ],
)
def test_which_requests_a_rule_matches(rule: FaultRule, expected: bool) -> None:
    assert matches(rule, PUT) is expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (FaultRule(), "XXXXX"),
        (FaultRule(times=2), "XX..."),
        (FaultRule(skip=2), "..XXX"),
        (FaultRule(skip=1, times=2), ".XX.."),
        (FaultRule(beyond_per_second=3), "...XX"),
        (FaultRule(beyond_per_second=0), "XXXXX"),
        (FaultRule(beyond_per_second=1, times=2), ".XX.."),
    ],
)
def test_how_often(rule: FaultRule, expected: str) -> None:
    assert happens(rule, [NOW] * 5) == expected


def test_a_second_begins_with_the_first_request_after_the_last_one() -> None:
    seconds = (0.0, 0.5, 0.9, 1.0, 1.9, 2.1, 9.0)
    instants = [Instant(NOW + int(at * TICKS_PER_SECOND)) for at in seconds]
    assert happens(FaultRule(beyond_per_second=2), instants) == "..X...."


def test_a_probability_is_decided_by_the_seed() -> None:
    drawn = {seed: happens(FaultRule(probability=0.3, seed=seed), [NOW] * 1000) for seed in (1, 2)}
    assert drawn[1] != drawn[2]
    assert drawn[1] == happens(FaultRule(probability=0.3, seed=1), [NOW] * 1000)
    assert all(200 < letters.count("X") < 400 for letters in drawn.values())


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (FaultRule(), "Say what happens"),
        (FaultRule(status=503, drop=True), "one of"),
        (FaultRule(drop=True, truncate_bytes=1), "one of"),
        (FaultRule(delay_seconds=1, after_commit=True), "after_commit goes with"),
        (FaultRule(truncate_bytes=1, after_commit=True), "after_commit goes with"),
        (FaultRule(drop=True, code="ServerBusy"), "go with status"),
        (FaultRule(drop=True, retry_after_seconds=1), "go with status"),
        (FaultRule(status=418), "needs the code"),
        (FaultRule(status=503, service="blobs"), "There is no service 'blobs'. There is blob, queue."),
        (FaultRule(status=503, operation="Put Blop"), "Did you mean 'Put Blob'?"),
        (FaultRule(status=503, operation="nonsense"), "There is no operation 'nonsense'."),
    ],
)
def test_rules_that_cannot_be_obeyed(rule: FaultRule, words: str) -> None:
    assert words in str(problem_of(rule, OPERATIONS, SERVICES))


@pytest.mark.parametrize(
    "rule",
    [
        FaultRule(status=503, operation="Put Blob", service="blob"),
        FaultRule(status=418, code="Teapot", retry_after_seconds=0),
        FaultRule(status=500, after_commit=True),
        FaultRule(drop=True, after_commit=True, delay_seconds=0.1),
        FaultRule(truncate_bytes=0),
        FaultRule(delay_seconds=0.1),
    ],
)
def test_rules_that_can(rule: FaultRule) -> None:
    assert problem_of(rule, OPERATIONS, SERVICES) is None
    assert msgspec.json.decode(msgspec.json.encode(rule), type=FaultRule) == rule
