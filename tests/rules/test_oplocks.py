"""Oplocks and leases: the published tables, and clients at random against a model of what each may rely on."""

from itertools import product

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kyanite.rules.oplocks import (
    BREAK_SECONDS,
    Acknowledged,
    AcknowledgementError,
    Break,
    Broken,
    Caching,
    Event,
    Grant,
    OtherOpen,
    acknowledge,
    break_for,
    expire,
    grantable,
    is_stat_open,
    upgrade,
)
from kyanite.values import Instant, later

NOW = Instant(1000)
STATES = {
    "-": Caching.NONE,
    "R": Caching.READ,
    "RH": Caching.READ | Caching.HANDLE,
    "RW": Caching.READ | Caching.WRITE,
    "RWH": Caching.READ | Caching.WRITE | Caching.HANDLE,
}
II, EXCLUSIVE, BATCH = STATES["R"], STATES["RW"], STATES["RWH"]


def lease(state: str, **fields: object) -> Grant:
    return Grant("key", STATES[state], is_lease=True)._replace(**fields)  # type: ignore[arg-type]


def oplock(state: Caching) -> Grant:
    return Grant("open", state, is_lease=False)


# What each event leaves of a lease of RWH, RW, RH, R ("=" is no break), and of which of them it waits.
LEASES = {
    Event.OPEN: ("RH", "R", "=", "=", "RWH RW"),
    Event.OVERWRITE: ("-", "-", "-", "-", "RWH RW"),
    Event.SHARING_VIOLATION: ("RW", "=", "R", "=", "RWH RH"),
    Event.WRITE: ("-", "-", "-", "-", "RWH RW"),
    Event.LOCK: ("-", "-", "-", "-", "RWH RW"),
    Event.RENAME_OR_DELETE: ("RW", "=", "R", "=", "RWH RH"),
}
# The same for batch and exclusive oplocks and those of level II.
OPLOCKS = {
    Event.OPEN: (II, II, None),
    Event.OVERWRITE: (Caching.NONE, Caching.NONE, Caching.NONE),
    Event.SHARING_VIOLATION: (II, None, None),
    Event.WRITE: (Caching.NONE, Caching.NONE, Caching.NONE),
    Event.LOCK: (Caching.NONE, Caching.NONE, Caching.NONE),
    Event.RENAME_OR_DELETE: (II, None, None),
}


@pytest.mark.parametrize(("event", "column"), list(product(Event, range(4))))
def test_leases(event: Event, column: int) -> None:
    held = ("RWH", "RW", "RH", "R")[column]
    left, waiting = LEASES[event][column], LEASES[event][4].split()
    broken = break_for(event, lease(held), NOW)
    if left == "=":
        assert broken == Broken(lease(held), None, waits=False)
        return
    assert broken.message == Break(STATES[held], STATES[left], is_acknowledged=held != "R")
    assert broken.waits is (held in waiting)
    assert broken.grant.epoch == 1
    if held == "R":
        assert broken.grant == lease(left, epoch=1)
    else:
        assert (broken.grant.state, broken.grant.requested) == (STATES[held], STATES[left])
        assert broken.grant.ends_at == later(NOW, BREAK_SECONDS)


@pytest.mark.parametrize(("event", "column"), list(product(Event, range(3))))
def test_oplocks(event: Event, column: int) -> None:
    held, left = (BATCH, EXCLUSIVE, II)[column], OPLOCKS[event][column]
    broken = break_for(event, oplock(held), NOW)
    expected = None if left is None else Break(held, left, is_acknowledged=held is not II)
    assert broken.message == expected


@pytest.mark.parametrize("event", Event)
def test_what_its_own_owner_does_to_a_grant(event: Event) -> None:
    for grant in (lease("RWH"), lease("RW"), lease("RH"), lease("R"), oplock(BATCH), oplock(EXCLUSIVE)):
        assert break_for(event, grant, NOW, is_own=True) == Broken(grant, None, waits=False)
    broken = break_for(event, oplock(II), NOW, is_own=True)
    is_ended = event in (Event.WRITE, Event.LOCK)
    assert broken.message == (Break(II, Caching.NONE, is_acknowledged=False) if is_ended else None)
    assert not broken.waits


def test_no_event_breaks_an_empty_grant() -> None:
    for event in Event:
        assert break_for(event, lease("-"), NOW) == Broken(lease("-"), None, waits=False)


