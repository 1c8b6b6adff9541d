"""What writers report of a share that clients watch, whichever door they use, and what watching costs the others."""

from collections.abc import Callable

import pytest

from kyanite.engine.api import Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.files import deleted_shares, directory, file, rename, share, share_snapshots, tree
from kyanite.model.files.actors import SmbActor
from kyanite.model.files.entry import DIRECTORY, FILE
from kyanite.model.files.file import FileChange, RangeWrite
from kyanite.model.files.opens import handle_lists, handles, open_files, watches
from kyanite.model.files.opens.records import Handle
from kyanite.model.files.opens.watches import POSITIONS, Change
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename
from kyanite.model.files.share_snapshots import Snapshots
from kyanite.model.maintenance.deleted_shares import purge
from kyanite.model.records import HttpHeaders
from kyanite.model.verification.rows import check_page
from kyanite.rules.change_filters import Action, Filter
from kyanite.rules.share_modes import EVERYTHING
from kyanite.values import Instant
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, FileShare, path_of

ADDED, REMOVED, MODIFIED = Action.ADDED, Action.REMOVED, Action.MODIFIED
OLD_NAME, NEW_NAME = Action.RENAMED_OLD_NAME, Action.RENAMED_NEW_NAME
FILE_NAME, DIRECTORY_NAME = Filter.FILE_NAME, Filter.DIRECTORY_NAME

Reported = list[tuple[int, int, str]]


class WatchedShare(FileShare):
    """A share whose root is watched, with a directory ``d``, a file ``f`` and a file ``d/g``."""

    def __init__(self) -> None:
        super().__init__(MemoryEngine())
        self.directory_id = self.make_directory("d")
        self.make_file("f", 10)
        self.make_file("d/g", 10)
        self.handle_of_root = self.open("")
        self.number = self.watch(0, self.handle_of_root)

    def watch(self, file_id: int, handle: Handle) -> int:
        def body(tx: Transaction) -> int:
            return handles.watch(tx, SHARE, tree.open_tree(tx, SHARE), file_id, handle.id)

        return outcome(self.engine.run(body, durable=False))

    def changes(self) -> list[Change]:
        """What was reported since the last call."""
        found = outcome(self.engine.read(lambda snap: watches.read(snap, self.id, self.number)))
        self.number = found.next_number
        return found.items

    def reported(self) -> Reported:
        return [(each.action, each.filter, "/".join(each.names)) for each in self.changes()]

    def is_watched(self) -> bool:
        return outcome(self.engine.read(lambda snap: share.load(snap, SHARE))).is_watched

    def feed_rows(self) -> int:
        return len(self.rows(keys.change_feed(self.id)))


@pytest.fixture
def files() -> WatchedShare:
    return WatchedShare()


def put(files: WatchedShare, path: str, length: int) -> None:
    files.make_file(path, length)


def write(files: WatchedShare, path: str, offset: int, *, keeps_last_write: bool = False) -> None:
    request = RangeWrite(offset, 1, b"x", keeps_last_write)
    outcome(file.write_range(files.engine, path_of(path), request, None))


def change(files: WatchedShare, path: str, properties: SmbProperties, length: int | None = None) -> None:
    outcome(
        file.set_properties(files.engine, path_of(path), FileChange(HttpHeaders(), length, properties), None)
    )


def move(files: WatchedShare, path: str, target: str, kind: int = FILE, *, replaces: bool = False) -> None:
    names = tuple(target.split("/"))
    outcome(rename.rename(files.engine, path_of(path), kind, Rename(names, replaces)))


def change_directory(files: WatchedShare, path: str, properties: SmbProperties) -> None:
    outcome(directory.set_properties(files.engine, path_of(path), properties))


RENAMED = Filter.ATTRIBUTES | Filter.CREATION

