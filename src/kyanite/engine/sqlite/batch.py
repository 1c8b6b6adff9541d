"""One batch of a group commit: bodies that run one after another and are committed together."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apsw

from kyanite.engine.api import EngineError, Transaction
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.transaction import Bodies, BufferedTransaction, Clock, Row
from kyanite.values import Instant

_SMALL_BYTES = 4096
_KNOWN_ROWS = 4096
_MANY_PENDING = 64
"""Beyond so many, looking through them before every scan costs more than writing them."""


class Waiting:
    """A body on its way to an outcome, and whoever waits for it."""

    __slots__ = ("_future", "body", "error", "value")

    def __init__(self, body: Callable[[Transaction], Any], future: "asyncio.Future[Any]") -> None:
        self.body = body
        self._future = future
        self.value: Any = None
        self.error: Exception | None = None

    @property
    def given_up(self) -> bool:
        return self._future.cancelled()

    def release(self) -> None:
        if self._future.cancelled():
            return
        if self.error is None:
            self._future.set_result(self.value)
        else:
            self._future.set_exception(self.error)


class Batch:
    """What the bodies of one batch read and write.

    Writes of finished bodies are kept here and reach the tables in few, large statements: at the end, or before a
    scan that would miss them. Small values that were read are kept as well, since the bodies of a batch tend to ask
    for the same rows, and nobody else can write while the batch has the turn.
    """

    def __init__(self, rows: Rows, bodies: Bodies, clock: Clock, last: Instant) -> None:
        self._rows = rows
        self._bodies = bodies
        self._clock = clock
        self._known: dict[bytes, bytes | None] = {}
        self._pending: dict[bytes, bytes | None] = {}
        self._trouble: apsw.Error | None = None
        self.last = last
        self.wrote = False
        self.size_bytes = 0
        self.notifications: list[bytes] = []
        self.members: list[Waiting] = []

    def run(self, waiting: Waiting) -> None:
        """Run one body. If it raises, nothing of it stays, and the others are not disturbed."""
        transaction = BufferedTransaction(self, self._tick)
        self.members.append(waiting)
        try:
            waiting.value = self._bodies.call(waiting.body, transaction)
        except apsw.Error as error:
            waiting.error = EngineError(f"SQLite: {error}")
            return
        except StopIteration as error:
            waiting.error = RuntimeError(f"a body raised {error!r}")  # No future can carry a StopIteration.
            return
        except Exception as error:
            waiting.error = error
            return
        finally:
            self._rows.end_scans()
        if transaction.writes:
            self._keep(transaction)
        self.notifications += transaction.notifications

    def fail(self, kind: type[EngineError], text: str) -> None:
        """Nobody's outcome holds, for all of them rest on a commit that did not happen."""
        self.notifications.clear()
        for waiting in self.members:
            waiting.error = kind(text)

    def flush(self) -> None:
        """Bring the writes so far into the tables. Once this has failed it fails again, so nothing is committed."""
        if self._trouble is not None:
            raise self._trouble
        if self._pending:
            try:
                self._rows.apply(self._pending)
            except apsw.Error as error:
                self._trouble = error
                raise
            self._pending = {}

    def _keep(self, transaction: BufferedTransaction) -> None:
        self.wrote = True
        self.size_bytes += transaction.size_bytes
        self._pending.update(transaction.writes)
        if len(self._known) > _KNOWN_ROWS:
            self._known = dict(self._pending)
        else:
            self._known.update(transaction.writes)

    def _tick(self) -> Instant:
        self.last = max(self._clock(), Instant(self.last + 1))
        return self.last

    def pin(self) -> None:
        """Nothing to do: the write lock is held, so the state stands still."""

    def get(self, key: bytes) -> bytes | None:
        known = self._known
        if key in known:
            return known[key]
        value = self._rows.get(key)
        if value is None or len(value) <= _SMALL_BYTES:
            known[key] = value
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        known = self._known
        unknown = [key for key in keys if key not in known]
        found = dict(zip(unknown, self._rows.get_many(unknown), strict=True))
        values = [found[key] if key in found else known[key] for key in keys]
        for key, value in found.items():
            if value is None or len(value) <= _SMALL_BYTES:
                known[key] = value
        return values

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        pending = self._pending
        if len(pending) > _MANY_PENDING or any(start <= key < end for key in pending):
            self.flush()
        return self._rows.scan(start, end, reverse, limit)
