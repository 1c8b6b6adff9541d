"""Immutability: the table of what is refused, and the tables of how policies and holds may be changed."""

from collections.abc import Callable

import pytest

from kyanite.rules import immutability
from kyanite.rules.immutability import (
    MAX_DAYS,
    NOT_PROTECTED,
    Appends,
    BlobProtection,
    BlobTimes,
    Change,
    ContainerPolicy,
    ContainerProtection,
)
from kyanite.rules.refusals import Explained, Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant
from tests.rules.refusing import reason_of

DAY = 24 * 3600 * TICKS_PER_SECOND
NOW = Instant(700_000 * DAY + 12_345)
PAST, FUTURE, LATER = Instant(NOW - DAY), Instant(NOW + DAY), Instant(NOW + 2 * DAY)
NEW = BlobTimes(Instant(NOW - DAY), Instant(NOW - DAY))
OLD = BlobTimes(Instant(NOW - 30 * DAY), Instant(NOW - 30 * DAY))

POLICY, LEGAL_HOLD = Reason.BLOB_IMMUTABLE_DUE_TO_POLICY, Reason.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD
CANNOT = Reason.PROTECTION_CANNOT_CHANGE

VERSIONS = ContainerProtection(is_version_level=True)

# The published table: yes, no, "kept" if a new version is made beside it, "appends" if the policy allows them.
PUBLISHED = [
    # change                version-level: active or hold, expired    container-level: active or hold, expired
    (Change.DELETE, "no", "yes", "no", "yes"),
    (Change.OVERWRITE, "kept", "yes", "no", "no"),
    (Change.SET_METADATA, "no", "no", "no", "no"),
    (Change.WRITE_PAGES, "no", "no", "no", "no"),
    (Change.SET_PROPERTIES, "yes", "yes", "no", "no"),
    (Change.APPEND, "no", "no", "appends", "appends"),
    (Change.SEAL, "yes", "yes", "appends", "appends"),
    (Change.SNAPSHOT, "yes", "yes", "no", "no"),
]


def test_the_table_has_every_change() -> None:
    assert [row[0] for row in PUBLISHED] == list(Change)


@pytest.mark.parametrize("row", PUBLISHED, ids=[row[0].name for row in PUBLISHED])
@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_version_level(row: tuple[Change, str, str, str, str], locked: bool, kept: bool) -> None:
    change, active, expired, _, _ = row

    def found(blob: BlobProtection) -> Reason | None:
        return reason_of(lambda: immutability.check(change, VERSIONS, blob, NEW, NOW, keeps_version=kept))

    def expected(cell: str, reason: Reason) -> Reason | None:
        return None if cell == "yes" or (cell == "kept" and kept) else reason

    assert found(BlobProtection(FUTURE, locked)) == expected(active, POLICY)
    assert found(BlobProtection(PAST, locked)) == expected(expired, POLICY)
    assert found(BlobProtection(has_legal_hold=True)) == expected(active, LEGAL_HOLD)
    assert found(BlobProtection(PAST, locked, has_legal_hold=True)) == (
        expected(active, LEGAL_HOLD) or expected(expired, POLICY)
    )
    assert found(BlobProtection()) is None


@pytest.mark.parametrize("row", PUBLISHED, ids=[row[0].name for row in PUBLISHED])
@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("appends", list(Appends))
@pytest.mark.parametrize("kept", [False, True])
def test_container_level(
    row: tuple[Change, str, str, str, str], locked: bool, appends: Appends, kept: bool
) -> None:
    change, _, _, active, expired = row
    grows = appends is not Appends.NONE
    protection = ContainerProtection(ContainerPolicy(7, locked, appends=appends))
    held = ContainerProtection(legal_hold_tags=("case1",), legal_hold_allows_appends=grows)

    def found(container: ContainerProtection, times: BlobTimes) -> Reason | None:
        return reason_of(lambda: immutability.check(change, container, None, times, NOW, keeps_version=kept))

    def expected(cell: str, reason: Reason) -> Reason | None:
        return None if cell == "yes" or (cell == "appends" and grows) else reason

    assert found(protection, NEW) == expected(active, POLICY)
    assert found(protection, OLD) == expected(expired, POLICY)
    assert found(held, OLD) == expected(active, LEGAL_HOLD)
    both = held._replace(policy=protection.policy)
    assert found(both, OLD) == (expected(active, LEGAL_HOLD) or expected(expired, POLICY))


