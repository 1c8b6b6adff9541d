"""A lease action as a client asks for it, and what it leads to: the same for whatever is leased.

Which action does what in which state is ``rules/leases.py``. No action changes an ETag or a Last-Modified.
"""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from kyanite.rules import leases
from kyanite.rules.leases import Lease
from kyanite.values import Instant, LeaseId

NOBODY = LeaseId("")
"""Matches no lease."""


class Action(Enum):
    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


@dataclass(frozen=True, slots=True)
class LeaseAsk:
    action: Action
    lease_id: LeaseId = NOBODY
    """The id that the caller says is in force: for renew, change and release."""
    proposed_id: LeaseId = NOBODY
    """The id to have from now on: for acquire and change."""
    seconds: int = 0
    period: int | None = None
    """For break: the seconds to go on at the most."""


@dataclass(frozen=True, slots=True)
class Outcome:
    lease: Lease
    seconds_left: int = 0
    """After a break: for how long the lease still locks."""


def act(lease: Lease, ask: LeaseAsk, now: Instant) -> Outcome:
    match ask.action:
        case Action.ACQUIRE:
            return Outcome(leases.acquire(lease, ask.proposed_id, ask.seconds, now))
        case Action.RENEW:
            return Outcome(leases.renew(lease, ask.lease_id, now))
        case Action.CHANGE:
            return Outcome(leases.change(lease, ask.lease_id, ask.proposed_id, now))
        case Action.RELEASE:
            return Outcome(leases.release(lease, ask.lease_id, now))
        case Action.BREAK:
            return Outcome(*leases.break_(lease, ask.period, now))
        case _:
            assert_never(ask.action)
