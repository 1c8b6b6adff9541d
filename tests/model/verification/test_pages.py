"""All rows are read, but those that cannot be."""

from collections.abc import Collection

import pytest

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.verification.pages import Rows, Unreadable, pages, take
from tests.model.content.world import outcome
from tests.model.verification.damaged_view import DamagedView

NUMBERS = [b"b" + number.to_bytes(8, "big") for number in (0, 1, 255, 256, 512, 65_536, 1 << 40)]
NAMES = [b"n" + b"1" * 8 + name for name in (b"a", b"b", b"ba", b"c" * 40, b"c" * 41, b"d\0e", b"x")]
KEYS = sorted([b"", b"\0", b"?", *NUMBERS, *NAMES, b"z" * 100, b"\xff" * 9])


def engine_with(keys: Collection[bytes]) -> MemoryEngine:
    engine = MemoryEngine()

    def fill(tx: Transaction) -> None:
        for key in keys:
            tx.put(key, b"value of " + key)

    outcome(engine.run(fill))
    return engine


def read_all(engine: DamagedView, rows_max: int) -> tuple[list[bytes], list[Unreadable]]:
    """The keys that were read, and what could not be."""

    def read(snap: Snapshot, start: bytes, end: bytes) -> Rows:
        return take(snap, start, end, rows_max=rows_max)

    async def all_pages() -> list[Rows | Unreadable]:
        return [page async for page in pages(engine, read)]

    found = outcome(all_pages())
    rows = [row for page in found if isinstance(page, Rows) for row in page.rows]
    assert all(row.value == b"value of " + row.key for row in rows)
    return [row.key for row in rows], [page for page in found if isinstance(page, Unreadable)]


@pytest.mark.parametrize("rows_max", [1, 2, 100])
def test_all_rows_are_read(rows_max: int) -> None:
    assert read_all(DamagedView(engine_with(KEYS), []), rows_max) == (KEYS, [])


@pytest.mark.parametrize("rows_max", [1, 3, 100])
@pytest.mark.parametrize("knows_keys", [True, False])
@pytest.mark.parametrize("damaged", KEYS)
def test_a_row_that_cannot_be_read_is_skipped(damaged: bytes, knows_keys: bool, rows_max: int) -> None:
    engine = DamagedView(engine_with(KEYS), [damaged], knows_keys=knows_keys)
    found, unreadable = read_all(engine, rows_max)
    if len(damaged) > 64 and not knows_keys:
        assert len(unreadable) == 1  # The search does not tell keys apart that begin with the same 64 bytes.
    else:
        assert [each.key for each in unreadable] == [damaged]
    assert found == [key for key in KEYS if key != damaged]


@pytest.mark.parametrize("knows_keys", [True, False])
def test_neighbours_that_cannot_be_read(knows_keys: bool) -> None:
    """Without their keys, several rows are one range."""
    damaged = NAMES[2:5]
    found, unreadable = read_all(DamagedView(engine_with(KEYS), damaged, knows_keys=knows_keys), 100)
    assert found == [key for key in KEYS if key not in damaged]
    if knows_keys:
        assert [each.key for each in unreadable] == damaged
    else:
        assert [each.key for each in unreadable] == [None]
        assert unreadable[0].start <= damaged[0]
        assert damaged[-1] < unreadable[0].end <= NAMES[5]


@pytest.mark.parametrize("knows_keys", [True, False])
def test_several_ranges_that_cannot_be_read(knows_keys: bool) -> None:
    damaged = [NUMBERS[0], NUMBERS[4], NAMES[0], NAMES[-1]]
    found, unreadable = read_all(DamagedView(engine_with(KEYS), damaged, knows_keys=knows_keys), 3)
    assert [each.key for each in unreadable] == damaged
    assert found == [key for key in KEYS if key not in damaged]


def test_several_ranges_of_neighbours_whose_keys_are_not_known() -> None:
    """What is between the ranges is read."""
    stored = [b"n%03d" % number for number in range(100)]
    damaged = [*stored[10:20], *stored[50:60], *stored[95:]]
    found, unreadable = read_all(DamagedView(engine_with(stored), damaged, knows_keys=False), 7)
    assert found == [key for key in stored if key not in damaged]
    assert [each.key for each in unreadable] == [None, None, None]


def test_nothing_can_be_read() -> None:
    engine = DamagedView(engine_with(KEYS), KEYS, knows_keys=False)
    found, unreadable = read_all(engine, 100)
    assert found == []
    assert all(any(each.start <= key < each.end for each in unreadable) for key in KEYS)
    assert engine.reads < 10_000


def test_a_page_ends_after_so_many_bytes() -> None:
    page = outcome(engine_with(KEYS).read(lambda snap: take(snap, b"", b"\xff", bytes_max=10)))
    assert len(page.rows) == 2
    assert page.next_key == b"\0\0"
