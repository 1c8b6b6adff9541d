"""What keeping a refusal costs, in calls that are the same on every machine: about 3 microseconds of the 5 allowed."""

import sys
from types import FrameType

import pytest

from kyanite.model.requests.refusals import Refusals
from kyanite.rules.lease_records import NO_LEASE, LeaseFacts
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest.refused_requests import refusal_of
from kyanite.values import Instant
from kyanite.wire.http import Request
from tests.services.harness import BytesBody

FUNCTIONS_MAX = 2
"""Of Python: one that gathers the values, and one that keeps them."""
BUILTINS_MAX = 24


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_keeping_a_refusal_is_a_few_calls_however_many_are_kept() -> None:
    headers = {f"header-{number}": "value" for number in range(20)}
    request = Request("GET", "/acme/c/b", "", headers, (), BytesBody(b""), "::1", False, 10000)
    error = Refused(Reason.LEASE_LOST, facts=LeaseFacts(NO_LEASE, None, Instant(0)))
    refusals = Refusals(kept_max=100)
    for number in range(1_000):
        request.request_id = str(number)
        refusals.add(refusal_of("blob", request, error, 412, Instant(0)))
    request.request_id = "the next"
    counts = {"call": 0, "c_call": 0}

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        if event in counts:
            counts[event] += 1

    sys.setprofile(count)
    try:
        refusals.add(refusal_of("blob", request, error, 412, Instant(0)))
    finally:
        sys.setprofile(None)
    assert len(refusals) == 100
    assert counts["call"] <= FUNCTIONS_MAX
    assert counts["c_call"] <= BUILTINS_MAX
