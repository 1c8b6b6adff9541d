"""Where the bytes of a blob or file are, as their record says it. What it means is in ``content.py``."""

from kyanite.model.content.intervals import Interval
from kyanite.model.records import Record


class Content(Record, frozen=True):
    """Where the bytes of one blob or file are.

    At most one field is set. If none is, all bytes are zeros.
    """

    body: int = 0
    """The number of an inline body that nothing else refers to, and that begins at offset 0."""
    intervals: tuple[Interval, ...] = ()
    layer: int = 0


NO_CONTENT = Content()
