"""The SQLite engine keeps the promises of the contract, and those that only it makes."""

import asyncio
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import apsw
import pytest
import uvloop

from kyanite.engine.api import (
    Engine,
    EngineBusy,
    EngineError,
    EngineFailed,
    EngineFull,
    OutcomeUnknown,
    Snapshot,
    Steps,
    Transaction,
)
from kyanite.engine.clock import wall_clock
from kyanite.engine.sqlite import database
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.group_commit import Limits
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.values import Instant
from tests.engine.sqlite.faulty_files import SYNC, WRITE, SpoiledFiles, io_error, spoiled_files
from tests.engine.suite import (
    PATIENCE_SECONDS,
    START,
    BodyError,
    Clock,
    EngineSuite,
    InlineReads,
    Opener,
    add_one,
    body_key,
    everything,
    get,
    put,
)


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    numbers = count()

    def open_engine(clock: Callable[[], Instant] | None = None) -> Engine:
        return SqliteEngine.open(tmp_path / f"store-{next(numbers)}", clock=clock or wall_clock)

    return open_engine


class TestSqliteEngine(EngineSuite, InlineReads):
    pass


@pytest.fixture
def files() -> Iterator[SpoiledFiles]:
    with spoiled_files() as files:
        yield files


def on_loop(main: Coroutine[Any, Any, None]) -> None:
    async def patiently() -> None:
        await asyncio.wait_for(main, PATIENCE_SECONDS)

    uvloop.run(patiently())


def raising(tx: Transaction) -> None:
    tx.get(b"k")
    raise BodyError


class TestReopening:
    def test_everything_is_there_again(self, tmp_path: Path) -> None:
        rows = [(b"a", b"1"), (body_key(3), b"x" * 20_000), (b"z" * 8000, b"2")]

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path / "a" / "store")
            await put(engine, *rows)
            await engine.close()
            engine = SqliteEngine.open(tmp_path / "a" / "store")
            assert await everything(engine) == rows
            await engine.close()

        on_loop(main())

    def test_instants_grow_on_although_the_clock_went_back(self, tmp_path: Path) -> None:
        async def main() -> None:
            clock = Clock()
            engine = SqliteEngine.open(tmp_path, clock=clock)
            before = [await engine.run(add_stamp) for _ in range(3)]
            await engine.close()
            clock.at = Instant(START - 864_000_000_000)
            engine = SqliteEngine.open(tmp_path, clock=clock)
            assert await engine.read(lambda state: state.now) >= before[-1]
            assert await engine.run(add_stamp) > before[-1]
            await engine.close()

        on_loop(main())

    def test_a_newer_format_is_refused_in_so_many_words(self, tmp_path: Path) -> None:
        async def main() -> None:
            await SqliteEngine.open(tmp_path).close()
            with sqlite3.connect(tmp_path / "store.sqlite3") as connection:
                connection.execute("UPDATE meta SET value = 99 WHERE name = 'format'")
            connection.close()
            with pytest.raises(EngineError, match=r"format 99 .* newer version"):
                SqliteEngine.open(tmp_path)

        on_loop(main())

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM meta WHERE name = 'format'",
            "UPDATE meta SET value = 'x' WHERE name = 'last_instant'",
            "UPDATE meta SET value = 0 WHERE name = 'format'",
        ],
    )
    def test_a_damaged_store_is_refused(self, tmp_path: Path, damage: str) -> None:
        async def main() -> None:
            await SqliteEngine.open(tmp_path).close()
            with sqlite3.connect(tmp_path / "store.sqlite3") as connection:
                connection.execute(damage)
            connection.close()
            with pytest.raises(EngineError, match="damaged"):
                SqliteEngine.open(tmp_path)

        on_loop(main())

    def test_what_is_not_a_store_is_refused_and_leaves_no_descriptor_open(self, tmp_path: Path) -> None:
        (tmp_path / "store.sqlite3").write_bytes(b"something else entirely " * 1000)

        async def main() -> None:
            before = len(os.listdir("/dev/fd"))
            for _ in range(3):
                with pytest.raises(EngineError, match="not a database"):
                    SqliteEngine.open(tmp_path)
            assert len(os.listdir("/dev/fd")) == before

        on_loop(main())

    def test_two_engines_of_one_process_share_a_store(self, tmp_path: Path) -> None:
        async def main() -> None:
            first = SqliteEngine.open(tmp_path)
            second = SqliteEngine.open(tmp_path)
            notifications = second.subscribe(b"topic")
            await first.run(ringing)
            assert await get(second, b"k") == b"v"
            await asyncio.wait_for(anext(notifications), PATIENCE_SECONDS)
            await first.close()
            await asyncio.gather(*(second.run(add_one(b"n")) for _ in range(10)))
            first = SqliteEngine.open(tmp_path)
            assert await first.run(add_one(b"n")) == 11
            await first.close()
            await second.close()

        on_loop(main())