@pytest.mark.parametrize(
    ("held", "requested", "broken_to", "granted"),
    [
        (held, requested, broken_to, granted)
        for held, broken_to, row in [
            ("R", "R", ("R", "RH", "R", "RH")),
            ("RH", "RH", ("R", "RH", "R", "RH")),
            ("RW", "R", ("R", "RH", "R", "RH")),
            ("RWH", "RH", ("R", "RH", "R", "RH")),
        ]
        for requested, granted in zip(("R", "RH", "RW", "RWH"), row, strict=True)
    ],
)
def test_a_second_key(held: str, requested: str, broken_to: str, granted: str) -> None:
    broken = break_for(Event.OPEN, lease(held), NOW)
    left = broken.message.to if broken.message else STATES[held]
    assert left == STATES[broken_to]
    assert grantable(STATES[requested], [OtherOpen(left, True)], is_lease=True) == STATES[granted]


@pytest.mark.parametrize("requested", [II, EXCLUSIVE, BATCH])
@pytest.mark.parametrize(("held", "granted"), [("R", II), ("RH", Caching.NONE), ("-", II)])
def test_an_oplock_beside_a_lease(requested: Caching, held: str, granted: Caching) -> None:
    assert grantable(requested, [OtherOpen(STATES[held], True)], is_lease=False) == granted


@pytest.mark.parametrize(("requested", "granted"), [("R", "R"), ("RH", "R"), ("RW", "R"), ("RWH", "R")])
def test_a_lease_beside_an_oplock(requested: str, granted: str) -> None:
    assert grantable(STATES[requested], [OtherOpen(II, False)], is_lease=True) == STATES[granted]


@pytest.mark.parametrize("requested", list(STATES.values()))
def test_alone_an_open_gets_what_it_requests(requested: Caching) -> None:
    assert grantable(requested, [], is_lease=True) == requested
    assert grantable(requested, [OtherOpen(Caching.NONE, False, is_stat=True)], is_lease=True) == requested
    assert grantable(requested, [], is_lease=False) == requested
    assert grantable(requested, [], is_lease=True, has_byte_locks=True) is Caching.NONE


@pytest.mark.parametrize("requested", [Caching.HANDLE, Caching.WRITE, Caching.HANDLE | Caching.WRITE])
def test_states_that_no_lease_has(requested: Caching) -> None:
    assert grantable(requested, [], is_lease=True) is Caching.NONE


def test_a_stat_open_with_a_lease_counts() -> None:
    assert grantable(BATCH, [OtherOpen(II, True, is_stat=True)], is_lease=True) == STATES["RH"]


@pytest.mark.parametrize(
    ("current", "requested", "possible", "result"),
    [
        ("R", "RH", "RH", "RH"),
        ("R", "RWH", "RWH", "RWH"),
        ("R", "RWH", "RH", "R"),
        ("RH", "RW", "RW", "RH"),
        ("RWH", "R", "R", "RWH"),
        ("RH", "RH", "RH", "RH"),
        ("-", "R", "R", "R"),
    ],
)
def test_upgrades(current: str, requested: str, possible: str, result: str) -> None:
    found = upgrade(lease(current), STATES[requested], STATES[possible])
    assert found == lease(result, epoch=int(result != current))


def test_a_breaking_lease_is_not_upgraded() -> None:
    breaking = break_for(Event.SHARING_VIOLATION, lease("RH"), NOW).grant
    assert upgrade(breaking, BATCH, BATCH) is breaking


def acknowledged(grant: Grant, kept: str) -> Acknowledged:
    found = acknowledge(grant, STATES[kept], NOW)
    assert isinstance(found, Acknowledged)
    return found


def test_acknowledgements() -> None:
    breaking = break_for(Event.OPEN, lease("RWH"), NOW).grant
    assert acknowledged(breaking, "RH") == (lease("RH", epoch=1), None)
    assert acknowledged(breaking, "-") == (lease("-", epoch=1), None)
    assert acknowledge(breaking, STATES["RW"], NOW) is AcknowledgementError.TOO_MUCH
    assert acknowledge(lease("RWH"), STATES["R"], NOW) is AcknowledgementError.NOT_BREAKING


def test_an_event_that_has_waited_waits_for_the_end_of_the_break() -> None:
    breaking = break_for(Event.OVERWRITE, break_for(Event.OPEN, lease("RWH"), NOW).grant, NOW).grant
    second = acknowledged(breaking, "RH").grant
    assert break_for(Event.OPEN, second, NOW) == Broken(second, None, waits=False)
    assert break_for(Event.OPEN, second, NOW, has_waited=True) == Broken(second, None, waits=True)
    assert not break_for(Event.OPEN, second, NOW, has_waited=True, is_own=True).waits
    done = acknowledged(second, "-").grant
    assert not break_for(Event.OPEN, done, NOW, has_waited=True).waits


