"""What the engine does when bytes of its files have changed: it returns no wrong value, and goes on with the rest."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from xxhash import xxh3_64_intdigest

from kyanite.engine.api import Damaged, Engine, EngineError, Snapshot, Steps, Transaction
from kyanite.engine.sqlite import database
from kyanite.engine.sqlite.engine import SqliteEngine
from tests.engine.sqlite.test_engine import on_loop
from tests.engine.suite import add_one, body_key, everything, get, put

PAGE = database.PAGE_BYTES
FILE = "store.sqlite3"

ROWS = [
    *((b"row-%03d" % n, b"value-%03d-" % n + bytes([n % 251]) * 90) for n in range(400)),
    *((body_key(n), b"begin-%d" % n + bytes(9000) + b"end-%d" % n) for n in range(1, 6)),
]
VALUES = dict(ROWS)
LEADING_TYPES = b"\x02\x05\x0a\x0d"
"""The first byte of a page of a tree."""


async def fill(folder: Path) -> None:
    engine = SqliteEngine.open(folder)
    await put(engine, *ROWS)
    await engine.close()  # Copies the log into the database.


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage") / "store"
    on_loop(fill(folder))
    return folder


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    shutil.copytree(filled, tmp_path / "store")
    return tmp_path / "store"


def flip(folder: Path, stored: bytes, *, at: int = 0, to: bytes | None = None) -> None:
    """Change one byte of the only occurrence in the database that has these bytes."""
    path = folder / FILE
    content = bytearray(path.read_bytes())
    assert content.count(stored) == 1
    position = content.index(stored) + at
    content[position : position + 1] = to or bytes([content[position] ^ 0x40])
    path.write_bytes(content)


def read_in_steps(engine: Engine, keys: Sequence[bytes]) -> Awaitable[list[bytes | None]]:
    def body(snap: Snapshot) -> Steps[list[bytes | None]]:
        yield
        return [snap.get(key) for key in keys]

    return engine.read_in_steps(body)


def values_of(snap: Snapshot, limit: int | None, *, reverse: bool = False) -> list[bytes]:
    return [value for _, value in snap.scan(b"row-", b"row-z", limit=limit, reverse=reverse)]


def all_in_steps(engine: Engine) -> Awaitable[int]:
    def body(snap: Snapshot) -> Steps[int]:
        count = 0
        for count, _ in enumerate(snap.scan(b"row-", b"row-z", limit=5000), 1):
            if count % 100 == 0:
                yield
        return count

    return engine.read_in_steps(body)


KEYS = [key for key, _ in ROWS if key.startswith(b"row-")]

READS: dict[str, Callable[[Engine, bytes], Awaitable[object]]] = {
    "get": get,
    "get of few": lambda engine, key: engine.read(lambda snap: snap.get_many([b"row-001", key])),
    "get of many": lambda engine, key: engine.read(lambda snap: snap.get_many([*KEYS[:30], key])),
    "get in a transaction": lambda engine, key: engine.run(lambda tx: tx.get(key)),
    "get in a long read": lambda engine, key: read_in_steps(engine, [key]),
    "scan": lambda engine, _key: everything(engine),
    "short scan": lambda engine, key: engine.read(lambda snap: list(snap.scan(key, b"\xff", limit=1))),
    "page": lambda engine, key: engine.read(lambda snap: list(snap.scan(key, b"\xff", limit=1000))),
    "long page": lambda engine, key: engine.read(lambda snap: list(snap.scan(key, b"\xff", limit=2400))),
    "page of a long read": lambda engine, _key: all_in_steps(engine),
    "backwards": lambda engine, _key: engine.read(partial(values_of, limit=None, reverse=True)),
}
READS_OF_OTHERS = ("page of a long read", "backwards")
"""They read no inline bodies."""


class TestReads:
    @pytest.mark.parametrize("read", READS)
    def test_no_read_returns_a_value_that_has_changed(self, store: Path, read: str) -> None:
        flip(store, b"value-200-", at=15)

        async def main() -> None:
            engine = SqliteEngine.open(store)
            with pytest.raises(Damaged) as caught:
                await READS[read](engine, b"row-200")
            assert caught.value.key == b"row-200"
            for key in (b"row-199", b"row-201", body_key(1)):
                assert await get(engine, key) == VALUES[key]
            await engine.close()

        on_loop(main())

    @pytest.mark.parametrize("read", [name for name in READS if name not in READS_OF_OTHERS])
    @pytest.mark.parametrize("part", [b"begin-3", b"end-3"])
    def test_nor_an_inline_body_that_has(self, store: Path, read: str, part: bytes) -> None:
        flip(store, part)

        async def main() -> None:
            engine = SqliteEngine.open(store)
            with pytest.raises(Damaged) as caught:
                await READS[read](engine, body_key(3))
            assert caught.value.key == body_key(3)
            assert await get(engine, body_key(2)) == VALUES[body_key(2)]
            await engine.close()

        on_loop(main())

    def test_a_key_that_has_changed_is_damage_where_it_is_now(self, store: Path) -> None:
        flip(store, b"row-200value-200-", at=6, to=b"/")  # Still between row-199 and row-201.

        async def main() -> None:
            engine = SqliteEngine.open(store)
            assert await get(engine, b"row-200") is None
            with pytest.raises(Damaged) as caught:
                await get(engine, b"row-20/")
            assert caught.value.key == b"row-20/"
            with pytest.raises(Damaged):
                await everything(engine)
            assert await get(engine, b"row-201") == VALUES[b"row-201"]
            await engine.close()

        on_loop(main())

    @pytest.mark.parametrize(
        "change",
        [
            "value = 'text'",
            "value = CAST(x'ff00ff' AS TEXT)",
            "value = CAST(value AS TEXT)",
            "value = NULL",
            "value = 7",
            "value = 7.5",
            "value = value || x'00'",
            "checksum = checksum + 1",
            "checksum = 'text'",
            "checksum = CAST(x'ff00ff' AS TEXT)",
        ],
    )
    @pytest.mark.parametrize("has_checksum", [True, False])
    def test_a_value_of_another_type_is_damage(self, store: Path, change: str, has_checksum: bool) -> None:
        with sqlite3.connect(store / FILE) as connection:
            if not has_checksum:
                connection.execute("UPDATE kv SET checksum = NULL")
                connection.execute("UPDATE body SET checksum = NULL")
            for where in ("kv SET {} WHERE key = x'726f772d323030'", "body SET {} WHERE id = 3"):
                connection.execute("UPDATE " + where.format(change))
        connection.close()
        if not has_checksum and change in ("value = value || x'00'", "checksum = checksum + 1"):
            return

        async def main() -> None:
            engine = SqliteEngine.open(store)
            for read in READS.values():
                with pytest.raises(Damaged):
                    await read(engine, b"row-200")
            for name in ("get", "get of many", "scan", "page"):
                with pytest.raises(Damaged):
                    await READS[name](engine, body_key(3))
            # No statement was left that keeps an old snapshot.
            other = SqliteEngine.open(store)
            await put(other, (b"row-300", b"new"))
            await other.close()
            assert await get(engine, b"row-300") == b"new"
            assert await read_in_steps(engine, [b"row-300"]) == [b"new"]
            await engine.close()

        on_loop(main())

    def test_writing_the_row_again_repairs_it(self, store: Path) -> None:
        flip(store, b"value-200-", at=15)
        flip(store, b"end-3")

        async def main() -> None:
            engine = SqliteEngine.open(store)
            await put(engine, (b"row-200", b"new"), (body_key(3), b"new"))
            assert await get(engine, b"row-200") == await get(engine, body_key(3)) == b"new"
            assert len(await everything(engine)) == len(ROWS)
            await engine.close()

        on_loop(main())


class TestTransactions:
    def test_only_the_body_that_reads_the_row_fails(self, store: Path) -> None:
        flip(store, b"value-200-", at=15)

        async def main() -> None:
            engine = SqliteEngine.open(store)
            outcomes = await asyncio.gather(
                engine.run(add_one(b"n")),
                engine.run(lambda tx: tx.put(b"row-001", tx.get(b"row-200") or b"")),
                engine.run(add_one(b"n")),
                return_exceptions=True,
            )
            assert outcomes[0] == 1
            assert isinstance(outcomes[1], Damaged)
            assert outcomes[2] == 2
            assert engine.commits.batches == 1
            assert await get(engine, b"row-001") == VALUES[b"row-001"]
            await engine.close()

        on_loop(main())

    @pytest.mark.parametrize("durable", [True, False])
    def test_only_the_body_that_writes_to_a_damaged_page_fails(self, store: Path, durable: bool) -> None:
        damage_page_of(store, b"value-200-")

        def scanning(tx: Transaction) -> int:
            """What was written before it in the batch is put into the tables first."""
            tx.put(b"scanned", b"")
            return len(list(tx.scan(b"n", b"o")))

        async def main() -> None:
            engine = SqliteEngine.open(store)
            runs = [
                engine.run(add_one(b"n"), durable=durable),
                engine.run(lambda tx: tx.put(b"row-200", b"new"), durable=durable),
                engine.run(add_one(b"n"), durable=durable),
                engine.run(scanning, durable=durable),
            ]
            outcomes = await asyncio.gather(*runs, return_exceptions=True)
            assert outcomes[0] == 1
            assert isinstance(outcomes[1], Damaged)
            assert outcomes[2:] == [2, 1]
            assert await engine.run(add_one(b"n")) == 3
            await engine.close()
            engine = SqliteEngine.open(store)
            assert await engine.run(add_one(b"n")) == 4
            await engine.close()

        on_loop(main())


def damage_page_of(folder: Path, stored: bytes) -> None:
    """Change the first byte of the header of the page that has these bytes."""
    path = folder / FILE
    content = bytearray(path.read_bytes())
    page = content.index(stored) // PAGE * PAGE
    assert content[page] in LEADING_TYPES
    content[page] ^= 0x40
    path.write_bytes(content)


class TestPages:
    def test_rows_of_other_pages_are_served(self, store: Path) -> None:
        damage_page_of(store, b"value-200-")

        async def main() -> None:
            engine = SqliteEngine.open(store)
            for read in (get, *READS.values()):
                with pytest.raises(Damaged):
                    await read(engine, b"row-200")
            for key in (b"row-000", b"row-399", body_key(2)):
                assert await get(engine, key) == VALUES[key]
            await put(engine, (b"row-399", b"new"))
            assert await get(engine, b"row-399") == b"new"
            await engine.close()

        on_loop(main())

    def test_a_file_that_ends_early_while_it_is_open(self, store: Path) -> None:
        async def main() -> None:
            engine = SqliteEngine.open(store)
            assert await get(engine, b"row-000") == VALUES[b"row-000"]
            path = store / FILE
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size // PAGE // 2 * PAGE)
            outcomes = [await _outcome(get(engine, key)) for key in VALUES]
            assert any(isinstance(each, Damaged) for each in outcomes)
            assert_none_wrong(outcomes)
            await engine.close()

        on_loop(main())

    @pytest.mark.parametrize("seed", range(60))
    def test_no_byte_that_has_changed_makes_a_value_wrong(self, store: Path, seed: int) -> None:
        """Any byte of the file: it may make a row unreadable or hide it, but never show another value."""
        chance = random.Random(seed)
        path = store / FILE
        content = bytearray(path.read_bytes())
        page = chance.randrange(len(content) // PAGE)
        position = page * PAGE + chance.choice([chance.randrange(PAGE), chance.randrange(120)])
        content[position] ^= 1 << chance.randrange(8)
        path.write_bytes(content)

        async def main() -> None:
            try:
                engine = SqliteEngine.open(store)
            except EngineError:
                return
            outcomes = [await _outcome(get(engine, key)) for key in VALUES]
            assert_none_wrong(outcomes)
            for name, read in READS.items():
                if name.startswith(("scan", "page", "long page", "backwards")):
                    rows = await _outcome(read(engine, b"row-000"))
                    assert not isinstance(rows, Exception) or isinstance(rows, Damaged)
                    if isinstance(rows, list) and name != "backwards":
                        assert set(rows) <= set(ROWS)
            await engine.close()

        on_loop(main())


async def _outcome(work: Awaitable[object]) -> object:
    try:
        return await work
    except Exception as error:
        return error


def assert_none_wrong(outcomes: Sequence[object]) -> None:
    for (key, value), outcome in zip(ROWS, outcomes, strict=True):
        assert outcome is None or outcome == value or isinstance(outcome, Damaged), (key, outcome)


class TestOpening:
    @pytest.mark.parametrize("cut", [2, 100])
    def test_a_file_that_is_too_short(self, store: Path, cut: int) -> None:
        path = store / FILE
        path.write_bytes(path.read_bytes()[: path.stat().st_size // cut])

        async def main() -> None:
            with pytest.raises(Damaged):
                SqliteEngine.open(store)

        on_loop(main())

    @pytest.mark.parametrize("size", [100, PAGE, 10 * PAGE])
    def test_a_file_of_something_else(self, tmp_path: Path, size: int) -> None:
        (tmp_path / FILE).write_bytes(random.Random(size).randbytes(size))

        async def main() -> None:
            with pytest.raises(Damaged):
                SqliteEngine.open(tmp_path)

        on_loop(main())


class TestOlderStores:
    def test_rows_without_a_checksum_are_served_and_get_one_when_they_are_written(
        self, tmp_path: Path
    ) -> None:
        older = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (body_key(7), b"x" * 9000)]

        async def main() -> None:
            write_first_format(tmp_path, older)
            engine = SqliteEngine.open(tmp_path)
            assert await everything(engine) == sorted(older)
            assert await engine.read(without_checksum) == {key for key, _ in older}
            await put(engine, (b"b", b"2"), (b"d", b"4"), (body_key(7), b"written again"))
            assert await engine.read(without_checksum) == {b"a", b"c"}
            assert await engine.run(without_checksum) == {b"a", b"c"}
            await engine.close()
            assert stored_format(tmp_path) == database.FORMAT
            flip(tmp_path, b"written again")
            engine = SqliteEngine.open(tmp_path)
            with pytest.raises(Damaged):
                await get(engine, body_key(7))
            assert await get(engine, b"a") == b"1"
            await engine.close()

        on_loop(main())

    def test_its_own_writes_have_a_checksum(self, tmp_path: Path) -> None:
        async def main() -> None:
            write_first_format(tmp_path, [(b"a", b"1"), (body_key(1), b"x")])
            engine = SqliteEngine.open(tmp_path)

            def put_again(tx: Transaction) -> list[bytes]:
                for key in tx.without_checksum(b"", b"\xff"):
                    value = tx.get(key)
                    assert value is not None
                    tx.put(key, value)
                return tx.without_checksum(b"", b"\xff")

            await engine.run(put_again)
            assert await engine.read(without_checksum) == set()
            await engine.close()

        on_loop(main())


def without_checksum(snap: Snapshot) -> set[bytes]:
    return set(snap.without_checksum(b"", b"\xff"))


def write_first_format(folder: Path, rows: Sequence[tuple[bytes, bytes]]) -> None:
    with sqlite3.connect(folder / FILE) as connection:
        connection.executescript(
            """
            PRAGMA journal_mode = wal;
            CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
            CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;
            CREATE TABLE body (id INTEGER PRIMARY KEY, value BLOB);
            INSERT INTO meta VALUES ('format', 1), ('last_instant', 5);
            """
        )
        for key, value in rows:
            if len(key) == 9:
                number = int.from_bytes(key[1:], "big")
                connection.execute("INSERT INTO body VALUES (?, ?)", (number, value))
            else:
                connection.execute("INSERT INTO kv VALUES (?, ?)", (key, value))
    connection.close()


def stored_format(folder: Path) -> int:
    connection = sqlite3.connect(folder / FILE)
    try:
        return int(connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()[0])
    finally:
        connection.close()


def test_the_checksums_stay_what_they_are() -> None:
    """They are stored, so another version must compute the same."""
    assert xxh3_64_intdigest(b"") == 0x2D06800538D394C2
    assert xxh3_64_intdigest(memoryview(bytes(20_000)), 2**63 - 1) == 0xA9B34FCB11338BC6
