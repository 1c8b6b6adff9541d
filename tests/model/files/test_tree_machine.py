"""A share against a dictionary: whatever is made, written, renamed and deleted, now and in every snapshot.

The oracle copies the whole tree at a snapshot. At the end all is deleted and swept, and nothing may be left. Shares
that speak NFS tell capitals from small letters, and their files may have several names.
"""

from collections.abc import Awaitable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from kyanite.engine.api import Snapshot
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.files import directory, file, guesses, links, share, share_snapshots, tree, usage
from kyanite.model.files.entry import DIRECTORY, FILE, Entry
from kyanite.model.files.file import NewFile, RangeWrite
from kyanite.model.files.listing import DirectoryListing, list_directory
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.ranges import list_ranges
from kyanite.model.files.rename import Rename, rename
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.model.files.share_snapshots import Snapshots
from kyanite.model.files.tree import FilePath
from kyanite.model.maintenance import compaction
from kyanite.model.maintenance.tasks import TASKS, step_each, step_of
from kyanite.model.records import HttpHeaders
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant
from tests.profiles import examples

T = TypeVar("T")

Names = tuple[str, ...]


@dataclass(eq=False)
class Stored:
    """What a file contains; the same for all of its names."""

    data: bytes


World = dict[Names, Stored | None]
"""Folded paths to files; None for a directory."""

SHARE = ShareKey("acme", "share")
PATHS = st.sampled_from([("a",), ("B",), ("a", "c"), ("A", "d"), ("b", "C"), ("a", "c", "d")])
"""Few, so that one history comes back to the same places, in another case sometimes."""
LENGTH = 1200
MAX_DATA_BYTES = 600


def run(outcome: Awaitable[T]) -> T:
    """The memory engine has every outcome at once, so nothing here ever waits."""
    try:
        next(outcome.__await__())
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise AssertionError("the engine made somebody wait")


