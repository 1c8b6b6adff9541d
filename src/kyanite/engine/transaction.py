"""The snapshot and the transaction that bodies get, the same for all engines.

An engine provides a ``Source`` of rows and a clock. This module enforces the limits of the contract, merges a body's
own writes into what it reads, and refuses the use of a snapshot after its body has ended.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NoReturn, Protocol, TypeVar

from kyanite.engine.api import MAX_BODY_ROWS, MAX_KEY_BYTES, MAX_VALUE_BYTES, STEP_ROWS, Steps, TooLarge
from kyanite.engine.groups import Groups, seek_groups
from kyanite.values import Instant

Row = tuple[bytes, bytes]
Clock = Callable[[], Instant]
T = TypeVar("T")
S = TypeVar("S", bound="BodySnapshot")


class Source(Protocol):
    """The rows of an engine."""

    def take_snapshot(self) -> None:
        """Choose the committed state that is read from now on."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]: ...

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        """In parts, lazily."""

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]: ...


IDS_PER_INSTANT: Final = 8
"""An id is an instant times this, plus a count. Stores of format 1 have ids of this form."""

_PAGE_ROWS: Final = 2_001
"""Scans with a limit up to this are read when they begin; longer ones in parts of ``STEP_ROWS``."""


class BodySnapshot:
    """A snapshot while one body runs.

    It counts the rows that the body may still touch. An ended snapshot has none left, so the same comparison enforces
    the limit and catches a body that kept its snapshot.
    """

    __slots__ = ("_clock", "_ended", "_now", "_rows_left", "_source")

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._now: Instant | None = None
        self._rows_left = MAX_BODY_ROWS
        self._ended = False

    @property
    def now(self) -> Instant:
        if self._now is None:
            if self._rows_left == MAX_BODY_ROWS:
                self._source.take_snapshot()  # Else the state could be later than its time.
            self._now = self._clock()
        return self._now

    @property
    def used_now(self) -> Instant | None:
        """``now``, if the body has read it."""
        return self._now

    def get(self, key: bytes) -> bytes | None:
        self._rows_left -= 1
        if self._rows_left < 0:
            self._refuse()
        return self._source.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._rows_left -= len(keys)
        if self._rows_left < 0:
            self._refuse()
        return self._source.get_many(keys)

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        if self._ended:
            self._refuse()
        rows = self._source.scan(start, end, reverse, limit)
        if limit is None:
            return self._counted(rows)
        if limit > _PAGE_ROWS:
            return chain.from_iterable(self._counted_parts(iter(lambda: list(islice(rows, STEP_ROWS)), [])))
        # Counting the rows of a page together is a third of the cost of counting each.
        page = list(rows)
        self._rows_left -= len(page)
        if self._rows_left < 0:
            self._refuse()
        return iter(page)

    def scan_groups(
        self, start: bytes, end: bytes, *, inside: int, delimiter: bytes, limit: int
    ) -> Iterator[Row]:
        if self._ended:
            self._refuse()
        groups = _checked_groups(start, end, inside, delimiter)
        return chain.from_iterable(self._counted_parts(self._source.scan_groups(groups, limit)))

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        if self._ended:
            self._refuse()
        return self._source.without_checksum(start, end)

    def _counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self._rows_left -= 1
            if self._rows_left < 0:
                self._refuse()
            yield row
            if self._ended:
                self._refuse()

    def _counted_parts(self, parts: Iterator[list[Row]]) -> Iterator[list[Row]]:
        for part in parts:
            self._rows_left -= len(part)
            if self._rows_left < 0:
                self._refuse()
            yield part
            if self._ended:
                self._refuse()

    def begin_step(self) -> None:
        """A body that reads in steps goes on: the limit of rows holds for each step."""
        if self._now is None:
            self._now = self._clock()
        self._rows_left = MAX_BODY_ROWS

    def end(self) -> None:
        """The body has returned: refuse further use."""
        self._ended = True
        self._rows_left = 0

    def _refuse(self) -> NoReturn:
        if self._ended:
            raise RuntimeError("a snapshot was used after its body had ended")
        raise TooLarge(f"a body may touch {MAX_BODY_ROWS} rows")