BY_REST: dict[str, tuple[Callable[[WatchedShare], object], Reported]] = {
    "Create File": (lambda files: put(files, "d/new", 5), [(ADDED, FILE_NAME, "d/new")]),
    "Create Directory": (lambda files: files.make_directory("d/new"), [(ADDED, DIRECTORY_NAME, "d/new")]),
    "Put Range": (lambda files: write(files, "d/g", 3), [(MODIFIED, Filter.LAST_WRITE, "d/g")]),
    "Put Range that preserves the time": (
        lambda files: write(files, "d/g", 3, keeps_last_write=True),
        [(MODIFIED, Filter.LAST_WRITE, "d/g")],
    ),
    "another length": (
        lambda files: change(files, "f", SmbProperties(), 3),
        [(MODIFIED, Filter.SIZE | Filter.LAST_WRITE, "f")],
    ),
    "attributes": (
        lambda files: change(files, "f", SmbProperties(attributes=0x22)),
        [(MODIFIED, Filter.ATTRIBUTES, "f")],
    ),
    "creation time": (
        lambda files: change(files, "f", SmbProperties(created_at=Instant(10**17))),
        [(MODIFIED, Filter.CREATION, "f")],
    ),
    "attributes of a directory": (
        lambda files: change_directory(files, "d", SmbProperties(attributes=0x12)),
        [(MODIFIED, Filter.ATTRIBUTES, "d")],
    ),
    "of the root, which no directory contains": (
        lambda files: change_directory(files, "", SmbProperties(attributes=0x12)),
        [],
    ),
    "metadata, which SMB does not have": (
        lambda files: outcome(file.set_metadata(files.engine, path_of("f"), {"a": "b"}, None)),
        [],
    ),
    "Delete File": (
        lambda files: outcome(file.delete(files.engine, path_of("d/g"), None)),
        [(REMOVED, FILE_NAME, "d/g")],
    ),
    "Rename File": (
        lambda files: move(files, "d/g", "d/h"),
        [(OLD_NAME, FILE_NAME, "d/g"), (NEW_NAME, FILE_NAME, "d/h"), (MODIFIED, RENAMED, "d/h")],
    ),
    "Rename File, the case only": (
        lambda files: move(files, "d/g", "d/G"),
        [(OLD_NAME, FILE_NAME, "d/g"), (NEW_NAME, FILE_NAME, "d/G"), (MODIFIED, RENAMED, "d/G")],
    ),
    "Rename File to another directory": (
        lambda files: move(files, "d/g", "g"),
        [(REMOVED, FILE_NAME, "d/g"), (ADDED, FILE_NAME, "g"), (MODIFIED, RENAMED, "g")],
    ),
    "Rename File over another": (
        lambda files: move(files, "d/g", "f", replaces=True),
        [
            (REMOVED, FILE_NAME, "f"),
            (REMOVED, FILE_NAME, "d/g"),
            (ADDED, FILE_NAME, "f"),
            (MODIFIED, RENAMED, "f"),
        ],
    ),
    "Rename Directory": (
        lambda files: move(files, "d", "e", DIRECTORY),
        [(OLD_NAME, DIRECTORY_NAME, "d"), (NEW_NAME, DIRECTORY_NAME, "e")],
    ),
}


@pytest.mark.parametrize("name", BY_REST)
def test_changes_over_rest_are_reported(files: WatchedShare, name: str) -> None:
    act, expected = BY_REST[name]
    act(files)
    assert files.reported() == expected


def test_a_file_that_is_written_over_is_modified(files: WatchedShare) -> None:
    put(files, "d/g", 20)
    [(action, kinds, path)] = files.reported()
    assert (action, path) == (MODIFIED, "d/g")
    assert kinds & Filter.SIZE


def test_changes_through_a_handle_are_reported_with_their_path(files: WatchedShare) -> None:
    """A file that was found by its handle has no path but the one that its open file says."""
    file_id = files.find_id("d/g")
    handle = files.open("d/g", EVERYTHING)

    def act(do: Callable[[Transaction, tree.Found, SmbActor], object]) -> None:
        def body(tx: Transaction) -> None:
            do(tx, open_files.find(tx, tree.open_tree(tx, SHARE), file_id), SmbActor(handle.id))

        outcome(files.engine.run(body))

    act(lambda tx, found, actor: file.write(tx, found, actor, RangeWrite(0, 1, b"x")))
    act(lambda tx, found, actor: rename.move(tx, found, actor, Rename(("h",))))
    act(lambda tx, found, actor: file.resize(tx, found, actor, 3))
    files.mark("h")
    files.close(file_id, handle.id)
    assert files.reported() == [
        (MODIFIED, Filter.LAST_WRITE, "d/g"),
        (REMOVED, FILE_NAME, "d/g"),
        (ADDED, FILE_NAME, "h"),
        (MODIFIED, RENAMED, "h"),
        (MODIFIED, Filter.SIZE | Filter.LAST_WRITE, "h"),
        (0, 0, ""),
        (REMOVED, FILE_NAME, "h"),
    ]


def test_a_change_has_the_ids_of_the_directories_above_it(files: WatchedShare) -> None:
    put(files, "d/new", 5)
    [found] = files.changes()
    assert found.above == (0, files.directory_id)


