"""The rows that a body reads: what is known of them, and what earlier bodies of its batch have written.

A body that needs what is not known is ended by a ``Miss`` and runs again when that was fetched. What a body has read is
recorded, to be validated.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple, NoReturn

from kyanite.engine.api import STEP_ROWS
from kyanite.engine.groups import Groups, seek_groups
from kyanite.engine.postgres.known import ABSENT, FoundGroups, Known, Stored, Wanted, WantedGroups
from kyanite.engine.transaction import Row, merged

_FIRST_ROWS: Final = 64
_FEW_RANGES: Final = 2
"""Of a body that does not skip parts of a range."""
_MAX_ROWS: Final = 2_501
_GROUPED_ROWS: Final = STEP_ROWS + 1
"""Of a scan by groups so many are fetched together: those of a step, and whether there is another one."""


class Miss(BaseException):
    """Something that the body reads, or the time, is not known. Not an Exception, so that bodies do not handle it.

    A fresh one each time: one that is raised again and again collects tracebacks.
    """


class RangeRead:
    """The rows that a body has read of a range, so far."""

    __slots__ = ("high", "is_whole", "low", "reverse", "rows", "wanted")

    def __init__(self, low: bytes, high: bytes, reverse: bool, wanted: int | None) -> None:
        self.low = low
        self.high = high
        self.reverse = reverse
        self.wanted = wanted
        """How many rows the body wants, if it has said so."""
        self.rows: list[tuple[bytes, Stored]] = []
        self.is_whole = False

    def bounds(self) -> tuple[bytes, bytes] | None:
        """Of the keys that the body knows about; None if it has read nothing."""
        if self.is_whole:
            return self.low, self.high
        if not self.rows:
            return None
        last = self.rows[-1][0]
        return (last, self.high) if self.reverse else (self.low, last + b"\0")

    def ascending(self) -> list[tuple[bytes, Stored]]:
        return self.rows[::-1] if self.reverse else self.rows

    def hash(self) -> bytes:
        """As the database computes it of the rows within the bounds."""
        parts = []
        for key, (version, _) in self.ascending():
            assert version is not None
            parts += [version.to_bytes(8, "big"), len(key).to_bytes(4, "big"), key]
        return sha256(b"".join(parts)).digest()


class GroupsRead(NamedTuple):
    """What a body has read of a scan by groups."""

    wanted: WantedGroups
    found: FoundGroups
    limit: int
    """How many rows the scan may return from there on."""


class Reads:
    """What one run of a body has read, and what it misses."""

    __slots__ = ("groups", "missing_groups", "missing_keys", "missing_range", "ranges", "rows")

    def __init__(self) -> None:
        self.rows: dict[bytes, Stored] = {}
        self.ranges: list[RangeRead] = []
        self.missing_keys: list[bytes] = []
        self.missing_range: Wanted | None = None
        self.groups: list[GroupsRead] = []
        """Of reads only."""
        self.missing_groups: WantedGroups | None = None


def ranges_to_confirm(all_reads: Iterable[Reads]) -> list[tuple[bytes, bytes, bytes]]:
    """Ranges that together say all that was read of ranges, each with its hash.

    Bodies that take messages off a queue read a range from its head, each a little further than the one before: what
    confirms the longest confirms the others. Ranges that contradict one another are all there.
    """
    by_start: dict[bytes, list[tuple[bytes, RangeRead]]] = {}
    for reads in all_reads:
        for read in reads.ranges:
            if (bounds := read.bounds()) is not None:
                by_start.setdefault(bounds[0], []).append((bounds[1], read))
    found: dict[tuple[bytes, bytes, bytes], None] = {}
    for low, ends in by_start.items():
        longest_high, longest = max(ends, key=lambda end: end[0])
        found[low, longest_high, longest.hash()] = None
        if len(ends) == 1:
            continue
        rows = longest.ascending()
        keys = [key for key, _ in rows]
        for high, read in ends:
            if read is not longest and read.ascending() != rows[: bisect_left(keys, high)]:
                found[low, high, read.hash()] = None
    return list(found)


class Written:
    """What the bodies of a batch have written so far; None is a deleted key."""

    __slots__ = ("_sorted", "writes")

    def __init__(self) -> None:
        self.writes: dict[bytes, bytes | None] = {}
        self._sorted: list[bytes] = []

    def add(self, writes: dict[bytes, bytes | None]) -> None:
        for key in writes:
            if key not in self.writes:
                insort(self._sorted, key)
        self.writes.update(writes)

    def between(self, start: bytes, end: bytes) -> list[bytes]:
        return self._sorted[bisect_left(self._sorted, start) : bisect_left(self._sorted, end)]


class KnownRows:
    """A ``Source`` for one run of a body."""

    __slots__ = ("_known", "_written", "reads")

    def __init__(self, known: Known, written: Written | None = None) -> None:
        self._known = known
        self._written = written
        self.reads = Reads()

    def take_snapshot(self) -> None:
        """Nothing to do: whether all that is read is of one state is validated afterwards."""

    def get(self, key: bytes) -> bytes | None:
        if self._written is not None and key in self._written.writes:
            return self._written.writes[key]
        stored = self._known.row(key)
        if stored is None:
            self.reads.missing_keys = [key]
            raise Miss
        self.reads.rows[key] = stored
        return stored[1]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        written = {} if self._written is None else self._written.writes
        found: list[bytes | None] = []
        missing = []
        for key in keys:
            if key in written:
                found.append(written[key])
                continue
            stored = self._known.row(key)
            if stored is None:
                missing.append(key)
            else:
                self.reads.rows[key] = stored
                found.append(stored[1])
        if missing:
            self.reads.missing_keys = missing
            raise Miss
        return found

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        if start >= end or limit == 0:
            return iter(())
        own = [] if self._written is None else self._written.between(start, end)
        wanted = None if limit is None else limit + len(own)
        stored = self._scan(start, end, reverse, wanted)
        if own:
            assert self._written is not None
            stored = merged(stored, self._written.writes, own, reverse)
        return islice(stored, limit)

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        """A batch is validated by rows and ranges, so a transaction skips groups by scans of its own."""
        if self._written is not None:
            yield from seek_groups(self.scan, groups, limit)
            return
        position: bytes | None = groups.start
        while position is not None and position < groups.end and limit > 0:
            wanted = WantedGroups(groups._replace(start=position), min(limit, _GROUPED_ROWS))
            found = self._known.groups.get(wanted)
            if found is None:
                self.reads.missing_groups = wanted
                raise Miss
            self.reads.groups.append(GroupsRead(wanted, found, limit))
            yield values_of(found)
            limit -= len(found.rows)
            position = found.more_from

    def without_checksum(self, _start: bytes, _end: bytes) -> list[bytes]:
        return []  # Every row of this engine has one.

    def _scan(self, start: bytes, end: bytes, reverse: bool, wanted: int | None) -> Iterator[Row]:
        read = RangeRead(start, end, reverse, wanted)
        self.reads.ranges.append(read)
        step = self._step_back if reverse else self._step
        position: bytes | None = end if reverse else start
        while position is not None:
            found = step(position, end if not reverse else start)
            if found is None:
                self._miss(read, position, wanted)
            keys, position = found
            for key in keys:
                stored = self._known.row(key) or ABSENT
                if stored[1] is not None:
                    read.rows.append((key, stored))
                    yield key, stored[1]
        read.is_whole = True

    def _step(self, position: bytes, end: bytes) -> tuple[list[bytes], bytes | None] | None:
        """The next known keys, and where to go on; None for that at the end of the range."""
        interval = self._known.forwards(position)
        if interval is None:
            return None
        keys = interval.keys[bisect_left(interval.keys, position) : bisect_left(interval.keys, end)]
        return keys, None if interval.high >= end else interval.high

    def _step_back(self, position: bytes, start: bytes) -> tuple[list[bytes], bytes | None] | None:
        interval = self._known.backwards(position)
        if interval is None:
            return None
        keys = interval.keys[bisect_left(interval.keys, start) : bisect_left(interval.keys, position)]
        return keys[::-1], None if interval.low <= start else interval.low

    def _miss(self, read: RangeRead, position: bytes, wanted: int | None) -> NoReturn:
        count = len(read.rows)
        # A body that skips parts of a range makes many scans of few rows.
        least = _FIRST_ROWS if len(self.reads.ranges) > _FEW_RANGES else 1
        rows = max(_FIRST_ROWS, 4 * count) if wanted is None else max(wanted - count, least)
        if rows > _MAX_ROWS and count == 0:
            rows = (
                STEP_ROWS + 1
            )  # No body may have them all: it reads in steps, and most often there are few.
        low, high = (read.low, position) if read.reverse else (position, read.high)
        self.reads.missing_range = Wanted(low, high, read.reverse, min(rows, _MAX_ROWS))
        raise Miss


def values_of(found: FoundGroups) -> list[Row]:
    return [(key, value) for key, (_, value) in found.rows if value is not None]
