"""Opening, closing, marking and renaming at random, against an oracle that keeps a tree of nodes and their opens.

The oracle is written apart from the rules of the server. After each step both agree on what exists, and when everything
is closed no row is left.
"""

import struct
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kyanite.model.files.listing import DirectoryListing, list_directory
from kyanite.model.files.tree import FilePath
from kyanite.services.smb.rename import rename, set_disposition
from kyanite.services.smb.state import Open
from kyanite.wire.smb2.status import Status
from tests.model.content.world import outcome
from tests.profiles import examples
from tests.services.smb.client import SHARE, Client

T = TypeVar("T")
READ, WRITE, DELETE, ATTRIBUTES = 0x1, 0x2, 0x10000, 0x80
SHARE_BIT = {READ: 1, WRITE: 2, DELETE: 4}
DIRECTORY, FILE, DELETE_ON_CLOSE = 0x1, 0x40, 0x1000
SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF = range(6)
PATHS = ("", "a", "b", "d", "d\\a", "d\\e", "d\\e\\f", "x")
ACCESS = st.sampled_from((ATTRIBUTES, READ, READ | WRITE, DELETE, READ | WRITE | DELETE, DELETE | ATTRIBUTES))
SHARING = st.sampled_from((7, 7, 7, 7, 3, 1, 0, 5))


@dataclass(eq=False)
class Held:
    open: Open
    access: int
    sharing: int
    deletes: bool


@dataclass(eq=False)
class Node:
    is_directory: bool
    held: list[Held] = field(default_factory=list)
    is_pending: bool = False


def parent_of(path: str) -> str:
    return path.rpartition("\\")[0]


class QuickClient(Client):
    """Runs without an event loop, since nothing has to wait."""

    def run(self, awaitable: Awaitable[T]) -> T:
        return outcome(awaitable)


