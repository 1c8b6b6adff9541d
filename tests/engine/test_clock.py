"""The steady clock: what it does when the wall clock steps back, jumps forward, or the machine starts again."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from kyanite.engine.api import Transaction
from kyanite.engine.clock import OwnBase, SteadyClock, boot_number, ticks_since_boot, wall_clock
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.values import TICKS_PER_SECOND, Instant

T = TypeVar("T")
START = 638_000_000_000_000_000
SECOND = TICKS_PER_SECOND
HOUR = 3600 * SECOND


class Machine:
    """A wall clock and a clock since the start of the machine. Time passes on both."""

    def __init__(self) -> None:
        self.wall = START
        self.ticks = 5 * SECOND
        self.boot = 1

    def wait(self, ticks: int) -> None:
        self.wall += ticks
        self.ticks += ticks

    def restart(self) -> None:
        self.ticks, self.boot = 3 * SECOND, self.boot + 1

    def read_wall(self) -> Instant:
        return Instant(self.wall)

    def read_ticks(self) -> int:
        return self.ticks

    def open(self, folder: Path) -> SqliteEngine:
        return SqliteEngine.open(folder, clock=self.read_wall, ticks=self.read_ticks, boot=self.boot)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], 0),
        ([("wait", 7)], 7),
        ([("step", -HOUR)], 0),
        ([("step", -HOUR), ("wait", 30 * SECOND)], 30 * SECOND),
        ([("step", HOUR)], HOUR),
        ([("step", HOUR), ("wait", 9), ("step", -HOUR), ("wait", 8)], HOUR + 17),
        ([("step", -HOUR), ("wait", 2 * HOUR), ("step", HOUR)], 2 * HOUR),
        ([("step", -HOUR), ("step", -HOUR), ("wait", 5), ("step", 3 * HOUR)], HOUR + 5),
    ],
)
def test_it_goes_on_and_follows_forward_only(steps: list[tuple[str, int]], expected: int) -> None:
    machine = Machine()
    clock = SteadyClock(machine.read_wall, machine.read_ticks, OwnBase())
    clock.begin(Instant(0))
    assert clock() == START
    for kind, ticks in steps:
        if kind == "wait":
            machine.wait(ticks)
        else:
            machine.wall += ticks
        clock()
    assert clock() == START + expected


def test_real_clocks_agree() -> None:
    clock = SteadyClock(wall_clock, ticks_since_boot, OwnBase())
    clock.begin(Instant(0))
    assert boot_number() == boot_number() < 2**63
    for _ in range(1000):
        before, now, after = wall_clock(), clock(), wall_clock()
        assert before <= now <= after + SECOND


def put(tx: Transaction) -> Instant:
    tx.put(b"key", b"value")
    return tx.now


def committed_at(machine: Machine, folder: Path, *waits: int) -> list[int]:
    """Open the store, and commit after each of these waits: when, since the beginning."""

    async def main() -> list[int]:
        engine, other = machine.open(folder), machine.open(folder)
        found = []
        for number, wait in enumerate(waits):
            machine.wait(wait)
            found.append(await (engine, other)[number % 2].run(put) - START)
            assert await other.read(lambda snap: snap.now) - START >= found[-1]
        await engine.close()
        await other.close()
        return found

    return asyncio.run(main())


def about(found: list[int]) -> list[int]:
    """Without the ticks by which transactions at one instant differ."""
    return [ticks // SECOND for ticks in found]


def test_a_store_goes_on_when_the_clock_steps_back(tmp_path: Path) -> None:
    """Leases and hidden messages expire by the time that passes, in all processes."""
    machine = Machine()
    assert about(committed_at(machine, tmp_path, 0, 10 * SECOND)) == [0, 10]
    machine.wall -= HOUR
    assert about(committed_at(machine, tmp_path, 0, 30 * SECOND, 60 * SECOND)) == [10, 40, 100]


def test_a_store_counts_the_time_in_which_it_is_closed(tmp_path: Path) -> None:
    machine = Machine()
    committed_at(machine, tmp_path, 0)
    machine.wall -= HOUR
    machine.wait(50 * SECOND)
    assert about(committed_at(machine, tmp_path, 0)) == [50]


@pytest.mark.parametrize(("step", "expected"), [(-HOUR, [10, 12]), (HOUR, [3610, 3612])])
def test_instants_ascend_when_the_machine_starts_with_another_time(
    tmp_path: Path, step: int, expected: list[int]
) -> None:
    """Then they go on from the last that was stored; how long the machine was off is not known."""
    machine = Machine()
    committed_at(machine, tmp_path, 10 * SECOND)
    machine.wall += step
    machine.restart()
    assert about(committed_at(machine, tmp_path, 0, 2 * SECOND)) == expected


def stored_instant(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder}/store.sqlite3?mode=ro", uri=True)) as connection:
        ((value,),) = connection.execute("SELECT value FROM meta WHERE name = 'last_instant'")
    return int(value) - START


def crashed(machine: Machine, folder: Path, copy: Path) -> int:
    """Commit twice, and copy the files while the store is open; the last instant."""

    async def main() -> int:
        engine = machine.open(folder)
        await engine.run(put)
        first = stored_instant(folder)
        machine.wait(SECOND)
        last = await engine.run(put) - START
        assert stored_instant(folder) == first > last
        shutil.copytree(folder, copy, ignore=lambda folder, names: [n for n in names if n.endswith(".pipe")])
        await engine.close()
        return last

    return asyncio.run(main())


def test_instants_are_stored_ahead_and_given_back(tmp_path: Path) -> None:
    """Few commits store one, and nobody notices when the store was closed or its processes have died."""
    machine, folder, copy = Machine(), tmp_path / "store", tmp_path / "copy"
    last = crashed(machine, folder, copy)
    assert stored_instant(folder) == last
    machine.wall -= HOUR
    assert committed_at(machine, copy, 0) == [last + 1]


def test_after_a_power_cut_all_instants_that_were_stored_count_as_given(tmp_path: Path) -> None:
    machine, folder, copy = Machine(), tmp_path / "store", tmp_path / "copy"
    crashed(machine, folder, copy)
    stored = stored_instant(copy)
    machine.wall -= HOUR
    machine.restart()
    assert committed_at(machine, copy, 0) == [stored + 1]
