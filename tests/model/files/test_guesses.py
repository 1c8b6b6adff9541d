"""A path is read at once by what was seen last, and what another process has changed since is what counts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from bench.rounds import CountedEngine, Rounds

from kyanite.engine.api import Damaged
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.damage import reports
from kyanite.model.files import directory, file, guesses, links, share, share_snapshots
from kyanite.model.files.entry import DIRECTORY, FILE
from kyanite.model.files.guesses import Guesses, Recent
from kyanite.model.files.rename import Rename, rename
from kyanite.model.files.share import ShareSettings
from kyanite.model.files.share_snapshots import Snapshots
from kyanite.rules.refusals import Reason, Refused
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, FileShare, path_of

DEEP = "one/two/three/four/five/six/seven"
FILE_PATH = f"{DEEP}/file"


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "known", Guesses())


@contextmanager
def another_process() -> Iterator[None]:
    """What is done here changes nothing of what this process knows."""
    own, guesses.known = guesses.known, Guesses()
    try:
        yield
    finally:
        guesses.known = own


def deep_share(protocol: str = "SMB") -> tuple[FileShare, Rounds]:
    rounds = Rounds()
    files = FileShare(CountedEngine(MemoryEngine(), rounds), protocol)
    names = DEEP.split("/")
    with another_process():
        for depth in range(len(names)):
            files.make_directory("/".join(names[: depth + 1]))
        files.make_file(FILE_PATH, length=7)
    rounds.clear()
    return files, rounds


def length_of(files: FileShare, path: str) -> int:
    return outcome(file.get_properties(files.engine, path_of(path), None)).entry.length


def reads_of(rounds: Rounds, step: Callable[[], object]) -> int:
    rounds.clear()
    step()
    return rounds.reads


def test_a_known_path_is_one_round_however_deep() -> None:
    files, rounds = deep_share()
    first = reads_of(rounds, lambda: length_of(files, FILE_PATH))
    assert reads_of(rounds, lambda: length_of(files, FILE_PATH)) == first - len(DEEP.split("/")) - 1


def test_a_new_file_beside_a_known_one_is_found_at_once() -> None:
    files, rounds = deep_share()
    length_of(files, FILE_PATH)
    with another_process():
        files.make_file(f"{DEEP}/other", length=3)
    known = reads_of(rounds, lambda: length_of(files, FILE_PATH))
    assert reads_of(rounds, lambda: length_of(files, f"{DEEP}/other")) == known


def test_the_target_of_a_rename_is_read_at_once() -> None:
    files, rounds = deep_share()
    files.make_file("here")
    files.make_file("there")
    length_of(files, FILE_PATH)

    def move(source: str, target: str) -> Callable[[], object]:
        request = Rename(tuple(target.split("/")))
        return lambda: outcome(rename(files.engine, path_of(source), FILE, request))

    shallow = reads_of(rounds, move("here", "moved"))
    assert reads_of(rounds, move("there", f"{DEEP}/moved")) <= shallow + 1


def renamed(files: FileShare) -> None:
    """Another directory has the name now."""
    outcome(rename(files.engine, path_of("one/two"), DIRECTORY, Rename(("elsewhere",))))
    for path in ("one/two", "one/two/three", "one/two/three/four", "one/two/three/four/five"):
        files.make_directory(path)
    files.make_directory("one/two/three/four/five/six")
    files.make_directory(DEEP)
    files.make_file(FILE_PATH, length=11)


def made_again(files: FileShare) -> None:
    outcome(file.delete(files.engine, path_of(FILE_PATH), None))
    outcome(directory.delete(files.engine, path_of(DEEP)))
    files.make_directory(DEEP)
    files.make_file(FILE_PATH, length=12)


def share_made_again(files: FileShare) -> None:
    outcome(share_snapshots.delete(files.engine, SHARE, None, Snapshots.INCLUDE))
    other = FileShare(files.engine)
    names = DEEP.split("/")
    for depth in range(len(names)):
        other.make_directory("/".join(names[: depth + 1]))
    other.make_file(FILE_PATH, length=13)


def overwritten(files: FileShare) -> None:
    files.make_file(FILE_PATH, length=14)


@pytest.mark.parametrize(
    ("change", "length"), [(renamed, 11), (made_again, 12), (share_made_again, 13), (overwritten, 14)]
)
def test_what_another_process_has_changed_counts(change: Callable[[FileShare], None], length: int) -> None:
    files, rounds = deep_share()
    length_of(files, FILE_PATH)
    known = reads_of(rounds, lambda: length_of(files, FILE_PATH))
    with another_process():
        change(files)
    assert length_of(files, FILE_PATH) == length
    assert reads_of(rounds, lambda: length_of(files, FILE_PATH)) == known


def test_what_another_process_has_removed_is_not_found() -> None:
    files, _ = deep_share()
    length_of(files, FILE_PATH)
    with another_process():
        outcome(rename(files.engine, path_of("one/two"), DIRECTORY, Rename(("elsewhere",))))
    with pytest.raises(Refused) as refusal:
        length_of(files, FILE_PATH)
    assert refusal.value.reason is Reason.PARENT_NOT_FOUND
    assert length_of(files, FILE_PATH.replace("one/two", "elsewhere")) == 7
    with another_process():
        outcome(share_snapshots.delete(files.engine, SHARE, None, Snapshots.INCLUDE))
    with pytest.raises(Refused) as refusal:
        length_of(files, FILE_PATH)
    assert refusal.value.reason is Reason.SHARE_NOT_FOUND


def test_a_share_that_now_tells_capitals_from_small_letters_does_so() -> None:
    files, _ = deep_share()
    assert length_of(files, FILE_PATH.upper()) == 7
    with another_process():
        outcome(share_snapshots.delete(files.engine, SHARE, None, Snapshots.INCLUDE))
        other = FileShare(files.engine, "NFS")
        other.make_directory("one")
        other.make_directory("ONE")
        other.make_file("one/file", length=1)
        other.make_file("ONE/file", length=2)
    assert (length_of(files, "one/file"), length_of(files, "ONE/file")) == (1, 2)
    assert (length_of(files, "one/file"), length_of(files, "ONE/file")) == (1, 2)


def test_a_name_of_several_leads_to_its_file() -> None:
    files, _ = deep_share("NFS")
    length_of(files, FILE_PATH)
    with another_process():
        outcome(links.create_hard_link(files.engine, path_of("one/second"), path_of(FILE_PATH), None))
        files.make_file("one/second", length=21)
    assert length_of(files, FILE_PATH) == length_of(files, "one/second") == 21


def snapshot_of(files: FileShare) -> share.ShareKey:
    instant, _ = outcome(share_snapshots.take(files.engine, SHARE, {}))
    return share.ShareKey(SHARE.account, SHARE.name, instant)


def length_at(files: FileShare, at: share.ShareKey, path: str = FILE_PATH) -> int:
    return outcome(file.get_properties(files.engine, path_of(path, at), None)).entry.length


def test_a_snapshot_shows_what_was_there() -> None:
    files, _ = deep_share()
    length_of(files, FILE_PATH)
    at = snapshot_of(files)
    with another_process():
        renamed(files)
    for _ in range(2):
        assert length_of(files, FILE_PATH) == 11
        assert length_at(files, at) == 7


def untouched(files: FileShare) -> None:
    """The snapshot has the live rows."""


def every_directory_changed(files: FileShare) -> None:
    names = DEEP.split("/")
    for depth in range(len(names)):
        path = path_of("/".join(names[: depth + 1]))
        outcome(directory.set_metadata(files.engine, path, {"a": "b"}))


@pytest.mark.parametrize(
    "change",
    [untouched, every_directory_changed, renamed, made_again, overwritten],
    ids=lambda it: it.__name__,
)
def test_a_known_path_of_a_snapshot_is_one_round(change: Callable[[FileShare], None]) -> None:
    files, rounds = deep_share()
    at = snapshot_of(files)
    with another_process():
        change(files)
    assert length_at(files, at) == 7
    assert reads_of(rounds, lambda: length_at(files, at)) == 1


def test_a_path_of_a_snapshot_is_guessed_by_where_it_leads_now() -> None:
    files, rounds = deep_share()
    length_of(files, FILE_PATH)
    at = snapshot_of(files)
    assert reads_of(rounds, lambda: length_at(files, at)) == 1


def test_what_is_remembered_of_one_snapshot_is_not_used_for_another() -> None:
    files, _ = deep_share()
    kept = []
    for length in (21, 22, 23):
        files.make_file(FILE_PATH, length=length)
        kept.append((snapshot_of(files), length))
        made_again(files)
    for _ in range(2):
        for at, length in kept:
            assert length_at(files, at) == length
    with another_process():
        outcome(share_snapshots.delete(files.engine, kept[1][0], None))
    for at, length in (kept[0], kept[2]):
        assert length_at(files, at) == length
    with pytest.raises(Refused) as refusal:
        length_at(files, kept[1][0])
    assert refusal.value.reason is Reason.SHARE_SNAPSHOT_NOT_FOUND


def test_what_was_made_since_is_not_in_a_snapshot() -> None:
    files, _ = deep_share()
    at = snapshot_of(files)
    files.make_file(f"{DEEP}/later", length=3)
    for _ in range(2):
        assert length_of(files, f"{DEEP}/later") == 3
        with pytest.raises(Refused) as refusal:
            length_at(files, at, f"{DEEP}/later")
        assert refusal.value.reason is Reason.PATH_NOT_FOUND


def test_no_more_is_remembered_than_has_room() -> None:
    recent: Recent[int] = Recent(100)
    for number in range(1_000):
        recent.remember(b"%d" % number, number)
        assert len(recent) <= 200
        assert recent.get(b"%d" % max(0, number - 99)) == max(0, number - 99)


def test_nothing_is_guessed_once_more_after_damage() -> None:
    """A stale guess may lead to a damaged row, and would again."""
    files, rounds = deep_share()
    first = reads_of(rounds, lambda: length_of(files, FILE_PATH))
    assert reads_of(rounds, lambda: length_of(files, FILE_PATH)) < first
    reports.add(Damaged("a row is not as it was written"))
    assert reads_of(rounds, lambda: length_of(files, FILE_PATH)) == first
    assert reads_of(rounds, lambda: length_of(files, FILE_PATH)) < first


def test_settings_of_a_share_are_those_that_are_stored() -> None:
    """The record that is remembered is for the guess only."""
    files, _ = deep_share()
    length_of(files, FILE_PATH)
    with another_process():
        outcome(share_snapshots.delete(files.engine, SHARE, None, Snapshots.INCLUDE))
        settings = ShareSettings(quota_gib=1)
        outcome(share.create(files.engine, SHARE, {}, settings, directory.create_root))
    with pytest.raises(Refused) as refusal:
        files.make_file("large", length=2 << 30)
    assert refusal.value.reason is Reason.SHARE_SIZE_LIMIT_REACHED