def ringing(tx: Transaction) -> None:
    tx.put(b"k", b"v")
    tx.notify(b"topic")


def add_stamp(tx: Transaction) -> Instant:
    tx.put(b"stamp", tx.now.to_bytes(8, "big"))
    return tx.now


def commit_elsewhere(folder: Path) -> None:
    """As another process would, while the caller's loop stands still."""

    async def main() -> None:
        engine = SqliteEngine.open(folder)
        await engine.run(add_stamp)
        await engine.close()

    thread = Thread(target=uvloop.run, args=(main(),))
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


class TestSnapshots:
    """What happens when another process commits during a read."""

    def test_the_state_stays_the_same(self, tmp_path: Path) -> None:
        def body(state: Snapshot) -> None:
            stamp = state.get(b"stamp")
            rows = state.scan(b"", b"z")
            assert next(rows) == (b"stamp", stamp)
            commit_elsewhere(tmp_path)
            assert state.get(b"stamp") == stamp
            assert list(state.scan(b"", b"z")) == [(b"stamp", stamp)]

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path)
            before = await engine.run(add_stamp)
            await engine.read(body)
            after = await get(engine, b"stamp")
            assert int.from_bytes(after or b"", "big") > before
            await engine.close()

        on_loop(main())

    def test_the_state_is_never_younger_than_its_time(self, tmp_path: Path) -> None:
        def body(state: Snapshot) -> None:
            now = state.now
            commit_elsewhere(tmp_path)
            assert int.from_bytes(state.get(b"stamp") or b"", "big") < now

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path)
            await engine.run(add_stamp)
            await engine.read(body)
            await engine.close()

        on_loop(main())

    def test_no_snapshot_is_used_on_when_a_younger_state_can_be_seen(
        self, tmp_path: Path, files: SpoiledFiles, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process may stop for long between its commit and the change of the shared state."""
        entered, go_on, end = Event(), Event(), Event()

        def hook(what: str, file: str) -> None:
            if what == SYNC and file.endswith("-wal"):
                entered.set()
                assert go_on.wait(PATIENCE_SECONDS)

        end_commit = SharedState.end_commit

        def end_late(shared_state: SharedState) -> None:
            assert end.wait(PATIENCE_SECONDS)
            end_commit(shared_state)

        async def main() -> None:
            writing = SqliteEngine.open(tmp_path, vfs=files.name)
            reading = SqliteEngine.open(tmp_path)
            await put(writing, (b"k", b"old"))
            files.hook = hook
            monkeypatch.setattr(SharedState, "end_commit", end_late)
            written = asyncio.ensure_future(put(writing, (b"k", b"new")))
            assert await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
            # From here on, nothing is awaited that makes the loop go on to its next iteration.
            assert await get(reading, b"k") == b"old"
            go_on.set()
            wait_until_visible(tmp_path, b"k", b"new")
            assert await get(reading, b"k") == b"new"
            end.set()
            await written
            await reading.close()
            await writing.close()

        try:
            on_loop(main())
        finally:
            go_on.set()
            end.set()

    def test_reads_of_one_iteration_of_the_loop_share_a_snapshot_while_nothing_is_committed(
        self, tmp_path: Path
    ) -> None:
        async def main() -> None:
            engine = SqliteEngine.open(tmp_path)
            await put(engine, (b"k", b"old"))
            begun: list[str] = []

            def trace(_cursor: apsw.Cursor, statement: str, _values: object) -> bool:
                begun.append(statement)
                return True

            engine._reader._cursor.exec_trace = trace
            for _ in range(5):
                assert await get(engine, b"k") == b"old"
            assert begun.count("BEGIN") == 1
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert begun.count("COMMIT") == 1
            await engine.close()

        on_loop(main())


def wait_until_visible(folder: Path, key: bytes, value: bytes) -> None:
    """As another process would see it, while the caller's loop stands still."""
    until = time.monotonic() + PATIENCE_SECONDS
    connection = database.connect(folder, read_only=True)
    while connection.execute("SELECT value FROM kv WHERE key = ?", (key,)).get != value:
        assert time.monotonic() < until
        time.sleep(0.001)
    connection.close()


def delayed_sync() -> tuple[Event, Event, Callable[[str, str], None]]:
    """A hook that stops in a sync of the log: that it has, that it may go on, and the hook."""
    entered, go_on = Event(), Event()

    def hook(what: str, file: str) -> None:
        if what == SYNC and file.endswith("-wal"):
            entered.set()
            assert go_on.wait(PATIENCE_SECONDS)

    return entered, go_on, hook


class TestGroupCommit:
    def test_no_outcome_is_released_before_the_commit_is_on_disk(
        self, tmp_path: Path, files: SpoiledFiles
    ) -> None:
        """Not even a refusal; and reads go on meanwhile, seeing what was there before."""
        entered, go_on, hook = delayed_sync()

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            files.hook = hook
            written = asyncio.ensure_future(put(engine, (b"k", b"v")))
            refused = asyncio.ensure_future(engine.run(raising))
            try:
                assert await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
                await asyncio.sleep(0.02)
                assert not written.done()
                assert not refused.done()
                assert await get(engine, b"k") is None
            finally:
                go_on.set()
            await written
            with pytest.raises(BodyError):
                await refused
            assert await get(engine, b"k") == b"v"
            await engine.close()

        on_loop(main())

    def test_bodies_that_wait_for_a_commit_share_the_next(self, tmp_path: Path, files: SpoiledFiles) -> None:
        syncs = 0

        def hook(what: str, file: str) -> None:
            nonlocal syncs
            syncs += what == SYNC and file.endswith("-wal")

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            files.hook = hook
            calls = [asyncio.ensure_future(engine.run(add_one(b"n"))) for _ in range(100)]
            await calls[0]
            calls += [asyncio.ensure_future(engine.run(add_one(b"n"))) for _ in range(100)]
            await asyncio.gather(*calls)
            assert 2 <= syncs <= 6
            await engine.close()

        on_loop(main())

    def test_only_durable_transactions_wait_for_the_disk(self, tmp_path: Path, files: SpoiledFiles) -> None:
        syncs: list[str] = []

        def hook(what: str, file: str) -> None:
            if what == SYNC:
                syncs.append(file)

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            await put(engine, (b"k", b"v"))
            files.hook = hook
            for _ in range(5):
                await engine.run(add_one(b"n"), durable=False)
            assert syncs == []
            await engine.run(add_one(b"n"))
            assert len(syncs) == 1
            assert await engine.run(add_one(b"n"), durable=False) == 7
            assert len(syncs) == 1
            await engine.close()

        on_loop(main())

    def test_what_writes_nothing_does_not_wait_for_the_disk(
        self, tmp_path: Path, files: SpoiledFiles
    ) -> None:
        def hook(what: str, file: str) -> None:
            raise AssertionError((what, file))

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            await put(engine, (b"k", b"v"))
            files.hook = hook
            instants = [await engine.run(lambda tx: tx.now) for _ in range(3)]
            assert len(set(instants)) == 3
            assert await engine.run(lambda tx: tx.get(b"k")) == b"v"
            with pytest.raises(BodyError):
                await engine.run(raising)
            files.hook = lambda _what, _file: None
            await engine.close()

        on_loop(main())

    def test_batches_are_bounded_and_no_body_is_forgotten(self, tmp_path: Path) -> None:
        async def main() -> None:
            for limits in (Limits(bodies=3), Limits(size_bytes=50), Limits(seconds=0.0)):
                engine = SqliteEngine.open(tmp_path, limits=limits)
                await asyncio.gather(
                    *(engine.run(add_one(b"n%d" % (n % 7)), durable=n % 3 > 0) for n in range(70))
                )
                await engine.close()
            engine = SqliteEngine.open(tmp_path)
            assert [value for _, value in await everything(engine)] == [(30).to_bytes(8, "big")] * 7
            await engine.close()

        on_loop(main())

    def test_a_queue_that_is_full_says_so(self, tmp_path: Path) -> None:
        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, limits=Limits(waiting=10))
            outcomes = await asyncio.gather(
                *(engine.run(add_one(b"n")) for _ in range(15)), return_exceptions=True
            )
            assert [isinstance(outcome, EngineBusy) for outcome in outcomes] == [False] * 10 + [True] * 5
            assert await engine.run(add_one(b"n")) == 11
            await engine.close()

        on_loop(main())

    def test_the_writer_is_known_to_other_processes(self, tmp_path: Path, files: SpoiledFiles) -> None:
        entered, go_on, hook = delayed_sync()

        async def main() -> None:
            shared_state = SharedState(tmp_path)
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            assert writer_pid(shared_state) is None
            files.hook = hook
            written = asyncio.ensure_future(put(engine, (b"k", b"v")))
            try:
                assert await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
                assert writer_pid(shared_state) == os.getpid()
            finally:
                go_on.set()
            await written
            assert writer_pid(shared_state) is None
            await engine.close()
            shared_state.close()

        on_loop(main())


