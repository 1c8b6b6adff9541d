"""Long values are in a table of their own, one for each row that refers to it, and seeks do not read them."""

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from kyanite.engine.api import Damaged, Snapshot, Transaction
from kyanite.engine.sqlite import database
from kyanite.engine.sqlite.database import DATABASE_FILE
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.long_values import SHORT_MAX
from kyanite.engine.sqlite.rows import SCHEMA, Rows

LONG = b"l" * 5_000
LONGER = b"L" * 100_000


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteEngine]:
    engine = SqliteEngine.open(folder)
    try:
        yield engine
    finally:
        await engine.close()


@contextmanager
def rows_of(folder: Path) -> Iterator[Rows]:
    """Rows of a new store, inside one transaction."""
    connection = database.connect(folder)
    connection.execute(SCHEMA)
    try:
        with connection:
            yield Rows(connection)
    finally:
        connection.close()


def stored(folder: Path) -> tuple[dict[bytes, object], dict[int, tuple[bytes, bytes]]]:
    """What the tables have: the values of ``kv``, and the long ones, each with its key."""
    connection = apsw.Connection(str(folder / DATABASE_FILE))
    try:
        rows: Iterable[Any] = connection.execute("SELECT key, value FROM kv")
        long: Iterable[Any] = connection.execute("SELECT id, key, value FROM long")
        return dict(rows), {number: (key, value) for number, key, value in long}
    finally:
        connection.close()


def check(folder: Path, expected: Mapping[bytes, bytes]) -> None:
    """Each long value is referred to by one row, and the others are in place."""
    rows, long = stored(folder)
    assert rows.keys() == expected.keys()
    for key, value in expected.items():
        number = rows[key]
        if len(key) + len(value) > SHORT_MAX:
            assert isinstance(number, int)
            assert long.pop(number) == (key, value)
        else:
            assert number == value
    assert not long


async def put(engine: SqliteEngine, writes: Mapping[bytes, bytes | None], *, reading: bool = False) -> None:
    def body(tx: Transaction) -> None:
        for key, value in writes.items():
            if reading:
                tx.get(key)
            if value is None:
                tx.delete(key)
            else:
                tx.put(key, value)

    await engine.run(body)


