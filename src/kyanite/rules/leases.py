"""The lease machine: what every lease action, and every use of what is leased, does by state and time.

These are the rules of Lease Blob, Lease Container, Lease Share and Lease File since version 2012-02-12.
Whatever affects a lease is in this file, and the file does not know what is leased: how a refusal sounds
for a blob and how for a container is a row of the service's error table.

    state       locked   left by
    available   no       acquire
    leased      yes      release, break, or time: a finite lease expires
    breaking    yes      release, a break that shortens it, or time: it is broken
    broken      no       acquire, release, or a write
    expired     no       acquire, renew, release, break, or a write

No timer moves a lease: its state follows from the instants stored in it, so a stopped server and a running
one agree. A lease holds until its end and no longer: in the very tick of ``ends_at`` it has expired, in
that of ``breaks_at`` it is broken.
"""

from enum import Enum
from typing import NamedTuple

from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant, LeaseId, later

INFINITE = -1
"""The duration, in seconds, of a lease that never expires."""


class Lease(NamedTuple):
    """A lease as it is stored in the record of what it protects."""

    id: LeaseId | None = None
    """Kept when the lease expires or is broken: its holder may still release it, or renew an expired one."""
    seconds: int = 0
    ends_at: Instant | None = None
    """None when it never expires."""
    breaks_at: Instant | None = None
    """Set once somebody has broken it."""


NO_LEASE = Lease()


class State(Enum):
    AVAILABLE = "available"
    LEASED = "leased"
    BREAKING = "breaking"
    BROKEN = "broken"
    EXPIRED = "expired"


LOCKED = (State.LEASED, State.BREAKING)


def state_of(lease: Lease, now: Instant) -> State:
    if lease.id is None:
        return State.AVAILABLE
    if lease.breaks_at is not None:
        return State.BREAKING if now < lease.breaks_at else State.BROKEN
    if lease.ends_at is None or now < lease.ends_at:
        return State.LEASED
    return State.EXPIRED


def is_locked(lease: Lease, now: Instant) -> bool:
    return state_of(lease, now) in LOCKED


def holds(lease: Lease, given_id: LeaseId | None, now: Instant) -> bool:
    """Whether this is the id of a lease that is in force."""
    return given_id is not None and given_id == lease.id and is_locked(lease, now)


# --- The five actions


def acquire(lease: Lease, proposed_id: LeaseId, seconds: int, now: Instant) -> Lease:
    """Take the lease, or start it afresh when the caller already holds it.

    A request that proposes no id comes here with a new one, which nobody holds.
    """
    state = state_of(lease, now)
    is_own = proposed_id == lease.id
    if state is State.LEASED and not is_own:
        raise Refused(Reason.LEASE_ALREADY_PRESENT)
    if state is State.BREAKING:
        raise Refused(
            Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED if is_own else Reason.LEASE_ALREADY_PRESENT
        )
    return Lease(proposed_id, seconds, _end(seconds, now))


def renew(lease: Lease, given_id: LeaseId, now: Instant) -> Lease:
    """Start the time of the lease again, even of one that has expired.

    A write without the id makes an expired lease forgotten (see ``check_write``), so the renewal also
    proves to the holder that nobody has written in between.
    """
    if given_id != lease.id:
        raise Refused(Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION)
    if lease.breaks_at is not None:
        raise Refused(Reason.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED)
    return lease._replace(ends_at=_end(lease.seconds, now))


def change(lease: Lease, given_id: LeaseId, proposed_id: LeaseId, now: Instant) -> Lease:
    """Give the lease another id; its time runs on.

    If it has the proposed id already, that is a success whatever id was given: a client that lost the
    answer may ask again.
    """
    state = state_of(lease, now)
    if state not in LOCKED:
        raise Refused(Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION)
    if state is State.BREAKING and given_id == lease.id:
        raise Refused(Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED)
    if state is State.BREAKING or lease.id not in (given_id, proposed_id):
        raise Refused(Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION)
    return lease._replace(id=proposed_id)


def release(lease: Lease, given_id: LeaseId, now: Instant) -> Lease:
    """Give the lease up, whatever time has made of it: the next one may acquire at once."""
    if given_id != lease.id:
        raise Refused(Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION)
    return NO_LEASE


def break_(lease: Lease, period: int | None, now: Instant) -> tuple[Lease, int]:
    """Let the lease end after this many seconds, or with its own time if that is sooner. No id is needed.

    Without a period a finite lease lasts as long as it would have, and an infinite one ends at once. Also
    returns the seconds for which it still locks, rounded up: 0 means that it is free now.
    """
    if lease.id is None:
        raise Refused(Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION)
    if period is None and lease.ends_at is None:
        period = 0
    ends = (lease.ends_at, lease.breaks_at, None if period is None else later(now, period))
    breaks_at = min(end for end in ends if end is not None)
    return lease._replace(breaks_at=breaks_at), max(0, -((now - breaks_at) // TICKS_PER_SECOND))


def _end(seconds: int, now: Instant) -> Instant | None:
    return None if seconds == INFINITE else later(now, seconds)


# --- Using what is leased


def check_read(lease: Lease, given_id: LeaseId | None, now: Instant) -> None:
    """A read needs no lease, but an id sent with it is a condition: the lease of that id must be in force.

    So too for Snapshot Blob, and for everything done to a container or share but deleting it.
    """
    if given_id is None or holds(lease, given_id, now):
        return
    if is_locked(lease, now):
        raise Refused(Reason.LEASE_ID_MISMATCH)
    raise Refused(Reason.LEASE_LOST if given_id == lease.id else Reason.LEASE_NOT_PRESENT)


def check_write(lease: Lease, given_id: LeaseId | None, now: Instant) -> Lease:
    """Who writes or deletes must name the lease that is in force. Returns the lease as the write leaves it.

    A write without an id makes an expired or broken lease forgotten. To name an id where nothing exists yet
    is refused as if it were not leased: check against ``NO_LEASE``.
    """
    if given_id is not None:
        check_read(lease, given_id, now)
        return lease
    if lease.id is None:
        return lease
    if is_locked(lease, now):
        raise Refused(Reason.LEASE_ID_MISSING)
    return NO_LEASE


def check_copy_onto(lease: Lease, given_id: LeaseId | None, now: Instant) -> Lease:
    """As ``check_write``, for Copy Blob: since a pending copy could outlast it, a lease must be infinite."""
    after = check_write(lease, given_id, now)
    if given_id is not None and lease.seconds != INFINITE:
        raise Refused(Reason.INFINITE_LEASE_DURATION_REQUIRED)
    return after


def check_abort_copy(lease: Lease, given_id: LeaseId | None, now: Instant) -> None:
    """Abort Copy Blob needs the id of an infinite lease; beside any other an id is only a condition."""
    if lease.seconds == INFINITE:
        check_write(lease, given_id, now)
    else:
        check_read(lease, given_id, now)


# --- Showing it


class Shown(NamedTuple):
    """The values of ``x-ms-lease-status``, ``-state`` and ``-duration``; the last is absent unless leased."""

    status: str
    state: str
    duration: str | None


UNLEASED = Shown("unlocked", "available", None)


def shown(lease: Lease, now: Instant) -> Shown:
    if lease.id is None:
        return UNLEASED
    state = state_of(lease, now)
    status = "locked" if state in LOCKED else "unlocked"
    if state is not State.LEASED:
        return Shown(status, state.value, None)
    return Shown(status, state.value, "infinite" if lease.ends_at is None else "fixed")
