"""A power cut loses nothing that was acknowledged, and leaves nothing half done."""

import asyncio
import secrets
import shutil
from pathlib import Path
from random import Random

import apsw
import pytest
import uvloop

from kyanite.engine.api import Engine, EngineError, Transaction
from kyanite.engine.sqlite.engine import SqliteEngine
from tests.engine.suite import counter_value, everything
from tests.faults.power_cut import Named, RecordedSQLite, Synced, Tape, put_on_disk, recorded_sqlite

SESSIONS = 2
ROUNDS = 2
CUTS = 40


def content(number: int, part: int) -> bytes:
    return b"%d.%d " % (number, part) * (number % 7 * 60 + part * 30 + 1)


def row(number: int, part: int) -> bytes:
    return b"row/%d/%d" % (number % 50, part)


def transaction(tx: Transaction) -> int:
    """Takes the next number and leaves rows that tell it: new ones, overwritten ones, an inline body."""
    number = counter_value(tx.get(b"count")) + 1
    tx.put(b"count", number.to_bytes(8, "big"))
    for part in range(3):
        tx.put(row(number, part), content(number, part))
    tx.put(b"b" + number.to_bytes(8, "big"), content(number, 9))
    tx.delete(b"b" + max(0, number - 70).to_bytes(8, "big"))
    tx.put(b"stamp", tx.now.to_bytes(8, "big"))
    return number


def check_whole(rows: dict[bytes, bytes], acknowledged: list[int]) -> None:
    """The store stands exactly where the transaction with the highest number left it."""
    rows = dict(rows)
    last = counter_value(rows.pop(b"count", None))
    assert last >= max(acknowledged, default=0), (
        f"{acknowledged[-1]} was acknowledged, {last} is the last one here"
    )
    rows.pop(b"stamp", None)
    expected = {}
    for number in range(max(1, last - 200), last + 1):
        for part in range(3):
            expected[row(number, part)] = content(number, part)
    for number in range(max(1, last - 69), last + 1):
        expected[b"b" + number.to_bytes(8, "big")] = content(number, 9)
    assert rows == expected


async def record(folder: Path, files: RecordedSQLite) -> None:
    """Several clients, checkpoints in between, a restart, and after it some transactions that are not durable."""
    for session in range(SESSIONS):
        engine = SqliteEngine.open(folder, vfs=files.name, log_bytes=200_000)
        files.tape.note("open")
        for _ in range(ROUNDS):
            before = len(files.tape.events)
            await asyncio.gather(
                *(client(engine, files.tape, label, mixed=session > 0) for label in range(8))
            )
            await wait_for_a_checkpoint(files.tape, before)
        await asyncio.gather(*(client(engine, files.tape, label, mixed=session > 0) for label in range(8)))
        await engine.close()


async def client(engine: Engine, tape: Tape, label: int, *, mixed: bool) -> None:
    for step in range(4):
        durable = not mixed or (label + step) % 5 > 0
        number = await engine.run(transaction, durable=durable)
        if durable:
            tape.note(number)
        await asyncio.sleep(0.001 * (label % 3))


async def wait_for_a_checkpoint(tape: Tape, since: int) -> None:
    database = next(e.file for e in tape.events if isinstance(e, Named) and e.path.name == "store.sqlite3")
    for _ in range(1000):
        if any(isinstance(event, Synced) and event.file == database for event in tape.events[since:]):
            return
        await asyncio.sleep(0.01)
    pytest.fail("no checkpoint came")


async def reopen(folder: Path) -> dict[bytes, bytes]:
    engine = SqliteEngine.open(folder)
    rows = dict(await everything(engine))
    stamp = int.from_bytes(rows.get(b"stamp", b""), "big")
    assert await engine.run(transaction) == counter_value(rows.get(b"count")) + 1
    assert await engine.run(lambda tx: tx.now) > stamp
    await engine.close()
    return rows


def check_database(folder: Path) -> None:
    connection = apsw.Connection(str(folder / "store.sqlite3"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def survive(tape: Tape, cut: int, random: Random, recorded: Path, copy: Path, *, lying: bool = False) -> None:
    """Cut the power there, start again, and check what is left."""
    acknowledged = [what for what in tape.noted(cut) if isinstance(what, int)]
    put_on_disk(tape.image(cut, random, lying=lying), of=recorded, into=copy)
    if not copy.exists():
        assert not tape.noted(cut)
        return
    check_whole(uvloop.run(reopen(copy)), acknowledged)
    check_database(copy)
    shutil.rmtree(copy)


@pytest.mark.parametrize("seed", [1, 2, secrets.randbelow(10**9)], ids=["first", "second", "random"])
def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    tape = Tape()
    with recorded_sqlite(tape) as files:
        uvloop.run(record(tmp_path / "store", files))
    for cut in tape.cuts(random, CUTS):
        print(f"cut after {cut} of {len(tape.events)} events")
        survive(tape, cut, random, tmp_path / "store", tmp_path / "copy")


def test_a_disk_that_lies_about_syncs_is_found_out(tmp_path: Path) -> None:
    tape = Tape()
    with recorded_sqlite(tape) as files:
        uvloop.run(record(tmp_path / "store", files))
    random = Random(3)
    lost = 0
    for cut in tape.cuts(random, 20):
        try:
            survive(tape, cut, random, tmp_path / "store", tmp_path / "copy", lying=True)
        except (AssertionError, EngineError, apsw.Error):
            lost += 1
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    assert lost