def by_groups(snap: Snapshot, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    return snap.scan_groups(start, end, inside=0, delimiter=b"/", limit=5)


@pytest.mark.parametrize("reading", [False, True])
async def test_values_become_long_and_short_and_go(tmp_path: Path, reading: bool) -> None:
    keys = [b"a", b"b", b"c"]
    expected: dict[bytes, bytes] = {}
    async with opened(tmp_path) as engine:
        for values in (
            (b"1", LONG, LONGER),
            (LONG, b"2", LONG),
            (LONG, LONG, None),
            (None, b"", LONGER),
            (LONG, None, None),
        ):
            writes = dict(zip(keys, values, strict=True))
            await put(engine, writes, reading=reading)
            expected = {key: value for key, value in writes.items() if value is not None}
            assert await engine.read(lambda snap: dict(snap.scan(b"a", b"d"))) == expected
            assert await engine.read(lambda snap: dict(by_groups(snap, b"a", b"d"))) == expected
            assert await engine.read(lambda snap: snap.get_many(keys)) == list(values)
            assert await engine.read(lambda snap: [snap.get(key) for key in keys]) == list(values)
            check(tmp_path, expected)


async def test_writes_around_a_scan_of_the_same_batch(tmp_path: Path) -> None:
    """The scan has what was put before it written down, so the row is written twice in one transaction."""

    def body(tx: Transaction) -> list[tuple[bytes, bytes]]:
        assert tx.get(b"a") is None
        tx.put(b"a", LONG)
        found = list(tx.scan(b"a", b"b"))
        tx.put(b"a", b"short")
        return found

    async with opened(tmp_path) as engine:
        for _ in range(3):
            assert await engine.run(body) == [(b"a", LONG)]
            check(tmp_path, {b"a": b"short"})
            await put(engine, {b"a": None})


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([b"a", b"b", b"c" * 1_500, b"d" * 2_100]),
            st.sampled_from([None, 0, 1, 400, 600, 1_999, 2_000, 70_000]),
            min_size=1,
        ),
        max_size=6,
    )
)
@settings(max_examples=60, deadline=None)
def test_rows_are_what_was_written(steps: list[dict[bytes, int | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        expected: dict[bytes, bytes] = {}
        with rows_of(Path(folder)) as rows:
            for number, step in enumerate(steps):
                writes = {key: None if size is None else bytes([number]) * size for key, size in step.items()}
                rows.apply(writes)
                for key, value in writes.items():
                    if value is None:
                        expected.pop(key, None)
                    else:
                        expected[key] = value
                for limit in (None, 10, 5_000):
                    assert dict(rows.scan(b"", b"z", False, limit)) == expected
                rows.end_scans()
        check(Path(folder), expected)


async def test_a_row_whose_long_value_is_lost_or_changed_is_damaged(tmp_path: Path) -> None:
    for change in ("DELETE FROM long", "UPDATE long SET value = x'00'", "UPDATE long SET value = 'text'"):
        async with opened(tmp_path) as engine:
            await put(engine, {b"a": LONG, b"b": b"short"})
        connection = apsw.Connection(str(tmp_path / DATABASE_FILE))
        connection.execute(change)
        connection.close()
        async with opened(tmp_path) as engine:
            for read in (
                lambda snap: snap.get(b"a"),
                lambda snap: snap.get_many([b"a", b"b"]),
                lambda snap: list(snap.scan(b"a", b"c")),
                lambda snap: list(snap.scan(b"a", b"c", limit=5)),
                lambda snap: list(by_groups(snap, b"a", b"c")),
            ):
                with pytest.raises(Damaged):
                    await engine.read(read)
            assert await engine.read(lambda snap: snap.get(b"b")) == b"short"
            await put(engine, {b"a": LONG})
            assert await engine.read(lambda snap: snap.get(b"a")) == LONG
            check(tmp_path, {b"a": LONG, b"b": b"short"})


async def test_a_store_of_the_schema_before_is_upgraded_and_read_as_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await put(engine, {b"a": b"1"})
    connection = database.connect(tmp_path)
    with connection:
        for key in (b"b", b"c"):
            checksum = xxh3_64_intdigest(key + LONG) - 2**63
            connection.execute("INSERT INTO kv VALUES (?, ?, ?)", (key, LONG, checksum))
        connection.execute("DROP TABLE long")
        connection.execute("DROP TRIGGER long_value_replaced")
        connection.execute("UPDATE meta SET value = 2 WHERE name = 'format'")
    connection.close()
    async with opened(tmp_path) as engine:
        assert await engine.read(lambda snap: snap.get_many([b"a", b"b", b"c"])) == [b"1", LONG, LONG]
        assert stored(tmp_path) == ({b"a": b"1", b"b": LONG, b"c": LONG}, {})
        await put(engine, {b"b": LONG, b"c": None}, reading=True)
        check(tmp_path, {b"a": b"1", b"b": LONG})


async def test_a_seek_beside_long_values_reads_few_pages(tmp_path: Path) -> None:
    """With the values in ``kv``, each of these look-ups read some hundred pages."""
    async with opened(tmp_path) as engine:
        for number in range(100):
            await put(engine, {b"%03d" % number: LONGER, b"%03d-short" % number: b"x" * 200})
    connection = apsw.Connection(str(tmp_path / DATABASE_FILE))
    try:
        pages = connection.execute("SELECT count(*) FROM dbstat WHERE name = 'kv'").get
        assert isinstance(pages, int)
        assert pages <= 10
    finally:
        connection.close()


async def test_a_damaged_number_costs_no_other_row_its_value(tmp_path: Path) -> None:
    for writes in ({b"a": b"short"}, {b"a": LONG}, {b"a": None}):
        async with opened(tmp_path) as engine:
            await put(engine, {b"a": LONGER, b"b": LONG})
        connection = apsw.Connection(str(tmp_path / DATABASE_FILE))
        connection.execute("UPDATE kv SET value = (SELECT id FROM long WHERE key = x'62') WHERE key = x'61'")
        connection.close()
        async with opened(tmp_path) as engine:
            with pytest.raises(Damaged):
                await engine.read(lambda snap: snap.get(b"a"))
            await put(engine, writes)
            assert await engine.read(lambda snap: snap.get_many([b"a", b"b"])) == [writes[b"a"], LONG]
