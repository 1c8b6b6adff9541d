"""The reader table: a mark has passed when all that pinned before it have released, and not before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kyanite.extents.local import reader_table
from kyanite.extents.local.reader_table import ReaderTable

MS = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 1000 * MS

    def monotonic_ns(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(reader_table, "time", clock)
    return clock


class Member:
    """A process among those that the test says are alive."""

    def __init__(self, owner: bytes, alive: set[bytes]) -> None:
        self.id = owner
        self.is_alive = alive.__contains__

    def dead_owners(self) -> list[bytes]:
        return []

    def forget(self, owner: bytes) -> None:
        """No owner is listed."""

    def close(self) -> None:
        """Nothing to close."""


class Tables:
    """Tables of several owners over one file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "readers"
        self.alive: set[bytes] = set()
        self.opened: list[ReaderTable] = []

    def open(self, name: str) -> ReaderTable:
        member = Member(name.encode().ljust(12), self.alive)
        self.alive.add(member.id)
        table = ReaderTable(self._path, member)
        self.opened.append(table)
        return table


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    tables = Tables(tmp_path)
    yield tables
    for table in tables.opened:
        table.close()


def test_a_mark_passes_without_readers(clock: Clock, tables: Tables) -> None:
    table = tables.open("a")
    mark = table.mark()
    assert not table.passed(mark), "a pin may take a moment to become visible"
    clock.now += 11 * MS
    assert table.passed(mark)


def test_readers_of_all_processes_count(clock: Clock, tables: Tables) -> None:
    here, there = tables.open("a"), tables.open("b")
    own, foreign = here.pin(), there.pin()
    clock.now += 50 * MS
    mark = here.mark()
    clock.now += 50 * MS
    assert not here.passed(mark)
    own.release()
    assert not here.passed(mark)
    foreign.release()
    assert here.passed(mark)


def test_readers_that_begin_later_do_not_count(clock: Clock, tables: Tables) -> None:
    here, there = tables.open("a"), tables.open("b")
    first = there.pin()
    mark = here.mark()
    clock.now += 150 * MS
    second = there.pin()
    assert not here.passed(mark)
    first.release()
    assert here.passed(mark)
    second.release()


def test_readers_that_begin_together_count_as_one(clock: Clock, tables: Tables) -> None:
    table = tables.open("a")
    first = table.pin()
    clock.now += 50 * MS
    second = table.pin()
    mark = table.mark()
    clock.now += 50 * MS
    first.release()
    assert not table.passed(mark)
    second.release()
    assert table.passed(mark)


def test_marks_pass_under_constant_load(clock: Clock, tables: Tables) -> None:
    """There is always a reader, but none for longer than a second."""
    table = tables.open("a")
    pins = [table.pin()]
    mark, passed = table.mark(), 0
    for _ in range(1000):
        clock.now += 20 * MS
        pins.append(table.pin())
        if len(pins) > 50:
            pins.pop(0).release()
        if table.passed(mark):
            mark = table.mark()
            passed += 1
    assert passed >= 10
    for pin in pins:
        pin.release()


def test_a_long_reader_among_many_short_ones(clock: Clock, tables: Tables) -> None:
    table = tables.open("a")
    long = table.pin()
    mark = table.mark()
    for _ in range(200):
        clock.now += 60 * MS
        short = table.pin()
        clock.now += 60 * MS
        next_one = table.pin()
        short.release()
        assert not table.passed(mark)
        next_one.release()
    long.release()
    assert table.passed(mark)


def test_the_dead_do_not_count_and_their_slots_are_free(clock: Clock, tables: Tables) -> None:
    here, dying = tables.open("a"), tables.open("b")
    dying.pin()
    mark = here.mark()
    clock.now += 50 * MS
    assert not here.passed(mark)
    tables.alive.clear()
    assert here.passed(mark)


def test_a_slot_is_used_again_after_its_owner_has_died(clock: Clock, tables: Tables, tmp_path: Path) -> None:
    first = tables.open("a")
    first.pin()
    tables.alive.clear()
    second = tables.open("b")
    assert second.passed(second.mark()) is False
    clock.now += 11 * MS
    assert second.passed(second.mark() - 11 * MS)  # type: ignore[arg-type]
    assert (tmp_path / "readers").read_bytes()[32:] == bytes(1023 * 32)
