"""Messages of a queue: when they are visible, when they have expired, and what a pop receipt allows.

    action    what it needs          next visible     dequeue count   pop receipt
    put       -                      now + delay      0               a new one
    get       a visible message      now + timeout    one more        a new one
    peek      a visible message      -                -               -
    update    the latest receipt     now + timeout    -               a new one
    delete    the latest receipt     -

A message has one valid receipt, the latest. It stays valid when the message becomes visible again: the client may still
delete the message, as long as no other client has got or updated it since. It ends with the message: by a delete, or by
expiry.

No timer moves a message. In the very tick of ``visible_at`` it is visible, in that of ``expires_at`` it has expired,
whether or not its row was deleted yet.
"""

from typing import NamedTuple

from kyanite.rules.refusals import Because, HiddenTooLong, HiddenUntilExpiry, Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant

NEVER = Instant(3_155_378_975_999_999_999)
"""The last tick of the year 9999: the expiry of a message that never expires."""

FOREVER = -1
"""The time to live, in seconds, of such a message."""

DEFAULT_TIME_TO_LIVE_SECONDS = 7 * 24 * 3600


class MessageState(NamedTuple):
    """The stored state of a message."""

    visible_at: Instant
    expires_at: Instant
    dequeue_count: int
    secret: bytes
    """The unguessable part of the latest pop receipt."""


def put(*, delay_seconds: int, time_to_live_seconds: int | None, secret: bytes, now: Instant) -> MessageState:
    """A new message. Refused if the client's own time to live would end before the message is visible."""
    if time_to_live_seconds is None:
        time_to_live_seconds = DEFAULT_TIME_TO_LIVE_SECONDS
    elif time_to_live_seconds != FOREVER and delay_seconds >= time_to_live_seconds:
        raise Refused(Reason.INVISIBLE_UNTIL_EXPIRY, HiddenUntilExpiry(delay_seconds))
    expires_at = NEVER
    if time_to_live_seconds != FOREVER:
        expires_at = min(NEVER, Instant(now + time_to_live_seconds * TICKS_PER_SECOND))
    return MessageState(Instant(now + delay_seconds * TICKS_PER_SECOND), expires_at, 0, secret)


def is_expired(state: MessageState, now: Instant) -> bool:
    return now >= state.expires_at


def is_visible(state: MessageState, now: Instant) -> bool:
    return state.visible_at <= now < state.expires_at


def get(state: MessageState, *, timeout_seconds: int, secret: bytes, now: Instant) -> MessageState:
    """Hide a visible message from other clients for the timeout, which may be beyond its expiry."""
    visible_at = Instant(now + timeout_seconds * TICKS_PER_SECOND)
    return MessageState(visible_at, state.expires_at, state.dequeue_count + 1, secret)


_EXPIRED = Because("The pop receipt is the latest, but the message has expired.")
_OLD_RECEIPT = Because("The message is there, but the pop receipt is not its latest.")


def check_receipt(state: MessageState, receipt: bytes, now: Instant) -> None:
    """Refuse a receipt that is not the latest, or whose message has expired. In both cases the message is not found."""
    if state.secret != receipt or now >= state.expires_at:
        raise Refused(Reason.MESSAGE_NOT_FOUND, facts=_EXPIRED if state.secret == receipt else _OLD_RECEIPT)


def update(
    state: MessageState, receipt: bytes, *, timeout_seconds: int, secret: bytes, now: Instant
) -> MessageState:
    """Hide the message for the timeout, or with 0 make it visible. The timeout must not exceed its expiry."""
    check_receipt(state, receipt, now)
    visible_at = Instant(now + timeout_seconds * TICKS_PER_SECOND)
    if visible_at > state.expires_at:
        maximum = (state.expires_at - now) // TICKS_PER_SECOND
        raise Refused(Reason.INVISIBLE_BEYOND_EXPIRY, HiddenTooLong(timeout_seconds, maximum))
    return MessageState(visible_at, state.expires_at, state.dequeue_count, secret)