@pytest.mark.parametrize("change", list(Change))
def test_nothing_is_refused_without_protection(change: Change) -> None:
    for container in (None, NOT_PROTECTED, VERSIONS, VERSIONS._replace(policy=ContainerPolicy(9, True))):
        for blob in (None, BlobProtection()):
            immutability.check(change, container, blob, OLD, NOW)


def test_a_policy_ends_in_its_last_tick() -> None:
    def deleted(now: Instant) -> Reason | None:
        blob = BlobProtection(FUTURE)
        return reason_of(lambda: immutability.check(Change.DELETE, VERSIONS, blob, NEW, now))

    assert deleted(Instant(FUTURE - 1)) is POLICY
    assert deleted(FUTURE) is None


def test_the_hold_and_the_policy_must_both_let_a_blob_grow() -> None:
    policy = ContainerPolicy(7, appends=Appends.APPEND_BLOBS)
    held = ContainerProtection(policy, ("case1",))
    appended = BlobTimes(NOW, NOW, is_append_blob=True)
    assert reason_of(lambda: immutability.check(Change.APPEND, held, None, appended, NOW)) is LEGAL_HOLD
    both = held._replace(legal_hold_allows_appends=True)
    immutability.check(Change.APPEND, both, None, appended, NOW)
    strict = both._replace(policy=ContainerPolicy(7))
    assert reason_of(lambda: immutability.check(Change.APPEND, strict, None, appended, NOW)) is POLICY


RETAINED = [
    ("days after the creation", ContainerPolicy(7), False, 7 - 30),
    ("whatever was done since", ContainerPolicy(40), False, 40 - 30),
    ("an append blob that may not grow", ContainerPolicy(7), True, 7 - 30),
    ("an append blob that may", ContainerPolicy(7, appends=Appends.APPEND_BLOBS), True, 7 - 2),
    ("also if all may", ContainerPolicy(7, appends=Appends.ALL), True, 7 - 2),
    ("no append blob", ContainerPolicy(7, appends=Appends.ALL), False, 7 - 30),
]


@pytest.mark.parametrize(
    ("description", "policy", "is_append_blob", "days"), RETAINED, ids=[row[0] for row in RETAINED]
)
def test_until_when_a_container_keeps_a_blob(
    description: str, policy: ContainerPolicy, is_append_blob: bool, days: int
) -> None:
    times = BlobTimes(Instant(NOW - 30 * DAY), Instant(NOW - 2 * DAY), is_append_blob)
    assert immutability.retained_until(policy, times) == NOW + days * DAY, description


# The policy and the hold of one blob

NONE = BlobProtection()
UNLOCKED, LOCKED = BlobProtection(FUTURE), BlobProtection(FUTURE, True)
ENDED, ENDED_LOCKED = BlobProtection(PAST), BlobProtection(PAST, True)
HELD = BlobProtection(has_legal_hold=True)
DATE, LOCK = Reason.IMMUTABILITY_DATE_OUT_OF_RANGE, Reason.IMMUTABILITY_POLICY_LOCKED