class Opens(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.client = QuickClient()
        self.nodes = {"": Node(is_directory=True)}

    # What the oracle knows

    def below(self, path: str) -> list[str]:
        return [each for each in self.nodes if each and each != path and f"{each}\\".startswith(f"{path}\\")]

    def pick(self, nth: int) -> tuple[str, Node, Held]:
        every = [(path, node, held) for path, node in sorted(self.nodes.items()) for held in node.held]
        return every[nth % len(every)]

    def conflicts(self, node: Node, access: int, sharing: int) -> bool:
        mine = [bit for right, bit in SHARE_BIT.items() if access & right]
        for held in node.held:
            theirs = [bit for right, bit in SHARE_BIT.items() if held.access & right]
            if (
                mine
                and theirs
                and not (all(bit & held.sharing for bit in mine) and all(bit & sharing for bit in theirs))
            ):
                return True
        return False

    def expected_create(
        self, path: str, disposition: int, access: int, sharing: int, options: int
    ) -> Status | int:
        """A status, or the action of a success."""
        if options & DELETE_ON_CLOSE and not access & DELETE:
            return Status.INVALID_PARAMETER
        overwrites = disposition in (SUPERSEDE, OVERWRITE, OVERWRITE_IF)
        if options & DIRECTORY and overwrites:
            return Status.INVALID_PARAMETER
        parent = self.nodes.get(parent_of(path))
        if parent is None or not parent.is_directory:
            return Status.OBJECT_PATH_NOT_FOUND
        node = self.nodes.get(path)
        if node is None:
            if disposition in (OPEN, OVERWRITE):
                return Status.OBJECT_NAME_NOT_FOUND
            return Status.DELETE_PENDING if parent.is_pending else 2
        if node.is_pending:
            return Status.DELETE_PENDING
        if node.is_directory and options & FILE:
            return Status.FILE_IS_A_DIRECTORY
        if disposition == CREATE:
            return Status.OBJECT_NAME_COLLISION
        if not node.is_directory and options & DIRECTORY:
            return Status.NOT_A_DIRECTORY
        if node.is_directory and overwrites:
            return Status.INVALID_PARAMETER
        if not path and options & DELETE_ON_CLOSE:
            return Status.ACCESS_DENIED
        if self.conflicts(node, access | WRITE if overwrites else access, sharing):
            return Status.SHARING_VIOLATION
        return {SUPERSEDE: 0, OVERWRITE: 3, OVERWRITE_IF: 3}.get(disposition, 1)

    def expected_rename(self, path: str, target: str, *, replaces: bool) -> Status:
        node = self.nodes[path]
        if not path:
            return Status.ACCESS_DENIED
        if node.is_directory and target.startswith(f"{path}\\"):
            return Status.SHARING_VIOLATION
        directory = self.nodes.get(parent_of(target))
        if directory is None or not directory.is_directory:
            return Status.OBJECT_PATH_NOT_FOUND
        if any(self.nodes[each].held for each in self.below(path)):
            return Status.ACCESS_DENIED
        if directory.is_pending:
            return Status.DELETE_PENDING
        if self.conflicts(directory, WRITE, 3):
            return Status.SHARING_VIOLATION
        old = self.nodes.get(target)
        if old is not None and target != path:
            if not replaces:
                return Status.OBJECT_NAME_COLLISION
            if old.is_directory or old.held:
                return Status.ACCESS_DENIED
        return Status.SUCCESS

    # Steps

    @rule(
        path=st.sampled_from(PATHS),
        disposition=st.sampled_from(
            (SUPERSEDE, OPEN, OPEN, CREATE, OPEN_IF, OPEN_IF, OVERWRITE, OVERWRITE_IF)
        ),
        access=ACCESS,
        sharing=SHARING,
        kind=st.sampled_from((0, 0, FILE, DIRECTORY, DIRECTORY)),
        deletes=st.sampled_from((0, 0, 0, DELETE_ON_CLOSE)),
    )
    def create(self, path: str, disposition: int, access: int, sharing: int, kind: int, deletes: int) -> None:
        options = kind | deletes
        expected = self.expected_create(path, disposition, access, sharing, options)
        found = self.client.create(path, disposition, access=access, sharing=sharing, options=options)
        assert (found.action if found.status is Status.SUCCESS else found.status) == expected
        if found.status is Status.SUCCESS:
            node = self.nodes.setdefault(path, Node(is_directory=kind == DIRECTORY))
            assert found.opened.is_directory is node.is_directory
            node.held.append(Held(found.opened, access, sharing, bool(deletes)))

    @precondition(lambda self: any(node.held for node in self.nodes.values()))
    @rule(nth=st.integers(0, 99))
    def close(self, nth: int) -> None:
        path, node, held = self.pick(nth)
        assert self.client.close(held.open)[0] is Status.SUCCESS
        node.held.remove(held)
        is_empty = not self.below(path)
        node.is_pending = node.is_pending or (held.deletes and is_empty)
        if not node.held and node.is_pending:
            del self.nodes[path]

    @precondition(lambda self: any(node.held for node in self.nodes.values()))
    @rule(nth=st.integers(0, 99), deletes=st.booleans())
    def mark(self, nth: int, deletes: bool) -> None:
        path, node, held = self.pick(nth)
        expected = Status.SUCCESS
        if not held.access & DELETE or (deletes and not path):
            expected = Status.ACCESS_DENIED
        elif deletes and self.below(path):
            expected = Status.DIRECTORY_NOT_EMPTY
        assert self.client.apply(set_disposition, held.open, bytes([deletes])) is expected
        if expected is Status.SUCCESS:
            node.is_pending = deletes

    @precondition(lambda self: any(node.held for node in self.nodes.values()))
    @rule(nth=st.integers(0, 99), to=st.sampled_from(PATHS[1:]), replaces=st.booleans())
    def move(self, nth: int, to: str, replaces: bool) -> None:
        path, node, held = self.pick(nth)
        expected = self.expected_rename(path, to, replaces=replaces)
        if not held.access & DELETE:
            expected = Status.ACCESS_DENIED
        name = to.encode("utf-16-le")
        data = struct.pack("<B7xQI", replaces, 0, len(name)) + name
        assert self.client.apply(rename, held.open, data) is expected
        if expected is Status.SUCCESS and to != path:
            moved = [path, *self.below(path)]
            kept = {each: self.nodes.pop(each) for each in moved}
            self.nodes.update({to + each.removeprefix(path): kept[each] for each in moved})
            assert self.nodes[to] is node

    # What both agree on

    @invariant()
    def the_same_exists(self) -> None:
        for path, node in self.nodes.items():
            if node.is_directory:
                expected = {each for each in self.nodes if each and parent_of(each) == path}
                expected = {each for each in expected if not self.nodes[each].is_pending}
                assert {f"{path}\\{name}".lstrip("\\") for name in self.listed(path)} == expected

    @invariant()
    def handles_are_rows(self) -> None:
        assert len(self.client.rows(b"Q")) == sum(len(node.held) for node in self.nodes.values())

    def listed(self, path: str) -> list[str]:
        at = FilePath(SHARE, tuple(path.split("\\")) if path else ())
        page = self.client.run(list_directory(self.client.engine, at, DirectoryListing()))
        return [each.name for each in page.entries]

    def teardown(self) -> None:
        while any(node.held for node in self.nodes.values()):
            self.close(0)
        assert not any(self.client.rows(prefix) for prefix in (b"H", b"O", b"Q", b"M"))


Opens.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestOpens = Opens.TestCase
