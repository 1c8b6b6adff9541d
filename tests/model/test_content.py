"""Content: whole bodies in, plans to read them out, and what every step leaves in the engine."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.extents import Extent
from kyanite.engine.memory import MemoryEngine
from kyanite.model import content
from kyanite.model.content import NO_CONTENT, Content, Part, Plan, Zeros

T = TypeVar("T")

SEGMENT = bytes(range(16))


class Store:
    """A memory engine, driven from plain test functions."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()

    def run(self, body: Callable[[Transaction], T]) -> T:
        async def main() -> T:
            return await self.engine.run(body)

        return asyncio.run(main())

    def read(self, body: Callable[[Snapshot], T]) -> T:
        async def main() -> T:
            return await self.engine.read(body)

        return asyncio.run(main())

    def keys(self, prefix: bytes = b"") -> list[bytes]:
        return self.read(lambda snapshot: [key for key, _ in snapshot.scan(prefix, prefix + b"\xff" * 40)])

    def plan(self, stored: Content, offset: int, length: int) -> Plan:
        return self.read(lambda snapshot: content.read_plan(snapshot, stored, offset, length))


@pytest.fixture
def store() -> Store:
    return Store()


def extent(start: int, length: int) -> Extent:
    return Extent(SEGMENT, start, length, 0)


def test_a_small_body_is_one_row(store: Store) -> None:
    stored = store.run(lambda tx: content.create(tx, b"hello"))
    assert store.keys() == [b"b" + stored.body.to_bytes(8, "big")]
    assert store.plan(stored, 0, 5) == Plan([b"hello"], 5)
    assert store.plan(stored, 1, 3) == Plan([b"ell"], 4)
    store.run(lambda tx: content.drop(tx, stored))
    assert store.keys() == []


def test_no_bytes_are_no_rows(store: Store) -> None:
    assert store.run(lambda tx: content.create(tx, b"")) == NO_CONTENT
    assert store.keys() == []
    assert store.plan(NO_CONTENT, 0, 0) == Plan([], 0)
    assert store.plan(NO_CONTENT, 5, 10) == Plan([Zeros(10)], 15)


def test_an_extent_is_one_row_and_then_a_grave(store: Store) -> None:
    stored = store.run(lambda tx: content.create(tx, [extent(4096, 100)]))
    (row,) = store.keys()
    assert row == b"x" + SEGMENT + (4096).to_bytes(8, "big")
    assert store.plan(stored, 0, 100) == Plan([Part(extent(4096, 100), 0, 100)], 100)
    assert store.plan(stored, 90, 30) == Plan([Part(extent(4096, 100), 90, 10), Zeros(20)], 120)
    store.run(lambda tx: content.drop(tx, stored))
    (grave,) = store.keys()
    assert grave[:1] == b"g"
    assert grave[9:] == row[1:]