SETS: list[tuple[str, BlobProtection | None, Instant, bool, BlobProtection | Reason]] = [
    ("the first", None, FUTURE, False, UNLOCKED),
    ("the first, locked", None, FUTURE, True, LOCKED),
    ("beside a hold", HELD, FUTURE, False, UNLOCKED._replace(has_legal_hold=True)),
    ("in the past", None, PAST, False, DATE),
    ("now", None, NOW, False, DATE),
    ("in the next tick", None, Instant(NOW + 1), False, BlobProtection(Instant(NOW + 1))),
    (
        "as long as possible",
        None,
        Instant(NOW + MAX_DAYS * DAY),
        False,
        BlobProtection(Instant(NOW + MAX_DAYS * DAY)),
    ),
    ("too long", None, Instant(NOW + MAX_DAYS * DAY + 1), False, DATE),
    ("unlocked, longer", UNLOCKED, LATER, False, BlobProtection(LATER)),
    ("unlocked, shorter", BlobProtection(LATER), FUTURE, False, UNLOCKED),
    ("unlocked, into the past", UNLOCKED, PAST, False, DATE),
    ("it is locked", UNLOCKED, FUTURE, True, LOCKED),
    ("it is locked and longer", UNLOCKED, LATER, True, BlobProtection(LATER, True)),
    ("it is locked and shorter", BlobProtection(LATER), FUTURE, True, LOCKED),
    ("locked, longer", LOCKED, LATER, True, BlobProtection(LATER, True)),
    ("locked, the same", LOCKED, FUTURE, True, LOCKED),
    ("locked, shorter", BlobProtection(LATER, True), FUTURE, True, LOCK),
    ("locked, unlocked again", LOCKED, FUTURE, False, LOCK),
    ("locked, unlocked and longer", LOCKED, LATER, False, LOCK),
    ("locked, into the past", LOCKED, PAST, True, DATE),
    ("expired, again", ENDED, FUTURE, False, UNLOCKED),
    ("expired and locked, again", ENDED_LOCKED, FUTURE, True, LOCKED),
    ("expired and locked, unlocked", ENDED_LOCKED, FUTURE, False, LOCK),
]


def outcome_of(change: Callable[[], object]) -> object:
    try:
        return change()
    except Refused as refusal:
        return refusal.reason


@pytest.mark.parametrize(
    ("description", "before", "until", "locked", "expected"), SETS, ids=[row[0] for row in SETS]
)
def test_setting_a_policy(
    description: str,
    before: BlobProtection | None,
    until: Instant,
    locked: bool,
    expected: BlobProtection | Reason,
) -> None:
    found = outcome_of(lambda: immutability.set_policy(before, until, is_locked=locked, now=NOW))
    assert found == expected, description


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, None),
        (HELD, HELD),
        (UNLOCKED, None),
        (ENDED, None),
        (UNLOCKED._replace(has_legal_hold=True), HELD),
        (LOCKED, Reason.IMMUTABILITY_POLICY_DELETE_ON_LOCKED_POLICY),
        (ENDED_LOCKED, Reason.IMMUTABILITY_POLICY_DELETE_ON_LOCKED_POLICY),
    ],
)
def test_deleting_a_policy(before: BlobProtection | None, expected: BlobProtection | Reason | None) -> None:
    assert outcome_of(lambda: immutability.delete_policy(before)) == expected


@pytest.mark.parametrize(
    ("before", "held", "expected"),
    [
        (None, True, HELD),
        (None, False, None),
        (HELD, True, HELD),
        (HELD, False, None),
        (LOCKED, True, LOCKED._replace(has_legal_hold=True)),
        (LOCKED._replace(has_legal_hold=True), False, LOCKED),
    ],
)
def test_setting_a_hold(before: BlobProtection | None, held: bool, expected: BlobProtection | None) -> None:
    assert immutability.set_legal_hold(before, held) == expected


DEFAULT = VERSIONS._replace(policy=ContainerPolicy(2))
LOCKED_DEFAULT = VERSIONS._replace(policy=ContainerPolicy(2, is_locked=True))
STAMP = Instant(NOW - NOW % TICKS_PER_SECOND + 2 * DAY + TICKS_PER_SECOND)
"""Two days from now, rounded up to a whole second."""
NOT_ENABLED = Reason.VERSION_LEVEL_IMMUTABILITY_NOT_ENABLED

