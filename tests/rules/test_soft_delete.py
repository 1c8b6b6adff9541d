"""When what was deleted is gone, and what changes of a whole history make of single rows."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.rules import soft_delete
from kyanite.rules.soft_delete import Change, Deletion, Effect
from kyanite.values import TICKS_PER_SECOND, Instant, later

START = Instant(638_500_000_000_000_000)
DAY = 86_400
PURGE_SNAPSHOTS, DELETE_SNAPSHOTS = Effect.PURGE_SNAPSHOTS, Effect.DELETE_SNAPSHOTS
UNDELETE, PURGE_DELETED = Effect.UNDELETE, Effect.PURGE_DELETED


@pytest.mark.parametrize(
    ("seconds", "is_gone"), [(0, False), (7 * DAY - 1, False), (7 * DAY, True), (8 * DAY, True)]
)
def test_it_is_gone_when_the_days_are_over(seconds: int, is_gone: bool) -> None:
    assert soft_delete.deleted_now(START, 7).is_gone(later(START, seconds)) is is_gone


def test_a_deletion_lasts_as_long_as_the_setting_says_at_that_moment() -> None:
    assert soft_delete.deleted_now(START, 3) == Deletion(START, Instant(START + 3 * DAY * TICKS_PER_SECOND))


I = Instant  # noqa: E741 - a column of the table
# fmt: off
FOLDED = [
    # own deletion, since, changes, of a snapshot, of a version
    (None,          10, [],                                                              None,         None),
    (None,          10, [(DELETE_SNAPSHOTS, 20, 90)],                                    (20, 90),     None),
    (None,          10, [(DELETE_SNAPSHOTS, 5, 90)],                                     None,         None),
    (None,          10, [(PURGE_SNAPSHOTS, 20)],                                         (20, 20),     None),
    (None,          10, [(UNDELETE, 20)],                                                None,         None),
    (None,          10, [(PURGE_DELETED, 20)],                                           None,         None),
    (None,          10, [(DELETE_SNAPSHOTS, 20, 90), (UNDELETE, 30)],                    None,         None),
    (None,          10, [(DELETE_SNAPSHOTS, 20, 30), (UNDELETE, 30)],                    (20, 30),     None),
    (None,          10, [(DELETE_SNAPSHOTS, 20, 90), (DELETE_SNAPSHOTS, 30, 95)],        (20, 90),     None),
    (None,          10, [(DELETE_SNAPSHOTS, 20, 90), (PURGE_DELETED, 30)],               (20, 30),     None),
    (None,          10, [(DELETE_SNAPSHOTS, 20, 90), (UNDELETE, 30), (PURGE_DELETED, 40)], None,       None),
    (None,          10, [(DELETE_SNAPSHOTS, 20, 90), (UNDELETE, 30), (PURGE_SNAPSHOTS, 40)], (40, 40), None),
    ((10, 80),      10, [],                                                              (10, 80),     (10, 80)),
    ((10, 80),      10, [(UNDELETE, 20)],                                                None,         None),
    ((10, 80),      10, [(UNDELETE, 5)],                                                 (10, 80),     (10, 80)),
    ((10, 80),      10, [(UNDELETE, 80)],                                                (10, 80),     (10, 80)),
    ((10, 80),      10, [(PURGE_DELETED, 20)],                                           (10, 20),     (10, 20)),
    ((10, 80),      10, [(PURGE_DELETED, 20), (UNDELETE, 30)],                           (10, 20),     (10, 20)),
    ((10, 80),      10, [(PURGE_SNAPSHOTS, 20)],                                         (10, 20),     (10, 80)),
    ((10, 80),      10, [(DELETE_SNAPSHOTS, 20, 99)],                                    (10, 80),     (10, 80)),
    ((10, 80),      10, [(UNDELETE, 20), (DELETE_SNAPSHOTS, 30, 99)],                    (30, 99),     None),
    ((10, 15),      10, [(PURGE_DELETED, 20)],                                           (10, 15),     (10, 15)),
]
# fmt: on


@pytest.mark.parametrize(("own", "since", "changes", "of_snapshot", "of_version"), FOLDED)
def test_changes_of_a_whole_history(
    own: tuple[int, int] | None,
    since: int,
    changes: list[tuple[int, ...]],
    of_snapshot: tuple[int, int] | None,
    of_version: tuple[int, int] | None,
) -> None:
    deletion = None if own is None else Deletion(I(own[0]), I(own[1]))
    made = [Change(change[0], *map(I, change[1:])) for change in changes]  # type: ignore[arg-type]
    for is_snapshot, expected in ((True, of_snapshot), (False, of_version)):
        assert soft_delete.deletion_of(deletion, I(since), made, is_snapshot=is_snapshot) == expected


@st.composite
def lists_of_changes(draw: st.DrawFn) -> list[Change]:
    instants = sorted(draw(st.sets(st.integers(1, 50), max_size=5)))
    return [Change(draw(st.sampled_from(Effect)), I(at), I(at + draw(st.integers(1, 30)))) for at in instants]


@given(lists_of_changes(), st.integers(0, 60))
def test_snapshots_between_two_changes_have_the_same_state(changes: Sequence[Change], instant: int) -> None:
    ranges = list(soft_delete.snapshot_ranges(changes))
    assert [each.first for each in ranges[1:]] == [each.last + 1 for each in ranges[:-1]]
    (found,) = [each for each in ranges if each.first <= instant <= each.last]
    assert found.deletion == soft_delete.deletion_of(None, I(instant), changes, is_snapshot=True)


def test_only_an_undelete_restores() -> None:
    for effect in Effect:
        assert soft_delete.restores([Change(effect, START)]) is (effect is UNDELETE)
