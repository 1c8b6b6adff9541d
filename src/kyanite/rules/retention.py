"""How long what was deleted can be restored. No timer ends it: the instant is stored with what was deleted.

A later change of the policy does not move that instant. Past it, what was deleted does not exist for any client,
whether or not maintenance has purged it.
"""

from kyanite.values import TICKS_PER_SECOND, Instant, later

_DAY_SECONDS = 86_400
_DAY_TICKS = _DAY_SECONDS * TICKS_PER_SECOND


def expiry_of(deleted_at: Instant, days: int) -> Instant:
    """When the retention ends, under the policy in force at the deletion."""
    return later(deleted_at, days * _DAY_SECONDS)


def is_over(expires_at: Instant, now: Instant) -> bool:
    return expires_at <= now


def whole_days_left(expires_at: Instant, now: Instant) -> int:
    """Rounded down, as blobs and containers show it: right after the deletion one less than the policy says."""
    return max(0, (expires_at - now) // _DAY_TICKS)


def begun_days_left(expires_at: Instant, now: Instant) -> int:
    """Rounded up, as shares show it: on its last day there is one left."""
    return max(0, -((now - expires_at) // _DAY_TICKS))
