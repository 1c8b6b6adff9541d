"""A handle with WRITEs that were answered and not committed: who waits for them, and how the mark ends."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.files import tree
from kyanite.model.files.actors import Actor, FileUse, RestActor, SmbActor
from kyanite.model.files.opens import caching, data, description, handles, locks, open_files, write_behind
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.model.files.opens.data import HandleWrite
from kyanite.model.files.opens.locks import LockedFile, LockSequence
from kyanite.model.files.opens.records import OpenFile
from kyanite.model.files.opens.waits import Wait
from kyanite.model.files.tree import FilePath
from kyanite.rules.byte_locks import Lock, LockRequest
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from kyanite.values import Instant
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, FileShare

R, W, NONE = Rights.READ, Rights.WRITE, Rights.NONE
HERE, ELSEWHERE = b"this process", b"that process"


class Marked:
    """A file with a handle that has unwritten WRITEs, another one of the same process, and one of another."""

    def __init__(self) -> None:
        self.now = Instant(638_000_000_000_000_000)
        self.files = FileShare(MemoryEngine(clock=lambda: self.now))
        self.engine = self.files.engine
        self.id = self.files.make_file("f", 100)
        self.writer = self.files.open("f", R | W, owner=HERE).id
        self.neighbour = self.files.open("f", R | W, owner=HERE).id
        self.other = self.files.open("f", R | W, owner=ELSEWHERE).id
        assert self.begin(self.writer)

    def begin(self, handle_id: int) -> bool:
        return outcome(
            self.engine.run(
                lambda tx: write_behind.begin(tx, self.files.id, self.id, handle_id), durable=False
            )
        )

    def end(self, handle_id: int) -> None:
        outcome(
            self.engine.run(lambda tx: write_behind.end(tx, self.files.id, self.id, handle_id), durable=False)
        )

    def opened(self) -> OpenFile:
        opened = outcome(
            self.engine.read(lambda snap: open_files.load_open_file(snap, self.files.id, self.id))
        )
        assert opened is not None
        return opened

    def write(self, handle_id: int) -> list[Reason | None]:
        def body(tx: Transaction) -> list[Reason | None]:
            writes = [HandleWrite(handle_id, 0, 1, b"x")]
            return data.write_all(tx, tree.open_tree(tx, SHARE), self.id, writes).refusals

        return outcome(self.engine.run(body))


@pytest.fixture
def marked() -> Marked:
    return Marked()


def use(actor: Actor, access: Rights, length: int = 0) -> Callable[[Marked], object]:
    def act(marked: Marked) -> object:
        return outcome(
            marked.engine.read(
                lambda snap: actor.check(snap, marked.files.id, marked.id, FileUse(access, 0, length))
            )
        )

    return act


def read(handle: str) -> Callable[[Marked], object]:
    def act(marked: Marked) -> object:
        def body(snap: Snapshot) -> object:
            share_tree = tree.open_tree(snap, SHARE)
            return data.read(snap, share_tree, marked.id, getattr(marked, handle), 0, 1)

        return outcome(marked.engine.read(body))

    return act


def describe(handle: str) -> Callable[[Marked], object]:
    def act(marked: Marked) -> object:
        def body(snap: Snapshot) -> object:
            share_tree = tree.open_tree(snap, SHARE)
            return description.describe(snap, share_tree, marked.id, getattr(marked, handle))

        return outcome(marked.engine.read(body))

    return act


WAITS: dict[str, Callable[[Marked], object]] = {
    "REST reads": use(RestActor(), R, 1),
    "REST writes": use(RestActor(), W, 1),
    "REST reads properties": use(RestActor(), NONE),
    "another handle reads": read("neighbour"),
    "another handle changes": lambda marked: use(SmbActor(marked.neighbour), W, 1)(marked),
    "another handle looks at the length": describe("neighbour"),
    "another process writes": lambda marked: marked.write(marked.other),
}
GOES_ON: dict[str, Callable[[Marked], object]] = {
    "the handle reads": read("writer"),
    "the handle looks at the length": describe("writer"),
    "the handle changes": lambda marked: use(SmbActor(marked.writer), W, 1)(marked),
    "the queue writes for the handle": lambda marked: marked.write(marked.writer),
    "the queue writes for another handle": lambda marked: marked.write(marked.neighbour),
}


@pytest.mark.parametrize("what", WAITS)
def test_who_waits(marked: Marked, what: str) -> None:
    with pytest.raises(BreakNeeded) as needed:
        WAITS[what](marked)
    assert not marked.opened().is_flush_wanted
    assert outcome(marked.engine.run(lambda tx: caching.send_breaks(tx, needed.value), durable=False))
    assert marked.opened().is_flush_wanted
    marked.end(marked.writer)
    WAITS[what](marked)


@pytest.mark.parametrize("what", GOES_ON)
def test_who_goes_on(marked: Marked, what: str) -> None:
    GOES_ON[what](marked)
    assert marked.opened().unwritten == marked.writer


def lock(marked: Marked, handle_id: int) -> object:
    request = LockRequest((Lock(0, 1, True, handle_id),), may_wait=False)
    file = LockedFile(marked.files.id, marked.id, handle_id)
    return outcome(marked.engine.run(lambda tx: locks.lock(tx, file, request, LockSequence(0, 0))))


def test_a_lock_waits_unless_it_is_of_the_same_handle(marked: Marked) -> None:
    assert isinstance(lock(marked, marked.other), Wait)
    assert marked.opened().is_flush_wanted
    assert lock(marked, marked.writer) is None


def test_a_group_learns_that_others_wait(marked: Marked) -> None:
    lock(marked, marked.other)

    def body(tx: Transaction) -> bool:
        writes = [HandleWrite(marked.writer, 0, 1, b"x")]
        return data.write_all(tx, tree.open_tree(tx, SHARE), marked.id, writes).is_flush_wanted

    assert outcome(marked.engine.run(body))


def test_one_handle_at_a_time_is_marked(marked: Marked) -> None:
    assert not marked.begin(marked.neighbour)
    assert marked.begin(marked.writer)
    marked.end(marked.neighbour)
    assert marked.opened().unwritten == marked.writer
    marked.end(marked.writer)
    assert marked.begin(marked.neighbour)


def test_those_that_have_waited_come_first(marked: Marked) -> None:
    lock(marked, marked.other)
    marked.end(marked.writer)
    assert not marked.begin(marked.writer)
    marked.now = Instant(marked.now + 1_100_000)
    assert marked.begin(marked.writer)


def test_the_mark_goes_with_the_handle(marked: Marked) -> None:
    marked.files.close(marked.id, marked.writer)
    assert marked.opened().unwritten == 0
    with pytest.raises(Refused) as refused:
        marked.begin(marked.writer)
    assert refused.value.reason is Reason.HANDLE_CLOSED


def test_the_mark_goes_with_a_process_that_dies(marked: Marked) -> None:
    outcome(marked.engine.run(lambda tx: handles.close_handles_of_owner(tx, HERE), durable=False))
    assert marked.opened().unwritten == 0


def test_the_mark_follows_a_rename(marked: Marked) -> None:
    lock(marked, marked.other)
    before = marked.opened()

    def body(tx: Transaction) -> None:
        location, entry = tree.load(tx, FilePath(SHARE, ("f",)), None)
        handles.follow_rename(tx, entry, location._replace(name="g"))

    outcome(marked.engine.run(body))
    assert marked.opened() == replace(before, folded_name="G", path="g")
    assert before.unwritten
    assert before.is_flush_wanted


def can_write_behind(marked: Marked, offset: int = 0) -> bool:
    def body(snap: Snapshot) -> bool:
        share_tree = tree.open_tree(snap, SHARE)
        return data.can_write_behind(snap, share_tree, marked.id, marked.writer, offset, 10)

    return outcome(marked.engine.read(body))


def test_a_write_that_would_be_refused_is_refused_at_once(marked: Marked) -> None:
    assert can_write_behind(marked)
    marked.end(marked.writer)
    marked.files.lock(marked.id, marked.other, (50, 10, True))
    assert can_write_behind(marked, 40)
    with pytest.raises(Refused) as refused:
        can_write_behind(marked, 45)
    assert refused.value.reason is Reason.FILE_LOCK_CONFLICT


def test_nothing_is_answered_early_while_others_wait(marked: Marked) -> None:
    lock(marked, marked.other)
    assert not can_write_behind(marked)
