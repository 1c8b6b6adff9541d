"""A small world for tests of content: a memory engine, segments that are dictionaries, and a check of every count.

Everything is driven synchronously: nothing in here waits for anything but its next slice.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

import msgspec

from kyanite.engine.api import Snapshot, Steps, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.api import Extent, Mark, Stretch
from kyanite.extents.crc64 import crc64
from kyanite.model import keys
from kyanite.model.content import layers
from kyanite.model.content.content import Content, ExtentPart, Zeros, read_plan
from kyanite.model.content.interval_rows import scan
from kyanite.model.content.intervals import Interval
from kyanite.model.content.references import decode_extent
from tests.model.counted import Counted, unlimited
from tests.model.maintenance.garbage_collection import GarbageCollector

T = TypeVar("T")

OWNER = b"owner-------"


def outcome(awaitable: Awaitable[T]) -> T:
    """The result of something that waits for nothing but its next slice."""
    steps = awaitable.__await__()
    with _running_loop():
        while True:
            try:
                future = next(steps)
            except StopIteration as stop:
                result: T = stop.value
                return result
            assert isinstance(future, asyncio.Future), "This had to wait."
            future._asyncio_future_blocking = False
            asyncio._set_running_loop(None)
            _loop.run_until_complete(asyncio.wait_for(future, 1))
            asyncio._set_running_loop(_loop)


_loop = asyncio.new_event_loop()


@contextmanager
def _running_loop() -> Iterator[None]:
    """A loop for what uses the running one. It only runs when something has to wait."""
    present = asyncio._get_running_loop()
    asyncio._set_running_loop(_loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(present)


class Segments:
    """Extents in memory, as maintenance uses them: each call makes a sealed segment, and pins are made by hand."""

    keep_seconds = 0.0
    has_files = True

    def __init__(self) -> None:
        self.data: dict[bytes, bytearray] = {}
        self.dead: dict[bytes, list[bytes]] = {}
        self.clock = 0
        self.pins: list[int] = []
        self._count = 0

    def put(self, *bodies: bytes) -> list[Extent]:
        """One segment with these extents."""
        self._count += 1
        segment = OWNER + self._count.to_bytes(4, "big")
        extents, start = [], 0
        for body in bodies:
            extents.append(Extent(segment, start, len(body), crc64(body)))
            start += len(body)
        self.data[segment] = bytearray(b"".join(bodies))
        return extents

    def read(self, extent: Extent, offset: int, length: int) -> bytes:
        at = extent.start + offset
        return bytes(self.data[extent.segment][at : at + length])

    def pin(self) -> int:
        self.clock += 1
        self.pins.append(self.clock)
        return self.clock

    def mark(self) -> Mark:
        self.clock += 1
        return Mark(self.clock)

    def passed(self, mark: Mark) -> bool:
        return all(pin > mark for pin in self.pins)

    async def sealed(self, segments: Iterable[bytes]) -> set[bytes]:
        return set(segments)

    async def punch(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        for start, length in stretches:
            if segment in self.data:
                self.data[segment][start : start + length] = b"\xdd" * length

    async def keep_only(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        kept = bytearray(b"\xdd" * len(self.data[segment]))
        for start, length in stretches:
            kept[start : start + length] = self.data[segment][start : start + length]
        self.data[segment] = kept

    async def remove(self, segment: bytes) -> None:
        self.data.pop(segment, None)

    async def segments_of(self, owner: bytes) -> AsyncIterator[bytes]:
        for segment in self.dead[owner]:
            yield segment

    async def drop_owner(self, owner: bytes) -> None:
        """Nothing is kept per owner."""


class Members:
    """This process, and the dead ones that left the segments."""

    id = OWNER

    def __init__(self, segments: Segments) -> None:
        self._dead = segments.dead

    def is_alive(self, owner: bytes) -> bool:
        return owner == OWNER

    def dead_owners(self) -> list[bytes]:
        return list(self._dead)

    def forget(self, owner: bytes) -> None:
        self._dead.pop(owner, None)

    def close(self) -> None:
        """Nothing to close."""


class World:
    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.segments = Segments()
        self.members = Members(self.segments)
        self.collector = GarbageCollector(self.engine, self.segments, self.members)

    def run(self, body: Callable[[Transaction], T]) -> T:
        return outcome(self.engine.run(body))

    def read(self, body: Callable[[Snapshot], T]) -> T:
        return outcome(self.engine.read(body))

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> T:
        return outcome(self.engine.read_in_steps(body))

    def collect(self) -> bool:
        return outcome(self.collector.step())

    def collect_all(self) -> None:
        for _ in range(10_000):
            if not self.collect():
                return
        raise AssertionError("Garbage collection does not come to an end.")

    def rows(self, prefix: bytes = b"") -> dict[bytes, bytes]:
        with unlimited():
            return self.read(lambda snapshot: dict(snapshot.scan(prefix, prefix + b"\xff" * 40)))

    def bytes_of(self, stored: Content, offset: int, length: int) -> bytes:
        plan = self.read(lambda snapshot: read_plan(snapshot, stored, offset, length))
        assert plan.end == offset + length
        pieces = []
        for piece in plan.parts:
            if isinstance(piece, Zeros):
                pieces.append(bytes(piece.length))
            elif isinstance(piece, ExtentPart):
                pieces.append(self.segments.read(piece.extent, piece.offset, piece.length))
            else:
                pieces.append(piece)
        return b"".join(pieces)

    def check_counts(self, contents: Iterable[Content]) -> None:
        """Every count in the engine is what counting anew finds."""
        contents = list(contents)
        listed = [interval for stored in contents for interval in stored.intervals]
        plain = [stored.body for stored in contents if stored.body]
        with unlimited():
            self.read(lambda snapshot: self._check_sources(snapshot, listed, plain))
            self.read(lambda snapshot: self._check_layers(snapshot, contents))

    def _check_sources(self, snapshot: Snapshot, listed: list[Interval], plain: list[int]) -> None:
        stored = [interval for each in _layers(snapshot) for interval in _checked_intervals(snapshot, each)]
        extents: Counter[tuple[bytes, int]] = Counter()
        bodies: Counter[int] = Counter(plain)
        for interval in [*listed, *stored]:
            assert interval.length > 0
            if interval.extent is not None:
                assert interval.skip + interval.length <= interval.extent.length
                extents[interval.extent.segment, interval.extent.start] += 1
            elif interval.body:
                bodies[interval.body] += 1
        rows = dict(snapshot.scan(b"x", b"y"))
        assert {key: decode_extent(row).references for key, row in rows.items()} == {
            keys.extent(*extent): count for extent, count in extents.items()
        }
        assert [key for key, _ in snapshot.scan(b"b", b"c")] == [keys.body(body) for body in sorted(bodies)]
        shared = {key: msgspec.msgpack.decode(row) for key, row in snapshot.scan(b"k", b"l")}
        assert shared == {keys.sharing(body): count for body, count in bodies.items() if count > 1}

    def _check_layers(self, snapshot: Snapshot, contents: list[Content]) -> None:
        heads = {each: layers.load(snapshot, each) for each in _layers(snapshot)}
        pinned = [msgspec.msgpack.decode(row) for _, row in snapshot.scan(b"h", b"i")]
        records = Counter([stored.layer for stored in contents if stored.layer] + pinned)
        uppers = Counter(head.below for head in heads.values() if head.below)
        assert {each: (head.records, head.uppers) for each, head in heads.items()} == {
            each: (records[each], uppers[each]) for each in heads
        }
        assert records.keys() <= heads.keys()
        edges = [key for key, _ in snapshot.scan(b"e", b"f")]
        assert edges == sorted(keys.edge(head.below, each) for each, head in heads.items() if head.below)


def _layers(snapshot: Snapshot) -> list[int]:
    return [int.from_bytes(key[1:], "big") for key, _ in snapshot.scan(b"l", b"m")]


def _checked_intervals(snapshot: Snapshot, layer_id: int) -> list[Interval]:
    """The intervals of a layer, which are in order and do not overlap, in rows that are where their keys say."""
    intervals: list[Interval] = []
    for row in scan(snapshot, layer_id):
        assert row.key == keys.interval_row(layer_id, row.intervals[0].offset)
        intervals += row.intervals
    for left, right in pairwise(intervals):
        assert left.end <= right.offset
    return intervals


SEGMENT = bytes(range(16))


def extent(start: int, length: int) -> Extent:
    return Extent(SEGMENT, start, length, 0)


def counting(world: World, body: Callable[[Transaction], T]) -> tuple[T, int]:
    def run(tx: Transaction) -> tuple[T, int]:
        counted = Counted(tx)
        return body(counted), counted.rows

    return world.run(run)
