"""The rules of visibility against an oracle that keeps histories: any order of requests, at any time."""

import math
from collections.abc import Callable
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from kyanite.rules import visibility
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.visibility import NEVER, MessageState
from kyanite.values import TICKS_PER_SECOND, Instant
from tests.profiles import examples
from tests.rules.visibility_oracle import SEVEN_DAYS, Event, History

START = 638_500_000_000_000_000
SECONDS = st.sampled_from([0, 1, 2, 5, 30, SEVEN_DAYS - 1, SEVEN_DAYS])
LIVES = st.sampled_from([None, -1, 1, 2, 5, 30, 60, SEVEN_DAYS])
T = TypeVar("T")
Given = tuple[int, int]
"""A receipt: the number of its message, and of the event that gave it out."""


class Messages(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.standings: list[MessageState] = []
        self.histories: list[History] = []

    receipts = Bundle("receipts")

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(target=receipts, delay=SECONDS, life=LIVES)
    def put(self, delay: int, life: int | None) -> object:
        number = len(self.histories)
        state = outcome(
            lambda: visibility.put(
                delay_seconds=delay,
                time_to_live_seconds=life,
                secret=secret(number, 0),
                now=self.instant(self.now),
            )
        )
        if life is not None and life > 0 and delay >= life:
            assert state is Reason.INVISIBLE_UNTIL_EXPIRY
            return multiple()
        assert isinstance(state, MessageState)
        self.standings.append(state)
        lives_for = math.inf if life == -1 else life or SEVEN_DAYS
        self.histories.append(History([Event("put", self.now, delay)], lives_for))
        return number, 0

    @rule(target=receipts, which=st.integers(0, 3), timeout=SECONDS)
    def get(self, which: int, timeout: int) -> object:
        visible = [number for number, one in enumerate(self.histories) if one.is_visible(self.now)]
        if not visible:
            return multiple()
        number = visible[which % len(visible)]
        receipt = self.histories[number].note("get", self.now, timeout)
        self.standings[number] = visibility.get(
            self.standings[number],
            timeout_seconds=timeout,
            secret=secret(number, receipt),
            now=self.instant(self.now),
        )
        return number, receipt

    @rule(target=receipts, given=receipts, timeout=SECONDS)
    def update(self, given: Given, timeout: int) -> object:
        number, receipt = given
        history = self.histories[number]
        state = outcome(
            lambda: visibility.update(
                self.standings[number],
                secret(number, receipt),
                timeout_seconds=timeout,
                secret=secret(number, history.receipt + 1),
                now=self.instant(self.now),
            )
        )
        if not history.accepts(receipt, self.now):
            assert state is Reason.MESSAGE_NOT_FOUND
            return multiple()
        if not history.may_hide_for(timeout, self.now):
            assert state is Reason.INVISIBLE_BEYOND_EXPIRY
            return multiple()
        assert isinstance(state, MessageState)
        self.standings[number] = state
        return number, history.note("update", self.now, timeout)

    @rule(given=consumes(receipts))
    def check(self, given: Given) -> None:
        number, receipt = given
        refusal = outcome(
            lambda: visibility.check_receipt(
                self.standings[number], secret(number, receipt), self.instant(self.now)
            )
        )
        accepted = self.histories[number].accepts(receipt, self.now)
        assert refusal is (None if accepted else Reason.MESSAGE_NOT_FOUND)

    @invariant()
    def all_stand_where_their_histories_say(self) -> None:
        for state, history in zip(self.standings, self.histories, strict=True):
            assert state.visible_at == self.instant(history.shows_at)
            assert state.dequeue_count == history.dequeue_count
            ends_at = history.put_at + history.lives_for
            assert state.expires_at == (NEVER if ends_at == math.inf else self.instant(int(ends_at)))
            now = self.instant(self.now)
            assert visibility.is_visible(state, now) == history.is_visible(self.now)
            assert visibility.is_expired(state, now) != history.is_alive(self.now)

    @staticmethod
    def instant(second: int) -> Instant:
        return Instant(START + second * TICKS_PER_SECOND)


def outcome(action: Callable[[], T]) -> T | Reason:
    try:
        return action()
    except Refused as refusal:
        return refusal.reason


def secret(number: int, event: int) -> bytes:
    return b"%4d%4d" % (number, event)


Messages.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestMessages = Messages.TestCase
