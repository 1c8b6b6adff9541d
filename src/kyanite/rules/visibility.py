"""Messages of a queue: when they can be seen, when they are gone, and what a pop receipt is good for.

    action    what it needs          next visible     dequeue count   pop receipt
    put       -                      now + delay      0               a new one
    get       a visible message      now + timeout    one more        a new one
    peek      a visible message      -                -               -
    update    the latest receipt     now + timeout    -               a new one
    delete    the latest receipt     gone

A message has one receipt at a time, the latest that was given out. It stays good when the message becomes
visible again: whoever got it may still delete it, as long as nobody has got or updated it since. It ends with
the message: by a delete, or by its expiry.

No timer moves a message. In the very tick of ``visible_at`` it can be seen, in that of ``expires_at`` it is
gone, whether or not its place has been cleared yet.
"""

from typing import NamedTuple

from kyanite.rules.refusals import HiddenTooLong, HiddenUntilExpiry, Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant

NEVER = Instant(3_155_378_975_999_999_999)
"""The last tick of the year 9999: when a message expires that never does."""

FOREVER = -1
"""The time to live, in seconds, of such a message."""

DEFAULT_TIME_TO_LIVE_SECONDS = 7 * 24 * 3600


class MessageState(NamedTuple):
    """Where a message stands, as it is stored with it."""

    visible_at: Instant
    expires_at: Instant
    dequeue_count: int
    secret: bytes
    """What the latest pop receipt holds that nobody can guess."""


def put(*, delay_seconds: int, time_to_live_seconds: int | None, secret: bytes, now: Instant) -> MessageState:
    """A new message. One that would be gone before it could be seen is refused, if the client chose so itself."""
    if time_to_live_seconds is None:
        time_to_live_seconds = DEFAULT_TIME_TO_LIVE_SECONDS
    elif time_to_live_seconds != FOREVER and delay_seconds >= time_to_live_seconds:
        raise Refused(Reason.INVISIBLE_UNTIL_EXPIRY, HiddenUntilExpiry(delay_seconds))
    expires_at = NEVER if time_to_live_seconds == FOREVER else min(NEVER, _later(now, time_to_live_seconds))
    return MessageState(_later(now, delay_seconds), expires_at, 0, secret)


def is_gone(state: MessageState, now: Instant) -> bool:
    return now >= state.expires_at


def is_visible(state: MessageState, now: Instant) -> bool:
    return state.visible_at <= now < state.expires_at


def get(state: MessageState, *, timeout_seconds: int, secret: bytes, now: Instant) -> MessageState:
    """Hide a visible message from everybody else for a while. That may be longer than it lives."""
    return MessageState(_later(now, timeout_seconds), state.expires_at, state.dequeue_count + 1, secret)


def check_receipt(state: MessageState, receipt: bytes, now: Instant) -> None:
    """Refuse a receipt that is not the latest, or whose message has expired. Either way the message is not found."""
    if state.secret != receipt or now >= state.expires_at:
        raise Refused(Reason.MESSAGE_NOT_FOUND)


def update(
    state: MessageState, receipt: bytes, *, timeout_seconds: int, secret: bytes, now: Instant
) -> MessageState:
    """Hide the message anew, or with a timeout of 0 show it. It cannot be hidden for longer than it lives."""
    check_receipt(state, receipt, now)
    visible_at = _later(now, timeout_seconds)
    if visible_at > state.expires_at:
        maximum = (state.expires_at - now) // TICKS_PER_SECOND
        raise Refused(Reason.INVISIBLE_BEYOND_EXPIRY, HiddenTooLong(timeout_seconds, maximum))
    return MessageState(visible_at, state.expires_at, state.dequeue_count, secret)


def _later(now: Instant, seconds: int) -> Instant:
    return Instant(now + seconds * TICKS_PER_SECOND)
