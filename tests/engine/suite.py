"""One suite for every engine: what ``engine/api.py`` promises, as tests.

An engine joins by a class that derives from ``EngineSuite`` and a fixture ``opener`` that makes empty stores of
its kind. Nothing here knows which engine it runs on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, product
from typing import Any, Protocol

import pytest
import uvloop

from kyanite.engine.api import (
    BODY_PREFIX,
    MAX_BODY_ROWS,
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
    STEP_ROWS,
    Engine,
    EngineClosed,
    Scope,
    Snapshot,
    Steps,
    TooLarge,
    Transaction,
)
from kyanite.values import Instant
from tests.engine.dictionary import check_against_a_dictionary, first_of_groups

START = Instant(638_000_000_000_000_000)
PATIENCE_SECONDS = 20


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> Instant:
        return self.at


class Opener(Protocol):
    def __call__(self, clock: Callable[[], Instant] | None = None) -> Engine:
        """A new, empty store; with the wall clock unless another is given. To be called on a running loop."""


def in_parts(names: Sequence[bytes], size: int = 1000) -> Iterator[Sequence[bytes]]:
    return (names[first : first + size] for first in range(0, len(names), size))


def delete_all(names: Sequence[bytes], tx: Transaction) -> None:
    for name in names:
        tx.delete(name)


Scenario = Callable[[Any, Engine], Coroutine[Any, Any, None]]


def on_engine(scenario: Scenario) -> Callable[[Any, Opener], None]:
    """Run the scenario on the event loop of the server, with an engine that is closed afterwards."""

    def test(self: object, opener: Opener) -> None:
        async def main() -> None:
            engine = opener()
            try:
                await asyncio.wait_for(scenario(self, engine), PATIENCE_SECONDS)
            finally:
                await engine.close()

        uvloop.run(main())

    test.__doc__ = scenario.__doc__
    return test


def with_clock(
    scenario: Callable[[Any, Engine, Clock], Coroutine[Any, Any, None]],
) -> Callable[[Any, Opener], None]:
    """The same with a clock in the scenario's hands."""

    def test(self: object, opener: Opener) -> None:
        async def main() -> None:
            clock = Clock()
            engine = opener(clock)
            try:
                await asyncio.wait_for(scenario(self, engine, clock), PATIENCE_SECONDS)
            finally:
                await engine.close()

        uvloop.run(main())

    test.__doc__ = scenario.__doc__
    return test


def put(engine: Engine, *rows: tuple[bytes, bytes]) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        for key, value in rows:
            tx.put(key, value)

    return engine.run(body)


def get(engine: Engine, key: bytes) -> Awaitable[bytes | None]:
    return engine.read(lambda state: state.get(key))


def everything(engine: Engine) -> Awaitable[list[tuple[bytes, bytes]]]:
    return engine.read(lambda state: list(state.scan(b"", b"\xff" * (MAX_KEY_BYTES + 1))))


def body_key(number: int) -> bytes:
    return BODY_PREFIX + number.to_bytes(8, "big")


def counter(tx: Transaction | Snapshot, key: bytes) -> int:
    return int.from_bytes(tx.get(key) or b"", "big")


def add_one(key: bytes) -> Callable[[Transaction], int]:
    def body(tx: Transaction) -> int:
        count = counter(tx, key) + 1
        tx.put(key, count.to_bytes(8, "big"))
        return count

    return body


class BodyError(Exception):
    """What a body of these tests raises."""