def test_breaks_go_on_in_steps() -> None:
    """RWH is to become RH; an overwriting open needs nothing to be left: RH, then R, then none."""
    breaking = break_for(Event.OPEN, lease("RWH"), NOW).grant
    again = break_for(Event.OVERWRITE, breaking, NOW)
    assert (again.message, again.waits) == (None, True)
    second = acknowledged(again.grant, "RH")
    assert second.message == Break(STATES["RH"], STATES["R"], is_acknowledged=True)
    third = acknowledged(second.grant, "R")
    assert third.message == Break(STATES["R"], STATES["-"], is_acknowledged=False)
    assert third.grant == lease("-", epoch=1), "It is one change, however many steps it takes."


def test_a_later_event_needs_no_less() -> None:
    grant = lease("RWH")
    for event in (Event.OPEN, Event.OVERWRITE, Event.OPEN):
        grant = break_for(event, grant, NOW).grant
    assert (grant.requested, grant.required, grant.epoch) == (STATES["RH"], Caching.NONE, 1)


def test_owners_that_do_not_answer() -> None:
    breaking = break_for(Event.OPEN, lease("RWH"), NOW).grant
    end = later(NOW, BREAK_SECONDS)
    assert expire(breaking, Instant(end - 1)) is breaking
    assert expire(breaking, end) == lease("-", epoch=1)
    batch = break_for(Event.OPEN, oplock(BATCH), NOW).grant
    assert expire(batch, end).state is Caching.NONE
    assert expire(lease("RWH"), end) == lease("RWH")


@pytest.mark.parametrize(
    ("access", "against_lease", "expected"),
    [
        (0x80, False, True),
        (0x100180, False, True),
        (0x20080, False, False),
        (0x20080, True, True),
        (0x81, True, False),
        (0x10000, True, False),
    ],
)
def test_stat_opens(access: int, against_lease: bool, expected: bool) -> None:
    assert is_stat_open(access, against_lease=against_lease) is expected


class Clients(RuleBasedStateMachine):
    """Clients with a lease each open, write and acknowledge. An open that has to wait is not made."""

    def __init__(self) -> None:
        super().__init__()
        self.grants: dict[int, Grant] = {}
        self.believed: dict[int, Caching] = {}
        """What each client believes, from answers and messages alone."""

    def _break(self, event: Event, by: int) -> bool:
        waits = False
        for owner, grant in list(self.grants.items()):
            broken = break_for(event, grant, NOW, is_own=owner == by)
            self.grants[owner] = broken.grant
            if broken.message is not None and not broken.message.is_acknowledged:
                self.believed[owner] = broken.message.to
            waits |= broken.waits
        return waits

    @rule(
        client=st.integers(0, 3), requested=st.sampled_from(list(STATES.values())), overwrites=st.booleans()
    )
    def open(self, client: int, requested: Caching, overwrites: bool) -> None:
        if self._break(Event.OVERWRITE if overwrites else Event.OPEN, client):
            return
        others = [OtherOpen(grant.state, True) for owner, grant in self.grants.items() if owner != client]
        possible = grantable(requested, others, is_lease=True)
        held = self.grants.get(client)
        found = Grant(client, possible, is_lease=True) if held is None else upgrade(held, requested, possible)
        self.grants[client], self.believed[client] = found, found.state

    @rule(client=st.integers(0, 3))
    def write(self, client: int) -> None:
        self._break(Event.WRITE, client)

    @rule(client=st.integers(0, 3), kept=st.sampled_from(list(STATES.values())))
    def acknowledge(self, client: int, kept: Caching) -> None:
        found = acknowledge(self.grants.get(client, lease("-")), kept, NOW)
        if isinstance(found, Acknowledged):
            self.grants[client], self.believed[client] = found.grant, kept
            if found.message is not None and not found.message.is_acknowledged:
                self.believed[client] = found.message.to

    @rule(client=st.integers(0, 3))
    def expire(self, client: int) -> None:
        if client in self.grants:
            self.grants[client] = expire(self.grants[client], later(NOW, BREAK_SECONDS))
            self.believed[client] = self.grants[client].state

    @rule(client=st.integers(0, 3))
    def close(self, client: int) -> None:
        self.grants.pop(client, None)
        self.believed.pop(client, None)

    @invariant()
    def the_server_knows_what_each_client_believes(self) -> None:
        assert {owner: grant.state for owner, grant in self.grants.items()} == self.believed

    @invariant()
    def no_one_caches_beside_a_writer(self) -> None:
        writers = [owner for owner, state in self.believed.items() if state & Caching.WRITE]
        assert len(writers) <= 1
        assert not writers or all(not state or owner in writers for owner, state in self.believed.items())

    @invariant()
    def all_states_are_those_of_leases(self) -> None:
        assert set(self.believed.values()) <= set(STATES.values())


TestClients = Clients.TestCase
