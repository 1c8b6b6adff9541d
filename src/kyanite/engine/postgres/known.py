"""What is known of the rows, whether or not it is still so: rows by key, and ranges of keys that are known as a whole.

Bodies run against this. What they read is validated before their outcomes count, so nothing here has to be right; it
only has to be right most of the time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kyanite.engine.api import MAX_KEY_BYTES
from kyanite.engine.groups import Groups
from kyanite.engine.postgres.order import PART_BYTES

Version = int | None
"""Of a row; None if there is no such row."""
Stored = tuple[Version, bytes | None]
"""A version and a value, or (None, None) if there is no such row."""

ABSENT: Final[Stored] = (None, None)
LAST_KEY: Final = b"\xff" * (MAX_KEY_BYTES + 1)
"""After all keys."""

_GUESS_BYTES_MAX: Final = 64 * 1024
_OVERHEAD_BYTES: Final = 200
_ABSENT_MIN: Final = 32
"""After so many keys in a row that were not there, the next one is assumed not to be there."""
_PARTS_MAX: Final = 4096


class Guesses:
    """Rows that were read or written lately, kept from batch to batch. Bounded by bytes.

    Two dictionaries: when the younger one is full it becomes the older one, and what the older one had is forgotten. A
    row of the older one that is used moves to the younger one.
    """

    __slots__ = ("_bytes", "_bytes_max", "_old", "_young")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max // 2
        self._bytes = 0
        self._young: dict[bytes, Stored] = {}
        self._old: dict[bytes, Stored] = {}

    def get(self, key: bytes) -> Stored | None:
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.keep(key, found)
        return found

    def keep(self, key: bytes, stored: Stored) -> None:
        kept = self._young.get(key)
        if kept is not None and kept[0] == stored[0]:
            return  # As most that are confirmed. To count them again would push out others.
        value = stored[1]
        size = len(key) + (len(value) if value is not None else 0)
        if size > _GUESS_BYTES_MAX:
            self.forget(key)
            return
        self._young[key] = stored
        self._bytes += size + _OVERHEAD_BYTES
        if self._bytes > self._bytes_max:
            self._old, self._young, self._bytes = self._young, {}, 0

    def forget(self, key: bytes) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()
        self._bytes = 0


class Absences:
    """Where keys that are not known are most likely not there: new blobs of a container, new entities of a table.

    Keys are taken together by their first bytes: in practice by the letter of the row and the container or table. As
    soon as one of them is there, it takes many that are not before absence is assumed again.
    """

    __slots__ = ("_streaks",)

    def __init__(self) -> None:
        self._streaks: dict[bytes, int] = {}
        """How many of the last keys that were looked up were not there."""

    def note(self, key: bytes, is_absent: bool) -> None:
        part = key[:PART_BYTES]
        if not is_absent:
            self._streaks.pop(part, None)
            return
        if len(self._streaks) >= _PARTS_MAX:
            self._streaks.clear()
        self._streaks[part] = self._streaks.get(part, 0) + 1

    def is_likely(self, key: bytes) -> bool:
        return self._streaks.get(key[:PART_BYTES], 0) >= _ABSENT_MIN


class Wanted(NamedTuple):
    """Rows of a range that a body misses: so many from the start, or from the end backwards."""

    low: bytes
    high: bytes
    reverse: bool
    rows: int


class WantedGroups(NamedTuple):
    """Rows of a scan by groups that a body misses: so many from the start."""

    groups: Groups
    rows: int


class FoundGroups(NamedTuple):
    """Those rows, and the key from which on there may be more."""

    rows: list[tuple[bytes, Stored]]
    more_from: bytes | None


class Interval:
    """All keys with low <= key < high, in order."""

    __slots__ = ("high", "keys", "low")

    def __init__(self, low: bytes, high: bytes, keys: list[bytes]) -> None:
        self.low = low
        self.high = high
        self.keys = keys


class Known:
    """Rows and ranges that were fetched for one group of bodies, and guesses beside them."""

    __slots__ = ("_absences", "_assumed", "_guesses", "_intervals", "_lows", "groups", "rows")

    def __init__(self, guesses: Guesses, absences: Absences | None = None) -> None:
        """With ``absences``, keys are assumed not to be there where that is likely."""
        self._guesses = guesses
        self._absences = absences
        self._assumed: set[bytes] = set()
        self.rows: dict[bytes, Stored] = {}
        self.groups: dict[WantedGroups, FoundGroups] = {}
        self._lows: list[bytes] = []
        self._intervals: list[Interval] = []

    def row(self, key: bytes) -> Stored | None:
        """None if nothing is known of the key. What was returned once is returned again, until it is fetched."""
        found = self.rows.get(key)
        if found is None:
            found = self._guesses.get(key)
            if found is None and self._absences is not None and self._absences.is_likely(key):
                self._assumed.add(key)
                found = ABSENT
            if found is not None:
                self.rows[key] = found
        return found

    def correct(self, changed: Mapping[bytes, Stored]) -> bool:
        """Take over rows that are not as they were read. Whether that is only because they were assumed not to be
        there; nothing is assumed any more then."""
        if self._absences is None or not changed or not changed.keys() <= self._assumed:
            return False
        for key in changed:
            self._absences.note(key, False)
        self.rows.update(changed)
        self.assume_nothing()
        return True

    def assume_nothing(self) -> None:
        self._absences = None

    def keep_guesses(self) -> None:
        for key, stored in self.rows.items():
            self._guesses.keep(key, stored)

    def forwards(self, position: bytes) -> Interval | None:
        """The range that contains the position."""
        index = bisect_right(self._lows, position) - 1
        if index >= 0 and self._intervals[index].high > position:
            return self._intervals[index]
        return None

    def backwards(self, position: bytes) -> Interval | None:
        """The range that contains the keys before the position."""
        index = bisect_left(self._lows, position) - 1
        if index >= 0 and self._intervals[index].high >= position:
            return self._intervals[index]
        return None

    def add_range(self, wanted: Wanted, rows: Sequence[tuple[bytes, Stored]], next_key: bytes | None) -> None:
        """Rows of a range as they were fetched, in ascending order; and the next key beyond it, if there is one.

        The keys up to that one are known not to be there. That matters to bodies whose range ends at the present time.
        """
        low, high = wanted.low, wanted.high
        is_whole = len(rows) < wanted.rows
        keys = [key for key, _ in rows]
        if wanted.reverse:
            low = keys[0] if not is_whole else b"" if next_key is None else next_key + b"\0"
        elif is_whole:
            high = LAST_KEY if next_key is None else next_key
        else:
            high = keys[-1] + b"\0"
        self.rows.update(rows)
        if is_whole:
            low, high = min(low, wanted.low), max(high, wanted.high)
        self.add_interval(Interval(low, high, keys))

    def add_interval(self, fresh: Interval) -> None:
        """In the place of what was known of these keys before."""
        if fresh.low >= fresh.high:
            return
        first = bisect_right(self._lows, fresh.low) - 1
        first = first if first >= 0 and self._intervals[first].high > fresh.low else first + 1
        last = bisect_left(self._lows, fresh.high)
        replaced = self._intervals[first:last]
        added = [fresh]
        if replaced and replaced[0].low < fresh.low:
            before = replaced[0]
            added.insert(
                0, Interval(before.low, fresh.low, before.keys[: bisect_left(before.keys, fresh.low)])
            )
        if replaced and replaced[-1].high > fresh.high:
            after = replaced[-1]
            added.append(Interval(fresh.high, after.high, after.keys[bisect_left(after.keys, fresh.high) :]))
        self._intervals[first:last] = added
        self._lows[first:last] = [each.low for each in added]

    def forget_range(self, low: bytes, high: bytes) -> None:
        kept = [each for each in self._intervals if each.high <= low or each.low >= high]
        self._intervals = kept
        self._lows = [each.low for each in kept]