class Rows:
    """Keys, values and ranges."""

    @on_engine
    async def test_a_key_that_was_never_written_is_none(self, engine: Engine) -> None:
        assert await get(engine, b"missing") is None

    @on_engine
    async def test_what_was_put_is_read_and_can_be_overwritten(self, engine: Engine) -> None:
        await put(engine, (b"k", b"first"))
        assert await get(engine, b"k") == b"first"
        await put(engine, (b"k", b"second"))
        assert await get(engine, b"k") == b"second"

    @on_engine
    async def test_an_empty_value_is_not_an_absent_one(self, engine: Engine) -> None:
        await put(engine, (b"k", b""), (b"", b"at the empty key"))
        assert await get(engine, b"k") == b""
        assert await get(engine, b"") == b"at the empty key"

    @on_engine
    async def test_delete_removes_and_does_not_mind_absence(self, engine: Engine) -> None:
        await put(engine, (b"k", b"v"), (body_key(1), b"w"))

        def body(tx: Transaction) -> None:
            for key in (b"k", b"missing", body_key(1), body_key(2)):
                tx.delete(key)

        await engine.run(body)
        assert await everything(engine) == []

    @on_engine
    async def test_get_many_keeps_the_order_of_the_keys(self, engine: Engine) -> None:
        await put(engine, (b"a", b"1"), (b"b", b"2"), (body_key(7), b"3"))
        keys = [b"b", b"missing", body_key(7), b"a", b"b", body_key(8)]
        answer: list[bytes | None] = [b"2", None, b"3", b"1", b"2", None]
        assert await engine.read(lambda state: state.get_many(keys)) == answer
        assert await engine.run(lambda tx: tx.get_many(keys)) == answer
        assert await engine.read(lambda state: state.get_many([])) == []
        for count in range(1, 6):
            few, answers = (
                [b"b", b"missing", b"a", b"b", b"a"][:count],
                [b"2", None, b"1", b"2", b"1"][:count],
            )
            assert await engine.read(partial(_get_many, keys=few)) == answers
            assert await engine.run(partial(_get_many, keys=few)) == answers

    @on_engine
    async def test_more_keys_together_than_a_statement_might_hold(self, engine: Engine) -> None:
        rows = [(b"%05d" % n, b"%d" % n) for n in range(1234)]
        await put(engine, *rows)
        values = await engine.read(lambda state: state.get_many([key for key, _ in rows]))
        assert values == [value for _, value in rows]

        def body(tx: Transaction) -> None:
            for key, _ in rows[3:]:
                tx.delete(key)

        await engine.run(body)
        assert await everything(engine) == rows[:3]

    @pytest.mark.parametrize(
        ("start", "end", "reverse", "limit", "expected"),
        [
            (b"a", b"z", False, None, [b"a", b"b", b"c", b"d"]),
            (b"a", b"z", True, None, [b"d", b"c", b"b", b"a"]),
            (b"b", b"d", False, None, [b"b", b"c"]),
            (b"b", b"d", True, None, [b"c", b"b"]),
            (b"a\0", b"c\0", False, None, [b"b", b"c"]),
            (b"a", b"z", False, 2, [b"a", b"b"]),
            (b"a", b"z", True, 3, [b"d", b"c", b"b"]),
            (b"a", b"z", False, 0, []),
            (b"a", b"z", True, 99, [b"d", b"c", b"b", b"a"]),
            (b"b", b"b", False, None, []),
            (b"d", b"a", False, None, []),
            (b"d", b"a", True, None, []),
            (b"e", b"z", False, None, []),
            (b"", b"", False, None, []),
        ],
    )
    def test_scan(
        self,
        opener: Opener,
        start: bytes,
        end: bytes,
        reverse: bool,
        limit: int | None,
        expected: list[bytes],
    ) -> None:
        async def main() -> None:
            engine = opener()
            await put(engine, *((key, b"v" + key) for key in (b"d", b"b", b"a", b"c")))
            rows = [(key, b"v" + key) for key in expected]
            assert await engine.read(lambda s: list(s.scan(start, end, reverse=reverse, limit=limit))) == rows
            assert await engine.run(lambda t: list(t.scan(start, end, reverse=reverse, limit=limit))) == rows
            await engine.close()

        uvloop.run(main())

    @on_engine
    async def test_keys_are_ordered_as_bytes(self, engine: Engine) -> None:
        keys = [
            b"",
            b"\0",
            b"\0\0",
            b"\0\xff",
            b"a",
            b"a\0",
            b"aa",
            b"\x7f",
            b"\x80",
            b"\xff",
            b"\xff\0",
            b"\xff\xff",
        ]
        await put(engine, *((key, key) for key in reversed(keys)))
        assert [key for key, _ in await everything(engine)] == keys
        for key in keys:
            assert await get(engine, key) == key

    @on_engine
    async def test_body_keys_are_ordered_among_the_others(self, engine: Engine) -> None:
        keys = [
            b"a",
            BODY_PREFIX,
            BODY_PREFIX + b"\0",
            body_key(0),
            body_key(0) + b"\0",
            body_key(1),
            body_key(2**32),
            BODY_PREFIX + b"\x01\x02",
            body_key(2**62),
            body_key(2**63 - 1),
            BODY_PREFIX + b"\x80" + b"\0" * 7,
            BODY_PREFIX + b"\xff" * 8,
            BODY_PREFIX + b"\xff" * 9,
            b"c",
        ]
        assert keys == sorted(keys)
        await put(engine, *((key, key) for key in keys))
        bounds = [b"", *keys, b"d"]
        for start in bounds:
            for end in bounds:
                expected = [key for key in keys if start <= key < end]
                await self._check_scans(engine, start, end, expected)

    async def _check_scans(self, engine: Engine, start: bytes, end: bytes, expected: list[bytes]) -> None:
        def body(state: Snapshot) -> None:
            assert [key for key, _ in state.scan(start, end)] == expected
            assert [key for key, _ in state.scan(start, end, reverse=True)] == expected[::-1]
            assert [key for key, _ in state.scan(start, end, limit=2)] == expected[:2]
            assert [key for key, _ in state.scan(start, end, reverse=True, limit=2)] == expected[::-1][:2]

        await engine.read(body)

    @on_engine
    async def test_the_largest_keys_and_values(self, engine: Engine) -> None:
        key = b"\xff" * MAX_KEY_BYTES
        value = bytes(range(256)) * (MAX_VALUE_BYTES // 256)
        await put(engine, (key, value), (body_key(5), value))
        assert await engine.read(lambda state: state.get_many([key, body_key(5)])) == [value, value]

    @on_engine
    async def test_whatever_is_larger_is_refused(self, engine: Engine) -> None:
        for key, value in ((b"k" * (MAX_KEY_BYTES + 1), b""), (b"k", b"v" * (MAX_VALUE_BYTES + 1))):
            with pytest.raises(TooLarge):
                await put(engine, (b"before", b""), (key, value))
        assert await everything(engine) == []

    @on_engine
    async def test_a_read_in_steps_is_of_one_state(self, engine: Engine) -> None:
        """Whatever is written, replaced or deleted between its steps."""
        names = [b"%05d" % number for number in range(0, 6000, 2)]
        for some in in_parts(names):
            await put(engine, *((name, b"old") for name in some))

        def body(snap: Snapshot) -> Steps[list[tuple[bytes, bytes]]]:
            rows = snap.scan(b"", b"z", limit=10_000)
            found = list(islice(rows, STEP_ROWS))
            while part := list(islice(rows, STEP_ROWS)):
                found += part
                steps.append(len(part))
                yield
            backwards = snap.scan(b"", b"z", reverse=True)
            assert [next(backwards)[0] for _ in range(3)] == names[:-4:-1]
            yield
            assert next(backwards)[0] == names[-4]
            assert snap.get_many([names[-1], b"05999", names[0]]) == [b"old", None, b"old"]
            return found

        steps: list[int] = []
        reading = asyncio.ensure_future(engine.read_in_steps(body))
        while len(steps) < 2:
            await asyncio.sleep(0)
        for some in in_parts(names):
            await engine.run(partial(delete_all, some))
            await put(engine, *((name[:-1] + b"9", b"new") for name in some))
        assert await reading == [(name, b"old") for name in names]
        assert len(steps) > 3

    @on_engine
    async def test_of_each_group_the_first_row_is_returned(self, engine: Engine) -> None:
        """Wherever the range begins and ends, and with keys as long as they can be."""
        long = b"a/" + b"l" * (MAX_KEY_BYTES - 10)
        names = [
            b"",
            b"/",
            b"a",
            b"a/",
            b"a/1",
            b"a/2",
            b"a//",
            b"a0",
            b"b/1/x",
            b"b/1/y",
            b"b/2",
            b"c",
            b"c/d",
        ]
        names += [long, long + b"1", long + b"/1", long + b"/2", b"bb" * 2000, b"bb" * 2000 + b"/1"]
        names += [body_key(0x2F << 48), body_key((0x2F << 48) + 1), body_key(1), b"z"]
        rows = {name: b"v" + name[:9] for name in names}
        await put(engine, *rows.items())

        bounds = [b"", b"a", b"a/", b"a/1", b"a/1\0", long[:-1], long + b"/", b"b", b"b/1/y", b"c0", b"\xff"]

        def body(snap: Snapshot, start: bytes, end: bytes) -> None:
            within = {key: value for key, value in rows.items() if start <= key < end}
            for inside, delimiter, limit in ((0, b"/", 99), (2, b"/", 99), (0, b"/1", 99), (0, b"/", 3)):
                groups = snap.scan_groups(start, end, inside=inside, delimiter=delimiter, limit=limit)
                assert list(groups) == first_of_groups(within, inside, delimiter)[:limit]

        def in_steps(snap: Snapshot) -> Steps[int]:
            checked = 0
            for start, end in product(bounds, bounds):
                yield
                body(snap, start, end)
                checked += 1
            return checked

        for start in bounds:
            await engine.read(partial(body, start=start, end=b"\xff"))
            await engine.run(partial(body, start=start, end=b"bb"))
        assert await engine.read_in_steps(in_steps) == len(bounds) ** 2

    @on_engine
    async def test_groups_of_what_the_body_has_written(self, engine: Engine) -> None:
        await put(engine, (b"a/2", b"2"), (b"b", b""), (b"c/1", b"1"), (b"c/2", b"2"), (b"d/1", b""))

        def body(tx: Transaction) -> list[tuple[bytes, bytes]]:
            tx.put(b"a/1", b"own")
            tx.delete(b"c/1")
            tx.delete(b"d/1")
            tx.put(b"e", b"own")
            return list(tx.scan_groups(b"a", b"z", inside=0, delimiter=b"/", limit=9))

        assert await engine.run(body) == [(b"a/1", b"own"), (b"b", b""), (b"c/2", b"2"), (b"e", b"own")]

    @on_engine
    async def test_more_groups_than_a_body_may_have_rows(self, engine: Engine) -> None:
        """Between those that are in none, in several steps, and of one state."""
        rows = {
            b"%04d%s" % (n, b"/%d" % each if n % 3 else b""): b"old" for n in range(3000) for each in range(2)
        }
        for some in in_parts(list(rows)):
            await put(engine, *((name, b"old") for name in some))
        expected = first_of_groups(rows, 0, b"/")
        assert len(expected) > MAX_BODY_ROWS

        def body(snap: Snapshot) -> Steps[list[tuple[bytes, bytes]]]:
            groups = snap.scan_groups(b"", b"z", inside=0, delimiter=b"/", limit=5000)
            found = list(islice(groups, STEP_ROWS))
            while part := list(islice(groups, STEP_ROWS)):
                found += part
                steps.append(len(part))
                yield
            return found

        def in_one_step(snap: Snapshot) -> list[tuple[bytes, bytes]]:
            return list(snap.scan_groups(b"", b"z", inside=0, delimiter=b"/", limit=5000))

        for read in (engine.read, engine.run):
            with pytest.raises(TooLarge):
                await read(in_one_step)
        steps: list[int] = []
        reading = asyncio.ensure_future(engine.read_in_steps(body))
        while len(steps) < 2:
            await asyncio.sleep(0)
        for some in in_parts(list(rows)):
            await engine.run(partial(delete_all, some))
            await put(engine, *((b"%s/0" % name, b"new") for name in some))
        assert await reading == expected
        assert len(steps) > 3

    @on_engine
    async def test_a_scan_by_groups_with_an_impossible_delimiter_is_refused(self, engine: Engine) -> None:
        def scan(snap: Snapshot, delimiter: bytes) -> None:
            snap.scan_groups(b"", b"z", inside=0, delimiter=delimiter, limit=1)

        for delimiter in (b"", b"\xff", b"/\xff"):
            with pytest.raises(ValueError, match="delimiter"):
                await engine.read(partial(scan, delimiter=delimiter))
        kept: list[Snapshot] = []
        await engine.read(kept.append)
        with pytest.raises(RuntimeError):
            scan(kept[0], b"/")

    @on_engine
    async def test_each_step_has_the_limit_of_a_body(self, engine: Engine) -> None:
        keys = [b"%d" % number for number in range(MAX_BODY_ROWS)]

        def body(snap: Snapshot, more: int) -> Steps[None]:
            for _ in range(3):
                snap.get_many(keys)
                if more:
                    snap.get(b"one more")
                yield

        await engine.read_in_steps(lambda snap: body(snap, 0))
        with pytest.raises(TooLarge):
            await engine.read_in_steps(lambda snap: body(snap, 1))

    @on_engine
    async def test_many_reads_in_steps_end_and_so_do_failed_and_cancelled_ones(self, engine: Engine) -> None:
        def body(snap: Snapshot, steps: int, error: Exception | None) -> Steps[int]:
            for _ in range(steps):
                yield
            if error is not None:
                raise error
            return steps

        def read(steps: int, error: Exception | None = None) -> "asyncio.Future[int]":
            return asyncio.ensure_future(engine.read_in_steps(lambda snap: body(snap, steps, error)))

        endless = [read(1_000_000) for _ in range(12)]
        await asyncio.sleep(0.01)
        for each in endless:
            each.cancel()
        outcomes = await asyncio.gather(*endless, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in outcomes)
        failing = [read(3, KeyError("mine")) for _ in range(12)]
        assert all(
            isinstance(each, KeyError) for each in await asyncio.gather(*failing, return_exceptions=True)
        )
        assert await asyncio.gather(*(read(steps) for steps in range(30))) == list(range(30))

    @on_engine
    async def test_closing_ends_reads_in_steps(self, engine: Engine) -> None:
        def body(snap: Snapshot) -> Steps[None]:
            rows = snap.scan(b"", b"z")
            while True:
                next(rows, None)
                yield

        reads = [asyncio.ensure_future(engine.read_in_steps(body)) for _ in range(6)]
        await asyncio.sleep(0.01)
        await engine.close()
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
        assert all(isinstance(each, EngineClosed) for each in outcomes), outcomes
        with pytest.raises(EngineClosed):
            await engine.read_in_steps(body)

    @on_engine
    async def test_others_are_served_between_the_steps(self, engine: Engine) -> None:
        def body(snap: Snapshot, number: int) -> Steps[None]:
            for step in range(5):
                yield  # Before the first is recorded, since an engine may run the first step more than once.
                order.append((step, number))

        order: list[tuple[int, int]] = []
        await asyncio.gather(*(engine.read_in_steps(partial(body, number=n)) for n in range(3)))
        assert order == sorted(order)

    @on_engine
    async def test_a_body_that_touches_too_many_rows_is_refused(self, engine: Engine) -> None:
        keys = [b"%d" % n for n in range(MAX_BODY_ROWS // 2)]

        def body(tx: Transaction) -> None:
            for key in keys:
                tx.put(key, b"")
            tx.get_many(keys)
            tx.get(b"one more")

        with pytest.raises(TooLarge):
            await engine.run(body)
        assert await everything(engine) == []
        with pytest.raises(TooLarge):
            await engine.read(lambda state: [state.get_many(keys) for _ in range(3)])


class OwnWrites:
    """A transaction reads what it wrote itself."""

    @on_engine
    async def test_own_writes_are_visible_to_every_kind_of_read(self, engine: Engine) -> None:
        await put(engine, (b"a", b"old"), (b"b", b"old"), (b"d", b"old"), (body_key(1), b"old"))

        def body(tx: Transaction) -> None:
            tx.put(b"a", b"new")
            tx.delete(b"b")
            tx.put(b"c", b"new")
            tx.put(body_key(2), b"new")
            tx.delete(body_key(1))
            assert (tx.get(b"a"), tx.get(b"b"), tx.get(b"c"), tx.get(b"d")) == (b"new", None, b"new", b"old")
            assert tx.get_many([b"d", b"c", b"b", body_key(1), body_key(2)]) == [
                b"old",
                b"new",
                None,
                None,
                b"new",
            ]
            rows = [(b"a", b"new"), (body_key(2), b"new"), (b"c", b"new"), (b"d", b"old")]
            assert list(tx.scan(b"", b"\xff")) == rows
            assert list(tx.scan(b"", b"\xff", reverse=True)) == rows[::-1]

        await engine.run(body)

    @on_engine
    async def test_a_body_can_undo_its_own_write(self, engine: Engine) -> None:
        await put(engine, (b"stays", b"1"))

        def body(tx: Transaction) -> None:
            tx.put(b"gone", b"1")
            tx.delete(b"gone")
            tx.delete(b"stays")
            tx.put(b"stays", b"2")
            assert list(tx.scan(b"", b"\xff")) == [(b"stays", b"2")]

        await engine.run(body)
        assert await everything(engine) == [(b"stays", b"2")]

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 99, None])
    def test_limits_count_rows_after_own_writes_were_merged(
        self, opener: Opener, reverse: bool, limit: int | None
    ) -> None:
        def body(tx: Transaction) -> list[bytes]:
            tx.delete(b"1")
            tx.delete(b"2")
            tx.put(b"4", b"own")
            tx.put(b"9", b"own")
            return [key for key, _ in tx.scan(b"", b"z", reverse=reverse, limit=limit)]

        async def main() -> None:
            engine = opener()
            await put(engine, *((b"%d" % n, b"stored") for n in (1, 2, 3, 5, 8)))
            merged = [b"3", b"4", b"5", b"8", b"9"]
            assert await engine.run(body) == (merged[::-1] if reverse else merged)[:limit]
            await engine.close()

        uvloop.run(main())

    @on_engine
    async def test_a_scan_goes_on_when_rows_are_written_under_way(self, engine: Engine) -> None:
        stored = [(b"%03d" % n, b"") for n in range(200)]
        await put(engine, *stored)

        def body(tx: Transaction) -> list[bytes]:
            scanned = []
            for key, _ in tx.scan(b"", b"z"):
                scanned.append(key)
                tx.delete(key)
                tx.put(b"y" + key, b"")
                assert [row for row, _ in tx.scan(key, key + b"\0")] == []
            return scanned

        scanned = await engine.run(body)
        assert scanned[:200] == [key for key, _ in stored]
        assert await everything(engine) == [(b"y" + key, b"") for key, _ in stored]


class Atomicity:
    """All of a body or nothing, and no body disturbs another."""

    @on_engine
    async def test_a_body_that_raises_leaves_nothing(self, engine: Engine) -> None:
        def body(tx: Transaction) -> None:
            tx.put(b"k", b"v")
            tx.put(body_key(1), b"v")
            raise BodyError("no")

        with pytest.raises(BodyError):
            await engine.run(body)
        assert await everything(engine) == []

    @on_engine
    async def test_reads_raise_what_their_body_raised(self, engine: Engine) -> None:
        def body(state: Snapshot) -> None:
            state.get(b"k")
            raise BodyError("no")

        with pytest.raises(BodyError):
            await engine.read(body)
        assert await get(engine, b"k") is None

    @on_engine
    async def test_bodies_that_raise_do_not_disturb_their_neighbours(self, engine: Engine) -> None:
        def body(number: int) -> Callable[[Transaction], int]:
            def run(tx: Transaction) -> int:
                tx.put(b"%03d" % number, b"")
                tx.put(b"last", b"%d" % number)
                if number % 3 == 0:
                    raise BodyError(number)
                return number

            return run

        outcomes = await asyncio.gather(
            *(engine.run(body(number)) for number in range(100)), return_exceptions=True
        )
        for number, outcome in enumerate(outcomes):
            if number % 3 == 0:
                assert isinstance(outcome, BodyError)
            else:
                assert outcome == number
        written = [key for key, _ in await everything(engine) if key != b"last"]
        assert written == [b"%03d" % number for number in range(100) if number % 3]

    @on_engine
    async def test_a_body_sees_what_bodies_before_it_wrote(self, engine: Engine) -> None:
        """In the same batch or not: gets, scans of stored rows and scans of rows written a moment ago."""

        def body(tx: Transaction) -> int:
            count = len(list(tx.scan(b"n", b"o")))
            assert counter(tx, b"count") == count
            tx.put(b"n%05d" % count, b"")
            tx.put(b"count", (count + 1).to_bytes(8, "big"))
            tx.delete(b"n%05d/extra" % count)
            return count

        outcomes = await asyncio.gather(*(engine.run(body) for _ in range(60)))
        assert sorted(outcomes) == list(range(60))

    @on_engine
    async def test_a_body_that_raises_stop_iteration_is_an_error_and_not_a_hang(self, engine: Engine) -> None:
        def body(tx: Transaction) -> None:
            next(tx.scan(b"a", b"b"))

        with pytest.raises((RuntimeError, StopIteration)):
            await asyncio.wait_for(asyncio.ensure_future(engine.run(body)), PATIENCE_SECONDS)

    @on_engine
    async def test_a_cancelled_caller_harms_no_other(self, engine: Engine) -> None:
        async def caller(number: int) -> int:
            return await engine.run(add_one(b"%d" % number))

        tasks = [asyncio.create_task(caller(number)) for number in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for number in range(1, 20, 2):
            assert counter_value(await get(engine, b"%d" % number)) == 1

    @on_engine
    async def test_a_body_may_not_call_the_engine(self, engine: Engine) -> None:
        def body(_: Snapshot) -> None:
            engine.read(lambda state: state.get(b"k"))

        def writing(_: Transaction) -> None:
            engine.run(add_one(b"k"))

        for attempt in (engine.read(body), engine.run(body), engine.run(writing)):
            with pytest.raises(RuntimeError, match="body"):
                await attempt
        assert await engine.run(add_one(b"k")) == 1

    @on_engine
    async def test_a_snapshot_is_of_no_use_after_its_body(self, engine: Engine) -> None:
        await put(engine, (b"a", b""), (b"b", b""))
        kept: list[Snapshot] = []
        kept_rows = []

        def body(state: Snapshot) -> None:
            kept.append(state)
            rows = state.scan(b"", b"z")
            next(rows)
            kept_rows.append(rows)

        await engine.read(body)
        await engine.run(body)
        for state in kept:
            with pytest.raises(RuntimeError):
                state.get(b"a")
            with pytest.raises(RuntimeError):
                list(state.scan(b"", b"z"))
        for rows in kept_rows:
            with pytest.raises(RuntimeError):
                next(rows)


def counter_value(stored: bytes | None) -> int:
    return int.from_bytes(stored or b"", "big")


class Isolation:
    """One committed state for a read; one after the other for transactions."""

    @on_engine
    async def test_an_acknowledged_write_is_seen_by_every_later_read(self, engine: Engine) -> None:
        for number in range(50):
            await put(engine, (b"k", b"%d" % number))
            assert await get(engine, b"k") == b"%d" % number
            assert await engine.run(lambda tx: tx.get(b"k")) == b"%d" % number

    @on_engine
    async def test_readers_never_see_half_of_a_commit(self, engine: Engine) -> None:
        keys = [b"%d" % n for n in range(8)] + [body_key(n) for n in range(8)]
        finished = False

        async def write() -> None:
            nonlocal finished
            for round_number in range(60):
                await put(engine, *((key, b"%d" % round_number) for key in keys))
            finished = True

        def look_up(state: Snapshot) -> None:
            gets = {state.get(key) for key in keys}
            rows = [value for _, value in state.scan(b"", b"\xff")]
            assert len(gets) == 1
            assert len(rows) in (0, len(keys))
            assert set(rows) in (set(), gets)

        writer = asyncio.create_task(write())
        reads = 0
        while not finished:
            await engine.read(look_up)
            reads += 1
            await asyncio.sleep(0)
        await writer
        assert reads

    @on_engine
    async def test_groups_and_rows_are_of_one_state(self, engine: Engine) -> None:
        """Also if the engine knows one of them from before: each commit makes a group and counts it."""
        rounds_min, rounds_max, finished = 40, 800, False

        async def write() -> None:
            nonlocal finished
            for count in range(1, rounds_max + 1):
                rows = [(b"%03d/%d" % (count, each), b"") for each in range(3)]
                await put(engine, (b"count", b"%d" % count), *rows)
                await asyncio.sleep(0)
                if (
                    count >= rounds_min and len(counts) > 3
                ):  # On a busy machine commits may be faster than reads.
                    break
            finished = True

        def look_up(state: Snapshot, first: bool) -> int:
            before = state.get(b"count") if first else None
            groups = list(state.scan_groups(b"0", b"1", inside=0, delimiter=b"/", limit=rounds_max))
            count = state.get(b"count") if before is None else before
            assert len(groups) == int(count or b"0")
            return len(groups)

        async def client(first: bool) -> None:
            while not finished:
                counts.add(await engine.read(partial(look_up, first=first)))
                await asyncio.sleep(0)

        counts: set[int] = set()
        await asyncio.gather(write(), *(client(number % 2 == 0) for number in range(8)))
        assert len(counts) > 3

    @on_engine
    async def test_counters_lose_no_step(self, engine: Engine) -> None:
        async def client() -> None:
            for _ in range(10):
                await engine.run(add_one(b"shared"), Scope(b"shared"))

        await asyncio.gather(*(client() for _ in range(30)))
        assert counter_value(await get(engine, b"shared")) == 300

    @on_engine
    async def test_there_is_no_write_skew(self, engine: Engine) -> None:
        """Two may each go off duty only while the other is on; snapshot isolation alone would let both go."""
        for _ in range(20):
            await put(engine, (b"alice", b"on"), (b"bob", b"on"))

            def leave(me: bytes, other: bytes) -> Callable[[Transaction], None]:
                def body(tx: Transaction) -> None:
                    if tx.get(other) != b"on":
                        raise BodyError("the last one stays")
                    tx.put(me, b"off")

                return body

            outcomes = await asyncio.gather(
                engine.run(leave(b"alice", b"bob")),
                engine.run(leave(b"bob", b"alice")),
                return_exceptions=True,
            )
            assert sorted(isinstance(outcome, BodyError) for outcome in outcomes) == [False, True]

    @on_engine
    async def test_transactions_that_are_not_durable_are_isolated_all_the_same(self, engine: Engine) -> None:
        async def client(durable: bool) -> None:
            for _ in range(10):
                await engine.run(add_one(b"shared"), durable=durable)

        await asyncio.gather(*(client(durable=number % 2 == 0) for number in range(20)))
        assert counter_value(await get(engine, b"shared")) == 200


class Time:
    """``now``"""

    @with_clock
    async def test_now_is_the_clock(self, engine: Engine, clock: Clock) -> None:
        assert await engine.read(lambda state: state.now) == START
        clock.at = Instant(START + 5_000)
        assert await engine.run(lambda tx: tx.now) == START + 5_000

    @with_clock
    async def test_now_stands_still_within_a_body(self, engine: Engine, clock: Clock) -> None:
        def body(state: Snapshot) -> None:
            first = state.now
            clock.at = Instant(clock.at + 1_000)
            assert state.now == first

        await engine.read(body)
        await engine.run(body)

    @with_clock
    async def test_transactions_have_different_and_growing_instants(
        self, engine: Engine, clock: Clock
    ) -> None:
        def body(tx: Transaction) -> Instant:
            previous = int.from_bytes(tx.get(b"previous") or b"", "big")
            assert tx.now > previous
            tx.put(b"previous", tx.now.to_bytes(8, "big"))
            return tx.now

        instants: list[Instant] = []
        for step in (0, 10_000, -1_000_000_000, 0, 3, -1, 2_000_000_000):
            clock.at = Instant(clock.at + step)
            instants += await asyncio.gather(*(engine.run(body) for _ in range(10)))
        assert len(set(instants)) == len(instants)
        assert instants == sorted(instants)
        assert instants[-1] == clock.at + 9

    @with_clock
    async def test_ids_are_unique_and_ascend_whatever_the_clock_does(
        self, engine: Engine, clock: Clock
    ) -> None:
        def body(tx: Transaction) -> list[int]:
            tx.put(b"any", b"")
            return [tx.new_id() for _ in range(21)]

        ids: list[int] = []
        for step in (0, 10_000, -1_000_000_000, 3):
            clock.at = Instant(clock.at + step)
            for group in await asyncio.gather(*(engine.run(body) for _ in range(5))):
                ids += group
        assert ids == sorted(set(ids))
        assert ids[0] == START * 8, "Ids of older stores are instants times eight, and a number below eight."
        assert ids[-1] < 2**63

    @on_engine
    async def test_rows_of_a_new_id_can_be_read(self, engine: Engine) -> None:
        """A new resource looks for rows under its own id, of which there cannot be any."""

        def body(tx: Transaction) -> int:
            for part in (b"a", b"b"):
                key = part + tx.new_id().to_bytes(8, "big")
                assert tx.get(key) is None
                assert list(tx.scan(key, key + b"\xff", limit=1)) == []
                tx.put(key, b"")
            return len(list(tx.scan(b"a", b"c")))

        outcomes = await asyncio.gather(*(engine.run(body) for _ in range(20)))
        assert sorted(outcomes) == list(range(2, 42, 2))

    @with_clock
    async def test_new_ids_differ_from_all_that_older_versions_made(
        self, engine: Engine, clock: Clock
    ) -> None:
        """They used the instant of a transaction as an id, or eight times that and a number below eight."""

        def older(tx: Transaction) -> Instant:
            tx.put(b"any", b"")
            return tx.now

        instants = [await engine.run(older) for _ in range(50)]
        clock.at = Instant(clock.at - 1_000_000_000)
        new = {await engine.run(lambda tx: tx.new_id()) for _ in range(50)}
        assert len(new) == 50
        assert not new & set(instants)
        assert not new & {instant * 8 + number for instant in instants for number in range(8)}
        assert min(new) > max(instants) * 8 + 7

    @with_clock
    async def test_a_read_is_never_earlier_than_what_it_sees(self, engine: Engine, clock: Clock) -> None:
        def stamp(tx: Transaction) -> None:
            tx.put(b"written_at", tx.now.to_bytes(8, "big"))

        def now_first(state: Snapshot) -> None:
            now = state.now
            assert now >= int.from_bytes(state.get(b"written_at") or b"", "big")

        def now_last(state: Snapshot) -> None:
            written_at = int.from_bytes(state.get(b"written_at") or b"", "big")
            assert state.now >= written_at

        for step in (10_000, -1_000_000_000, 7):
            clock.at = Instant(clock.at + step)
            await asyncio.gather(*(engine.run(stamp) for _ in range(5)))
            await engine.read(now_first)
            await engine.read(now_last)


class Subscriptions:
    """Notifications"""

    async def subscribed(self, engine: Engine) -> None:
        """Wait until the engine receives the notifications of other processes. One that has to connect first notifies
        the subscribers that were there before, since it may have missed something."""

    @staticmethod
    def ringing(topic: bytes) -> Callable[[Transaction], None]:
        def body(tx: Transaction) -> None:
            tx.put(b"notified", topic)
            tx.notify(topic)

        return body

    @on_engine
    async def test_a_subscriber_is_notified_after_the_commit(self, engine: Engine) -> None:
        await self.subscribed(engine)
        heard = engine.subscribe(b"topic")
        other = engine.subscribe(b"other")
        silent = asyncio.ensure_future(anext(other))
        await engine.run(self.ringing(b"topic"))
        await asyncio.wait_for(anext(heard), PATIENCE_SECONDS)
        assert await get(engine, b"notified") == b"topic"
        await asyncio.sleep(0.01)
        assert not silent.done()
        silent.cancel()
        with suppress(asyncio.CancelledError):
            await silent

    @on_engine
    async def test_all_subscribers_of_a_topic_are_notified(self, engine: Engine) -> None:
        subscribers = [engine.subscribe(b"topic") for _ in range(3)]
        await engine.run(self.ringing(b"topic"))
        for subscriber in subscribers:
            await asyncio.wait_for(anext(subscriber), PATIENCE_SECONDS)

    @on_engine
    async def test_notifications_before_the_first_wait_are_kept_and_may_merge(self, engine: Engine) -> None:
        subscriber = engine.subscribe(b"topic")
        for _ in range(3):
            await engine.run(self.ringing(b"topic"))
        await asyncio.wait_for(anext(subscriber), PATIENCE_SECONDS)

    @on_engine
    async def test_a_body_that_raises_notifies_no_subscriber(self, engine: Engine) -> None:
        await self.subscribed(engine)
        subscriber = engine.subscribe(b"topic")

        def body(tx: Transaction) -> None:
            tx.notify(b"topic")
            raise BodyError("no")

        with pytest.raises(BodyError):
            await engine.run(body)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(subscriber), 0.02)
        await engine.run(self.ringing(b"topic"))
        await asyncio.wait_for(anext(subscriber), PATIENCE_SECONDS)

    @on_engine
    async def test_a_notification_needs_no_write(self, engine: Engine) -> None:
        subscriber = engine.subscribe(b"topic")
        await engine.run(lambda tx: tx.notify(b"topic"))
        await asyncio.wait_for(anext(subscriber), PATIENCE_SECONDS)

    @on_engine
    async def test_a_commit_notifies_its_own_process_before_it_returns(self, engine: Engine) -> None:
        await self.subscribed(engine)
        subscription = engine.subscribe(b"topic")
        found = [subscription.is_notified]
        for _ in range(2):
            await engine.run(lambda tx: tx.notify(b"topic"), durable=False)
            found.append(subscription.is_notified)
            await anext(subscription)
            found.append(subscription.is_notified)
        assert found == [False, True, False, True, False]


class Closing:
    @on_engine
    async def test_closing_finishes_what_was_begun(self, engine: Engine) -> None:
        calls = [asyncio.ensure_future(engine.run(add_one(b"%d" % n))) for n in range(10)]
        await engine.close()
        assert [await call for call in calls] == [1] * 10

    @on_engine
    async def test_a_closed_engine_says_so(self, engine: Engine) -> None:
        await engine.close()
        with pytest.raises(EngineClosed):
            await get(engine, b"k")
        with pytest.raises(EngineClosed):
            await engine.run(add_one(b"k"))
        with pytest.raises(EngineClosed):
            engine.subscribe(b"topic")
        await engine.close()

    @on_engine
    async def test_closing_ends_the_listening(self, engine: Engine) -> None:
        async def subscribe(notifications: AsyncIterator[None]) -> int:
            return len([notify async for notify in notifications])

        waiting = asyncio.create_task(subscribe(engine.subscribe(b"topic")))
        await asyncio.sleep(0)
        await engine.close()
        assert await waiting == 0


class Dictionary:
    def test_against_a_dictionary(self, opener: Opener) -> None:
        check_against_a_dictionary(opener)


class InlineReads:
    """For engines in the same process: a read never waits."""

    @on_engine
    async def test_awaiting_a_read_takes_no_time_of_others(self, engine: Engine) -> None:
        """It does not suspend, so a handler that only reads needs no task."""

        async def main() -> bytes | None:
            return await get(engine, b"k")

        with pytest.raises(StopIteration) as stop:
            main().send(None)
        assert stop.value.value is None


class EngineSuite(Rows, OwnWrites, Atomicity, Isolation, Time, Subscriptions, Closing, Dictionary):
    """Everything above."""


def _get_many(snap: Snapshot, keys: Sequence[bytes]) -> list[bytes | None]:
    return snap.get_many(keys)
