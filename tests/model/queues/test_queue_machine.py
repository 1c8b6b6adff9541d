"""A queue as it is stored, against an oracle that keeps histories: what comes out, in which order, and what is left.

Every request comes at a second of its own, so that the oracle, which knows whole seconds only, is never in doubt.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from kyanite.model import keys
from kyanite.model.queues.message import SHORT_TEXT_BYTES, Message, Receipt
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND
from tests.model.queues.world import START, QueueWorld
from tests.profiles import examples
from tests.rules.visibility_oracle import FOREVER, Oracle

SECONDS = st.sampled_from([0, 1, 2, 5, 10, 30])
LIVES = st.sampled_from([None, -1, 31, 60])
TEXTS = st.sampled_from(["", "short", "ü" * SHORT_TEXT_BYTES, "x" * (SHORT_TEXT_BYTES + 1)])
Given = tuple[str, int, Receipt]


class Queue(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = QueueWorld()
        self.oracle = Oracle()
        self.names = 0

    receipts = Bundle("receipts")

    def tick(self) -> int:
        self.world.second += 1
        return self.world.second

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: int) -> None:
        self.world.second += seconds

    @rule(target=receipts, text=TEXTS, delay=SECONDS, life=LIVES)
    def put(self, text: str, delay: int, life: int | None) -> Given:
        now = self.tick()
        self.names += 1
        name = f"message {self.names}"
        put = self.world.put(name, text, delay=delay, life=life)
        lives_for = FOREVER if life == -1 else life
        return name, self.oracle.put(name, text, delay=delay, lives_for=lives_for, now=now), put.receipt

    @rule(target=receipts, count=st.integers(1, 4), timeout=st.sampled_from([1, 2, 10, 30]))
    def get(self, count: int, timeout: int) -> object:
        now = self.tick()
        expected = self.oracle.visible(now)[:count]
        given = [
            (name, self.oracle.messages[name].note("get", now, timeout), Receipt(START, START, b""))
            for name in expected
        ]
        got = self.world.get(count, timeout)
        assert [one.id for one in got] == expected
        for one in got:
            self.check(one)
        return multiple(
            *((name, event, one.receipt) for (name, event, _), one in zip(given, got, strict=True))
        )

    @rule(count=st.integers(1, 4))
    def peek(self, count: int) -> None:
        peeked = self.world.peek(count)
        assert [one.id for one in peeked] == self.oracle.visible(self.world.second)[:count]
        for one in peeked:
            self.check(one)

    @rule(target=receipts, given=receipts, timeout=SECONDS, text=st.none() | TEXTS)
    def update(self, given: Given, timeout: int, text: str | None) -> object:
        now = self.tick()
        name, event, receipt = given
        history = self.oracle.messages[name]
        refusal = None
        try:
            updated = self.world.update(name, receipt, timeout=timeout, text=text)
        except Refused as refused:
            refusal = refused.reason
        if not history.accepts(event, now):
            assert refusal is Reason.MESSAGE_NOT_FOUND
            return multiple()
        if not history.may_hide_for(timeout, now):
            assert refusal is Reason.INVISIBLE_BEYOND_EXPIRY
            return multiple()
        assert refusal is None
        if text is not None:
            history.text = text
        return name, history.note("update", now, timeout), updated.receipt

    @rule(given=receipts)
    def delete(self, given: Given) -> None:
        now = self.tick()
        name, event, receipt = given
        history = self.oracle.messages[name]
        refusal = None
        try:
            self.world.delete(name, receipt)
        except Refused as refused:
            refusal = refused.reason
        accepted = history.accepts(event, now)
        assert refusal is (None if accepted else Reason.MESSAGE_NOT_FOUND)
        history.ended |= accepted

    @rule(given=consumes(receipts))
    def use_with_another_message(self, given: Given) -> None:
        try:
            self.world.delete("no such message", given[2])
            refusal = None
        except Refused as refused:
            refusal = refused.reason
        assert refusal is Reason.MESSAGE_NOT_FOUND

    @rule()
    def clear(self) -> None:
        self.tick()
        self.world.clear()
        self.oracle.clear()

    @rule()
    def clean_up(self) -> None:
        """It deletes the rows of all messages that are not alive, and nothing that a client can read."""
        self.world.second += 1000
        self.world.clean_up()
        alive = self.oracle.alive(self.world.second)
        assert self.world.count() == alive == len(self.world.rows(keys.MESSAGES))
        long = sum(
            len(one.text.encode()) > SHORT_TEXT_BYTES and one.is_alive(self.world.second)
            for one in self.oracle.messages.values()
        )
        assert len(self.world.rows(b"b")) == long
        assert self.world.rows(keys.DISCARDED_MESSAGES) == []

    @invariant()
    def nothing_alive_is_left_out_of_the_count(self) -> None:
        assert self.world.count() >= self.oracle.alive(self.world.second)

    def check(self, one: Message) -> None:
        history = self.oracle.messages[one.id]
        assert one.put_at == START + history.put_at * TICKS_PER_SECOND
        assert one.state.dequeue_count == history.dequeue_count
        assert one.state.visible_at == START + history.shows_at * TICKS_PER_SECOND
        assert one.text == history.text


Queue.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestQueue = Queue.TestCase