class Trees(RuleBasedStateMachine):
    protocol = "SMB"

    def __init__(self) -> None:
        super().__init__()
        self.engine = MemoryEngine()
        self.maintenance = [step_of(self.engine, task) for task in TASKS]
        self.world: World = {(): None}
        self.snapshots: dict[Instant, World] = {}
        run(
            share.create(self.engine, SHARE, {}, ShareSettings(protocol=self.protocol), directory.create_root)
        )
        self.make_directory(("a",))
        self.make_file(("a", "c"))
        self.write(("a", "c"), 0, b"first")

    def attempt(self, outcome: Awaitable[object], expected: Reason | None) -> bool:
        """Whether it was done, and that it was refused exactly if there is a reason to."""
        if expected is None:
            run(outcome)
            return True
        with pytest.raises(Refused) as refusal:
            run(outcome)
        assert refusal.value.reason is expected
        return False

    def folded(self, names: Names) -> Names:
        return tuple(self.fold(name) for name in names)

    def fold(self, name: str) -> str:
        return name.upper()

    def at(self, names: Names) -> Stored | None:
        """None for a directory, and something else for nothing at all."""
        return self.world.get(self.folded(names), Stored(b""))

    def parent_is_missing(self, names: Names) -> bool:
        above = [self.folded(names[:depth]) for depth in range(len(names))]
        return any(self.at(each) is not None for each in above)

    def reason_to_miss(self, names: Names, kind: int) -> Reason | None:
        if self.parent_is_missing(names):
            return Reason.PARENT_NOT_FOUND
        if self.folded(names) not in self.world:
            return Reason.PATH_NOT_FOUND
        is_directory = self.world[self.folded(names)] is None
        return None if is_directory == (kind == DIRECTORY) else Reason.PATH_TYPE_MISMATCH

    def children(self, names: Names) -> list[Names]:
        return [each for each in self.world if len(each) > len(names) and each[: len(names)] == names]

    @rule(names=PATHS, other=PATHS, folds=st.booleans())
    def mislead(self, names: Names, other: Names, folds: bool) -> None:
        """What this process has seen last is not what is there."""
        found = run(self.engine.read(lambda snap: share.load(snap, SHARE)))
        ids = [
            run(self.engine.read(partial(self.directory_id_of, names=each[:-1]))) for each in (names, other)
        ]
        row = keys.entry(found.id, ids[0], self.fold(names[-1]))
        guesses.known.directories.remember(row, ids[1])
        for at in self.snapshots:
            as_of = keys.preserved_entry(found.id, ids[0], self.fold(names[-1]), at)
            guesses.known.directories.remember(as_of, ids[1])
        if folds:
            protocol = "SMB" if self.protocol == "NFS" else "NFS"
            guess = replace(found, settings=ShareSettings(protocol=protocol))
            guesses.known.shares.remember(SHARE.key, guess)

    def directory_id_of(self, snap: Snapshot, names: Names) -> int:
        """The id of the deepest directory that there is on this path."""
        for depth in range(len(names), 0, -1):
            if self.world.get(self.folded(names[:depth]), Stored(b"")) is None:
                return tree.load(snap, FilePath(SHARE, names[:depth]), DIRECTORY).entry.id
        return tree.ROOT_ID

    @rule(names=PATHS)
    def make_directory(self, names: Names) -> None:
        there = self.at(names)
        expected = None
        if self.parent_is_missing(names):
            expected = Reason.PARENT_NOT_FOUND
        elif self.folded(names) in self.world:
            expected = Reason.PATH_ALREADY_EXISTS if there is None else Reason.PATH_TYPE_MISMATCH
        if self.attempt(directory.create(self.engine, FilePath(SHARE, names), SmbProperties(), {}), expected):
            self.world[self.folded(names)] = None

    @rule(names=PATHS)
    def make_file(self, names: Names) -> None:
        expected = None
        if self.parent_is_missing(names):
            expected = Reason.PARENT_NOT_FOUND
        elif self.at(names) is None:
            expected = Reason.PATH_TYPE_MISMATCH
        new_file = NewFile(LENGTH, HttpHeaders(), {}, SmbProperties())
        made = file.create(self.engine, FilePath(SHARE, names), new_file, None, may_overwrite=True)
        if self.attempt(made, expected):
            stored = self.world.setdefault(self.folded(names), Stored(b""))
            assert stored is not None
            stored.data = bytes(LENGTH)

    @rule(names=PATHS, offset=st.integers(0, 600), data=st.binary(min_size=1, max_size=MAX_DATA_BYTES))
    def write(self, names: Names, offset: int, data: bytes) -> None:
        request = RangeWrite(offset, len(data), data)
        done = file.write_range(self.engine, FilePath(SHARE, names), request, None)
        if self.attempt(done, self.reason_to_miss(names, FILE)):
            self.put(names, offset, data)

    @rule(names=PATHS, offset=st.integers(0, 600), length=st.integers(1, 600))
    def clear(self, names: Names, offset: int, length: int) -> None:
        done = file.write_range(self.engine, FilePath(SHARE, names), RangeWrite(offset, length, None), None)
        if self.attempt(done, self.reason_to_miss(names, FILE)):
            self.put(names, offset, bytes(length))

    def put(self, names: Names, offset: int, data: bytes) -> None:
        stored = self.world[self.folded(names)]
        assert stored is not None
        stored.data = stored.data[:offset] + data + stored.data[offset + len(data) :]

    @rule(names=PATHS)
    def delete_file(self, names: Names) -> None:
        done = file.delete(self.engine, FilePath(SHARE, names), None)
        if self.attempt(done, self.reason_to_miss(names, FILE)):
            del self.world[self.folded(names)]

    @rule(names=PATHS)
    def delete_directory(self, names: Names) -> None:
        expected = self.reason_to_miss(names, DIRECTORY)
        if expected is None and self.children(self.folded(names)):
            expected = Reason.DIRECTORY_NOT_EMPTY
        if self.attempt(directory.delete(self.engine, FilePath(SHARE, names)), expected):
            del self.world[self.folded(names)]

    @rule(source=PATHS, goal=PATHS, kind=st.sampled_from([FILE, DIRECTORY]), replaces=st.booleans())
    def move(self, source: Names, goal: Names, kind: int, replaces: bool) -> None:
        old, new = self.folded(source), self.folded(goal)
        expected = self.reason_to_miss(source, kind)
        if expected is None and new[: len(old)] == old and new != old and kind == DIRECTORY:
            expected = Reason.SHARING_VIOLATION
        if expected is None and self.parent_is_missing(goal):
            expected = Reason.PARENT_NOT_FOUND
        if expected is None and new in self.world and new != old:
            expected = None if replaces else Reason.PATH_ALREADY_EXISTS
            if replaces and self.world[new] is None:
                expected = Reason.PATH_TYPE_MISMATCH
        done = rename(self.engine, FilePath(SHARE, source), kind, Rename(goal, replaces=replaces))
        if self.attempt(done, expected):
            moved = {names: self.world.pop(names) for names in [old, *self.children(old)]}
            self.world.update({new + names[len(old) :]: stored for names, stored in moved.items()})

    @precondition(lambda self: len(self.snapshots) < 4)
    @rule()
    def snapshot(self) -> None:
        instant, _ = run(share_snapshots.take(self.engine, SHARE, {}))
        self.snapshots[instant] = deepcopy(self.world)

    @precondition(lambda self: self.snapshots)
    @rule(nth=st.integers(0, 3))
    def delete_snapshot(self, nth: int) -> None:
        instant = sorted(self.snapshots)[nth % len(self.snapshots)]
        run(share_snapshots.delete(self.engine, ShareKey("acme", "share", instant), None))
        del self.snapshots[instant]

    @rule()
    def purge_all(self) -> None:
        while run(step_each(self.maintenance)):
            pass

    @invariant()
    def the_share_is_what_it_should_be(self) -> None:
        self.check(SHARE, self.world)
        used = run(self.engine.read(lambda snap: usage.used_bytes(snap, share.load(snap, SHARE).id)))
        assert used == sum(len(stored.data) for stored in {*self.world.values()} if stored is not None)

    @invariant()
    def every_snapshot_is_what_it_was(self) -> None:
        for instant, world in self.snapshots.items():
            self.check(ShareKey("acme", "share", instant), world)

    @invariant()
    def changes_lead_from_every_snapshot_to_now(self) -> None:
        """Of every file that a snapshot shows, wherever it was then: its changes make what it was what it is."""
        for instant, world in self.snapshots.items():
            key = ShareKey("acme", "share", instant)
            before = {
                self.id_of(FilePath(key, names)): stored.data
                for names, stored in world.items()
                if stored is not None
            }
            for names, stored in self.world.items():
                if stored is None:
                    continue
                path = FilePath(SHARE, names)
                changes = list_ranges(
                    self.engine,
                    path,
                    None,
                    first=0,
                    last=None,
                    limit=100,
                    since=instant,
                    through_renames=True,
                )
                was = before.get(self.id_of(path))
                if was is None:
                    self.attempt(changes, Reason.PREVIOUS_SNAPSHOT_NOT_FOUND)
                    continue
                for start, end, is_clear in run(changes).page.ranges:
                    was = (
                        was[:start] + (bytes(end - start) if is_clear else stored.data[start:end]) + was[end:]
                    )
                assert was == stored.data

    def id_of(self, path: FilePath) -> int:
        return run(file.get_properties(self.engine, path, None)).entry.id

    def check(self, key: ShareKey, world: World) -> None:
        for names, stored in world.items():
            path = FilePath(key, names)
            if stored is not None:
                assert self.read(path) == (stored.data, [*world.values()].count(stored))
                continue
            listed = {self.fold(entry.name): entry.is_directory for entry in self.list(path)}
            inside = {each[-1]: world[each] is None for each in world if each and each[:-1] == names}
            assert listed == inside

    def list(self, path: FilePath) -> list[Entry]:
        """Page by page, one entry each."""
        found: list[Entry] = []
        first: str | None = ""
        while first is not None:
            page = run(list_directory(self.engine, path, DirectoryListing(first=first, limit=1)))
            found += page.entries
            first = page.next_name
        return found

    def read(self, path: FilePath) -> tuple[bytes, int]:
        """The bytes of a file, and how many names it has."""

        def body(snap: Snapshot) -> tuple[bytes, int]:
            _, entry = file.load_for_read(snap, path, None)
            plan = content.read_plan(snap, entry.content, 0, entry.length)
            pieces = (each if isinstance(each, bytes) else bytes(each.length) for each in plan.parts)
            return b"".join(pieces), entry.links

        return run(self.engine.read(body))

    def teardown(self) -> None:
        run(share_snapshots.delete(self.engine, SHARE, None, Snapshots.INCLUDE_LEASED))
        self.purge_all()
        while (layer := run(self.engine.read(_first_pending_compaction))) is not None:
            run(self.engine.run(partial(compaction.step, mark=keys.pending_compaction(layer))))
        left = run(self.engine.read(lambda snap: [key for key, _ in snap.scan(b"\0", b"\xff")]))
        assert left == []


