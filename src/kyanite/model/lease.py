"""A lease action and its outcome, for every kind of resource.

``rules/leases.py`` says what an action does in each state. No action changes an ETag or a Last-Modified.
"""

from enum import Enum
from typing import Final, assert_never

from kyanite.model.records import Value
from kyanite.rules import leases
from kyanite.rules.lease_records import Lease
from kyanite.values import Instant, LeaseId

NO_LEASE_ID: Final = LeaseId("")
"""Matches no lease."""


class Action(Enum):
    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


class LeaseRequest(Value, frozen=True):
    action: Action
    lease_id: LeaseId = NO_LEASE_ID
    """The present id, according to the caller: for renew, change and release."""
    proposed_id: LeaseId = NO_LEASE_ID
    """The new id: for acquire and change."""
    seconds: int = 0
    period: int | None = None
    """For break: the maximum number of seconds until the lease is broken."""


class Outcome(Value, frozen=True):
    lease: Lease
    seconds_left: int = 0
    """After a break: for how long the lease is still locked."""


def act(lease: Lease, request: LeaseRequest, now: Instant) -> Outcome:
    match request.action:
        case Action.ACQUIRE:
            return Outcome(leases.acquire(lease, request.proposed_id, request.seconds, now))
        case Action.RENEW:
            return Outcome(leases.renew(lease, request.lease_id, now))
        case Action.CHANGE:
            return Outcome(leases.change(lease, request.lease_id, request.proposed_id, now))
        case Action.RELEASE:
            return Outcome(leases.release(lease, request.lease_id, now))
        case Action.BREAK:
            return Outcome(*leases.break_(lease, request.period, now))
        case _:
            assert_never(request.action)
