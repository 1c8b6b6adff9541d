"""What something costs, in rows."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from kyanite.engine import transaction
from kyanite.engine.api import MAX_BODY_ROWS, Scope, Snapshot, Steps, Transaction
from kyanite.engine.clock import wall_clock
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.engine.transaction import Clock
from kyanite.values import Instant

T = TypeVar("T")


@contextmanager
def unlimited() -> Iterator[None]:
    """To set up in one transaction what clients make in many."""
    transaction.MAX_BODY_ROWS = 1_000_000  # type: ignore[attr-defined]
    try:
        yield
    finally:
        transaction.MAX_BODY_ROWS = MAX_BODY_ROWS  # type: ignore[attr-defined]


class Counted:
    """A transaction that counts the rows that pass through it."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.rows = 0

    @property
    def now(self) -> Instant:
        return self._tx.now

    def get(self, key: bytes) -> bytes | None:
        self.rows += 1
        return self._tx.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.rows += len(keys)
        return self._tx.get_many(keys)

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        self.rows += 1
        for row in self._tx.scan(start, end, reverse=reverse, limit=limit):
            self.rows += 1
            yield row

    def scan_groups(
        self, start: bytes, end: bytes, *, inside: int, delimiter: bytes, limit: int
    ) -> Iterator[tuple[bytes, bytes]]:
        self.rows += 1
        for row in self._tx.scan_groups(start, end, inside=inside, delimiter=delimiter, limit=limit):
            self.rows += 1
            yield row

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        return self._tx.without_checksum(start, end)

    def new_id(self) -> int:
        return self._tx.new_id()

    def put(self, key: bytes, value: bytes) -> None:
        self.rows += 1
        self._tx.put(key, value)

    def delete(self, key: bytes) -> None:
        self.rows += 1
        self._tx.delete(key)

    def notify(self, topic: bytes) -> None:
        self._tx.notify(topic)


class CountingEngine(MemoryEngine):
    """Keeps what each transaction and each reading cost."""

    def __init__(self, *, clock: Clock = wall_clock) -> None:
        super().__init__(clock=clock)
        self.costs: list[int] = []

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        return super().read(self._counting(cast(Callable[[Transaction], T], body)))

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Coroutine[Any, Any, T]:
        return super().read_in_steps(partial(self._counting_steps, body))

    def _counting_steps(self, body: Callable[[Snapshot], Steps[T]], snap: Snapshot) -> Steps[T]:
        """Each step counts by itself."""
        counted = Counted(cast(Transaction, snap))
        steps = body(counted)
        while True:
            counted.rows = 0
            try:
                next(steps)
            except StopIteration as ended:
                result: T = ended.value
                return result
            finally:
                self.costs.append(counted.rows)
            yield

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        return super().run(self._counting(body), *scopes, durable=durable)

    def _counting(self, body: Callable[[Transaction], T]) -> Callable[[Any], T]:
        def counted_body(tx: Transaction) -> T:
            counted = Counted(tx)
            try:
                return body(counted)
            finally:
                self.costs.append(counted.rows)

        return counted_body