class LinkedTrees(Trees):
    """Of a share that speaks NFS."""

    protocol = "NFS"

    def fold(self, name: str) -> str:
        return name

    @rule(names=PATHS, there=PATHS)
    def link(self, names: Names, there: Names) -> None:
        expected = None
        if self.parent_is_missing(names):
            expected = Reason.PARENT_NOT_FOUND
        elif names in self.world:
            expected = Reason.PATH_ALREADY_EXISTS
        else:
            expected = self.reason_to_miss(there, FILE)
        made = links.create_hard_link(self.engine, FilePath(SHARE, names), FilePath(SHARE, there), None)
        if self.attempt(made, expected):
            self.world[names] = self.world[there]


def _first_pending_compaction(snap: Snapshot) -> int | None:
    for key, _ in snap.scan(keys.PENDING_COMPACTIONS, keys.after(keys.PENDING_COMPACTIONS), limit=1):
        return int.from_bytes(key[len(keys.PENDING_COMPACTIONS) :], "big")
    return None


def test_a_preserved_row_stays_as_long_as_its_own_snapshot() -> None:
    trees = Trees()
    trees.snapshot()
    trees.write(("a", "c"), 0, b"second")
    trees.snapshot()
    trees.delete_snapshot(1)
    trees.purge_all()
    trees.every_snapshot_is_what_it_was()
    trees.delete_snapshot(0)
    trees.purge_all()
    trees.the_share_is_what_it_should_be()
    trees.teardown()


