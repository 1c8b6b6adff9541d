"""CHANGE_NOTIFY: calls that fetch what has happened in a directory, and calls that wait for it."""

import asyncio
import struct
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.accounts import Account, Store
from kyanite.model.files import directory, file, share
from kyanite.model.files.entry import FILE
from kyanite.model.files.file import NewFile, RangeWrite
from kyanite.model.files.opens import handle_lists, handles
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.opens.watches import POSITIONS
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename, rename
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.model.files.tree import FilePath, load
from kyanite.model.records import HttpHeaders
from kyanite.rules.change_filters import Filter
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import EVERYTHING, Rights
from kyanite.services.smb.change_notify import change_notify
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open, TreeConnect
from kyanite.values import Instant
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.header import Command, Header
from kyanite.wire.smb2.status import Status
from tests.model.content.world import outcome

T = TypeVar("T")
SHARE = ShareKey("acme", "share")
OWNER = b"an SMB host."
NAMES = int(Filter.FILE_NAME | Filter.DIRECTORY_NAME)
ALL = 0xFFF

Changes = list[tuple[int, str]]


class FakeRequest:
    """A request whose client can cancel it."""

    def __init__(self, environment: SmbEnvironment, opened: Open, message: bytes) -> None:
        self.environment = environment
        self.open = opened
        self.message = memoryview(message)
        self.header = Header(Command.CHANGE_NOTIFY, 1, credit_charge=1)
        self.is_waiting = asyncio.Event()
        self.at_close: Status | None = None
        self._interrupted: asyncio.Future[Any] | None = None

    async def wait(self, waiting: Awaitable[T], *, at_close: Status | None = None) -> T:
        self.at_close = at_close
        self._interrupted = asyncio.get_running_loop().create_future()
        self.is_waiting.set()
        first: asyncio.Future[Any] = asyncio.ensure_future(waiting)
        await asyncio.wait((first, self._interrupted), return_when=asyncio.FIRST_COMPLETED)
        result: T = first.result() if first.done() else self._interrupted.result()
        return result

    def interrupt(self, status: Status | None) -> None:
        assert self._interrupted is not None
        assert status is not None
        self._interrupted.set_exception(Failed(status))


