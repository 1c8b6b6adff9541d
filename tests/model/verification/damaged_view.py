"""An engine of which some rows cannot be read."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TypeVar

from kyanite.engine.api import Damaged, Engine, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.values import Instant

T = TypeVar("T")


class DamagedView:
    """Reads another engine. It knows the keys of damaged rows, or, like a database with a damaged page, does not."""

    def __init__(self, engine: Engine, damaged: Collection[bytes], *, knows_keys: bool = True) -> None:
        self._engine = engine
        self.damaged = damaged
        self._knows_keys = knows_keys
        self.reads = 0

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        self.reads += 1
        return self._engine.read(lambda snap: body(_DamagedSnapshot(snap, self.damaged, self._knows_keys)))

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        return self._engine.read_in_steps(partial(self._steps, body))

    def _steps(self, body: Callable[[Snapshot], Steps[T]], snap: Snapshot) -> Steps[T]:
        return body(_DamagedSnapshot(snap, self.damaged, self._knows_keys))

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        return self._engine.run(body, *scopes, durable=durable)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._engine.subscribe(topic)

    async def close(self) -> None:
        await self._engine.close()


class _DamagedSnapshot:
    def __init__(self, snap: Snapshot, damaged: Collection[bytes], knows_keys: bool) -> None:
        self._snap = snap
        self._damaged = damaged
        self._knows_keys = knows_keys

    @property
    def now(self) -> Instant:
        return self._snap.now

    def get(self, key: bytes) -> bytes | None:
        return self._checked(key, self._snap.get(key))

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        values = self._snap.get_many(keys)
        return [self._checked(key, value) for key, value in zip(keys, values, strict=True)]

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._snap.scan(start, end, reverse=reverse, limit=limit):
            self._checked(key, value)
            yield key, value

    def scan_groups(
        self, start: bytes, end: bytes, *, inside: int, delimiter: bytes, limit: int
    ) -> Iterator[tuple[bytes, bytes]]:
        rows = self._snap.scan_groups(start, end, inside=inside, delimiter=delimiter, limit=limit)
        for key, value in rows:
            self._checked(key, value)
            yield key, value

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        return self._snap.without_checksum(start, end)

    def _checked(self, key: bytes, value: bytes | None) -> bytes | None:
        if key in self._damaged and value is not None:
            raise Damaged("A row is damaged.", key if self._knows_keys else None)
        return value
