"""The lease state machine: what each lease action, and each use of a leased resource, does by state and time.

These are the rules of Lease Blob, Lease Container, Lease Share and Lease File since version 2012-02-12. Everything that
affects a lease is in this file, and the file does not know what is leased: the response for a refusal, which differs
between blobs and containers, is in the service's error table.

    state       locked   left by
    available   no       acquire
    leased      yes      release, break, or time: a finite lease expires
    breaking    yes      release, a break that shortens it, or time: it is broken
    broken      no       acquire, release, or a write
    expired     no       acquire, renew, release, break, or a write

No timer moves a lease: its state follows from the instants stored in it, so a stopped server and a running
one agree. A lease is in force until its end and no longer: in the very tick of ``ends_at`` it has expired, in
that of ``breaks_at`` it is broken.
"""

from enum import Enum
from typing import Final, NamedTuple

from kyanite.rules.lease_records import NO_LEASE, Lease, LeaseFacts
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant, LeaseId, later

INFINITE: Final = -1
"""The duration, in seconds, of a lease that never expires."""


class State(Enum):
    AVAILABLE = "available"
    LEASED = "leased"
    BREAKING = "breaking"
    BROKEN = "broken"
    EXPIRED = "expired"


LOCKED: Final = (State.LEASED, State.BREAKING)


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
    """Take the lease, or restart it when the caller already holds it.

    For a request that proposes no id, the caller passes a new one.
    """
    state = state_of(lease, now)
    is_own = proposed_id == lease.id
    if state is State.LEASED and not is_own:
        raise _refused(Reason.LEASE_ALREADY_PRESENT, lease, proposed_id, now)
    if state is State.BREAKING:
        reason = Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED if is_own else Reason.LEASE_ALREADY_PRESENT
        raise _refused(reason, lease, proposed_id, now)
    return Lease(proposed_id, seconds, _end(seconds, now))


def renew(lease: Lease, given_id: LeaseId, now: Instant) -> Lease:
    """Start the time of the lease again, even of one that has expired.

    A write without the id removes an expired lease (see ``check_write``), so the renewal also proves to the holder that
    no other client has written in between.
    """
    if given_id != lease.id:
        raise _refused(Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION, lease, given_id, now)
    if lease.breaks_at is not None:
        raise _refused(Reason.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED, lease, given_id, now)
    return Lease(lease.id, lease.seconds, _end(lease.seconds, now))


def change(lease: Lease, given_id: LeaseId, proposed_id: LeaseId, now: Instant) -> Lease:
    """Give the lease another id; its end stays the same.

    If it has the proposed id already, the action succeeds whatever id was given: a client that lost the response may
    repeat the request.
    """
    state = state_of(lease, now)
    if state not in LOCKED:
        raise _refused(Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION, lease, given_id, now)
    if state is State.BREAKING and given_id == lease.id:
        raise _refused(Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED, lease, given_id, now)
    if state is State.BREAKING or lease.id not in (given_id, proposed_id):
        raise _refused(Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION, lease, given_id, now)
    return lease._replace(id=proposed_id)


def release(lease: Lease, given_id: LeaseId, now: Instant) -> Lease:
    """End the lease in any state: another client can acquire it immediately."""
    if given_id != lease.id:
        raise _refused(Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION, lease, given_id, now)
    return NO_LEASE


def break_(lease: Lease, period: int | None, now: Instant) -> tuple[Lease, int]:
    """End the lease after this many seconds, or at its own end if that is earlier. No id is needed.

    Without a period a finite lease keeps its end, and an infinite one ends immediately. Also returns the seconds for
    which it is still locked, rounded up: 0 means that it is free now.
    """
    if lease.id is None:
        raise _refused(Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION, lease, None, now)
    if period is None and lease.ends_at is None:
        period = 0
    ends = (lease.ends_at, lease.breaks_at, None if period is None else later(now, period))
    breaks_at = min(end for end in ends if end is not None)
    return lease._replace(breaks_at=breaks_at), max(0, -((now - breaks_at) // TICKS_PER_SECOND))


def _end(seconds: int, now: Instant) -> Instant | None:
    return None if seconds == INFINITE else later(now, seconds)


def _refused(reason: Reason, lease: Lease, given_id: LeaseId | None, now: Instant) -> Refused:
    return Refused(reason, facts=LeaseFacts(lease, given_id, now))


# --- Using a leased resource


def check_read(lease: Lease, given_id: LeaseId | None, now: Instant) -> None:
    """A read needs no lease, but an id sent with it is a condition: the lease of that id must be in force.

    The same applies to Snapshot Blob, and to all operations on a container or share except its deletion.
    """
    if given_id is None or holds(lease, given_id, now):
        return
    if is_locked(lease, now):
        raise _refused(Reason.LEASE_ID_MISMATCH, lease, given_id, now)
    reason = Reason.LEASE_LOST if given_id == lease.id else Reason.LEASE_NOT_PRESENT
    raise _refused(reason, lease, given_id, now)


def check_write(lease: Lease, given_id: LeaseId | None, now: Instant) -> Lease:
    """A write or delete must name the lease that is in force. Returns the lease after the write.

    A write without an id removes an expired or broken lease. An id for a resource that does not exist is refused as if
    the resource were not leased: check against ``NO_LEASE``.
    """
    if given_id is not None:
        check_read(lease, given_id, now)
        return lease
    if lease.id is None:
        return lease
    if is_locked(lease, now):
        raise _refused(Reason.LEASE_ID_MISSING, lease, given_id, now)
    return NO_LEASE


def check_copy_onto(lease: Lease, given_id: LeaseId | None, now: Instant) -> Lease:
    """Like ``check_write``, for Copy Blob: the lease must be infinite, because a pending copy could outlast it."""
    after = check_write(lease, given_id, now)
    if given_id is not None and lease.seconds != INFINITE:
        raise _refused(Reason.INFINITE_LEASE_DURATION_REQUIRED, lease, given_id, now)
    return after


def check_abort_copy(lease: Lease, given_id: LeaseId | None, now: Instant) -> None:
    """Abort Copy Blob needs the id of an infinite lease; with any other lease an id is only a condition."""
    if lease.seconds == INFINITE:
        check_write(lease, given_id, now)
    else:
        check_read(lease, given_id, now)


# --- Its properties


class LeaseProperties(NamedTuple):
    """The values of ``x-ms-lease-status``, ``-state`` and ``-duration``; the last is None unless leased."""

    status: str
    state: str
    duration: str | None


UNLEASED: Final = LeaseProperties("unlocked", "available", None)


def properties_of(lease: Lease, now: Instant) -> LeaseProperties:
    if lease.id is None:
        return UNLEASED
    state = state_of(lease, now)
    status = "locked" if state in LOCKED else "unlocked"
    if state is not State.LEASED:
        return LeaseProperties(status, state.value, None)
    return LeaseProperties(status, state.value, "infinite" if lease.ends_at is None else "fixed")