class World:
    """A share with a directory ``d``, and a client that watches."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        store = Store(self.engine, cast(Any, SimpleNamespace(has_files=True)), cast(Any, None))
        account = Account("acme", (b"key",), store)
        self.environment = SmbEnvironment({"acme": account}, lambda: Instant(0), bytes(16))
        record = outcome(share.create(self.engine, SHARE, {}, ShareSettings(), directory.create_root))
        self.tree = TreeConnect(1, account, SHARE, record.id)
        outcome(self.make_directory("d"))
        self.running: list[asyncio.Task[Answer]] = []

    async def aclose(self) -> None:
        for task in self.running:
            task.cancel()
        await self.engine.close()

    def path(self, path: str) -> FilePath:
        return FilePath(SHARE, tuple(path.split("/")) if path else ())

    async def make_directory(self, path: str) -> None:
        await directory.create(self.engine, self.path(path), SmbProperties(), {})

    async def make_file(self, path: str, length: int = 1) -> None:
        new_file = NewFile(length, HttpHeaders(), {}, SmbProperties())
        await file.create(self.engine, self.path(path), new_file, None, may_overwrite=True)

    async def write(self, path: str) -> None:
        await file.write_range(self.engine, self.path(path), RangeWrite(0, 1, b"x"), None)

    async def open(self, path: str = "d", access: int = 0x1, *, deletes_on_close: bool = False) -> Open:
        request = HandleRequest(OWNER, Rights.READ, EVERYTHING, 7, "192.0.2.1", deletes_on_close)
        found = await self.engine.read(lambda snap: load(snap, self.path(path), None))
        handle = await self.engine.run(
            lambda tx: handles.open_handle(tx, load(tx, self.path(path), None), request)
        )
        is_directory = found.entry.is_directory
        return Open(self.tree, FileId(handle.id, 1), found.entry.id, access, 0, is_directory)

    async def close(self, opened: Open) -> None:
        await self.engine.run(
            lambda tx: handles.close_handle(tx, self.tree.load(tx), opened.file_id, opened.handle_id)
        )

    def call(
        self, opened: Open, *, output: int = 1000, kinds: int = NAMES, tree: bool = False
    ) -> tuple[FakeRequest, asyncio.Task[Answer]]:
        fixed = struct.pack("<HHIQQII", 32, int(tree), output, *opened.id, kinds, 0)
        request = FakeRequest(self.environment, opened, bytes(64) + fixed)
        task = asyncio.ensure_future(change_notify(cast(Request, request)))
        self.running.append(task)
        return request, task

    async def fetch(self, opened: Open, *, output: int = 1000) -> Answer:
        """What a later call on the handle fetches, which does not wait."""
        _, task = self.call(opened, output=output)
        return await asyncio.wait_for(task, 5)

    async def wait(self, opened: Open, **options: Any) -> tuple[FakeRequest, asyncio.Task[Answer]]:
        """A call that waits."""
        request, task = self.call(opened, **options)
        await asyncio.wait_for(request.is_waiting.wait(), 5)
        return request, task

    async def start(self, opened: Open, **options: Any) -> None:
        """A first call, which its client cancels: from now on changes are remembered."""
        request, task = await self.wait(opened, **options)
        request.interrupt(Status.CANCELLED)
        with pytest.raises(Failed):
            await task


@pytest.fixture
def world() -> World:
    return World()


def changes_of(answer: Answer) -> Changes:
    body = answer.body
    assert isinstance(body, bytes)
    size, offset, length = struct.unpack_from("<HHI", body)
    assert (size, offset, length) == (9, 72, len(body) - 8)
    found: Changes = []
    at = 8
    while length:
        distance, action, name_length = struct.unpack_from("<III", body, at)
        found.append((action, body[at + 12 : at + 12 + name_length].decode("utf-16-le")))
        if not distance:
            break
        assert not distance % 4
        at += distance
    return found


async def test_a_call_waits_for_the_first_change(world: World) -> None:
    _, call = await world.wait(await world.open())
    await world.make_file("d/f")
    answer = await call
    assert answer.status is Status.SUCCESS
    assert changes_of(answer) == [(1, "f")]


async def test_a_call_fetches_what_has_happened_since_the_last(world: World) -> None:
    opened = await world.open()
    await world.start(opened)
    await world.make_directory("d/e")
    await file_renamed(world)
    assert changes_of(await world.fetch(opened)) == [(1, "e"), (1, "f"), (4, "f"), (5, "g")]


async def file_renamed(world: World) -> None:
    await world.make_file("d/f")
    await rename(world.engine, world.path("d/f"), FILE, Rename(("d", "g")))


async def test_both_names_of_a_rename_are_in_one_response(world: World) -> None:
    opened = await world.open()
    await world.make_file("d/f")
    _, call = await world.wait(opened)
    await file_renamed(world)
    assert changes_of(await call) == [(4, "f"), (5, "g")]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [(ALL, [(1, "f"), (4, "f"), (5, "g")]), (int(Filter.ATTRIBUTES), [(3, "g")])],
)
async def test_a_rename_is_a_modification_to_those_who_do_not_watch_names(
    world: World, kinds: int, expected: Changes
) -> None:
    opened = await world.open()
    await world.start(opened, kinds=kinds)
    await file_renamed(world)
    assert changes_of(await world.fetch(opened)) == expected


async def test_the_first_call_of_a_handle_says_what_is_watched(world: World) -> None:
    opened = await world.open()
    await world.start(opened, kinds=int(Filter.LAST_WRITE), tree=False)
    await world.make_directory("d/e")
    _, call = await world.wait(opened, kinds=ALL, tree=True)
    await world.make_file("d/e/f")
    await world.make_file("d/f")
    assert not call.done()
    await world.write("d/f")
    assert changes_of(await call) == [(3, "f")]


async def test_a_tree_is_watched_with_all_that_is_below(world: World) -> None:
    await world.make_directory("d/e")
    root, inner = await world.open(""), await world.open("d/e")
    await world.start(root, tree=True)
    await world.start(inner, tree=True)
    await world.make_file("d/e/f")
    await world.make_file("d/g")
    assert changes_of(await world.fetch(root)) == [(1, "d\\e\\f"), (1, "d\\g")]
    assert changes_of(await world.fetch(inner)) == [(1, "f")]


async def test_the_same_change_again_is_one_change(world: World) -> None:
    opened = await world.open()
    await world.make_file("d/f")
    await world.start(opened, kinds=ALL)
    for _ in range(3):
        await world.write("d/f")
    assert changes_of(await world.fetch(opened)) == [(3, "f")]


async def test_calls_that_wait_are_answered_in_their_order(world: World) -> None:
    opened = await world.open()
    _, first = await world.wait(opened)
    cancelled, second = await world.wait(opened)
    _, third = await world.wait(opened)
    cancelled.interrupt(Status.CANCELLED)
    with pytest.raises(Failed):
        await second
    await world.make_file("d/f")
    assert changes_of(await first) == [(1, "f")]
    await world.make_file("d/g")
    assert changes_of(await third) == [(1, "g")]


async def test_a_change_before_the_first_call_is_not_reported(world: World) -> None:
    early, late = await world.open(), await world.open()
    await world.start(early)
    await world.make_file("d/f")
    await world.start(late)
    await world.make_file("d/g")
    assert changes_of(await world.fetch(late)) == [(1, "g")]
    assert changes_of(await world.fetch(early)) == [(1, "f"), (1, "g")]


@pytest.mark.parametrize("output", [0, 13])
async def test_a_change_that_does_not_fit_lets_the_client_list_the_directory(
    world: World, output: int
) -> None:
    opened = await world.open()
    await world.start(opened)
    await world.make_file("d/f")
    answer = await world.fetch(opened, output=output)
    assert answer.status is Status.NOTIFY_ENUM_DIR
    assert changes_of(answer) == []
    await world.make_file("d/g")
    assert changes_of(await world.fetch(opened)) == [(1, "g")]


async def test_the_buffer_of_the_first_call_is_for_all(world: World) -> None:
    opened = await world.open()
    await world.start(opened, output=13)
    await world.make_file("d/f")
    assert (await world.fetch(opened)).status is Status.NOTIFY_ENUM_DIR
    _, call = await world.wait(opened)
    await world.make_file("d/g")
    assert (await call).status is Status.NOTIFY_ENUM_DIR


async def test_more_than_the_buffer_has_room_for_lets_the_client_list_the_directory(world: World) -> None:
    opened = await world.open()
    await world.start(opened)
    for number in range(80):
        await world.make_file(f"d/{number}")
    assert (await world.fetch(opened)).status is Status.NOTIFY_ENUM_DIR
    await world.make_file("d/f")
    assert changes_of(await world.fetch(opened)) == [(1, "f")]


async def test_changes_that_were_missed_let_the_client_list_the_directory(world: World) -> None:
    """The process was too slow: the feed has been overwritten."""
    opened = await world.open()
    await world.start(opened, kinds=ALL)
    await world.make_file("elsewhere")

    async def write() -> None:
        for _ in range(POSITIONS):
            await world.write("elsewhere")

    coroutine = write().__await__()
    with pytest.raises(StopIteration):  # The memory engine never waits, so the feed is not read meanwhile.
        next(coroutine)
    assert (await world.fetch(opened)).status is Status.NOTIFY_ENUM_DIR


async def test_a_call_ends_when_the_directory_is_marked_for_deletion(world: World) -> None:
    opened = await world.open()
    deleting = await world.open(deletes_on_close=True)
    _, first = await world.wait(opened)
    _, second = await world.wait(opened)
    await world.close(deleting)
    for call in first, second:
        with pytest.raises(Failed) as failure:
            await call
        assert failure.value.status is Status.DELETE_PENDING
    _, later = world.call(opened)
    with pytest.raises(Refused) as refusal:
        await later
    assert refusal.value.reason is Reason.DELETE_PENDING


@pytest.mark.parametrize("is_last", [False, True])
async def test_a_call_ends_when_its_handle_is_closed_from_outside(world: World, is_last: bool) -> None:
    opened = await world.open()
    if not is_last:
        await world.start(await world.open(""))
    request, call = await world.wait(opened)
    await handle_lists.close_handles(world.engine, world.path("d"), recursive=False, handle_id=None)
    with pytest.raises(Failed) as failure:
        await asyncio.wait_for(call, 5)
    assert failure.value.status is Status.NOTIFY_CLEANUP
    assert request.at_close is Status.NOTIFY_CLEANUP
    _, later = world.call(opened)
    with pytest.raises(Refused) as refusal:
        await later
    assert refusal.value.reason is Reason.HANDLE_CLOSED


async def test_a_watch_begins_again_after_the_last_has_ended(world: World) -> None:
    first = await world.open()
    await world.start(first)
    await world.close(first)
    second = await world.open()
    _, call = await world.wait(second)
    await world.make_file("d/f")
    assert changes_of(await call) == [(1, "f")]


async def test_two_first_calls_at_once_make_one_watch(world: World) -> None:
    opened = await world.open()
    first, second = world.call(opened), world.call(opened)
    for request, _ in first, second:
        await request.is_waiting.wait()
    await world.make_file("d/f")
    assert changes_of(await first[1]) == [(1, "f")]
    await world.close(opened)
    record = await share.find(world.engine, SHARE)
    assert record is not None
    assert not record.is_watched


@pytest.mark.parametrize(
    ("path", "access", "output", "status"),
    [
        ("f", 0x1, 1000, Status.INVALID_PARAMETER),
        ("d", 0x1, 65_537, Status.INVALID_PARAMETER),
        ("d", 0x80, 1000, Status.ACCESS_DENIED),
    ],
)
async def test_only_a_directory_that_the_handle_may_list_is_watched(
    world: World, path: str, access: int, output: int, status: Status
) -> None:
    await world.make_file("f")
    _, call = world.call(await world.open(path, access), output=output)
    with pytest.raises(Failed) as failure:
        await call
    assert failure.value.status is status


async def test_two_first_calls_on_a_handle_that_was_closed_both_fail(world: World) -> None:
    opened = await world.open()
    await handle_lists.close_handles(world.engine, world.path("d"), recursive=False, handle_id=None)
    for _, call in world.call(opened), world.call(opened):
        with pytest.raises(Refused) as refusal:
            await asyncio.wait_for(call, 5)
        assert refusal.value.reason is Reason.HANDLE_CLOSED


async def test_in_a_snapshot_nothing_changes(world: World) -> None:
    opened = await world.open()
    opened.snapshot = world.path("d")
    _, call = await world.wait(opened)
    await world.make_file("d/f")
    await asyncio.sleep(0)
    assert not call.done()