def test_a_file_goes_with_the_last_of_its_names() -> None:
    trees = LinkedTrees()
    trees.link(("B",), ("a", "c"))
    trees.snapshot()
    trees.move(("B",), ("a", "c"), FILE, replaces=True)
    trees.write(("a", "c"), 0, b"second")
    trees.the_share_is_what_it_should_be()
    trees.every_snapshot_is_what_it_was()
    trees.delete_file(("a", "c"))
    trees.the_share_is_what_it_should_be()
    trees.every_snapshot_is_what_it_was()
    trees.teardown()


def test_a_renamed_file_is_known_after_it_was_made_anew() -> None:
    trees = Trees()
    trees.snapshot()
    trees.move(("a", "c"), ("B",), FILE, replaces=False)
    trees.make_file(("B",))
    trees.write(("B",), 0, b"second")
    trees.changes_lead_from_every_snapshot_to_now()
    trees.teardown()


def test_a_file_with_several_names_is_known_by_each() -> None:
    trees = LinkedTrees()
    trees.snapshot()
    trees.link(("B",), ("a", "c"))
    trees.write(("B",), 0, b"second")
    trees.move(("a", "c"), ("a", "d"), FILE, replaces=False)
    trees.changes_lead_from_every_snapshot_to_now()
    trees.teardown()


TestTrees = Trees.TestCase
TestTrees.settings = settings(max_examples=examples(100), stateful_step_count=40)
TestLinkedTrees = LinkedTrees.TestCase
TestLinkedTrees.settings = TestTrees.settings
