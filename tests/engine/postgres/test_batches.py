"""What is known of rows may be out of date: no outcome depends on it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle
from typing import TypeVar

import pytest

from kyanite.engine.api import Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.engine.postgres import writer
from kyanite.engine.postgres.address import parse
from kyanite.engine.postgres.engine import PostgresEngine
from kyanite.engine.postgres.known import LAST_KEY, Guesses, Interval, Known, Stored, Wanted
from kyanite.engine.postgres.source import RangeRead, Reads, ranges_to_confirm
from tests.engine.dictionary import check_against_a_dictionary
from tests.postgres_server import PostgresServer

T = TypeVar("T")


async def test_rows_that_another_process_has_changed(postgres_server: PostgresServer) -> None:
    """Also one that a body reads only when it runs again under the lock, where it has not been confirmed yet."""
    url = postgres_server.new_schema_url()
    one, other = PostgresEngine(parse(url)), PostgresEngine(parse(url))

    def clear(tx: Transaction) -> None:
        for key, _ in tx.scan(b"", b"zz"):
            tx.delete(key)

    def write(tx: Transaction, value: bytes) -> None:
        tx.put(b"x", value)
        tx.put(b"y", value)
        tx.put(b"range/%b" % value, value)

    def copy(tx: Transaction) -> tuple[bytes | None, list[bytes]]:
        if tx.get(b"x") != b"new":
            return None, []
        y = tx.get(b"y")
        tx.put(b"z", y or b"")
        return y, [key for key, _ in tx.scan(b"range/", b"range0")]

    def everything(snap: Snapshot) -> list[tuple[bytes, bytes]]:
        assert snap.get(b"y") is not None
        return list(snap.scan(b"", b"z"))

    try:
        for _ in range(5):
            await one.run(clear)
            await one.run(lambda tx: write(tx, b"old"))
            assert await one.run(copy) == (None, [])
            assert len(await one.read(everything)) == 3
            await other.run(lambda tx: write(tx, b"new"))
            assert await one.run(copy) == (b"new", [b"range/new", b"range/old"])
            assert await other.read(lambda snap: snap.get(b"z")) == b"new"
    finally:
        for engine in (one, other):
            await engine.close()


async def test_a_row_is_read_in_its_latest_state_by_every_process(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_schema_url()
    engines = [PostgresEngine(parse(url)) for _ in range(2)]
    try:
        for number in range(60):
            value = b"%d" % number
            await engines[number % 2].run(lambda tx, value=value: tx.put(b"k", value))  # type: ignore[misc]
            found = await asyncio.gather(*(engine.read(lambda snap: snap.get(b"k")) for engine in engines))
            assert found == [value] * 2
    finally:
        for engine in engines:
            await engine.close()


class AlternatingEngine:
    """Two engines on one store, which take the calls alternately: as two processes would."""

    def __init__(self, url: str) -> None:
        self._engines = [PostgresEngine(parse(url)) for _ in range(2)]
        self._next = cycle(self._engines)

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        return next(self._next).read(body)

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        return next(self._next).read_in_steps(body)

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        return next(self._next).run(body, *scopes, durable=durable)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._engines[0].subscribe(topic)

    async def close(self) -> None:
        for engine in self._engines:
            await engine.close()


def test_two_engines_against_a_dictionary(postgres_server: PostgresServer) -> None:
    """The order of the instants explains everything that the bodies of both have read."""
    check_against_a_dictionary(lambda: AlternatingEngine(postgres_server.new_schema_url()))


async def test_batches_of_several_processes_wait_for_clients(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that come back one after another, while another process writes, share one batch nevertheless."""
    monkeypatch.setattr(writer, "_GATHER_SECONDS", 60.0)
    url = postgres_server.new_schema_url()
    one, other = PostgresEngine(parse(url)), PostgresEngine(parse(url))
    rounds = 10

    async def client(number: int) -> None:
        for index in range(rounds):
            for _ in range(number if index else 0):
                await asyncio.sleep(0)
            await one.run(lambda tx: tx.put(b"%d" % number, b""))

    try:
        await one.run(lambda tx: tx.put(b"a", b""))
        await asyncio.gather(*(client(number) for number in range(16)))
        # Nobody else writes: who comes first does not wait for the others.
        assert one.counters()["batches"] > rounds + 1
        monkeypatch.setattr(writer, "_OTHERS_SECONDS", 60.0)
        await other.run(lambda tx: tx.put(b"b", b""))
        await one.run(lambda tx: tx.get(b"c"))
        before = one.counters()["batches"]
        await asyncio.gather(*(client(number) for number in range(16)))
        assert one.counters()["batches"] - before == rounds
    finally:
        monkeypatch.undo()
        for engine in (one, other):
            await engine.close()


