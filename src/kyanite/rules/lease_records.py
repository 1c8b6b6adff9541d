"""A lease as it is stored, and what refusals say of one. ``leases.py`` has the rules."""

from typing import Final, NamedTuple

from kyanite.values import Instant, LeaseId


class Lease(NamedTuple):
    """A lease as it is stored in the record of the leased resource."""

    id: LeaseId | None = None
    """Kept when the lease expires or is broken: its holder may still release it, or renew an expired one."""
    seconds: int = 0
    ends_at: Instant | None = None
    """None when it never expires."""
    breaks_at: Instant | None = None
    """Set when a client has broken it."""


NO_LEASE: Final = Lease()


class LeaseFacts(NamedTuple):
    """What a refusal compared."""

    lease: Lease
    given_id: LeaseId | None
    at: Instant
