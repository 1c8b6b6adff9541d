"""Instants of several processes: they ascend as far as transactions are ordered by what they read and wrote."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from xxhash import xxh3_64_digest

from kyanite.engine.api import Transaction
from kyanite.engine.postgres.address import parse
from kyanite.engine.postgres.engine import PostgresEngine
from kyanite.engine.postgres.order import footprint
from kyanite.values import Instant
from tests.postgres_server import PostgresServer

Body = Callable[[Transaction], object]
START = 1_000_000_000_000
LATER = 5_000_000
"""Half a second: by so much the clock of one process is ahead."""


class Pair:
    """Two processes on one store. The clock of the first is behind; both go on by a tick with each look."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.ticks = 0
        self.behind = PostgresEngine(parse(url), clock=lambda: self.tick(START))
        self.ahead = PostgresEngine(parse(url), clock=lambda: self.tick(START + LATER))

    def tick(self, start: int) -> Instant:
        self.ticks += 1
        return Instant(start + self.ticks)

    async def close(self) -> None:
        await self.behind.close()
        await self.ahead.close()


@asynccontextmanager
async def two_processes(postgres_server: PostgresServer) -> AsyncIterator[Pair]:
    pair = Pair(postgres_server.new_schema_url())
    try:
        yield pair
    finally:
        await pair.close()


async def instant_of(engine: PostgresEngine, body: Body) -> Instant:
    def timed(tx: Transaction) -> Instant:
        body(tx)
        return tx.now

    return await engine.run(timed)


def get(key: bytes) -> Body:
    return lambda tx: tx.get(key)


def put(key: bytes, value: bytes = b"new") -> Body:
    return lambda tx: tx.put(key, value)


def delete(key: bytes) -> Body:
    return lambda tx: tx.delete(key)


def put_many(prefix: bytes) -> Body:
    """Enough for footprints to be compared in the way for large ones."""

    def body(tx: Transaction) -> None:
        for number in range(150):
            tx.put(prefix + b"%d" % number, b"")

    return body


def scan(start: bytes, end: bytes) -> Body:
    return lambda tx: list(tx.scan(start, end))


A, B = b"nCCCCCCCCa", b"nCCCCCCCCb"
OTHER = b"nDDDDDDDDa"


async def one_after_the_other(pair: Pair, earlier: Body, later: Body) -> tuple[Instant, Instant]:
    """``later`` is run by the process whose clock is behind, and which does not know of the commit of ``earlier``."""
    for key in (A, OTHER):
        await pair.behind.run(put(key, b"old"))
    for body in (get(A), get(B), get(OTHER), scan(A[:9], A[:8] + b"D")):
        await pair.behind.run(body)

    def marked(tx: Transaction) -> None:
        earlier(tx)
        tx.put(b"-mark", b"")

    first = await instant_of(pair.ahead, marked)
    return first, await instant_of(pair.behind, later)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (get(A), put(A)),
        (get(A), delete(A)),
        (get(B), put(B)),
        (put(A), put(A, b"newer")),
        (put(A), get(A)),
        (put(B), get(B)),
        (delete(A), get(A)),
        (delete(A), put(A)),
        (delete(A), scan(A[:9], A[:8] + b"D")),
        (put(B), scan(A[:9], A[:8] + b"D")),
        (scan(A[:9], A[:8] + b"D"), put(B)),
        (scan(A[:9], A[:8] + b"D"), delete(A)),
        (scan(b"", b"\xff"), put(OTHER)),
        (put_many(A), put_many(A)),
    ],
)
async def test_what_comes_later_in_order_has_a_later_instant(
    postgres_server: PostgresServer, earlier: Body, later: Body
) -> None:
    async with two_processes(postgres_server) as pair:
        first, second = await one_after_the_other(pair, earlier, later)
        assert first < second


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (get(A), get(A)),
        (put(A), put(OTHER)),
        (put_many(A), put_many(B)),
        (delete(A), get(OTHER)),
        (scan(A[:9], A[:8] + b"D"), put(OTHER)),
        (scan(A[:9], A[:8] + b"D"), scan(A[:9], A[:8] + b"D")),
    ],
)
async def test_what_has_no_order_is_not_refused(
    postgres_server: PostgresServer, earlier: Body, later: Body
) -> None:
    """So processes that write different rows do not wait for one another, whatever their clocks say."""
    async with two_processes(postgres_server) as pair:
        first, second = await one_after_the_other(pair, earlier, later)
        assert second < first
        assert pair.behind.counters()["batches_refused"] == 0
        assert pair.behind.counters()["batches_locked"] == 0


