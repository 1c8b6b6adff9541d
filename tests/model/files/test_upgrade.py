"""Handles of the first format become those of today, some at a time."""

from functools import partial

import msgspec
import pytest

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.files import upgrade
from kyanite.model.files.opens import handle_lists
from kyanite.model.files.opens.handle_lists import HandlePosition
from kyanite.model.files.upgrade import upgrade_handles
from tests.model.content.world import outcome
from tests.model.counted import CountingEngine
from tests.model.files.builders import OWNER, FileShare, path_of


@pytest.fixture
def files() -> FileShare:
    share = FileShare(CountingEngine())
    share.make_directory("d")
    share.make_directory("d/e")
    return share


def put(
    files: FileShare,
    number: int,
    path: str,
    file_id: int,
    parent_id: int,
    *,
    is_delete_pending: bool = False,
    locks: tuple[tuple[int, int, bool, int], ...] = (),
) -> None:
    """A row as the first format has it."""
    stored = [number, OWNER, 3, 7, path, file_id, parent_id, 7, "192.0.2.1", 5, is_delete_pending, locks]

    def body(tx: Transaction) -> None:
        tx.put(keys.handle(files.id, file_id, number), msgspec.msgpack.encode(stored))
        if is_delete_pending:
            name = path.rpartition("/")[2].upper()
            tx.put(keys.pending_delete(files.id, parent_id, name), b"")

    outcome(files.engine.run(body))


def run_upgrade(files: FileShare) -> int:
    """How many steps it took."""
    cursor: bytes | None = b""
    steps = 0
    while cursor is not None:
        cursor = outcome(files.engine.run(partial(upgrade_handles, cursor=cursor)))
        steps += 1
    return steps


def listed(files: FileShare, path: str, *, recursive: bool = True) -> list[tuple[int, str, int]]:
    start = HandlePosition()
    page = outcome(
        handle_lists.list_handles(files.engine, path_of(path), recursive=recursive, start=start, limit=5000)
    )
    return [(item.handle.id, item.file.path, item.file.directory_id) for item in page.items]


def test_an_upgraded_handle_is_as_if_it_had_been_opened_now(files: FileShare) -> None:
    """The rows are those that opening writes, but for ids and instants."""
    first, second = files.make_file("d/e/f"), files.make_file("g")
    directory, above = files.find_id("d/e"), files.find_id("d")
    put(files, 1, "d/e/f", first, directory, locks=((5, 2, True, 99),))
    put(files, 2, "D/E/F", first, directory, is_delete_pending=True)
    put(files, 3, "", 0, 0)
    put(files, 4, "d/e", directory, above)
    put(files, 5, "g", second, 0)
    run_upgrade(files)
    assert listed(files, "d") == [(1, "d/e/f", directory), (2, "d/e/f", directory), (4, "d/e", above)]
    assert [each[0] for each in listed(files, "")] == [1, 2, 3, 4, 5]
    assert (files.is_pending(first), files.is_pending(second)) == (True, False)
    assert files.handle(first, 1).locks == ((5, 2, True, 1),)
    assert (files.handle(first, 1).access, files.handle(first, 1).share) == (3, 7)
    for file_id, number in ((first, 1), (first, 2), (0, 3), (directory, 4), (second, 5)):
        assert files.close(file_id, number) == (number == 2)
    for prefix in (b"H", b"O", b"Q", b"M"):
        assert files.rows(prefix) == {}


def test_a_handle_that_went_stale_is_closed(files: FileShare) -> None:
    moved, other = files.make_file("d/new"), files.make_file("d/old")
    directory = files.find_id("d")
    put(files, 1, "d/old", moved, directory, is_delete_pending=True)
    put(files, 2, "d/gone/f", moved, 17)
    put(files, 3, "d/old", other, directory)
    run_upgrade(files)
    assert listed(files, "") == [(3, "d/old", directory)]
    assert files.rows(b"M") == {}


@pytest.mark.parametrize("per_step", [1, 2, 7, 50])
def test_a_step_is_bounded_and_begins_where_the_last_one_ended(
    files: FileShare, monkeypatch: pytest.MonkeyPatch, per_step: int
) -> None:
    monkeypatch.setattr(upgrade, "HANDLES_PER_STEP", per_step)
    names = [f"d/e/{number}" for number in range(10)]
    directory = files.find_id("d/e")
    for number, name in enumerate(names):
        file_id = files.make_file(name)
        put(files, 2 * number, name, file_id, directory)
        put(files, 2 * number + 1, name, file_id, directory)
    assert isinstance(files.engine, CountingEngine)
    files.engine.costs.clear()
    steps = run_upgrade(files)
    assert steps == 20 // per_step + 1
    assert max(files.engine.costs) <= 13 * min(per_step, 20) + 2
    assert [each[0] for each in listed(files, "d")] == list(range(20))
    assert len(files.rows(b"H")) == 30
    assert len(files.rows(b"O")) == 30
    assert len(files.rows(b"Q")) == 20


def test_a_store_without_handles_takes_one_step(files: FileShare) -> None:
    assert run_upgrade(files) == 1