def put_new(key: bytes) -> Callable[[Transaction], bytes | None]:
    def body(tx: Transaction) -> bytes | None:
        found = tx.get(key)
        if found is None:
            tx.put(key, b"new")
        return found

    return body


def put_all(keys: Sequence[bytes], value: bytes) -> Callable[[Transaction], None]:
    def body(tx: Transaction) -> None:
        for key in keys:
            tx.put(key, value)

    return body


async def test_keys_that_are_assumed_not_to_be_there(postgres_server: PostgresServer) -> None:
    """Where all keys were new lately, a new one takes a single round trip; one that is there after all takes two."""
    engine = PostgresEngine(parse(postgres_server.new_schema_url()))
    there = [b"nCCCCCCCC%d" % number for number in range(20)] + [b"nCCCCCCCC" + b"x" * 3_000]

    async def round_trips(*bodies: Callable[[Transaction], T]) -> tuple[int, list[T]]:
        before = engine.round_trips
        found = await asyncio.gather(*(engine.run(body) for body in bodies))
        return engine.round_trips - before, found

    def length(tx: Transaction) -> int:
        found = tx.get(there[1])
        if found is None:
            raise KeyError
        return len(found)

    async def learn() -> None:
        for number in range(40):
            await engine.run(put_new(b"nCCCCCCCCnew%d" % (number + 40 * engine.commits.batches)))

    try:
        await engine.run(put_all(there, b"old"))
        await learn()
        assert await round_trips(put_new(b"nCCCCCCCCa"), put_new(b"nCCCCCCCCb")) == (1, [None, None])
        assert (await round_trips(put_new(b"nDDDDDDDDa")))[0] == 2
        # Of one that is there, the batch learns by its refusal.
        engine.forget()
        assert await round_trips(put_new(there[0]), put_new(b"nCCCCCCCCc")) == (2, [b"old", None])
        assert (await round_trips(put_new(b"nCCCCCCCCd")))[0] == 2
        # A refusal counts only when it was validated.
        engine.forget()
        await learn()
        assert await round_trips(length) == (2, [3])
        # Also of one with a long key.
        await learn()
        assert await round_trips(put_new(there[-1]), put_new(there[2])) == (2, [b"old", b"old"])
        assert engine.counters()["batches_locked"] == 0
    finally:
        await engine.close()


async def test_an_assumption_and_a_conflict(postgres_server: PostgresServer) -> None:
    """A row that was assumed not to be there, and another one that another process has changed."""
    url = postgres_server.new_schema_url()
    one, other = PostgresEngine(parse(url)), PostgresEngine(parse(url))

    def both(tx: Transaction) -> list[bytes | None]:
        found = tx.get_many([b"x", b"nCCCCCCCCa"])
        tx.put(b"y", b"".join(value or b"-" for value in found))
        return found

    try:
        for number in range(40):
            await one.run(put_new(b"nCCCCCCCCnew%d" % number))
        await one.run(lambda tx: tx.get(b"x"))
        await other.run(put_all([b"x", b"nCCCCCCCCa"], b"1"))
        assert await one.run(both) == [b"1", b"1"]
        assert await other.read(lambda snap: snap.get(b"y")) == b"11"
    finally:
        for engine in (one, other):
            await engine.close()


def stored(*keys: bytes) -> list[tuple[bytes, Stored]]:
    return [(key, (1, key)) for key in keys]


def known_keys(known: Known, low: bytes, high: bytes) -> list[bytes] | None:
    """The keys of the range, if all of it is known."""
    keys: list[bytes] = []
    position = low
    while position < high:
        interval = known.forwards(position)
        if interval is None:
            return None
        keys += [key for key in interval.keys if position <= key < high]
        position = interval.high
    return keys


