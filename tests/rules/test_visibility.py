"""What the Queue service's pages say of messages: when they show, when they are gone, what a receipt is good for."""

import pytest

from kyanite.rules import visibility
from kyanite.rules.refusals import HiddenTooLong, Reason, Refused
from kyanite.rules.visibility import FOREVER, NEVER, MessageState
from kyanite.values import TICKS_PER_SECOND, Instant, datetime_from_instant

START = Instant(638_500_000_000_000_000)
DAY = 24 * 3600
FIRST, SECOND, THIRD = b"1st-----", b"2nd-----", b"3rd-----"


def at(seconds: float) -> Instant:
    return Instant(START + round(seconds * TICKS_PER_SECOND))


def put(delay: int = 0, life: int | None = None) -> MessageState:
    return visibility.put(delay_seconds=delay, time_to_live_seconds=life, secret=FIRST, now=at(0))


def got(state: MessageState, timeout: int, when: float, secret: bytes = SECOND) -> MessageState:
    return visibility.get(state, timeout_seconds=timeout, secret=secret, now=at(when))


def updated(state: MessageState, receipt: bytes, timeout: int, when: float) -> MessageState:
    return visibility.update(state, receipt, timeout_seconds=timeout, secret=THIRD, now=at(when))


# Seconds at which a message is looked at, and whether it shows.
VISIBLE = [
    ("put without delay", put(), {0: True, 1: True, 7 * DAY - 1: True, 7 * DAY: False}),
    ("put with a delay", put(delay=10), {0: False, 9.9999999: False, 10: True}),
    ("put for a minute", put(life=60), {0: True, 59.9999999: True, 60: False, 1e9: False}),
    ("put forever", put(life=FOREVER), {0: True, 1e9: True}),
    ("put forever, later", put(delay=5, life=FOREVER), {4: False, 5: True}),
    ("got for half a minute", got(put(), 30, 100), {100: False, 129.9999999: False, 130: True}),
    ("got for longer than it lives", got(put(life=60), 7 * DAY, 50), {51: False, 61: False, 8 * DAY: False}),
    ("updated to be visible immediately", updated(got(put(), 30, 0), SECOND, 0, 10), {10: True}),
    ("updated to stay hidden", updated(got(put(), 30, 0), SECOND, 60, 10), {30: False, 69: False, 70: True}),
]


@pytest.mark.parametrize(("state", "expected"), [row[1:] for row in VISIBLE], ids=[row[0] for row in VISIBLE])
def test_when_a_message_shows(state: MessageState, expected: dict[float, bool]) -> None:
    shows = {seconds: visibility.is_visible(state, at(seconds)) for seconds in expected}
    assert shows == expected


def test_a_message_lives_for_seven_days_by_default() -> None:
    assert put().expires_at == at(7 * DAY)
    assert put(life=1).expires_at == at(1)
    assert put(life=30 * DAY).expires_at == at(30 * DAY)


def test_what_never_expires_ends_with_the_year_9999() -> None:
    assert put(life=FOREVER).expires_at == NEVER
    assert f"{datetime_from_instant(NEVER):%Y-%m-%dT%H:%M:%S}" == "9999-12-31T23:59:59"


@pytest.mark.parametrize(("delay", "life"), [(1, 1), (60, 60), (61, 60), (7 * DAY, 1)])
def test_a_message_must_live_longer_than_it_is_hidden(delay: int, life: int) -> None:
    with pytest.raises(Refused) as refusal:
        put(delay, life)
    assert refusal.value.reason is Reason.INVISIBLE_UNTIL_EXPIRY


def test_the_longest_delay_is_allowed_if_the_service_chose_the_life() -> None:
    assert put(delay=7 * DAY).visible_at == at(7 * DAY)
    assert put(delay=59, life=60).visible_at == at(59)


def test_only_a_get_raises_the_count() -> None:
    state = put()
    assert state.dequeue_count == 0
    state = got(state, 1, 0)
    state = updated(state, SECOND, 0, 0)
    assert state.dequeue_count == 1
    assert got(state, 1, 5).dequeue_count == 2


# What happened, which receipt is used when, and whether it is still good.
ONCE = got(put(), 30, 0)
TWICE = got(ONCE, 30, 40, THIRD)
RECEIPTS = [
    ("the receipt of a put", put(), FIRST, 0, True),
    ("the receipt of a put that is still hidden", put(delay=10), FIRST, 0, True),
    ("the receipt of a put, after a get", ONCE, FIRST, 1, False),
    ("the receipt of a get", ONCE, SECOND, 1, True),
    ("when the message is visible again, and no client got it", ONCE, SECOND, 31, True),
    ("days later, and no client got it", ONCE, SECOND, 6 * DAY, True),
    ("after the next get", TWICE, SECOND, 41, False),
    ("that of the next get", TWICE, THIRD, 41, True),
    ("after an update", updated(ONCE, SECOND, 0, 5), SECOND, 6, False),
    ("that of the update", updated(ONCE, SECOND, 0, 5), THIRD, 6, True),
    ("in the last tick of its life", ONCE, SECOND, 7 * DAY - 1e-7, True),
    ("when the message has expired", ONCE, SECOND, 7 * DAY, False),
    ("another message's", ONCE, b"foreign-", 1, False),
]


@pytest.mark.parametrize(
    ("state", "receipt", "when", "good"), [row[1:] for row in RECEIPTS], ids=[row[0] for row in RECEIPTS]
)
def test_how_long_a_receipt_is_good(state: MessageState, receipt: bytes, when: float, good: bool) -> None:
    for use in (
        lambda: visibility.check_receipt(state, receipt, at(when)),
        lambda: updated(state, receipt, 0, when),
    ):
        if good:
            use()
        else:
            with pytest.raises(Refused) as refusal:
                use()
            assert refusal.value.reason is Reason.MESSAGE_NOT_FOUND


def test_an_update_cannot_hide_a_message_for_longer_than_it_lives() -> None:
    state = got(put(life=100), 10, 0)
    assert updated(state, SECOND, 60, 40).visible_at == at(100)
    with pytest.raises(Refused) as refusal:
        updated(state, SECOND, 61, 40)
    assert refusal.value.reason is Reason.INVISIBLE_BEYOND_EXPIRY
    assert refusal.value.detail == HiddenTooLong(61, 60)
    assert updated(got(put(life=FOREVER), 1, 0), SECOND, 7 * DAY, 40).visible_at == at(7 * DAY + 40)
