"""Open handles against an oracle: clients of two processes open, lock, rename, mark and close; a process may die.

The oracle keeps lists of handles with their own rules for share modes and locks, written apart from ``rules/``. After
every step the rows are what the oracle says, and none is left when everything is closed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kyanite.engine.api import Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.files import directory, file, rename, tree
from kyanite.model.files.actors import RestActor, SmbActor
from kyanite.model.files.entry import DIRECTORY, FILE
from kyanite.model.files.listing import DirectoryListing, list_directory
from kyanite.model.files.opens import handle_lists, handles, open_files
from kyanite.model.files.opens.handle_lists import HandlePosition
from kyanite.model.files.rename import Rename
from kyanite.rules.byte_locks import Range
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import EVERYTHING, Rights
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, FileShare, path_of

T = TypeVar("T")

OWNERS = (b"first-------", b"second------")
FILES = ("f", "d/g", "d/e/h")
DIRECTORIES = ("d", "d/e", "x")
TARGETS = ("", "d", "d/e", "x")
RIGHTS = st.sampled_from([Rights(value) for value in range(8)])
MOSTLY_SHARED = st.sampled_from([EVERYTHING, EVERYTHING, EVERYTHING, Rights.READ, Rights.NONE])


@dataclass(eq=False)
class Open:
    id: int
    owner: bytes
    access: Rights
    share: Rights
    deletes: bool
    locks: list[tuple[int, int, bool]] = field(default_factory=list)


@dataclass(eq=False)
class Node:
    """A file or directory, whatever its name is."""

    id: int
    is_directory: bool
    opens: list[Open] = field(default_factory=list)
    is_pending: bool = False


class Handles(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.files = FileShare(MemoryEngine())
        self.nodes: dict[str, Node] = {"": Node(0, is_directory=True)}
        for path in DIRECTORIES:
            self.nodes[path] = Node(self.files.make_directory(path), is_directory=True)
        for path in FILES:
            self.nodes[path] = Node(self.files.make_file(path, 20), is_directory=False)

    # What the oracle knows

    def path(self, nth: int) -> str:
        paths = sorted(self.nodes)
        return paths[nth % len(paths)]

    def below(self, path: str) -> list[Node]:
        within = f"{path}/" if path else ""
        return [node for each, node in self.nodes.items() if each != path and each.startswith(within)]

    def children(self, path: str) -> set[str]:
        depth = path.count("/") + 1 if path else 0
        within = f"{path}/" if path else ""
        return {each for each in self.nodes if each and each.startswith(within) and each.count("/") == depth}

    def pick(self, nth: int) -> tuple[str, Node, Open]:
        every = [(path, node, each) for path, node in sorted(self.nodes.items()) for each in node.opens]
        return every[nth % len(every)]

    def forbids(self, node: Node, access: Rights, share: Rights) -> bool:
        if access == Rights.NONE:
            return False
        return any(
            each.access != Rights.NONE and (access not in each.share or each.access not in share)
            for each in node.opens
        )

    def attempt(self, act: Callable[[], T], reason: Reason | None) -> T | None:
        if reason is None:
            return act()
        with pytest.raises(Refused) as refusal:
            act()
        assert refusal.value.reason is reason
        return None

    def drop(self, node: Node, gone: Open) -> None:
        node.opens.remove(gone)
        if not node.opens:
            node.is_pending = False

    # Steps

    @rule(
        nth=st.integers(0, 99),
        access=RIGHTS,
        share=MOSTLY_SHARED,
        owner=st.sampled_from(OWNERS),
        deletes=st.booleans(),
    )
    def open(self, nth: int, access: Rights, share: Rights, owner: bytes, deletes: bool) -> None:
        path = self.path(nth)
        node = self.nodes[path]
        reason = None
        if deletes and not path:
            reason = Reason.ACCESS_DENIED
        elif node.is_pending:
            reason = Reason.DELETE_PENDING
        elif self.forbids(node, access, share):
            reason = Reason.SHARING_VIOLATION
        opened = self.attempt(
            lambda: self.files.open(path, access, share, owner=owner, deletes_on_close=deletes), reason
        )
        if opened is not None:
            node.opens.append(Open(opened.id, owner, access, share, deletes))

    @precondition(lambda self: any(node.opens for node in self.nodes.values()))
    @rule(nth=st.integers(0, 99))
    def close(self, nth: int) -> None:
        path, node, gone = self.pick(nth)
        node.is_pending = node.is_pending or (gone.deletes and not self.children(path))
        is_deleted = node.is_pending and node.opens == [gone] and not self.children(path)
        assert self.files.close(node.id, gone.id) == is_deleted
        self.drop(node, gone)
        if is_deleted:
            del self.nodes[path]

    @precondition(lambda self: any(node.opens for node in self.nodes.values()))
    @rule(nth=st.integers(0, 99), recursive=st.booleans(), everything=st.booleans(), at=st.integers(0, 99))
    def force_close(self, nth: int, recursive: bool, everything: bool, at: int) -> None:
        path = self.path(at)
        recursive = recursive and self.nodes[path].is_directory
        gone = self.pick(nth)[2]
        reached = [self.nodes[path], *(self.below(path) if recursive else [])]
        closed = [(node, each) for node in reached for each in list(node.opens) if everything or each is gone]
        closing = handle_lists.close_handles(
            self.files.engine, path_of(path), recursive=recursive, handle_id=None if everything else gone.id
        )
        assert outcome(closing).closed == len(closed)
        for node, each in closed:
            self.drop(node, each)

    @rule(owner=st.sampled_from(OWNERS), limit=st.integers(1, 3))
    def die(self, owner: bytes, limit: int) -> None:
        engine = self.files.engine
        while outcome(engine.run(lambda tx: handles.close_handles_of_owner(tx, owner, limit))):
            pass
        for node in self.nodes.values():
            for each in [each for each in node.opens if each.owner == owner]:
                self.drop(node, each)

    @precondition(lambda self: any(node.opens for node in self.nodes.values()))
    @rule(nth=st.integers(0, 99))
    def mark(self, nth: int) -> None:
        path, node, _ = self.pick(nth)
        reason = None
        if not path:
            reason = Reason.ACCESS_DENIED
        elif self.children(path):
            reason = Reason.DIRECTORY_NOT_EMPTY
        self.attempt(lambda: self.files.mark(path), reason)
        node.is_pending = node.is_pending or reason is None

    @precondition(lambda self: any(node.opens for node in self.nodes.values()))
    @rule(nth=st.integers(0, 99))
    def clear_mark(self, nth: int) -> None:
        _, node, _ = self.pick(nth)
        self.files.clear_mark(node.id)
        node.is_pending = False

    @precondition(lambda self: any(node.opens for node in self.nodes.values()))
    @rule(
        nth=st.integers(0, 99), start=st.integers(0, 6), length=st.integers(1, 4), is_exclusive=st.booleans()
    )
    def lock(self, nth: int, start: int, length: int, is_exclusive: bool) -> None:
        _, node, own = self.pick(nth)
        wanted = set(range(start, start + length))
        is_free = all(
            not wanted & set(range(a, a + b)) or (not is_exclusive and (not exclusive or each is own))
            for each in node.opens
            for a, b, exclusive in each.locks
        )
        new = (start, length, is_exclusive)
        reason = None if is_free else Reason.LOCK_NOT_GRANTED
        self.attempt(lambda: self.files.lock(node.id, own.id, new), reason)
        if is_free:
            own.locks.append(new)

    @precondition(lambda self: any(each.locks for node in self.nodes.values() for each in node.opens))
    @rule(nth=st.integers(0, 99), which=st.integers(0, 99))
    def unlock(self, nth: int, which: int) -> None:
        _, node, own = self.pick(nth)
        others = [lock for each in node.opens for lock in each.locks] or [(0, 1, True)]
        start, length, _ = others[which % len(others)]
        mine = [each for each in own.locks if each[:2] == (start, length)]
        assert self.files.unlock(node.id, own.id, Range(start, length)) == bool(mine)
        if mine:
            own.locks.remove(max(mine, key=lambda each: each[2]))

    @rule(nth=st.integers(0, 99), to=st.sampled_from(TARGETS), by_handle=st.booleans())
    def move(self, nth: int, to: str, by_handle: bool) -> None:
        path = self.path(nth)
        if not path or to not in self.nodes:
            return
        node, name = self.nodes[path], path.rpartition("/")[2]
        target = f"{to}/{name}" if to else name
        by_handle = by_handle and bool(node.opens)
        reason = None
        is_shared = by_handle or not self.forbids(node, Rights.DELETE, EVERYTHING)
        is_open_below = any(each.opens for each in self.below(path))
        if node.is_pending and not by_handle:
            reason = Reason.DELETE_PENDING
        elif not is_shared or is_open_below or target.startswith(f"{path}/"):
            reason = Reason.SHARING_VIOLATION
        elif target in self.nodes and target != path:
            reason = Reason.DELETE_PENDING if self.nodes[target].is_pending else Reason.PATH_ALREADY_EXISTS
        self.attempt(lambda: self.rename(path, node, target, by_handle), reason)
        if reason is None:
            moved = {each: node for each, node in self.nodes.items() if f"{each}/".startswith(f"{path}/")}
            for each in moved:
                del self.nodes[each]
            self.nodes.update({target + each[len(path) :]: node for each, node in moved.items()})

    def rename(self, path: str, node: Node, target: str, by_handle: bool) -> None:
        names = tuple(target.split("/"))
        if not by_handle:
            kind = DIRECTORY if node.is_directory else FILE
            outcome(rename.rename(self.files.engine, path_of(path), kind, Rename(names)))
            return

        def body(tx: Transaction) -> None:
            found = open_files.find(tx, tree.open_tree(tx, SHARE), node.id)
            rename.move(tx, found, SmbActor(node.opens[0].id), Rename(names))

        outcome(self.files.engine.run(body))

    @rule(nth=st.integers(0, 99))
    def delete(self, nth: int) -> None:
        path = self.path(nth)
        node = self.nodes[path]
        if not path:
            return
        reason = None
        if node.is_pending:
            reason = Reason.DELETE_PENDING
        elif node.opens:
            reason = Reason.CANNOT_DELETE_FILE_OR_DIRECTORY if node.is_directory else Reason.SHARING_VIOLATION
        elif self.children(path):
            reason = Reason.DIRECTORY_NOT_EMPTY
        done: Awaitable[None]
        if node.is_directory:
            done = directory.delete(self.files.engine, path_of(path))
        else:
            done = file.delete(self.files.engine, path_of(path), None)
        self.attempt(lambda: outcome(done), reason)
        if reason is None:
            del self.nodes[path]

    # What is true after every step

    @invariant()
    def handles_are_listed(self) -> None:
        for path, node in self.nodes.items():
            assert self.listed(path, recursive=False, limit=2) == self.expected([node])
            if node.is_directory:
                assert self.listed(path, recursive=True, limit=2) == self.expected([node, *self.below(path)])
                assert self.listed(path, recursive=True, limit=5000) == self.expected(
                    [node, *self.below(path)]
                )

    def expected(self, nodes: list[Node]) -> set[tuple[int, int, str]]:
        paths = {node.id: path for path, node in self.nodes.items()}
        return {(each.id, node.id, paths[node.id]) for node in nodes for each in node.opens}

    def listed(self, path: str, *, recursive: bool, limit: int) -> set[tuple[int, int, str]]:
        found: list[tuple[int, int, str]] = []
        start: HandlePosition | None = HandlePosition()
        while start is not None:
            page = outcome(
                handle_lists.list_handles(
                    self.files.engine, path_of(path), recursive=recursive, start=start, limit=limit
                )
            )
            assert len(page.items) <= limit
            found += [(item.handle.id, item.file.file_id, item.file.path) for item in page.items]
            start = page.next_start
        assert len(found) == len(set(found))
        return set(found)

    @invariant()
    def listings_omit_what_is_to_be_deleted(self) -> None:
        for path, node in self.nodes.items():
            if node.is_directory:
                page = outcome(list_directory(self.files.engine, path_of(path), DirectoryListing()))
                expected = {each for each in self.children(path) if not self.nodes[each].is_pending}
                assert {f"{path}/{each.name}" if path else each.name for each in page.entries} == expected

    @invariant()
    def rest_may_read_and_write_what_no_lock_covers(self) -> None:
        for path, node in self.nodes.items():
            if node.is_directory:
                continue
            for access, writes in ((Rights.READ, False), (Rights.WRITE, True)):
                reason = None
                if node.is_pending:
                    reason = Reason.DELETE_PENDING
                elif self.forbids(node, access, EVERYTHING):
                    reason = Reason.SHARING_VIOLATION
                elif any(
                    a <= 3 < a + b and (writes or exclusive)
                    for each in node.opens
                    for a, b, exclusive in each.locks
                ):
                    reason = Reason.FILE_LOCK_CONFLICT
                self.attempt(lambda path=path, access=access: self.check(path, access), reason)  # type: ignore[misc]

    def check(self, path: str, access: Rights) -> None:
        outcome(
            self.files.engine.run(
                lambda tx: file.check_readable(
                    tx, self.files.find(tx, path), RestActor(), access, start=3, length=1
                )
            )
        )

    @invariant()
    def there_is_a_row_for_everything_and_no_other(self) -> None:
        count = sum(len(node.opens) for node in self.nodes.values())
        opened = [path for path, node in self.nodes.items() if node.opens]
        assert len(self.files.rows(b"Q")) == count
        assert len(self.files.rows(b"H")) == count + len(opened)
        assert len(self.files.rows(b"O")) == sum(path.count("/") + 1 for path in opened if path)
        assert len(self.files.rows(b"M")) == sum(node.is_pending for node in self.nodes.values())

    def teardown(self) -> None:
        for owner in OWNERS:
            self.die(owner, 2)
        for prefix in (b"H", b"O", b"Q", b"M"):
            assert self.files.rows(prefix) == {}


TestHandles = Handles.TestCase
TestHandles.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
