"""What a body holds in its hands: a view of one committed state, and a transaction that buffers its writes over one.

Engines bring a ``Source`` of rows and a clock; the limits of the contract, the merging of a body's own writes into
what it reads, and the end of a view's life are the same for all and live here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, Protocol, TypeVar

from kyanite.engine.api import MAX_BODY_ROWS, MAX_KEY_BYTES, MAX_VALUE_BYTES, TooLarge
from kyanite.values import Instant

Row = tuple[bytes, bytes]
Clock = Callable[[], Instant]
T = TypeVar("T")
V = TypeVar("V", bound="View")


class Source(Protocol):
    """Rows as an engine reads them."""

    def pin(self) -> None:
        """From here on, what is read is one committed state."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]: ...


IDS_PER_INSTANT = 8
"""An id is an instant times this, and a count. Stores of format 1 hold ids of this form."""

_PAGE_ROWS = 10_000
"""Scans that are limited to so many rows are read when they begin."""


class View:
    """A snapshot for the length of one body.

    Rows are counted against the body's budget. An ended view has no budget left, so that the same test which keeps
    a body within its limits also catches one that kept its snapshot.
    """

    __slots__ = ("_clock", "_ended", "_left", "_now", "_source")

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._now: Instant | None = None
        self._left = MAX_BODY_ROWS
        self._ended = False

    @property
    def now(self) -> Instant:
        if self._now is None:
            if self._left == MAX_BODY_ROWS:
                self._source.pin()  # Else the state could be younger than its own time.
            self._now = self._clock()
        return self._now

    def get(self, key: bytes) -> bytes | None:
        self._left -= 1
        if self._left < 0:
            self._refuse()
        return self._source.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._left -= len(keys)
        if self._left < 0:
            self._refuse()
        return self._source.get_many(keys)

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        if self._ended:
            self._refuse()
        rows = self._source.scan(start, end, reverse, limit)
        if limit is None or limit > _PAGE_ROWS:
            return self._counted(rows)
        # A page that will be wanted whole: counted at once, which is a third of the cost.
        page = list(rows)
        self._left -= len(page)
        if self._left < 0:
            self._refuse()
        return iter(page)

    def _counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self._left -= 1
            if self._left < 0:
                self._refuse()
            yield row
            if self._ended:
                self._refuse()

    def end(self) -> None:
        """The body has returned: whoever kept the view is refused from now on."""
        self._ended = True
        self._left = 0

    def _refuse(self) -> NoReturn:
        if self._ended:
            raise RuntimeError("a snapshot was used after its body had ended")
        raise TooLarge(f"a body may touch {MAX_BODY_ROWS} rows")


class BufferedTransaction(View):
    """A view whose writes stay in ``writes`` (None: deleted) until the engine applies them."""

    __slots__ = ("_next_id", "notifications", "size_bytes", "writes")

    def __init__(self, source: Source, clock: Clock) -> None:
        super().__init__(source, clock)
        self.writes: dict[bytes, bytes | None] = {}
        self._next_id = 0
        self.notifications: list[bytes] = []
        self.size_bytes = 0

    def get(self, key: bytes) -> bytes | None:
        self._left -= 1
        if self._left < 0:
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
        own = sorted((key for key in self.writes if start <= key < end), reverse=reverse)
        if self._ended or not own:
            return super().scan(start, end, reverse=reverse, limit=limit)
        # Each of our own keys can hide at most one stored row.
        enough = None if limit is None else limit + len(own)
        rows = self._merged(self._source.scan(start, end, reverse, enough), own, reverse)
        return self._counted(rows if limit is None else _first(rows, limit))

    def put(self, key: bytes, value: bytes) -> None:
        if len(key) > MAX_KEY_BYTES:
            raise TooLarge(f"a key of {len(key)} bytes; at most {MAX_KEY_BYTES}")
        if len(value) > MAX_VALUE_BYTES:
            raise TooLarge(f"a value of {len(value)} bytes; at most {MAX_VALUE_BYTES}")
        self._left -= 1
        if self._left < 0:
            self._refuse()
        self.writes[key] = value
        self.size_bytes += len(key) + len(value)

    def delete(self, key: bytes) -> None:
        if len(key) > MAX_KEY_BYTES:
            raise TooLarge(f"a key of {len(key)} bytes; at most {MAX_KEY_BYTES}")
        self._left -= 1
        if self._left < 0:
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

    def _merged(self, stored: Iterator[Row], own: list[bytes], reverse: bool) -> Iterator[Row]:
        """Stored rows with our own in their places: ours win, and deleted ones are left out."""
        writes = {key: self.writes[key] for key in own}
        position = 0
        for row in stored:
            key = row[0]
            while position < len(own) and own[position] != key and (own[position] < key) is not reverse:
                value = writes[own[position]]
                if value is not None:
                    yield own[position], value
                position += 1
            if position == len(own) or own[position] != key:
                yield row
        for key in own[position:]:
            value = writes[key]
            if value is not None:
                yield key, value


class Bodies:
    """Runs the bodies of one engine, and catches those that call the engine themselves."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running = False

    def call(self, body: Callable[[V], T], view: V) -> T:
        self.check_none_runs()
        self._running = True
        try:
            return body(view)
        finally:
            self._running = False
            view.end()

    def check_none_runs(self) -> None:
        if self._running:
            raise RuntimeError("a body called the engine")


def _first(rows: Iterator[Row], limit: int) -> Iterator[Row]:
    if limit > 0:
        for count, row in enumerate(rows, 1):
            yield row
            if count == limit:
                return
