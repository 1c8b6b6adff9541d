"""What is done with handles costs the same however many are open elsewhere."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model.files import file, rename, share_snapshots
from kyanite.model.files.entry import DIRECTORY, FILE
from kyanite.model.files.file import RangeWrite
from kyanite.model.files.listing import DirectoryListing, list_directory
from kyanite.model.files.opens import handle_lists, handles, open_files
from kyanite.model.files.opens.handle_lists import HandlePosition
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.opens.locks import LOCKS_MAX
from kyanite.model.files.opens.open_files import HANDLES_MAX
from kyanite.model.files.rename import Rename
from kyanite.model.maintenance.tasks import TASKS, step_each, step_of
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import EVERYTHING, Rights
from tests.model.content.world import outcome
from tests.model.counted import CountingEngine, unlimited
from tests.model.files.builders import OWNER, SHARE, FileShare, path_of

OTHER_OWNER = b"elsewhere---"


def files_with(elsewhere: int, *, of_one_file: int = 3) -> FileShare:
    """A share in which ``a/b/f`` and ``a/b`` are open, and so many handles of files in another directory."""
    files = FileShare(CountingEngine())
    for path in ("a", "a/b", "other", "empty"):
        files.make_directory(path)
    for number in range(10):
        files.make_file(f"other/{number}", 100)
    files.make_file("a/b/f", 100)
    files.make_file("a/b/g", 100)
    for number in range(10):
        open_many(files, f"other/{number}", elsewhere // 10, OTHER_OWNER)
    open_many(files, "a/b/f", of_one_file, OWNER)
    open_many(files, "a/b", 1, OWNER)
    return files


def open_many(files: FileShare, path: str, count: int, owner: bytes) -> None:
    """As many calls of ``open_handle`` would, without reading all handles for each."""
    request = HandleRequest(owner, Rights.READ, EVERYTHING, 7, "192.0.2.1")

    def first(tx: Transaction) -> None:
        handles.open_handle(tx, files.find(tx, path), request)

    def others(tx: Transaction) -> None:
        file_id = files.find(tx, path).entry.id
        opened = open_files.load_open_file(tx, files.id, file_id)
        assert opened is not None
        handle = open_files.load_handle(tx, files.id, file_id, opened.first_handle_id)
        opened = replace(opened, handle_count=count)
        for _ in range(count - 1):
            handles.save(tx, files.id, opened, replace(handle, id=tx.new_id()))

    if count:
        outcome(files.engine.run(first))
    if count > 1:
        with unlimited():
            outcome(files.engine.run(others))


def listed(files: FileShare, path: str, limit: int, *, recursive: bool) -> Awaitable[object]:
    return handle_lists.list_handles(
        files.engine, path_of(path), recursive=recursive, start=HandlePosition(), limit=limit
    )


def first_handle_of(files: FileShare, path: str) -> int:
    opened = files.open_file(files.find_id(path))
    assert opened is not None
    return opened.first_handle_id


STEPS: dict[str, Callable[[FileShare], Awaitable[object]]] = {
    "list handles of a file": lambda files: listed(files, "a/b/f", 5000, recursive=False),
    "list handles below": lambda files: listed(files, "a", 5000, recursive=True),
    "list some handles of all": lambda files: listed(files, "", 2, recursive=True),
    "list a directory": lambda files: list_directory(files.engine, path_of("a/b"), DirectoryListing()),
    "write": lambda files: file.write_range(files.engine, path_of("a/b/f"), RangeWrite(0, 1, b"1"), None),
    "write to what is not open": lambda files: file.write_range(
        files.engine, path_of("a/b/g"), RangeWrite(0, 1, b"1"), None
    ),
    "rename a file": lambda files: rename.rename(
        files.engine, path_of("a/b/f"), FILE, Rename(("a", "moved"))
    ),
    "rename a directory": lambda files: rename.rename(
        files.engine, path_of("empty"), DIRECTORY, Rename(("a", "moved-too"))
    ),
    "close one below": lambda files: handle_lists.close_handles(
        files.engine, path_of("a"), recursive=True, handle_id=first_handle_of(files, "a/b")
    ),
    "close all below": lambda files: handle_lists.close_handles(
        files.engine, path_of("a"), recursive=True, handle_id=None
    ),
}


def costs(files: FileShare) -> dict[str, int]:
    """Of each step, the rows of its largest transaction."""
    engine = files.engine
    assert isinstance(engine, CountingEngine)
    found = {}
    for name, step in STEPS.items():
        engine.costs.clear()
        outcome(step(files))
        found[name] = max(engine.costs)
    return found


def test_handles_elsewhere_cost_nothing() -> None:
    few = costs(files_with(100))
    assert few == costs(files_with(10_000))
    assert max(few.values()) < 50


def test_a_rename_costs_the_same_however_many_handles_follow_it() -> None:
    def cost(count: int) -> int:
        files = files_with(0, of_one_file=count)
        return costs(files)["rename a file"] - count  # The check of share modes reads all handles.

    assert cost(HANDLES_MAX) == cost(3)


def test_closing_and_listing_are_bounded() -> None:
    """However many handles there are, one transaction closes a few of them, and a page reads what it returns."""
    files = files_with(10_000)
    engine = files.engine
    assert isinstance(engine, CountingEngine)
    engine.costs.clear()
    outcome(listed(files, "", 100, recursive=True))
    assert max(engine.costs) < 4 * 100
    closing = outcome(handle_lists.close_handles(engine, path_of(""), recursive=True, handle_id=None))
    assert (closing.closed, closing.has_more) == (1000, True)
    while outcome(engine.run(lambda tx: handles.close_handles_of_owner(tx, OTHER_OWNER))):
        pass
    assert max(engine.costs) < 2500
    assert len(files.rows(b"Q")) == 4
    unknown = handle_lists.close_handles(engine, path_of(""), recursive=True, handle_id=17)
    assert outcome(unknown).closed == 0


def test_a_file_has_only_so_many_handles() -> None:
    files = files_with(0, of_one_file=HANDLES_MAX)
    with pytest.raises(Refused) as refusal:
        files.open("a/b/f")
    assert refusal.value.reason is Reason.HANDLE_LIMIT_REACHED
    files.open("a/b/g")
    file_id = files.find_id("a/b/f")
    opened = files.open_file(file_id)
    assert opened is not None
    files.close(file_id, opened.first_handle_id)
    assert files.open("a/b/f").id > opened.first_handle_id


def test_a_handle_has_only_so_many_locks() -> None:
    files = files_with(0)
    file_id = files.find_id("a/b/g")
    handle = files.open("a/b/g")
    files.lock(file_id, handle.id, *((number, 1, True) for number in range(LOCKS_MAX)))
    with pytest.raises(Refused) as refusal:
        files.lock(file_id, handle.id, (LOCKS_MAX, 1, True))
    assert refusal.value.reason is Reason.LOCK_LIMIT_REACHED


@pytest.mark.parametrize("steps", [1, 3, 9])
def test_a_process_dies_while_its_share_is_purged(steps: int) -> None:
    files = files_with(2000)
    outcome(share_snapshots.delete(files.engine, SHARE, None))
    maintenance = [step_of(files.engine, task) for task in TASKS]
    for _ in range(steps):
        assert outcome(step_each(maintenance))
    for owner in (OWNER, OTHER_OWNER):
        while outcome(files.engine.run(partial(handles.close_handles_of_owner, owner=owner))):
            pass
    assert files.rows(b"Q") == {}
    while outcome(step_each(maintenance)):
        pass
    for prefix in (b"H", b"O", b"Q", b"M"):
        assert files.rows(prefix) == {}


def test_deleting_a_share_purges_its_handles() -> None:
    files = files_with(2000)
    outcome(share_snapshots.delete(files.engine, SHARE, None))
    maintenance = [step_of(files.engine, task) for task in TASKS]
    assert isinstance(files.engine, CountingEngine)
    files.engine.costs.clear()
    while outcome(step_each(maintenance)):
        pass
    assert max(files.engine.costs) < 1500
    for prefix in (b"H", b"O", b"Q", b"M", b"N", b"D"):
        assert files.rows(prefix) == {}


@pytest.mark.parametrize("per_transaction", [1, 2, 3, 100])
def test_closing_goes_on_in_further_transactions(
    monkeypatch: pytest.MonkeyPatch, per_transaction: int
) -> None:
    """The directory itself was opened last, so it comes behind what is below it."""
    monkeypatch.setattr(handle_lists, "_FILES_PER_TRANSACTION", per_transaction)
    monkeypatch.setattr(handle_lists, "_CLOSED_PER_TRANSACTION", per_transaction)
    files = FileShare(CountingEngine())
    files.make_directory("d")
    opened = []
    for number in range(5):
        files.make_file(f"d/{number}")
        opened += [files.open(f"d/{number}") for _ in range(2)]
    opened.append(files.open("d"))
    for handle in opened:
        for closed in (1, 0):
            closing = handle_lists.close_handles(
                files.engine, path_of("d"), recursive=True, handle_id=handle.id
            )
            assert outcome(closing).closed == closed
        files.open("d/0")
    closing = handle_lists.close_handles(files.engine, path_of(""), recursive=True, handle_id=None)
    assert outcome(closing).closed == len(opened)
    assert files.rows(b"H") == {}
