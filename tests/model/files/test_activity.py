"""Leases of files are found by walking the trees in pages of bounded size, and each of them once."""

import pytest
from msgspec.structs import replace

from kyanite.engine.api import STEP_ROWS, Transaction
from kyanite.model import keys
from kyanite.model.files import activity
from kyanite.model.files.activity import FilePosition
from kyanite.model.files.entry import FILE, decode_entry
from kyanite.model.records import encode
from kyanite.rules.lease_records import Lease
from kyanite.rules.leases import INFINITE, acquire
from kyanite.values import LeaseId
from tests.model.content.world import outcome
from tests.model.counted import CountingEngine, unlimited
from tests.model.files.builders import SHARE, FileShare

FILES = ["B", "a/1", "a/Deep/x", "a/Deep/y", "a/z", "c", "d/only"]


@pytest.fixture
def share() -> FileShare:
    made = FileShare(CountingEngine())
    for directory in ("a", "a/Deep", "d", "empty"):
        made.make_directory(directory)
    for path in FILES:
        made.make_file(path)
    return made


def lease_all_files(share: FileShare) -> None:
    def body(tx: Transaction) -> None:
        base = keys.entries_of_share(share.id)
        for key, value in list(tx.scan(base, keys.after(base))):
            entry = decode_entry(value)
            if entry.kind == FILE:
                made = acquire(Lease(), LeaseId(entry.name), INFINITE, tx.now)
                tx.put(key, encode(replace(entry, lease=made)))

    with unlimited():
        outcome(share.engine.run(body))


def find_all(share: FileShare, rows_max: int) -> list[str]:
    found: list[str] = []
    start: FilePosition | None = FilePosition()
    while start is not None:
        page = outcome(activity.find_leases(share.engine, SHARE.account, start, rows_max))
        found += [each.path for each in page.leased]
        assert page.next_start != start
        start = page.next_start
    return found


@pytest.mark.parametrize("rows_max", [2, 3, 5, 1000])
def test_each_lease_is_found_once(share: FileShare, rows_max: int) -> None:
    assert find_all(share, rows_max) == []
    lease_all_files(share)
    assert sorted(find_all(share, rows_max)) == sorted(FILES)


def test_a_page_begins_behind_an_entry_that_is_gone(share: FileShare) -> None:
    lease_all_files(share)
    page = outcome(
        activity.find_leases(share.engine, SHARE.account, FilePosition(SHARE.name, "A/GONE/DEEPER"))
    )
    assert sorted(each.path for each in page.leased) == ["B", "a/z", "c", "d/only"]


def test_a_step_reads_few_rows_of_a_large_directory() -> None:
    engine = CountingEngine()
    share = FileShare(engine)
    for number in range(1_500):
        share.make_file(f"{number:05}")
    before = len(engine.costs)
    outcome(activity.find_leases(engine, SHARE.account, FilePosition(), 1_200))
    assert max(engine.costs[before:]) <= STEP_ROWS + 10
    assert sum(engine.costs[before:]) <= 1_250
