"""The lease machine against an oracle that was written apart from it.

The oracle keeps the history of one resource, every request that was accepted, and works out from the whole
history what state the lease is in now. Whether a request is accepted it looks up in the published table. The
machine under test knows no history, only the lease as it was stored last.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kyanite.rules import leases
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant, LeaseId
from tests.profiles import examples

IDS = [LeaseId("a"), LeaseId("b"), LeaseId("c")]
START = 638_500_000_000_000_000

COLUMNS = ("available", "leased", "breaking", "broken", "expired")
# The request with the id of the lease, another or none; "done": the lease already has the proposed id.
# fmt: off
TABLE = {
    #                  available  leased    breaking      broken       expired
    "acquire own":    "-          ok        unacquirable  ok           ok",
    "acquire other":  "ok         present   present       ok           ok",
    "renew own":      "-          ok        unrenewable   unrenewable  ok",
    "renew other":    "mismatch   mismatch  mismatch      mismatch     mismatch",
    "change own":     "-          ok        unchangeable  absent       absent",
    "change done":    "-          ok        mismatch      absent       absent",
    "change other":   "absent     mismatch  mismatch      absent       absent",
    "release own":    "-          ok        ok            ok           ok",
    "release other":  "mismatch   mismatch  mismatch      mismatch     mismatch",
    "break":          "absent     ok        ok            ok           ok",
    "write own":      "-          ok        ok            lost         lost",
    "write other":    "unleased   otherid   otherid       unleased     unleased",
    "write none":     "ok         missing   missing       ok           ok",
    "read own":       "-          ok        ok            lost         lost",
    "read other":     "unleased   otherid   otherid       unleased     unleased",
    "read none":      "ok         ok        ok            ok           ok",
}
# fmt: on
REASONS = {
    "present": Reason.LEASE_ALREADY_PRESENT,
    "unacquirable": Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED,
    "unrenewable": Reason.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED,
    "unchangeable": Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED,
    "mismatch": Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION,
    "absent": Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION,
    "lost": Reason.LEASE_LOST,
    "unleased": Reason.LEASE_NOT_PRESENT,
    "otherid": Reason.LEASE_ID_MISMATCH,
    "missing": Reason.LEASE_ID_MISSING,
}


class Event(NamedTuple):
    """An accepted request. Times are ticks; what never ends has an infinite length."""

    what: str
    at: int
    id: LeaseId | None = None
    length: float = math.inf


class Oracle:
    def __init__(self) -> None:
        self.history: list[Event] = []

    def since(self, *what: str) -> list[Event]:
        """The events from the last of these kinds on; none when there was none."""
        last = max((i for i, event in enumerate(self.history) if event.what in what), default=None)
        return [] if last is None else self.history[last:]

    def holder(self) -> LeaseId | None:
        named = [
            event.id for event in self.since("acquire", "release") if event.what in ("acquire", "change")
        ]
        return named[-1] if named else None

    def length(self) -> float:
        return self.since("acquire")[0].length

    def end(self) -> float:
        return self.since("acquire", "renew")[0].at + self.length()

    def break_ends(self) -> list[float]:
        """When each break would end the lease: after its period, or without one with the lease or immediately."""
        ends: list[float] = []
        for event in self.since("acquire"):
            if event.what == "break":
                default = event.at if math.isinf(self.length()) else self.end()
                ends.append(default if math.isinf(event.length) else event.at + event.length)
        return ends

    def lock_end(self) -> float:
        return min([self.end(), *self.break_ends()])

    def state(self, now: int) -> str:
        if self.holder() is None:
            return "available"
        started = self.since("acquire", "renew")
        if any(event.what == "write" and event.at >= self.lock_end_before(event) for event in started):
            return "available"
        if self.break_ends():
            return "breaking" if now < self.lock_end() else "broken"
        return "leased" if now < self.end() else "expired"

    def lock_end_before(self, write: Event) -> float:
        """The end of the lock as it stood when this was written: later breaks do not count."""
        earlier = Oracle()
        earlier.history = [event for event in self.history if event.at <= write.at]
        return earlier.lock_end()

    def verdict(self, request: str, now: int) -> Reason | None:
        word = TABLE[request].split()[COLUMNS.index(self.state(now))]
        return None if word == "ok" else REASONS[word]

    def owner(self, given_id: LeaseId | None, now: int) -> str:
        if given_id is None:
            return "none"
        return "own" if self.state(now) != "available" and given_id == self.holder() else "other"


class Leases(RuleBasedStateMachine):
    """One resource, three clients, and time that only the test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.lease: Lease = NO_LEASE
        self.ticks = START
        self.oracle = Oracle()

    @property
    def now(self) -> Instant:
        return Instant(self.ticks)

    def agree(self, request: str, act: Callable[[], Lease], event: Event) -> None:
        """Ask both; when both accept, store the lease and remember the event."""
        expected = self.oracle.verdict(request, self.ticks)
        actual: Reason | None = None
        after = self.lease
        try:
            after = act()
        except Refused as refused:
            actual = refused.reason
        assert actual is expected, request
        if actual is None:
            self.lease = after
            self.oracle.history.append(event)
            self.ticks += 1  # No two transactions share an instant.

    @initialize(seconds=st.sampled_from([15, 60, leases.INFINITE]))
    def begin(self, seconds: int) -> None:
        self.acquire(IDS[0], seconds)

    @rule(proposed_id=st.sampled_from(IDS), seconds=st.sampled_from([15, 20, 60, leases.INFINITE]))
    def acquire(self, proposed_id: LeaseId, seconds: int) -> None:
        length = math.inf if seconds == leases.INFINITE else seconds * TICKS_PER_SECOND
        self.agree(
            f"acquire {self.oracle.owner(proposed_id, self.ticks)}",
            lambda: leases.acquire(self.lease, proposed_id, seconds, self.now),
            Event("acquire", self.ticks, proposed_id, length),
        )

    @rule(given_id=st.sampled_from(IDS))
    def renew(self, given_id: LeaseId) -> None:
        self.agree(
            f"renew {self.oracle.owner(given_id, self.ticks)}",
            lambda: leases.renew(self.lease, given_id, self.now),
            Event("renew", self.ticks),
        )

    @rule(given_id=st.sampled_from(IDS), proposed_id=st.sampled_from(IDS))
    def change(self, given_id: LeaseId, proposed_id: LeaseId) -> None:
        owner = self.oracle.owner(given_id, self.ticks)
        if owner == "other" and self.oracle.owner(proposed_id, self.ticks) == "own":
            owner = "done"
        self.agree(
            f"change {owner}",
            lambda: leases.change(self.lease, given_id, proposed_id, self.now),
            Event("change", self.ticks, proposed_id),
        )

    @rule(given_id=st.sampled_from(IDS))
    def release(self, given_id: LeaseId) -> None:
        self.agree(
            f"release {self.oracle.owner(given_id, self.ticks)}",
            lambda: leases.release(self.lease, given_id, self.now),
            Event("release", self.ticks),
        )

    @rule(period=st.sampled_from([None, 0, 1, 10, 60]))
    def break_(self, period: int | None) -> None:
        requested_at = self.ticks
        returned: list[int] = []

        def act() -> Lease:
            lease, seconds_left = leases.break_(self.lease, period, self.now)
            returned.append(seconds_left)
            return lease

        length = math.inf if period is None else period * TICKS_PER_SECOND
        self.agree("break", act, Event("break", self.ticks, length=length))
        if returned:
            assert returned == [max(0, math.ceil((self.oracle.lock_end() - requested_at) / TICKS_PER_SECOND))]

    @rule(given_id=st.sampled_from([*IDS, None]))
    def write(self, given_id: LeaseId | None) -> None:
        self.agree(
            f"write {self.oracle.owner(given_id, self.ticks)}",
            lambda: leases.check_write(self.lease, given_id, self.now),
            Event("write", self.ticks),
        )

    @rule(given_id=st.sampled_from([*IDS, None]))
    def read(self, given_id: LeaseId | None) -> None:
        def act() -> Lease:
            leases.check_read(self.lease, given_id, self.now)
            return self.lease

        self.agree(f"read {self.oracle.owner(given_id, self.ticks)}", act, Event("read", self.ticks))

    @rule(ticks=st.sampled_from([1, TICKS_PER_SECOND // 3, 9 * TICKS_PER_SECOND, 61 * TICKS_PER_SECOND]))
    def wait(self, ticks: int) -> None:
        self.ticks += ticks

    @precondition(lambda self: self.oracle.state(self.ticks) in ("leased", "breaking"))
    @rule(early=st.integers(0, 1))
    def wait_for_the_end(self, early: int) -> None:
        """To the very tick in which the lock ends, or the one before."""
        end = self.oracle.lock_end()
        if not math.isinf(end):
            self.ticks = max(self.ticks, int(end) - early)

    @invariant()
    def both_have_the_same_state(self) -> None:
        expected = self.oracle.state(self.ticks)
        assert leases.state_of(self.lease, self.now).value == expected
        locked = expected in ("leased", "breaking")
        duration = "infinite" if expected == "leased" and math.isinf(self.oracle.length()) else "fixed"
        assert leases.properties_of(self.lease, self.now) == (
            "locked" if locked else "unlocked",
            expected,
            duration if expected == "leased" else None,
        )
        for given_id in IDS:
            assert leases.holds(self.lease, given_id, self.now) == (
                locked and given_id == self.oracle.holder()
            )


Leases.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=25)
TestLeases = Leases.TestCase