def test_known_ranges() -> None:
    known = Known(Guesses(1000))
    # Not all that are there were fetched: only the keys up to the last one are known.
    known.add_range(Wanted(b"b", b"m", False, 2), stored(b"c", b"e"), b"z")
    assert known_keys(known, b"b", b"e\0") == [b"c", b"e"]
    assert known_keys(known, b"b", b"f") is None
    # All are: known up to the next key beyond.
    known.add_range(Wanted(b"f", b"m", False, 5), stored(b"g"), b"t")
    assert known_keys(known, b"f", b"t") == [b"g"]
    assert known_keys(known, b"e", b"t") is None
    known.add_range(Wanted(b"t", b"u", False, 5), stored(b"t"), None)
    assert known_keys(known, b"f", LAST_KEY) == [b"g", b"t"]
    # Backwards, down to the key before.
    known.add_range(Wanted(b"a", b"b", True, 5), stored(), None)
    assert known_keys(known, b"", b"d") == [b"c"]
    interval = known.backwards(b"b")
    assert interval is not None
    assert (interval.low, interval.high) == (b"", b"b")
    # What is fetched later replaces what was known.
    known.add_range(Wanted(b"c", b"h", False, 9), stored(b"d"), b"h")
    assert known_keys(known, b"", LAST_KEY) == [b"d", b"t"]
    known.forget_range(b"d", b"e")
    assert known_keys(known, b"", LAST_KEY) is None


def range_read(low: bytes, high: bytes, keys: Sequence[bytes], *, reverse: bool = False) -> Reads:
    read = RangeRead(low, high, reverse, None)
    read.rows = stored(*keys)
    read.is_whole = True
    reads = Reads()
    reads.ranges.append(read)
    return reads


def test_ranges_that_are_part_of_others_are_not_confirmed_separately() -> None:
    def bounds(*all_reads: Reads) -> list[tuple[bytes, bytes]]:
        return sorted((low, high) for low, high, _ in ranges_to_confirm(all_reads))

    longest = range_read(b"a", b"m", [b"b", b"c", b"l"])
    assert bounds(range_read(b"a", b"c", [b"b"]), longest, range_read(b"a", b"m", [b"b", b"c", b"l"])) == [
        (b"a", b"m")
    ]
    assert bounds(longest, range_read(b"a", b"d", [b"c", b"b"], reverse=True)) == [(b"a", b"m")]
    # Others begin elsewhere, or are not as the longest one says.
    assert bounds(longest, range_read(b"b", b"d", [b"b", b"c"])) == [(b"a", b"m"), (b"b", b"d")]
    assert bounds(longest, range_read(b"a", b"d", [b"b"])) == [(b"a", b"d"), (b"a", b"m")]
    assert bounds(longest, range_read(b"a", b"c", [b"b", b"c"])) == [(b"a", b"c"), (b"a", b"m")]
    # Two that contradict each other about the same keys: the batch is refused.
    assert len(ranges_to_confirm([longest, range_read(b"a", b"m", [b"b"])])) == 2


def test_an_interval_within_another() -> None:
    known = Known(Guesses(1000))
    known.add_interval(Interval(b"a", b"z", [b"b", b"m", b"y"]))
    known.add_interval(Interval(b"k", b"n", [b"l"]))
    assert known_keys(known, b"a", b"z") == [b"b", b"l", b"y"]


def test_guesses_are_bounded() -> None:
    guesses = Guesses(100_000)
    for number in range(10_000):
        guesses.keep(b"%d" % number, (1, bytes(100)))
    kept = [number for number in range(10_000) if guesses.get(b"%d" % number) is not None]
    assert len(kept) * 300 <= 2 * 100_000
    assert 9_999 in kept
    guesses.keep(b"large", (1, bytes(100_000)))
    assert guesses.get(b"large") is None


def test_guesses_that_are_confirmed_push_out_no_others() -> None:
    guesses = Guesses(100_000)
    guesses.keep(b"seldom", (1, b"old"))
    for _ in range(10_000):
        guesses.keep(b"often", (1, bytes(100)))
    assert guesses.get(b"seldom") == (1, b"old")
    guesses.keep(b"seldom", (2, b"new"))
    assert guesses.get(b"seldom") == (2, b"new")