def writer_pid(shared_state: SharedState) -> int | None:
    return shared_state.writer.pid if shared_state.writer else None


class TestTrouble:
    def test_a_full_disk_is_said_and_survived(self, tmp_path: Path, files: SpoiledFiles) -> None:
        def full(what: str, _file: str) -> None:
            if what == WRITE:
                raise apsw.FullError("planned by the test")

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            await put(engine, (b"k", b"before"))
            files.hook = full
            outcomes = await asyncio.gather(
                put(engine, (b"k", b"lost")),
                put(engine, *((b"%d" % n, b"x" * 5000) for n in range(100))),
                engine.run(raising),
                return_exceptions=True,
            )
            assert [type(outcome) for outcome in outcomes] == [EngineFull] * 3
            assert await everything(engine) == [(b"k", b"before")]
            files.hook = lambda _what, _file: None
            await put(engine, (b"k", b"after"))
            assert await everything(engine) == [(b"k", b"after")]
            await engine.close()

        on_loop(main())

    def test_a_full_disk_in_the_middle_of_a_batch(self, tmp_path: Path, files: SpoiledFiles) -> None:
        """A scan brings earlier writes into the tables before the end, and more than should be in memory."""

        def full(what: str, _file: str) -> None:
            if what == WRITE:
                raise apsw.FullError("planned by the test")

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name, limits=Limits(size_bytes=10**9, seconds=60))
            files.hook = full
            outcomes = await asyncio.gather(
                put(engine, *((b"%d" % n, b"x" * 1_000_000) for n in range(40))),
                engine.run(scan_and_do_not_mind),
                put(engine, (b"k", b"lost")),
                return_exceptions=True,
            )
            assert [type(outcome) for outcome in outcomes] == [EngineFull] * 3
            files.hook = lambda _what, _file: None
            assert await everything(engine) == []
            await put(engine, (b"k", b"after"))
            await engine.close()

        on_loop(main())

    @pytest.mark.parametrize("code", [apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_WRITE])
    def test_after_a_failed_commit_the_store_is_read_only_until_it_is_opened_again(
        self, tmp_path: Path, files: SpoiledFiles, code: int
    ) -> None:
        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            other = SqliteEngine.open(tmp_path, vfs=files.name)
            await put(engine, (b"k", b"before"))
            files.hook = failing(SYNC if code == apsw.SQLITE_IOERR_FSYNC else WRITE, "-wal", code)
            outcomes = await asyncio.gather(
                put(engine, (b"k", b"perhaps")), engine.run(raising), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 2
            files.hook = lambda _what, _file: None
            for one in (engine, other):
                assert await get(one, b"k") == b"before"
                with pytest.raises(EngineFailed):
                    await put(one, (b"k", b"refused"))
            await engine.close()
            late = SqliteEngine.open(tmp_path, vfs=files.name)
            with pytest.raises(EngineFailed):
                await put(late, (b"k", b"refused"))
            await late.close()
            await other.close()
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            assert await get(engine, b"k") in (b"before", b"perhaps")
            await put(engine, (b"k", b"after"))
            assert await get(engine, b"k") == b"after"
            await engine.close()

        on_loop(main())

    def test_a_checkpoint_that_cannot_be_synced_stops_all_writes(
        self, tmp_path: Path, files: SpoiledFiles, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, vfs=files.name, log_bytes=1)
            files.hook = failing(SYNC, ".sqlite3", apsw.SQLITE_IOERR_FSYNC)
            with caplog.at_level(logging.CRITICAL, "kyanite.checkpoint"), pytest.raises(EngineFailed):
                await write_for_long(engine)
            files.hook = lambda _what, _file: None
            rows = await everything(engine)
            await engine.close()
            engine = SqliteEngine.open(tmp_path, vfs=files.name)
            assert await everything(engine) == rows
            await put(engine, (b"k", b"v"))
            await engine.close()

        on_loop(main())

    def test_the_log_begins_again_while_a_process_writes(self, tmp_path: Path) -> None:
        log = tmp_path / "store.sqlite3-wal"

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, log_bytes=100_000)
            for attempt in range(1, 400):
                await put(engine, *((b"%d" % n, os.urandom(10_000)) for n in range(50)))
                if log.stat().st_size < attempt * 250_000:
                    break
            else:
                pytest.fail(f"{log.stat().st_size} bytes in the log")
            await engine.close()

        on_loop(main())

    def test_the_log_file_gets_its_length_before_commits_need_it(self, tmp_path: Path) -> None:
        log = tmp_path / "store.sqlite3-wal"

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, log_bytes=8_000_000)
            number = 0
            for _ in range(1000):
                if log.stat().st_size >= 10_000_000:
                    break
                await put(engine, (b"%d" % number, b"v"))
                number += 1
                await asyncio.sleep(0.01)
            length = log.stat().st_size
            assert 10_000_000 <= length < 10_100_000
            for _ in range(200):  # Each takes a page of the log at least.
                await put(engine, (b"%d" % number, b"v"))
                number += 1
            assert log.stat().st_size == length
            assert len(await everything(engine)) == number
            await engine.close()
            engine = SqliteEngine.open(tmp_path)
            assert len(await everything(engine)) == number
            await engine.close()

        on_loop(main())

    def test_a_log_with_zeros_at_its_end_is_recovered_whole(self, tmp_path: Path) -> None:
        """What a killed process leaves: the frames of its commits, then zeros."""

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path / "store", log_bytes=8_000_000)
            log = tmp_path / "store" / "store.sqlite3-wal"
            number = 0
            while log.stat().st_size < 10_000_000:
                assert number < 2000
                await put(engine, (b"%d" % number, b"v"))
                number += 1
                await asyncio.sleep(0.005)
            shutil.copytree(
                tmp_path / "store", tmp_path / "copy", ignore=shutil.ignore_patterns("*-shm", "bells")
            )
            await engine.close()
            engine = SqliteEngine.open(tmp_path / "copy")
            assert len(await everything(engine)) == number
            await put(engine, (b"more", b"v"))
            await engine.close()

        on_loop(main())

    def test_the_log_begins_again_although_there_is_always_a_long_read(self, tmp_path: Path) -> None:
        log = tmp_path / "store.sqlite3-wal"

        async def main() -> None:
            engine = SqliteEngine.open(tmp_path, log_bytes=100_000)
            reads = [asyncio.create_task(read_again_and_again(engine)) for _ in range(6)]
            for attempt in range(1, 400):
                await put(engine, *((b"%d" % n, os.urandom(10_000)) for n in range(50)))
                if log.stat().st_size < attempt * 250_000:
                    break
            else:
                pytest.fail(f"{log.stat().st_size} bytes in the log")
            for read in reads:
                read.cancel()
            await asyncio.wait(reads)
            await engine.close()

        on_loop(main())