@pytest.mark.parametrize("by_close", [False, True])
def test_a_directory_that_is_marked_for_deletion_is_reported(files: WatchedShare, by_close: bool) -> None:
    directory_id = files.make_directory("e")
    handle = files.open("e", deletes_on_close=by_close)
    files.open("e")
    files.changes()
    if by_close:
        files.close(directory_id, handle.id)
    else:
        files.mark("e")
    [found] = files.changes()
    assert found.marked_directory == directory_id


def test_a_watch_ends_with_its_handle_and_the_feed_with_the_last(files: WatchedShare) -> None:
    second = files.open("")
    files.watch(0, second)
    put(files, "new", 1)
    assert files.is_watched()
    files.close(0, files.handle_of_root.id)
    assert files.is_watched()
    files.close(0, second.id)
    assert not files.is_watched()
    assert not files.feed_rows()
    put(files, "newer", 1)
    assert not files.feed_rows()


def test_a_handle_that_is_closed_from_outside_is_reported(files: WatchedShare) -> None:
    other = files.open("d")
    files.watch(files.directory_id, other)
    closing = handle_lists.close_handles(files.engine, path_of("d"), recursive=False, handle_id=None)
    outcome(closing)
    [found] = files.changes()
    assert found.closed_handle == other.id


def test_watches_of_a_dead_process_end(files: WatchedShare) -> None:
    outcome(files.engine.run(lambda tx: handles.close_handles_of_owner(tx, files.handle_of_root.owner)))
    assert not files.is_watched()
    assert outcome(files.engine.read(lambda snap: watches.read(snap, files.id, files.number))).ended_at


def test_the_feed_is_bounded_and_says_when_it_has_lost_changes(files: WatchedShare) -> None:
    number = files.number
    for count in range(POSITIONS // 2):
        change(files, "f", SmbProperties(attributes=0x22 if count % 2 else 0x20))
        write(files, "f", 0)
    found = outcome(files.engine.read(lambda snap: watches.read(snap, files.id, number)))
    assert not found.has_gap
    written = found.next_number - number
    for _ in range(POSITIONS + 1 - written):
        write(files, "f", 0)
    found = outcome(files.engine.read(lambda snap: watches.read(snap, files.id, number)))
    assert found.has_gap
    assert len(found.items) == POSITIONS
    assert [each.number for each in found.items] == list(range(found.items[0].number, found.next_number))
    assert files.feed_rows() == POSITIONS + 1


def test_a_feed_that_begins_again_shows_that_changes_were_lost(files: WatchedShare) -> None:
    number = files.number
    files.close(0, files.handle_of_root.id)
    files.watch(0, files.open(""))
    put(files, "new", 1)
    assert outcome(files.engine.read(lambda snap: watches.read(snap, files.id, number))).has_gap


def test_watching_twice_with_one_handle_counts_once(files: WatchedShare) -> None:
    files.watch(0, files.handle_of_root)
    files.close(0, files.handle_of_root.id)
    assert not files.is_watched()


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_restored_share_is_watched_if_handles_watch_it(files: WatchedShare, has_ended: bool) -> None:
    def retire(tx: Transaction) -> Instant:
        deleted_shares.retire(tx, SHARE, share.load(tx, SHARE), 1)
        tx.delete(SHARE.key)
        return tx.now

    deleted_at = outcome(files.engine.run(retire))
    if has_ended:
        outcome(files.engine.run(lambda tx: handles.close_handles_of_owner(tx, files.handle_of_root.owner)))
    outcome(deleted_shares.restore(files.engine, SHARE, deleted_at))
    assert files.is_watched() == (not has_ended)


def test_nothing_of_a_deleted_share_stays(files: WatchedShare) -> None:
    put(files, "new", 1)
    outcome(share_snapshots.delete(files.engine, SHARE, None, Snapshots.REFUSE))
    mark = keys.deleted_share(files.id)
    for _ in range(5):
        outcome(files.engine.run(lambda tx: purge(tx, mark)))
    assert not files.feed_rows()


def test_a_feed_is_verified_against_the_handles_that_watch(files: WatchedShare) -> None:
    put(files, "new", 1)
    page = outcome(files.engine.read(lambda snap: check_page(snap, b"")))
    assert not page.findings
    subject = keys.change_feed(files.id)
    assert page.stated[subject] == page.counted[subject] == 1


def test_a_share_that_no_client_watches_has_no_rows_for_it() -> None:
    files = FileShare(MemoryEngine())
    files.make_file("f", 10)
    assert not files.rows(keys.change_feed(files.id))
