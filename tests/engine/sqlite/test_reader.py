"""Rows that the reader keeps while nothing is committed: they save statements, and are never out of date."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from kyanite.engine.api import Snapshot
from kyanite.engine.sqlite import reader
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.shared_state import SharedState
from tests.engine.suite import put

Pair = tuple[bytes | None, bytes | None]


class Opened:
    """A store, and another process that writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = SqliteEngine.open(folder)
        self.statements = 0
        self.engine._reader._cursor.connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._count)

    def _count(self, _event: object) -> None:
        self.statements += 1

    def write_elsewhere(self, value: bytes) -> None:
        """Both rows, as another process commits them."""
        shared_state = SharedState(self.folder)
        with closing(apsw.Connection(str(self.folder / "store.sqlite3"))) as connection:
            shared_state.begin_commit()
            with connection:
                for key in (b"a", b"b"):
                    connection.execute("INSERT OR REPLACE INTO kv VALUES (?, ?, NULL)", (key, value))
            shared_state.end_commit()
        shared_state.close()

    async def read_both(self, between: Callable[[], None] = lambda: None) -> Pair:
        def body(snap: Snapshot) -> Pair:
            first = snap.get(b"a")
            between()
            return first, snap.get(b"b")

        return await self.engine.read(body)


async def test_a_row_is_read_once_while_nothing_is_committed(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "store")
    await put(opened.engine, (b"a", b"1"))
    assert await opened.read_both() == (b"1", None)
    opened.engine._reader.end()
    opened.statements = 0
    assert await opened.read_both() == (b"1", None)
    assert opened.statements == 0
    await put(opened.engine, (b"b", b"2"))
    assert await opened.read_both() == (b"1", b"2")
    await opened.engine.close()


async def test_a_commit_of_another_process_is_noticed(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "store")
    await opened.read_both()
    opened.write_elsewhere(b"new")
    assert await opened.read_both() == (b"new", b"new")
    await opened.engine.close()


async def test_a_body_never_sees_two_states(tmp_path: Path) -> None:
    """It has read a row that was kept, then both change, and the other one has to be read."""
    opened = Opened(tmp_path / "store")
    await put(opened.engine, (b"a", b"old"))
    await opened.engine.read(lambda snap: snap.get(b"a"))
    opened.engine._reader.end()
    changes = iter([lambda: opened.write_elsewhere(b"new")])

    def change_once() -> None:
        next(changes, lambda: None)()

    assert await opened.read_both(change_once) == (b"new", b"new")
    await opened.engine.close()


async def test_rows_are_not_kept_while_a_commit_is_in_flight(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "store")
    shared_state = SharedState(opened.folder)
    shared_state.begin_commit()
    assert await opened.read_both() == (None, None)
    with closing(apsw.Connection(str(opened.folder / "store.sqlite3"))) as connection:
        connection.execute("INSERT INTO kv VALUES (x'61', x'31', NULL)")
    opened.engine._reader.end()
    assert await opened.read_both() == (b"1", None)
    shared_state.end_commit()
    shared_state.close()
    await opened.engine.close()


async def test_few_and_short_rows_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened(tmp_path / "store")
    monkeypatch.setattr(reader, "_KEPT_ROWS", 2)
    await put(opened.engine, (b"long", bytes(5000)))
    for key in (b"long", b"a", b"b", b"c"):
        await opened.engine.read(lambda snap, key=key: snap.get(key))  # type: ignore[misc]
    assert list(opened.engine._reader._kept) == [b"a", b"b"]
    await opened.engine.close()