async def read_again_and_again(engine: SqliteEngine) -> None:
    def body(snap: Snapshot) -> Steps[None]:
        for _ in range(50):
            snap.get(b"1")
            yield

    while True:
        await engine.read_in_steps(body)


def scan_and_do_not_mind(tx: Transaction) -> int:
    with suppress(Exception):
        return len(list(tx.scan(b"", b"z")))
    return 0


def failing(what: str, file_end: str, code: int) -> Callable[[str, str], None]:
    def hook(done: str, file: str) -> None:
        if done == what and file.endswith(file_end):
            raise io_error(code)

    return hook


async def write_for_long(engine: Engine) -> None:
    for number in range(2000):
        await put(engine, (b"%d" % number, b"x" * 5000))
        await asyncio.sleep(0.005)


async def test_a_short_read_in_steps_does_not_wait_for_long_ones(tmp_path: Path) -> None:
    engine = SqliteEngine.open(tmp_path)
    await engine.run(lambda tx: tx.put(b"1", b"value"))
    order: list[str] = []

    async def read(name: str, steps: int) -> None:
        def body(snap: Snapshot) -> Steps[bytes | None]:
            for _ in range(steps):
                snap.get(b"1")
                yield
            return snap.get(b"1")

        assert await engine.read_in_steps(body) == b"value"
        order.append(name)

    await asyncio.gather(*(read("long", 50) for _ in range(12)), read("short", 0))
    assert order[0] == "short"
    assert len(order) == 13
    await engine.close()
