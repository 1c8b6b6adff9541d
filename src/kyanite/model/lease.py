"""A lease action as a client asks for it, and what it leads to: the same for whatever is leased.

Which action does what in which state is ``rules/leases.py``. No action changes an ETag or a Last-Modified.
"""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from kyanite.rules import leases
from kyanite.rules.leases import Lease
from kyanite.values import Instant, LeaseId

NO_LEASE_ID = LeaseId("")
"""Matches no lease."""


class Action(Enum):
    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    action: Action
    lease_id: LeaseId = NO_LEASE_ID
    """The id that the caller says is in force: for renew, change and release."""
    proposed_id: LeaseId = NO_LEASE_ID
    """The id to have from now on: for acquire and change."""
    seconds: int = 0
    period: int | None = None
    """For break: the seconds to go on at the most."""


@dataclass(frozen=True, slots=True)
class Outcome:
    lease: Lease
    seconds_left: int = 0
    """After a break: for how long the lease still locks."""


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