NEW_BLOBS: list[
    tuple[str, ContainerProtection | None, BlobProtection | None, BlobProtection | Reason | None]
] = [
    ("an ordinary container", None, None, None),
    ("an ordinary container, a policy", None, UNLOCKED, NOT_ENABLED),
    ("an ordinary container, a hold", None, HELD, NOT_ENABLED),
    ("a hold is not set", None, NONE, NOT_ENABLED),
    ("a policy of the container is no default", ContainerProtection(ContainerPolicy(2)), None, None),
    ("and no reason for one", ContainerProtection(ContainerPolicy(2)), UNLOCKED, NOT_ENABLED),
    ("no default, no policy", VERSIONS, None, None),
    ("no default, a policy", VERSIONS, UNLOCKED, UNLOCKED),
    ("no default, a hold", VERSIONS, HELD, HELD),
    ("no default, no hold", VERSIONS, NONE, None),
    ("an unlocked default", DEFAULT, None, BlobProtection(STAMP)),
    ("an unlocked default, a policy", DEFAULT, UNLOCKED, UNLOCKED),
    ("an unlocked default, a hold", DEFAULT, HELD, BlobProtection(STAMP, has_legal_hold=True)),
    ("a locked default", LOCKED_DEFAULT, None, BlobProtection(STAMP, True)),
    ("a locked default, an unlocked policy", LOCKED_DEFAULT, UNLOCKED, UNLOCKED),
    ("a locked policy", VERSIONS, LOCKED, LOCKED),
    ("a policy in the past", VERSIONS, ENDED, DATE),
]


@pytest.mark.parametrize(
    ("description", "container", "requested", "expected"), NEW_BLOBS, ids=[row[0] for row in NEW_BLOBS]
)
def test_a_new_blob(
    description: str,
    container: ContainerProtection | None,
    requested: BlobProtection | None,
    expected: BlobProtection | Reason | None,
) -> None:
    assert outcome_of(lambda: immutability.of_new_blob(container, requested, NOW)) == expected, description


# The container

CONTAINER_UNLOCKED = ContainerProtection(ContainerPolicy(7))
CONTAINER_LOCKED = ContainerProtection(ContainerPolicy(7, True))
EXTENDED = ContainerProtection(ContainerPolicy(7, True, extensions=5))
CONTAINER_HELD = ContainerProtection(legal_hold_tags=("case1", "case2"))

SET = immutability.set_container_policy
EXTEND = immutability.extend_container_policy
POLICIES: list[tuple[str, Callable[[], object], object]] = [
    ("the first", lambda: SET(None, 7), CONTAINER_UNLOCKED),
    ("one day", lambda: SET(None, 1), ContainerProtection(ContainerPolicy(1))),
    ("no day", lambda: SET(None, 0), CANNOT),
    ("400 years", lambda: SET(None, MAX_DAYS), ContainerProtection(ContainerPolicy(MAX_DAYS))),
    ("too many days", lambda: SET(None, MAX_DAYS + 1), CANNOT),
    ("shorter", lambda: SET(CONTAINER_UNLOCKED, 3), ContainerProtection(ContainerPolicy(3))),
    ("longer", lambda: SET(CONTAINER_UNLOCKED, 9), ContainerProtection(ContainerPolicy(9))),
    (
        "append blobs may grow",
        lambda: SET(CONTAINER_UNLOCKED, 7, Appends.APPEND_BLOBS),
        ContainerProtection(ContainerPolicy(7, appends=Appends.APPEND_BLOBS)),
    ),
    ("beside holds", lambda: SET(CONTAINER_HELD, 7), CONTAINER_HELD._replace(policy=ContainerPolicy(7))),
    ("a default", lambda: SET(VERSIONS, 2), DEFAULT),
    ("a default lets nothing grow", lambda: SET(VERSIONS, 2, Appends.ALL), CANNOT),
    ("a locked one is not set", lambda: SET(CONTAINER_LOCKED, 9), CANNOT),
    ("even to the same", lambda: SET(CONTAINER_LOCKED, 7), CANNOT),
    ("locking", lambda: immutability.lock_container_policy(CONTAINER_UNLOCKED), CONTAINER_LOCKED),
    ("locking twice", lambda: immutability.lock_container_policy(CONTAINER_LOCKED), CONTAINER_LOCKED),
    ("locking nothing", lambda: immutability.lock_container_policy(None), CANNOT),
    ("locking a default", lambda: immutability.lock_container_policy(DEFAULT), LOCKED_DEFAULT),
    ("extending", lambda: EXTEND(CONTAINER_LOCKED, 8), ContainerProtection(ContainerPolicy(8, True, 1))),
    ("extending by nothing", lambda: EXTEND(CONTAINER_LOCKED, 7), CANNOT),
    ("shortening", lambda: EXTEND(CONTAINER_LOCKED, 6), CANNOT),
    ("extending too far", lambda: EXTEND(CONTAINER_LOCKED, MAX_DAYS + 1), CANNOT),
    ("extending too often", lambda: EXTEND(EXTENDED, 8), CANNOT),
    ("extending an unlocked one", lambda: EXTEND(CONTAINER_UNLOCKED, 8), CANNOT),
    ("extending nothing", lambda: EXTEND(None, 8), CANNOT),
    ("deleting", lambda: immutability.delete_container_policy(CONTAINER_UNLOCKED), NOT_PROTECTED),
    ("deleting a default", lambda: immutability.delete_container_policy(DEFAULT), VERSIONS),
    ("deleting a locked one", lambda: immutability.delete_container_policy(CONTAINER_LOCKED), CANNOT),
    ("deleting a locked default", lambda: immutability.delete_container_policy(LOCKED_DEFAULT), CANNOT),
    ("deleting nothing", lambda: immutability.delete_container_policy(None), CANNOT),
]


