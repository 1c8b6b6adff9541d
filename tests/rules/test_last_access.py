"""When an access moves the time of the last access."""

import pytest

from kyanite.rules import last_access
from kyanite.values import TICKS_PER_SECOND, Instant, instant_from_unix_seconds

THEN = instant_from_unix_seconds(1_790_000_000)
DAY = 86_400 * TICKS_PER_SECOND


@pytest.mark.parametrize(
    ("description", "accessed_at", "later", "is_due"),
    [
        ("never accessed", None, 0, True),
        ("at the same time", THEN, 0, False),
        ("an hour later", THEN, DAY // 24, False),
        ("just before a day is over", THEN, DAY - 1, False),
        ("a day later", THEN, DAY, True),
        ("a year later", THEN, 365 * DAY, True),
        ("a clock that was set back", THEN, -DAY, False),
    ],
)
def test_once_a_day(description: str, accessed_at: Instant | None, later: int, is_due: bool) -> None:
    assert last_access.is_due(accessed_at, Instant(THEN + later)) == is_due, description


@pytest.mark.parametrize(
    ("accessed_at", "created_at", "visible"),
    [
        (None, THEN, None),
        (THEN, THEN, THEN),
        (Instant(THEN + 1), THEN, Instant(THEN + 1)),
        (Instant(THEN - 1), THEN, None),
    ],
)
def test_the_time_of_a_former_blob_does_not_count(
    accessed_at: Instant | None, created_at: Instant, visible: Instant | None
) -> None:
    assert last_access.visible(accessed_at, created_at) == visible
