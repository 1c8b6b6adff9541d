"""How long what was deleted is kept, and how many days a listing shows."""

import pytest

from kyanite.rules import retention
from kyanite.values import TICKS_PER_SECOND, Instant, instant_from_unix_seconds

DELETED_AT = instant_from_unix_seconds(1_790_000_000)
DAY = 86_400 * TICKS_PER_SECOND


@pytest.mark.parametrize("days", [1, 7, 365])
def test_the_policy_at_the_deletion_decides_when_it_ends(days: int) -> None:
    assert retention.expiry_of(DELETED_AT, days) == DELETED_AT + days * DAY


@pytest.mark.parametrize(
    ("description", "since_deletion", "is_over", "whole", "begun"),
    [
        # under a policy of seven days
        ("at the deletion", 0, False, 7, 7),
        ("just after it", 1, False, 6, 7),
        ("after an hour", DAY // 24, False, 6, 7),
        ("after a day", DAY, False, 6, 6),
        ("on the last day", 6 * DAY + 1, False, 0, 1),
        ("a moment before the end", 7 * DAY - 1, False, 0, 1),
        ("at the end", 7 * DAY, True, 0, 0),
        ("long after it", 70 * DAY, True, 0, 0),
    ],
)
def test_days_that_are_left(
    description: str, since_deletion: int, is_over: bool, whole: int, begun: int
) -> None:
    expires_at, now = retention.expiry_of(DELETED_AT, 7), Instant(DELETED_AT + since_deletion)
    found = (
        retention.is_over(expires_at, now),
        retention.whole_days_left(expires_at, now),
        retention.begun_days_left(expires_at, now),
    )
    assert found == (is_over, whole, begun), description
