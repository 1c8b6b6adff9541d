"""One batch of a group commit: bodies that run one after another and are committed together."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import apsw

from kyanite.engine.api import EngineError, Transaction
from kyanite.engine.groups import Groups, seek_groups
from kyanite.engine.sqlite.errors import engine_error
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.transaction import BodyRunner, BufferedTransaction, Clock, Row, merged
from kyanite.values import Instant

_SMALL_BYTES: Final = 4096
_KNOWN_ROWS: Final = 4096
_MANY_PENDING: Final = 64
"""Beyond so many, checking them before every scan costs more than writing them."""
_MERGED_ROWS: Final = 16
"""Up to so many pending rows are merged into a scan; more of them cost more than writing them."""


class PendingBody:
    """A body that has no outcome yet, and the future of its caller."""

    __slots__ = ("_future", "body", "error", "runs_alone", "value")

    def __init__(self, body: Callable[[Transaction], Any], future: "asyncio.Future[Any]") -> None:
        self.body = body
        self._future = future
        self.value: Any = None
        self.error: Exception | None = None
        self.runs_alone = False

    @property
    def is_cancelled(self) -> bool:
        return self._future.cancelled()

    def resolve(self) -> None:
        """Pass the outcome to the caller."""
        if self._future.cancelled():
            return
        if self.error is None:
            self._future.set_result(self.value)
        else:
            self._future.set_exception(self.error)


class Batch:
    """What the bodies of one batch read and write.

    The batch buffers the writes of finished bodies and writes them to the tables in few, large statements: at its end,
    or before a scan that would miss many of them. It also caches small values that were read, since the bodies of a
    batch tend to read the same rows, and no other process can write while this one has the write lock.
    """

    def __init__(self, rows: Rows, body_runner: BodyRunner, clock: Clock, last: Instant) -> None:
        self._rows = rows
        self._body_runner = body_runner
        self._clock = clock
        self._known: dict[bytes, bytes | None] = {}
        self._pending: dict[bytes, bytes | None] = {}
        self._error: apsw.Error | None = None
        self.last = last
        self.wrote = False
        self.size_bytes = 0
        self.notifications: list[bytes] = []
        self.members: list[PendingBody] = []

    def run(self, pending: PendingBody) -> None:
        """Run one body. If it raises, its writes are dropped; the other bodies are not affected."""
        transaction = BufferedTransaction(self, self._tick)
        self.members.append(pending)
        try:
            pending.value = self._body_runner.call(pending.body, transaction)
        except apsw.Error as error:
            pending.error = engine_error(error)
            return
        except StopIteration as error:
            pending.error = RuntimeError(f"a body raised {error!r}")  # No future can carry a StopIteration.
            return
        except Exception as error:
            pending.error = error
            return
        finally:
            if self._rows.open_scans:
                self._rows.end_scans()
        if transaction.writes:
            self._keep(transaction)
        self.notifications += transaction.notifications

    def fail(self, kind: type[EngineError], text: str) -> None:
        """Replace all outcomes by the error, because each depends on a commit that did not happen."""
        self.notifications.clear()
        for pending in self.members:
            pending.error = kind(text)

    def take_back(self) -> list[PendingBody]:
        """The bodies, to be run again, each in a batch of its own. Nothing of what they did remains."""
        members, self.members = self.members, []
        self.notifications.clear()
        for pending in members:
            pending.value = pending.error = None
            pending.runs_alone = True
        return members

    def flush(self) -> None:
        """Write to the tables. Once this has failed it always fails, so that nothing is committed."""
        if self._error is not None:
            raise self._error
        if self._pending:
            try:
                self._rows.apply(self._pending)
            except apsw.Error as error:
                self._error = error
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

    def take_snapshot(self) -> None:
        """Nothing to do: this process has the write lock, so the state does not change."""

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
        values = self._rows.get_many(unknown)
        for index, key in enumerate(unknown):
            value = values[index]
            if value is None or len(value) <= _SMALL_BYTES:
                known[key] = value
        if len(unknown) == len(keys):
            return values
        found = dict(zip(unknown, values, strict=True))
        return [found[key] if key in found else known[key] for key in keys]

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        pending = self._pending
        if len(pending) > _MANY_PENDING:
            self.flush()
        elif keys := [key for key in pending if start <= key < end]:
            if limit is not None and len(keys) <= _MERGED_ROWS:
                rows = self._rows.scan(start, end, reverse, limit + len(keys))
                return islice(merged(rows, pending, keys, reverse), limit)
            self.flush()
        return self._rows.scan(start, end, reverse, limit)

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        return seek_groups(self.scan, groups, limit)

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        self.flush()
        return self._rows.without_checksum(start, end)
