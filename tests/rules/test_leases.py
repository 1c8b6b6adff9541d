"""Azure's published lease tables, unabridged, and the details between their lines.

In the tables A is the id of the lease, B and C are others, X is one the server made up. The columns are the
five states, in the order in which the Lease pages print them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import pytest

from kyanite.rules import leases
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.rules.leases import INFINITE, LeaseProperties, State
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant, LeaseId

A, B, C, X = (LeaseId(letter * 8 + "-0000-0000-0000-000000000000") for letter in "abcf")
T = TypeVar("T")
U = TypeVar("U")

START = Instant(638_500_000_000_000_000)


def at(seconds: float) -> Instant:
    return Instant(START + round(seconds * TICKS_PER_SECOND))


class Situation(NamedTuple):
    lease: Lease
    now: Instant


def broken(lease: Lease, period: int | None, now: Instant) -> Lease:
    return leases.break_(lease, period, now)[0]


FINITE_A = leases.acquire(NO_LEASE, A, 30, at(0))
INFINITE_A = leases.acquire(NO_LEASE, A, INFINITE, at(0))

SITUATIONS = {
    State.AVAILABLE: Situation(NO_LEASE, at(10)),
    State.LEASED: Situation(FINITE_A, at(10)),
    State.BREAKING: Situation(broken(FINITE_A, 20, at(5)), at(10)),
    State.BROKEN: Situation(broken(FINITE_A, 0, at(5)), at(10)),
    State.EXPIRED: Situation(FINITE_A, at(40)),
}

INFINITE_SITUATIONS = {
    **SITUATIONS,
    State.LEASED: Situation(INFINITE_A, at(10)),
    State.BREAKING: Situation(broken(INFINITE_A, 20, at(5)), at(10)),
    State.BROKEN: Situation(broken(INFINITE_A, 0, at(5)), at(10)),
}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("situations", [SITUATIONS, INFINITE_SITUATIONS], ids=["finite", "infinite"])
def test_every_situation_is_what_its_column_says(situations: dict[State, Situation], state: State) -> None:
    assert leases.state_of(*situations[state]) is state


# Lease actions by state


class After(NamedTuple):
    """A success: the state and id it leaves, and what a break tells of the time left."""

    state: State
    id: LeaseId | None
    seconds_left: int | None = None


Action = Callable[[Lease, Instant], Lease | tuple[Lease, int]]
Outcome = After | Reason


def acquire(proposed_id: LeaseId, seconds: int = 15) -> Action:
    return lambda lease, now: leases.acquire(lease, proposed_id, seconds, now)


def renew(given_id: LeaseId) -> Action:
    return lambda lease, now: leases.renew(lease, given_id, now)


def change(given_id: LeaseId, proposed_id: LeaseId) -> Action:
    return lambda lease, now: leases.change(lease, given_id, proposed_id, now)


def release(given_id: LeaseId) -> Action:
    return lambda lease, now: leases.release(lease, given_id, now)


def break_(period: int | None) -> Action:
    return lambda lease, now: leases.break_(lease, period, now)


def outcome(action: Action, situation: Situation) -> Outcome:
    lease, now = situation
    try:
        result = action(lease, now)
    except Refused as refused:
        return refused.reason
    if isinstance(result, Lease):
        return After(leases.state_of(result, now), result.id)
    return After(leases.state_of(result[0], now), result[0].id, result[1])


PRESENT = Reason.LEASE_ALREADY_PRESENT
ABSENT = Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION
MISMATCH = Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION
NO_ACQUIRE = Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED
NO_CHANGE = Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED
NO_RENEW = Reason.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED
FREE = After(State.AVAILABLE, None)
HAS_A, HAS_B, HAS_X = (After(State.LEASED, holder) for holder in (A, B, X))
BROKEN = After(State.BROKEN, A, 0)


def breaking(seconds_left: int) -> After:
    return After(State.BREAKING, A, seconds_left)


# fmt: off
ACTIONS: list[tuple[str, Action, tuple[Outcome, ...]]] = [
    #                                    available  leased       breaking      broken    expired
    ("acquire, no id",   acquire(X),    (HAS_X,     PRESENT,     PRESENT,      HAS_X,    HAS_X)),
    ("acquire (A)",      acquire(A),    (HAS_A,     HAS_A,       NO_ACQUIRE,   HAS_A,    HAS_A)),
    ("acquire (B)",      acquire(B),    (HAS_B,     PRESENT,     PRESENT,      HAS_B,    HAS_B)),
    ("renew (A)",        renew(A),      (MISMATCH,  HAS_A,       NO_RENEW,     NO_RENEW, HAS_A)),
    ("renew (B)",        renew(B),      (MISMATCH,  MISMATCH,    MISMATCH,     MISMATCH, MISMATCH)),
    ("change (A)->(B)",  change(A, B),  (ABSENT,    HAS_B,       NO_CHANGE,    ABSENT,   ABSENT)),
    ("change (B)->(A)",  change(B, A),  (ABSENT,    HAS_A,       MISMATCH,     ABSENT,   ABSENT)),
    ("change (B)->(C)",  change(B, C),  (ABSENT,    MISMATCH,    MISMATCH,     ABSENT,   ABSENT)),
    ("change (A)->(A)",  change(A, A),  (ABSENT,    HAS_A,       NO_CHANGE,    ABSENT,   ABSENT)),
    ("release (A)",      release(A),    (MISMATCH,  FREE,        FREE,         FREE,     FREE)),
    ("release (B)",      release(B),    (MISMATCH,  MISMATCH,    MISMATCH,     MISMATCH, MISMATCH)),
    ("break, 0",         break_(0),     (ABSENT,    BROKEN,      BROKEN,       BROKEN,   BROKEN)),
    ("break, 10",        break_(10),    (ABSENT,    breaking(10), breaking(10), BROKEN,  BROKEN)),
    ("break, 60",        break_(60),    (ABSENT,    breaking(20), breaking(15), BROKEN,  BROKEN)),
    ("break, no period", break_(None),  (ABSENT,    breaking(20), breaking(15), BROKEN,  BROKEN)),
]

ACTIONS_ON_INFINITE: list[tuple[str, Action, tuple[Outcome, ...]]] = [
    #                                    available  leased       breaking      broken    expired
    *ACTIONS[:12],
    ("break, 10",        break_(10),    (ABSENT,    breaking(10), breaking(10), BROKEN,  BROKEN)),
    ("break, 60",        break_(60),    (ABSENT,    breaking(60), breaking(15), BROKEN,  BROKEN)),
    ("break, no period", break_(None),  (ABSENT,    BROKEN,      BROKEN,       BROKEN,   BROKEN)),
]
# fmt: on


def cells(
    rows: Sequence[tuple[str, T, tuple[U, ...]]],
    situations: Mapping[State, Situation],
    lease: str = "finite",
    *,
    columns: Iterable[State] = State,
) -> list[object]:
    """Each cell of a table as a test of its own, named by its row, its column and the kind of lease."""
    return [
        pytest.param(request, situations[state], expected, id=f"{name} - {state.value} - {lease}")
        for name, request, outcomes in rows
        for state, expected in zip(columns, outcomes, strict=True)
    ]


@pytest.mark.parametrize(
    ("action", "situation", "expected"),
    cells(ACTIONS, SITUATIONS) + cells(ACTIONS_ON_INFINITE, INFINITE_SITUATIONS, "infinite"),
)
def test_an_action_on_a_lease(action: Action, situation: Situation, expected: Outcome) -> None:
    assert outcome(action, situation) == expected


TICK = 1 / TICKS_PER_SECOND


@pytest.mark.parametrize(
    ("description", "lease", "seconds", "expected"),
    [
        ("no lease", NO_LEASE, 3600, State.AVAILABLE),
        ("a finite lease immediately", FINITE_A, 0, State.LEASED),
        ("a finite lease in its last tick", FINITE_A, 30 - TICK, State.LEASED),
        ("a finite lease at its end", FINITE_A, 30, State.EXPIRED),
        ("a finite lease long after", FINITE_A, 10**6, State.EXPIRED),
        ("an infinite lease long after", INFINITE_A, 10**6, State.LEASED),
        ("a break in its last tick", broken(FINITE_A, 20, at(5)), 25 - TICK, State.BREAKING),
        ("a break at its end", broken(FINITE_A, 20, at(5)), 25, State.BROKEN),
        ("a break long after", broken(FINITE_A, 20, at(5)), 10**6, State.BROKEN),
        (
            "a break of an infinite lease in its last tick",
            broken(INFINITE_A, 20, at(5)),
            25 - TICK,
            State.BREAKING,
        ),
        ("a break of an infinite lease at its end", broken(INFINITE_A, 20, at(5)), 25, State.BROKEN),
    ],
)
def test_time_passes(description: str, lease: Lease, seconds: float, expected: State) -> None:
    assert leases.state_of(lease, at(seconds)) is expected, description


@pytest.mark.parametrize(
    ("description", "lease", "seconds", "ends_at"),
    [
        ("acquired anew with another time", leases.acquire(FINITE_A, A, 60, at(10)), 60, at(70)),
        ("acquired anew for good", leases.acquire(FINITE_A, A, INFINITE, at(10)), INFINITE, None),
        ("acquired anew for a time", leases.acquire(INFINITE_A, A, 15, at(10)), 15, at(25)),
        ("renewed", leases.renew(FINITE_A, A, at(10)), 30, at(40)),
        ("renewed after it expired", leases.renew(FINITE_A, A, at(100)), 30, at(130)),
        ("renewed, infinite", leases.renew(INFINITE_A, A, at(10)), INFINITE, None),
        ("changed", leases.change(FINITE_A, A, B, at(10)), 30, at(30)),
        ("changed, infinite", leases.change(INFINITE_A, A, B, at(10)), INFINITE, None),
        ("changed again by a client that lost the answer", leases.change(FINITE_A, B, A, at(10)), 30, at(30)),
    ],
)
def test_what_an_action_does_to_the_time(
    description: str, lease: Lease, seconds: int, ends_at: Instant | None
) -> None:
    assert (lease.seconds, lease.ends_at, lease.breaks_at) == (seconds, ends_at, None), description


@pytest.mark.parametrize("state", [State.BROKEN, State.EXPIRED, State.AVAILABLE])
def test_a_new_lease_remembers_nothing_of_the_old(state: State) -> None:
    lease, now = SITUATIONS[state]
    assert leases.acquire(lease, B, INFINITE, now) == Lease(B, INFINITE)


@pytest.mark.parametrize(
    ("description", "now", "period", "expected"),
    [
        ("a whole number of seconds", at(10), None, 20),
        ("a tick less than that", at(10 + TICK), None, 20),
        ("a tick more than that", at(10 - TICK), None, 21),
        ("the last tick: not free yet", at(30 - TICK), None, 1),
        ("its end: free", at(30), None, 0),
        ("a period from an odd instant", at(10.3), 5, 5),
    ],
)
def test_the_time_left_is_rounded_up(
    description: str, now: Instant, period: int | None, expected: int
) -> None:
    assert leases.break_(FINITE_A, period, now)[1] == expected, description


# Using what is leased, by state

OK = "ok"
Answer = Reason | str
Use = Callable[[Lease, Instant], Lease | None]


def read(given_id: LeaseId | None) -> Use:
    def use(lease: Lease, now: Instant) -> None:
        leases.check_read(lease, given_id, now)

    return use


def write(given_id: LeaseId | None) -> Use:
    return lambda lease, now: leases.check_write(lease, given_id, now)


def copy_onto(given_id: LeaseId | None) -> Use:
    return lambda lease, now: leases.check_copy_onto(lease, given_id, now)


def abort_copy(given_id: LeaseId | None) -> Use:
    def use(lease: Lease, now: Instant) -> None:
        leases.check_abort_copy(lease, given_id, now)

    return use


def answer(use: Use, situation: Situation) -> Answer:
    try:
        use(*situation)
    except Refused as refused:
        return refused.reason
    return OK


UNLEASED = Reason.LEASE_NOT_PRESENT
OTHER_ID = Reason.LEASE_ID_MISMATCH
MISSING = Reason.LEASE_ID_MISSING
LOST = Reason.LEASE_LOST
TOO_SHORT = Reason.INFINITE_LEASE_DURATION_REQUIRED

# fmt: off
USES: list[tuple[str, Use, tuple[Answer, ...]]] = [
    #                                               available  leased     breaking   broken    expired
    ("write or delete with (A)",   write(A),        (UNLEASED, OK,        OK,        LOST,     LOST)),
    ("write or delete with (B)",   write(B),        (UNLEASED, OTHER_ID,  OTHER_ID,  UNLEASED, UNLEASED)),
    ("write or delete, no id",     write(None),     (OK,       MISSING,   MISSING,   OK,       OK)),
    ("read with (A)",              read(A),         (UNLEASED, OK,        OK,        LOST,     LOST)),
    ("read with (B)",              read(B),         (UNLEASED, OTHER_ID,  OTHER_ID,  UNLEASED, UNLEASED)),
    ("read, no id",                read(None),      (OK,       OK,        OK,        OK,       OK)),
    ("Copy Blob onto it with (B)", copy_onto(B),    (UNLEASED, OTHER_ID,  OTHER_ID,  UNLEASED, UNLEASED)),
    ("Copy Blob onto it, no id",   copy_onto(None), (OK,       MISSING,   MISSING,   OK,       OK)),
    ("Abort Copy Blob with (A)",   abort_copy(A),   (UNLEASED, OK,        OK,        LOST,     LOST)),
    ("Abort Copy Blob with (B)",   abort_copy(B),   (UNLEASED, OTHER_ID,  OTHER_ID,  UNLEASED, UNLEASED)),
]

USES_OF_FINITE: list[tuple[str, Use, tuple[Answer, ...]]] = [
    *USES,
    ("Copy Blob onto it with (A)", copy_onto(A),    (UNLEASED, TOO_SHORT, TOO_SHORT, LOST,     LOST)),
    ("Abort Copy Blob, no id",     abort_copy(None), (OK,      OK,        OK,        OK,       OK)),
]

USES_OF_INFINITE: list[tuple[str, Use, tuple[Answer, ...]]] = [
    *USES,
    ("Copy Blob onto it with (A)", copy_onto(A),    (UNLEASED, OK,        OK,        LOST,     LOST)),
    ("Abort Copy Blob, no id",     abort_copy(None), (OK,      MISSING,   MISSING,   OK,       OK)),
]
# fmt: on


@pytest.mark.parametrize(
    ("use", "situation", "expected"),
    cells(USES_OF_FINITE, SITUATIONS) + cells(USES_OF_INFINITE, INFINITE_SITUATIONS, "infinite"),
)
def test_using_what_has_a_lease(use: Use, situation: Situation, expected: Answer) -> None:
    assert answer(use, situation) == expected


@pytest.mark.parametrize("check", [leases.check_write, leases.check_copy_onto])
@pytest.mark.parametrize("state", State)
def test_a_write_keeps_a_lease_in_force_and_forgets_any_other(
    check: Callable[[Lease, LeaseId | None, Instant], Lease], state: State
) -> None:
    lease, now = INFINITE_SITUATIONS[state]
    given_id = A if state in leases.LOCKED else None
    assert check(lease, given_id, now) == (lease if state in leases.LOCKED else NO_LEASE)


def test_an_expired_lease_renews_until_another_client_writes() -> None:
    lease, now = SITUATIONS[State.EXPIRED]
    assert leases.renew(lease, A, now).id == A
    assert outcome(renew(A), Situation(leases.check_write(lease, None, now), now)) is MISMATCH
    assert outcome(release(A), Situation(leases.check_write(lease, None, now), now)) is MISMATCH


def test_what_does_not_exist_is_not_leased() -> None:
    assert answer(write(A), Situation(NO_LEASE, at(0))) is UNLEASED


# What an operation asks of a finite lease (A) in force


@pytest.mark.parametrize(
    ("operations", "check", "expected"),
    [
        (
            "Put Blob, Put Block, Put Block List, Append Block, Put Page and their From URL kin, Seal, "
            "Set Blob Properties, Metadata, Tags and Tier, Copy Blob From URL, Delete Blob; "
            "Delete Container; Delete Share; Create, Copy, Rename and Delete File, Put Range, "
            "Set File Properties and Metadata",
            write,
            (OK, OTHER_ID, MISSING),
        ),
        (
            "Get Blob, its Properties, Metadata, Tags, Block List and Page Ranges, Snapshot Blob, "
            "the source of a copy; Get and Set Container Properties, Metadata and ACL; Get File, "
            "its Properties and Metadata, List Ranges",
            read,
            (OK, OTHER_ID, OK),
        ),
        ("Copy Blob", copy_onto, (TOO_SHORT, OTHER_ID, MISSING)),
        ("Abort Copy Blob", abort_copy, (OK, OTHER_ID, OK)),
    ],
)
def test_an_operation_with_its_id_another_and_none(
    operations: str, check: Callable[[LeaseId | None], Use], expected: tuple[Answer, ...]
) -> None:
    given = tuple(answer(check(given_id), SITUATIONS[State.LEASED]) for given_id in (A, B, None))
    assert given == expected, operations


# Files: infinite leases only, so three states; no renewal, and a break is immediate

FILE_STATES = (State.AVAILABLE, State.LEASED, State.BROKEN)

# fmt: off
FILE_ACTIONS: list[tuple[str, Action, tuple[Outcome, ...]]] = [
    #                                          available  leased    broken
    ("acquire, no id",  acquire(X, INFINITE), (HAS_X,     PRESENT,  HAS_X)),
    ("acquire (A)",     acquire(A, INFINITE), (HAS_A,     HAS_A,    HAS_A)),
    ("acquire (B)",     acquire(B, INFINITE), (HAS_B,     PRESENT,  HAS_B)),
    ("change (A)->(B)", change(A, B),         (ABSENT,    HAS_B,    ABSENT)),
    ("change (B)->(A)", change(B, A),         (ABSENT,    HAS_A,    ABSENT)),
    ("change (B)->(C)", change(B, C),         (ABSENT,    MISMATCH, ABSENT)),
    ("release (A)",     release(A),           (MISMATCH,  FREE,     FREE)),
    ("release (B)",     release(B),           (MISMATCH,  MISMATCH, MISMATCH)),
    ("break",           break_(None),         (ABSENT,    BROKEN,   BROKEN)),
]
# fmt: on


@pytest.mark.parametrize(
    ("action", "situation", "expected"),
    cells(FILE_ACTIONS, INFINITE_SITUATIONS, "infinite", columns=FILE_STATES),
)
def test_an_action_on_a_file(action: Action, situation: Situation, expected: Outcome) -> None:
    assert outcome(action, situation) == expected


# Showing and storing it


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (SITUATIONS[State.AVAILABLE], LeaseProperties("unlocked", "available", None)),
        (SITUATIONS[State.LEASED], LeaseProperties("locked", "leased", "fixed")),
        (INFINITE_SITUATIONS[State.LEASED], LeaseProperties("locked", "leased", "infinite")),
        (SITUATIONS[State.BREAKING], LeaseProperties("locked", "breaking", None)),
        (INFINITE_SITUATIONS[State.BREAKING], LeaseProperties("locked", "breaking", None)),
        (SITUATIONS[State.BROKEN], LeaseProperties("unlocked", "broken", None)),
        (SITUATIONS[State.EXPIRED], LeaseProperties("unlocked", "expired", None)),
    ],
)
def test_the_properties_of_a_lease(situation: Situation, expected: LeaseProperties) -> None:
    assert leases.properties_of(*situation) == expected


@pytest.mark.parametrize(
    ("state", "given_id", "expected"),
    [
        (state, given_id, state in leases.LOCKED and given_id == A)
        for state in State
        for given_id in (A, B, None)
    ],
)
def test_who_holds_it(state: State, given_id: LeaseId | None, expected: bool) -> None:
    lease, now = SITUATIONS[state]
    assert leases.holds(lease, given_id, now) is expected


@pytest.mark.parametrize("situation", [*SITUATIONS.values(), *INFINITE_SITUATIONS.values()])
def test_it_is_stored_as_a_short_array(situation: Situation) -> None:
    encoded = msgspec.msgpack.encode(situation.lease)
    assert msgspec.msgpack.decode(encoded) == list(situation.lease)
    assert msgspec.msgpack.decode(encoded, type=Lease) == situation.lease