class BufferedTransaction(BodySnapshot):
    """A snapshot whose writes stay in ``writes`` (None: deleted) until the engine applies them."""

    __slots__ = ("_next_id", "notifications", "size_bytes", "writes")

    def __init__(self, source: Source, clock: Clock) -> None:
        super().__init__(source, clock)
        self.writes: dict[bytes, bytes | None] = {}
        self._next_id = 0
        self.notifications: list[bytes] = []
        self.size_bytes = 0

    def get(self, key: bytes) -> bytes | None:
        self._rows_left -= 1
        if self._rows_left < 0:
            self._refuse()
        if key in self.writes:
            return self.writes[key]
        return self._source.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = super().get_many(keys)
        if self.writes:
            for index, key in enumerate(keys):
                if key in self.writes:
                    found[index] = self.writes[key]
        return found

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        own = [key for key in self.writes if start <= key < end] if self.writes else None
        if self._ended or not own:
            return super().scan(start, end, reverse=reverse, limit=limit)
        # Each of the own keys replaces at most one stored row.
        enough = None if limit is None else limit + len(own)
        rows = merged(self._source.scan(start, end, reverse, enough), self.writes, own, reverse)
        return self._counted(islice(rows, limit))

    def scan_groups(
        self, start: bytes, end: bytes, *, inside: int, delimiter: bytes, limit: int
    ) -> Iterator[Row]:
        if not any(start <= key < end for key in self.writes):
            return super().scan_groups(start, end, inside=inside, delimiter=delimiter, limit=limit)
        groups = _checked_groups(start, end, inside, delimiter)
        return chain.from_iterable(seek_groups(self._scan, groups, limit))

    def _scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        return self.scan(start, end, reverse=reverse, limit=limit)

    def put(self, key: bytes, value: bytes) -> None:
        if len(key) > MAX_KEY_BYTES:
            raise TooLarge(f"a key of {len(key)} bytes; at most {MAX_KEY_BYTES}")
        if len(value) > MAX_VALUE_BYTES:
            raise TooLarge(f"a value of {len(value)} bytes; at most {MAX_VALUE_BYTES}")
        self._rows_left -= 1
        if self._rows_left < 0:
            self._refuse()
        self.writes[key] = value
        self.size_bytes += len(key) + len(value)

    def delete(self, key: bytes) -> None:
        if len(key) > MAX_KEY_BYTES:
            raise TooLarge(f"a key of {len(key)} bytes; at most {MAX_KEY_BYTES}")
        self._rows_left -= 1
        if self._rows_left < 0:
            self._refuse()
        self.writes[key] = None
        self.size_bytes += len(key)

    def new_id(self) -> int:
        if self._next_id % IDS_PER_INSTANT == 0:
            # The clock of a transaction never returns an instant twice, so a further one is this transaction's own.
            instant = self._clock() if self._next_id else self.now
            self._next_id = instant * IDS_PER_INSTANT
        self._next_id += 1
        return self._next_id - 1

    def notify(self, topic: bytes) -> None:
        self.notifications.append(topic)


def _checked_groups(start: bytes, end: bytes, inside: int, delimiter: bytes) -> Groups:
    if not delimiter or delimiter[-1] == 0xFF:
        raise ValueError("a delimiter is not empty and does not end in 0xff")
    return Groups(start, end, inside, delimiter)


def merged(
    stored: Iterator[Row], writes: Mapping[bytes, bytes | None], keys: list[bytes], reverse: bool
) -> Iterator[Row]:
    """Stored rows in key order, with the writes of these keys among them: a write replaces its row, None removes it."""
    keys = sorted(keys, reverse=reverse)
    written = {key: writes[key] for key in keys}  # The caller may write on before the scan ends.
    position = 0
    for row in stored:
        key = row[0]
        while position < len(keys) and keys[position] != key and (keys[position] < key) is not reverse:
            value = written[keys[position]]
            if value is not None:
                yield keys[position], value
            position += 1
        if position == len(keys) or keys[position] != key:
            yield row
    for key in keys[position:]:
        value = written[key]
        if value is not None:
            yield key, value


class BodyRunner:
    """Runs the bodies of one engine, and refuses calls of the engine from within a body."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running = False

    def call(self, body: Callable[[S], T], snapshot: S) -> T:
        if self._running:
            self.check_outside_bodies()
        self._running = True
        try:
            return body(snapshot)
        finally:
            self._running = False
            snapshot.end()

    def call_step(self, steps: Steps[T]) -> None:
        """One step of a body that reads in steps. Raises StopIteration with its result after the last."""
        self.check_outside_bodies()
        self._running = True
        try:
            next(steps)
        finally:
            self._running = False

    def check_outside_bodies(self) -> None:
        if self._running:
            raise RuntimeError("a body called the engine")
