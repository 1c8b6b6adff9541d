"""The memory engine: the contract in one process, with nothing on disk. For tests and for ``--in-memory``.

Deterministic: a body runs inside the call of ``read`` or ``run``, and its outcome is known when that returns. Callers
still await it, as with any engine.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from kyanite.engine.api import STEP_ROWS, EngineClosed, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.engine.clock import wall_clock
from kyanite.engine.groups import Groups, seek_groups
from kyanite.engine.memory.sorted_keys import SortedKeys
from kyanite.engine.notifications import Notifications
from kyanite.engine.outcome import Done, Failed
from kyanite.engine.transaction import BodyRunner, BodySnapshot, BufferedTransaction, Clock, Row
from kyanite.slices import next_slice
from kyanite.values import Instant

T = TypeVar("T")
S = TypeVar("S", bound=BodySnapshot)


class MemoryEngine:
    def __init__(self, *, clock: Clock = wall_clock) -> None:
        self._rows = _Rows()
        self._notifications = Notifications()
        self._clock = clock
        self._last = Instant(0)
        self._body_runner = BodyRunner()
        self._closed = False

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        self._body_runner.check_outside_bodies()
        snapshot = BodySnapshot(self._rows, self._reading_clock)
        try:
            return Done(self._call(body, snapshot))
        except Exception as error:
            return Failed(error)

    async def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> T:
        self._body_runner.check_outside_bodies()
        state = self._rows.kept_state()
        snapshot = BodySnapshot(state, self._reading_clock)
        steps = body(snapshot)
        try:
            while True:
                if self._closed:
                    raise EngineClosed("the engine was closed")
                self._body_runner.call_step(steps)
                await next_slice()
                snapshot.begin_step()
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            snapshot.end()
            steps.close()
            self._rows.forget(state)

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        self._body_runner.check_outside_bodies()
        transaction = BufferedTransaction(self._rows, self._writing_clock)
        try:
            value = self._call(body, transaction)
        except Exception as error:
            return Failed(error)
        self._rows.apply(transaction.writes)
        self._notifications.notify(transaction.notifications)
        return Done(value)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._notifications.subscribe(topic)

    async def close(self) -> None:
        self._closed = True
        self._notifications.close()

    def _call(self, body: Callable[[S], T], snapshot: S) -> T:
        if self._closed:
            raise EngineClosed("the engine was closed")
        return self._body_runner.call(body, snapshot)

    def _reading_clock(self) -> Instant:
        return max(self._clock(), self._last)

    def _writing_clock(self) -> Instant:
        self._last = max(self._clock(), Instant(self._last + 1))
        return self._last


class _Rows:
    """The committed rows. Bodies run one at a time, so the rows do not change while one reads."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys = SortedKeys()
        self._kept: list[_KeptState] = []

    def kept_state(self) -> "_KeptState":
        """The present rows, which stay as they are until ``forget``."""
        self._kept.append(_KeptState(self))
        return self._kept[-1]

    def forget(self, state: "_KeptState") -> None:
        self._kept.remove(state)

    def take_snapshot(self) -> None:
        """Nothing to do: no other body can commit while one runs."""

    def get(self, key: bytes) -> bytes | None:
        return self._values.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._values.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        keys = self._keys.between(start, end, reverse)
        return ((key, self._values[key]) for key in islice(keys, limit))

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        return seek_groups(self.scan, groups, limit)

    def without_checksum(self, _start: bytes, _end: bytes) -> list[bytes]:
        return []  # No version before this one has written to this memory.

    def apply(self, writes: dict[bytes, bytes | None]) -> None:
        for state in self._kept:
            for key in writes:
                state.replaced.setdefault(key, self._values.get(key))
        for key, value in writes.items():
            if value is not None:
                if key not in self._values:
                    self._keys.add(key)
                self._values[key] = value
            elif self._values.pop(key, None) is not None:
                self._keys.remove(key)


class _KeptState:
    """The rows as they were at one moment: those of now, and what was replaced since."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self.replaced: dict[bytes, bytes | None] = {}

    def take_snapshot(self) -> None:
        """Nothing to do: it was taken when this was made."""

    def get(self, key: bytes) -> bytes | None:
        return self.replaced[key] if key in self.replaced else self._rows.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        at_a_time = STEP_ROWS if limit is None else max(1, min(limit, STEP_ROWS))
        return islice(self._scan(start, end, reverse, at_a_time), limit)

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        return seek_groups(self.scan, groups, limit)

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        return self._rows.without_checksum(start, end)

    def _scan(self, start: bytes, end: bytes, reverse: bool, at_a_time: int) -> Iterator[Row]:
        """Some rows at a time, because the present rows may change between two steps."""
        while start < end:
            some = dict(self._rows.scan(start, end, reverse, at_a_time))
            low, high = start, end
            if len(some) == at_a_time:
                last = next(reversed(some))
                low, high = (last, end) if reverse else (start, last + b"\0")
            found: dict[bytes, bytes | None] = {**some}
            found |= {key: value for key, value in self.replaced.items() if low <= key < high}
            for key in sorted(found, reverse=reverse):
                if (value := found[key]) is not None:
                    yield key, value
            start, end = (start, low) if reverse else (high, end)
            if len(some) < at_a_time:
                return