@pytest.mark.parametrize(("description", "change", "expected"), POLICIES, ids=[row[0] for row in POLICIES])
def test_the_policy_of_a_container(description: str, change: Callable[[], object], expected: object) -> None:
    assert outcome_of(change) == expected, description


def test_five_extensions() -> None:
    protection = CONTAINER_LOCKED
    for days in range(8, 13):
        protection = EXTEND(protection, days)
    assert protection == ContainerProtection(ContainerPolicy(12, True, extensions=5))
    assert outcome_of(lambda: EXTEND(protection, 13)) is CANNOT


HOLDS = immutability.set_legal_holds
CLEAR = immutability.clear_legal_holds
TEN = tuple(f"case{number}" for number in range(10))
LEGAL_HOLDS: list[tuple[str, Callable[[], object], object]] = [
    ("the first", lambda: HOLDS(None, ("case1",)), ContainerProtection(legal_hold_tags=("case1",))),
    ("more", lambda: HOLDS(CONTAINER_HELD, ("case3",)).legal_hold_tags, ("case1", "case2", "case3")),
    ("the same", lambda: HOLDS(CONTAINER_HELD, ("case1",)), CONTAINER_HELD),
    ("without case", lambda: HOLDS(CONTAINER_HELD, ("CASE1",)), CONTAINER_HELD),
    ("ten", lambda: HOLDS(None, TEN).legal_hold_tags, TEN),
    ("eleven", lambda: HOLDS(None, (*TEN, "last")), CANNOT),
    ("the eleventh", lambda: HOLDS(ContainerProtection(legal_hold_tags=TEN), ("last",)), CANNOT),
    ("none", lambda: HOLDS(None, ()), CANNOT),
    ("too short", lambda: HOLDS(None, ("ab",)), CANNOT),
    ("short", lambda: HOLDS(None, ("abc",)).legal_hold_tags, ("abc",)),
    ("long", lambda: HOLDS(None, ("a" * 23,)).legal_hold_tags, ("a" * 23,)),
    ("too long", lambda: HOLDS(None, ("a" * 24,)), CANNOT),
    ("a hyphen", lambda: HOLDS(None, ("a-b",)), CANNOT),
    ("a letter beyond ASCII", lambda: HOLDS(None, ("fälle",)), CANNOT),
    ("with version-level immutability", lambda: HOLDS(VERSIONS, ("case1",)), CANNOT),
    ("appends", lambda: HOLDS(None, ("case1",), allows_appends=True).legal_hold_allows_appends, True),
    (
        "appends stay allowed",
        lambda: (
            HOLDS(
                CONTAINER_HELD._replace(legal_hold_allows_appends=True), ("case3",)
            ).legal_hold_allows_appends
        ),
        True,
    ),
    ("clearing one", lambda: CLEAR(CONTAINER_HELD, ("Case1",)).legal_hold_tags, ("case2",)),
    ("clearing all", lambda: CLEAR(CONTAINER_HELD, ("case1", "case2")), NOT_PROTECTED),
    (
        "clearing all, appends too",
        lambda: CLEAR(CONTAINER_HELD._replace(legal_hold_allows_appends=True), ("case1", "case2")),
        NOT_PROTECTED,
    ),
    ("clearing another", lambda: CLEAR(CONTAINER_HELD, ("case3",)), CONTAINER_HELD),
    ("clearing what cannot be", lambda: CLEAR(CONTAINER_HELD, ("x",)), CANNOT),
]