async def test_a_batch_that_is_very_late_is_refused(postgres_server: PostgresServer) -> None:
    """What was read and written then may be forgotten."""
    async with two_processes(postgres_server) as pair:
        await pair.behind.run(put(A))
        pair.ticks += 4 * LATER
        first = await instant_of(pair.ahead, put(b"-mark"))
        pair.ticks -= 4 * LATER
        assert await instant_of(pair.behind, put(OTHER)) > first
        assert pair.behind.counters()["batches_refused"] == 1


async def test_no_instant_is_used_twice(postgres_server: PostgresServer) -> None:
    """By two processes whose clocks stand still, at the same time."""
    url = postgres_server.new_schema_url()
    engines = [PostgresEngine(parse(url), clock=lambda: Instant(START)) for _ in range(2)]
    try:
        found = await asyncio.gather(
            *(
                instant_of(engine, put(b"%d-%d" % (index, number)))
                for number in range(40)
                for index, engine in enumerate(engines)
            )
        )
        assert len(set(found)) == len(found)
    finally:
        for engine in engines:
            await engine.close()


async def test_old_batches_are_forgotten(postgres_server: PostgresServer) -> None:
    async with two_processes(postgres_server) as pair:
        for number in range(100):
            pair.ticks += LATER
            await pair.ahead.run(put(b"%d" % number))
        count = postgres_server.sql(f"SELECT count(*) FROM {parse(pair.url).schema}.batch")
    # Those of the last two seconds, the one that was under way, and up to 32 that are deleted together.
    assert int(count) <= 38


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_schema_of_an_older_version_is_upgraded(
    postgres_server: PostgresServer, version: int
) -> None:
    url = postgres_server.new_schema_url()
    schema = parse(url).schema
    tables = (Path(__file__).parent / f"schema_{version}.sql").read_text()
    postgres_server.sql(f"CREATE SCHEMA {schema}; SET search_path = {schema}; {tables}")

    def commit(number: str, key: bytes, instant: int) -> str:
        """As a process of that version does it."""
        none, value = "'{}'", stored_value(key, b"v").hex()
        finished, footprint = ("''", "") if version == 1 else (none, f", {none}" * 5)
        return postgres_server.sql(
            f"SET search_path = {schema}; SELECT status, last FROM commit_batch('{number}', {finished}, true, false,"
            f" {none}, {none}, {none}, {none}, {none}, {instant}, {instant}, '{{{key.decode()}}}',"
            f" ARRAY[decode('{value}', 'hex')], {none}, 'any', {none}{footprint})"
        )

    assert commit("one", b"k", START) == f"0|{START}"
    engines = [PostgresEngine(parse(url)) for _ in range(3)]
    try:
        found = await asyncio.gather(*(engine.read(lambda snap: snap.get(b"k")) for engine in engines))
        assert found == [b"v"] * 3
        instant = await instant_of(engines[0], put(b"k"))
        assert instant > START
        groups = await engines[0].read(
            lambda snap: list(snap.scan_groups(b"", b"z", inside=0, delimiter=b"/", limit=2))
        )
        assert [key for key, _ in groups] == [b"k"]
        if version >= 2:  # Processes of that version may still be there.
            assert commit("two", b"l", instant + 1) == f"0|{instant + 1}"
            assert await engines[0].read(lambda snap: snap.get(b"l")) == b"v"
    finally:
        for engine in engines:
            await engine.close()


def stored_value(key: bytes, value: bytes) -> bytes:
    return xxh3_64_digest(key + value) + value


def test_what_was_read_and_written_is_left_out_of_the_reads() -> None:
    found = footprint(
        [A, B], [(A, A[:8] + b"D", b"hash"), (A, A[:8] + b"D", b"another")], {A: b"", OTHER: None}, [1, 2]
    )
    assert len(found.written) == 4
    assert len(found.read) == 1
    assert sorted(found.parts) == [A[:9], OTHER[:9]]
    assert (found.lows, found.highs) == ([A[:9]], [A[:8] + b"D"])
