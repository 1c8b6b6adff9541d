"""The beginning of every read of bytes: the record, and where the bytes of the range are, in one snapshot.

Plain classes, because mypyc makes fast ones of them, and two are made for every read. ``reading.py`` has what follows.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from kyanite.engine.api import Snapshot
from kyanite.model.content.content import Content, ReadPlan, read_plan
from kyanite.rules.refusals import Reason, Refused, TotalLength
from kyanite.values import Instant


class Readable(Protocol):
    """A record of something that has bytes."""

    @property
    def length(self) -> int: ...

    @property
    def content(self) -> Content: ...


R = TypeVar("R", bound=Readable)


class Reading(Generic[R]):
    """What to read: from byte ``first`` to byte ``last`` or the end, or the whole, which may be empty.

    It is the body of the read, so that none has to be made of it.
    """

    __slots__ = ("first", "is_whole", "last", "load", "needs_time")

    def __init__(
        self,
        load: Callable[[Snapshot], R],
        first: int = 0,
        last: int | None = None,
        *,
        is_whole: bool = True,
        needs_time: Callable[[R], bool] | None = None,
    ) -> None:
        self.load = load
        """Loads the record, or refuses."""
        self.first = first
        self.last = last
        self.is_whole = is_whole
        self.needs_time = needs_time
        """Whether it matters when this record was read. None: always."""

    def __call__(self, snap: Snapshot) -> "Opened[R]":
        return open_content(snap, self)


class Opened(Generic[R]):
    """A blob or file as it was when the read began, and where the bytes of the range are."""

    __slots__ = ("at", "length", "offset", "plan", "record")

    def __init__(self, record: R, at: Instant, offset: int, length: int, plan: ReadPlan) -> None:
        self.record = record
        self.at = at
        """When the read began; 0 where it does not matter (``Reading.needs_time``)."""
        self.offset = offset
        self.length = length
        self.plan = plan


def open_content(snap: Snapshot, request: Reading[R]) -> Opened[R]:
    record = request.load(snap)
    needs_time = request.needs_time
    at = snap.now if needs_time is None or needs_time(record) else Instant(0)
    total = record.length
    if request.is_whole:
        return Opened(record, at, 0, total, read_plan(snap, record.content, 0, total))
    first = request.first
    if first >= total:
        raise Refused(Reason.INVALID_RANGE, TotalLength(total))
    length = (total if request.last is None else min(request.last + 1, total)) - first
    return Opened(record, at, first, length, read_plan(snap, record.content, first, length))