@pytest.mark.parametrize(
    ("description", "change", "expected"), LEGAL_HOLDS, ids=[row[0] for row in LEGAL_HOLDS]
)
def test_the_legal_holds_of_a_container(
    description: str, change: Callable[[], object], expected: object
) -> None:
    assert outcome_of(change) == expected, description


@pytest.mark.parametrize(
    ("before", "has_versioning", "expected"),
    [
        (None, True, VERSIONS),
        (NOT_PROTECTED, True, VERSIONS),
        (DEFAULT, True, DEFAULT),
        (None, False, Reason.VERSIONING_NOT_ENABLED),
        (CONTAINER_UNLOCKED, True, CANNOT),
        (CONTAINER_LOCKED, True, CANNOT),
        (CONTAINER_HELD, True, CANNOT),
    ],
)
def test_enabling_version_level_immutability(
    before: ContainerProtection | None, has_versioning: bool, expected: ContainerProtection | Reason
) -> None:
    found = outcome_of(lambda: immutability.enable_version_level(before, has_versioning=has_versioning))
    assert found == expected


DELETIONS: list[tuple[ContainerProtection | None, Reason | None, Reason | None, Reason | None]] = [
    # protection, by a client, by the operator when it is empty, and when it is not
    (None, None, None, None),
    (NOT_PROTECTED, None, None, None),
    (CONTAINER_UNLOCKED, Reason.CONTAINER_PROTECTED_FROM_DELETION, None, CANNOT),
    (CONTAINER_LOCKED, Reason.CONTAINER_IMMUTABILITY_POLICY_LOCKED, None, CANNOT),
    (CONTAINER_HELD, Reason.CONTAINER_HAS_LEGAL_HOLD, CANNOT, CANNOT),
    (
        CONTAINER_HELD._replace(policy=ContainerPolicy(7, True)),
        Reason.CONTAINER_HAS_LEGAL_HOLD,
        CANNOT,
        CANNOT,
    ),
    (VERSIONS, Reason.CONTAINER_IMMUTABLE_STORAGE_WITH_VERSIONING_ENABLED, None, CANNOT),
    (LOCKED_DEFAULT, Reason.CONTAINER_IMMUTABLE_STORAGE_WITH_VERSIONING_ENABLED, None, CANNOT),
]


@pytest.mark.parametrize(("protection", "client", "empty", "full"), DELETIONS)
def test_deleting_a_container(
    protection: ContainerProtection | None, client: Reason | None, empty: Reason | None, full: Reason | None
) -> None:
    assert reason_of(lambda: immutability.check_delete_container(protection)) is client
    assert reason_of(lambda: immutability.check_operator_deletes(protection, is_empty=True)) is empty
    assert reason_of(lambda: immutability.check_operator_deletes(protection, is_empty=False)) is full


def test_the_operator_reads_why() -> None:
    with pytest.raises(Refused) as caught:
        EXTEND(CONTAINER_LOCKED, 5)
    assert caught.value.detail == Explained("The policy is locked and has 7 days: it can only be extended.")
