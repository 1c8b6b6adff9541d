"""The time of the last access to a block blob: when an access moves it.

Creating the blob and writing it anew set it. Reading its bytes moves it, but at most once a day: a read within a day
after the access that is recorded leaves it as it is. Nothing else moves it: no properties, metadata, tags or lists.
"""

from kyanite.values import TICKS_PER_SECOND, Instant

_DAY_TICKS = 86_400 * TICKS_PER_SECOND


def is_due(accessed_at: Instant | None, now: Instant) -> bool:
    """Whether a read now is recorded."""
    return accessed_at is None or now - accessed_at >= _DAY_TICKS


def visible(accessed_at: Instant | None, created_at: Instant) -> Instant | None:
    """The recorded time, unless it is that of a former blob of the same name."""
    return None if accessed_at is None or accessed_at < created_at else accessed_at
