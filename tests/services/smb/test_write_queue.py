"""The queue of WRITEs: which transaction each becomes part of, when it is answered, and what becomes of its extents."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import pytest

from kyanite.engine.api import EngineBusy, EngineFull, Scope, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.api import Extent, Extents
from kyanite.membership.api import Membership
from kyanite.model.accounts import Store
from kyanite.model.files import tree
from kyanite.model.files.opens import handles, open_files
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from kyanite.services.smb.pending_write import NewWrite, PendingWrite, PendingWrites
from kyanite.services.smb.write_queue import WriteQueues, WriteTarget
from kyanite.values import Instant
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, FileShare

T = TypeVar("T")

LARGE = 100_000
MIB = 1 << 20


class CountingEngine(MemoryEngine):
    """Counts transactions. One may be made to fail, or to wait for a future."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: Instant(638_000_000_000_000_000))
        self.durable: list[bool] = []
        self.failure: Exception | None = None
        self.gate: asyncio.Future[None] | None = None

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        self.durable.append(durable)
        return self._run(body, durable)

    async def _run(self, body: Callable[[Transaction], T], durable: bool) -> T:
        if self.gate is not None:
            await self.gate
        if self.failure is not None:
            raise self.failure
        return await super().run(body, durable=durable)


class HeldExtents:
    """Extents whose puts end when the test says so, in any order."""

    has_files = True

    def __init__(self) -> None:
        self.puts: list[asyncio.Future[Extent]] = []
        self.sizes: list[int] = []
        self.on_written: list[Callable[[], object] | None] = []
        self.committed: list[Extent] = []
        self.discarded: list[Extent] = []

    async def put(self, data: bytes | memoryview, on_written: Callable[[], object] | None = None) -> Extent:
        self.sizes.append(len(data))
        put: asyncio.Future[Extent] = asyncio.get_running_loop().create_future()
        self.puts.append(put)
        self.on_written.append(on_written)
        return await put

    def write(self, number: int) -> None:
        """The file has the bytes, and the disk has not."""
        on_written = self.on_written[number]
        assert on_written is not None
        on_written()

    def finish(self, number: int) -> Extent:
        extent = Extent(bytes(16), number * MIB, self.sizes[number], 0)
        self.puts[number].set_result(extent)
        return extent

    def commit(self, extents: Sequence[Extent]) -> None:
        self.committed += extents

    async def discard(self, extents: Sequence[Extent]) -> None:
        self.discarded += extents


class World:
    """A file that is open, and the queue of its worker."""

    def __init__(self) -> None:
        self.engine = CountingEngine()
        self.share = FileShare(self.engine)
        self.file_id = self.share.make_file("f")
        self.handle = self.share.open("f", Rights.WRITE).id
        self.engine.durable.clear()
        self.extents = HeldExtents()
        store = Store(self.engine, cast(Extents, self.extents), cast(Membership, None))
        self.target = WriteTarget(
            store, lambda snap: tree.open_tree(snap, SHARE), self.share.id, self.file_id
        )
        self.queues = WriteQueues()
        self.pending = PendingWrites()

    def write(self, offset: int, length: int, handle: int | None = None) -> "asyncio.Future[None]":
        new = NewWrite(handle or self.handle, offset, memoryview(bytes(length)))
        write = self.queues.write(self.target, new)
        self.pending.add(write)
        return write.done

    def write_behind(self, offset: int, length: int, handle: int | None = None) -> PendingWrite:
        new = NewWrite(handle or self.handle, offset, memoryview(bytes(length)), may_be_behind=True)
        write = self.queues.write(self.target, new)
        self.pending.add(write)
        return write

    @property
    def unwritten(self) -> int:
        """The handle that is marked."""
        opened = outcome(
            self.engine.read(lambda snap: open_files.load_open_file(snap, self.share.id, self.file_id))
        )
        return 0 if opened is None else opened.unwritten

    @property
    def length(self) -> int:
        return outcome(
            self.engine.read(lambda snap: tree.load(snap, self.share.path("f"), None).entry.length)
        )

    def assert_empty(self) -> None:
        assert not self.queues._queues


async def let_run(count: int = 20) -> None:
    """Let everything run that does not wait for the test."""
    for _ in range(count):
        await asyncio.sleep(0)


def run(body: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World()
        await body(world)
        await let_run()
        world.assert_empty()

    asyncio.run(main())


def test_a_short_write_is_one_durable_transaction_and_no_extent() -> None:
    async def body(world: World) -> None:
        await world.write(0, 16_384)
        assert (world.engine.durable, world.extents.puts, world.length) == ([True], [], 16_384)

    run(body)


def test_a_long_write_is_stored_in_pieces_and_answered_when_all_are_committed() -> None:
    async def body(world: World) -> None:
        done = world.write(0, 2 * MIB + 1)
        await let_run()
        assert world.extents.sizes == [MIB, MIB, 1]
        world.extents.finish(2)
        world.extents.finish(0)
        await let_run()
        assert (done.done(), world.engine.durable) == (False, [])
        world.extents.finish(1)
        await done
        assert [extent.start for extent in world.extents.committed] == [0, MIB, 2 * MIB]
        assert (world.engine.durable, world.length) == ([True], 2 * MIB + 1)

    run(body)


def test_those_that_are_on_disk_commit_together_in_the_order_of_arrival() -> None:
    async def body(world: World) -> None:
        first, second, third, fourth = (world.write(at * LARGE, LARGE) for at in range(4))
        await let_run()
        world.extents.finish(1)
        world.extents.finish(2)
        await let_run()
        assert not any(each.done() for each in (first, second, third))
        world.extents.finish(0)
        await asyncio.wait([first, second, third])
        assert (world.engine.durable, fourth.done(), world.length) == ([True], False, 3 * LARGE)
        world.extents.finish(3)
        await fourth
        assert (world.engine.durable, world.length) == ([True, True], 4 * LARGE)

    run(body)


def test_what_arrives_during_a_commit_gathers_for_the_next() -> None:
    async def body(world: World) -> None:
        gate = world.engine.gate = asyncio.get_running_loop().create_future()
        writes = [world.write(0, 10)]
        await let_run()
        writes += [world.write(10 * at, 10) for at in range(1, 9)]
        await let_run()
        assert len(world.engine.durable) == 1
        gate.set_result(None)
        await asyncio.wait(writes)
        assert (len(world.engine.durable), world.length) == (2, 90)

    run(body)


def test_a_write_that_is_refused_discards_its_extents_and_the_others_stand() -> None:
    async def body(world: World) -> None:
        other = world.share.open("f", Rights.WRITE).id
        world.share.lock(world.file_id, other, (LARGE, 10, True))
        first, second, third = (world.write(at * LARGE, LARGE) for at in range(3))
        await let_run()
        extents = [world.extents.finish(number) for number in range(3)]
        await asyncio.wait([first, second, third])
        refusal = second.exception()
        assert isinstance(refusal, Refused)
        assert refusal.reason is Reason.FILE_LOCK_CONFLICT
        assert (first.exception(), third.exception()) == (None, None)
        await let_run()
        assert world.extents.discarded == [extents[1]]
        assert world.extents.committed == [extents[0], extents[2]]

    run(body)


def test_a_write_whose_bytes_could_not_be_stored_fails_alone() -> None:
    async def body(world: World) -> None:
        first, second = world.write(0, 2 * MIB), world.write(2 * MIB, 10)
        await let_run()
        stored = world.extents.finish(0)
        world.extents.puts[1].set_exception(EngineFull("no space"))
        with pytest.raises(EngineFull):
            await first
        await second
        await let_run()
        assert (world.extents.discarded, world.extents.committed) == ([stored], [])
        assert world.length == 2 * MIB + 10

    run(body)


@pytest.mark.parametrize(
    ("failure", "is_discarded"), [(EngineBusy("busy"), True), (EngineFull("full"), True), (OSError(), False)]
)
def test_extents_of_a_failed_transaction(failure: Exception, is_discarded: bool) -> None:
    """When its outcome is unknown they stay: rows may refer to them."""

    async def body(world: World) -> None:
        world.engine.failure = failure
        done = world.write(0, LARGE)
        await let_run()
        extent = world.extents.finish(0)
        with pytest.raises(type(failure)):
            await done
        await let_run()
        assert world.extents.discarded == ([extent] if is_discarded else [])
        assert world.extents.committed == []

    run(body)


def test_who_reads_or_closes_waits_for_the_writes_before_and_for_no_later_ones() -> None:
    async def body(world: World) -> None:
        first = world.write(0, LARGE)
        drained = asyncio.ensure_future(world.pending.drained())
        await let_run()
        second = world.write(LARGE, LARGE)
        await let_run()
        assert not drained.done()
        world.extents.finish(0)
        await drained
        assert (first.done(), second.done()) == (True, False)
        world.extents.finish(1)
        await second
        await world.pending.drained()

    run(body)


def test_a_waiting_client_that_goes_does_not_stop_its_write() -> None:
    async def body(world: World) -> None:
        done = world.write(0, LARGE)
        waiting: asyncio.Future[Any] = asyncio.ensure_future(world.pending.drained())
        await let_run()
        waiting.cancel()
        world.extents.finish(0)
        await done
        assert world.length == LARGE

    run(body)


# --- Answers before the commit


def test_a_long_write_is_answered_when_a_file_has_its_bytes() -> None:
    async def body(world: World) -> None:
        write = world.write_behind(0, MIB + 1)
        await let_run()
        world.extents.write(0)
        await let_run()
        assert not write.answered.done()
        world.extents.write(1)
        await write.answered
        assert (world.unwritten, write.done.done(), world.length) == (world.handle, False, 0)
        world.extents.finish(0)
        world.extents.finish(1)
        await write.done
        await let_run()
        assert (world.unwritten, world.length) == (0, MIB + 1)
        assert world.engine.durable == [False, True, False]

    run(body)


def test_a_short_write_is_answered_before_its_commit() -> None:
    async def body(world: World) -> None:
        write = world.write_behind(0, 10)
        await write.answered
        await world.pending.drained()
        assert world.length == 10

    run(body)


def test_the_mark_stays_until_everything_that_was_answered_is_committed() -> None:
    async def body(world: World) -> None:
        first, second = world.write_behind(0, LARGE), world.write_behind(LARGE, LARGE)
        await let_run()
        world.extents.write(0)
        world.extents.write(1)
        await asyncio.wait([first.answered, second.answered])
        world.extents.finish(0)
        await first.done
        await let_run()
        assert world.unwritten == world.handle
        world.extents.finish(1)
        await second.done
        await let_run()
        assert world.unwritten == 0

    run(body)


def test_when_others_wait_the_next_writes_are_answered_when_they_are_committed() -> None:
    async def body(world: World) -> None:
        first, second = world.write_behind(0, LARGE), world.write_behind(LARGE, LARGE)
        await let_run()
        world.extents.write(0)
        await first.answered

        def want_flush(tx: Transaction) -> None:
            opened = open_files.load_open_file(tx, world.share.id, world.file_id)
            assert opened is not None
            handles.want_flush(tx, world.share.id, opened)

        await world.engine.run(want_flush)
        third = world.write_behind(2 * LARGE, LARGE)
        world.extents.finish(0)
        await first.done
        await let_run()
        world.extents.write(1)
        world.extents.write(2)
        await let_run()
        assert (second.answered.done(), third.answered.done(), world.unwritten) == (False, False, 0)
        world.extents.finish(1)
        world.extents.finish(2)
        await world.pending.drained()

    run(body)


def test_another_handle_is_not_answered_early_at_the_same_time() -> None:
    async def body(world: World) -> None:
        other = world.share.open("f", Rights.WRITE).id
        first, second = world.write_behind(0, LARGE), world.write_behind(LARGE, LARGE, other)
        await let_run()
        world.extents.write(0)
        world.extents.write(1)
        await first.answered
        await let_run()
        assert not second.answered.done()
        world.extents.finish(0)
        world.extents.finish(1)
        await second.answered
        assert second.done.done()

    run(body)


def test_an_error_after_the_answer_is_kept_for_the_next_flush() -> None:
    async def body(world: World) -> None:
        write = world.write_behind(0, LARGE)
        await let_run()
        world.extents.write(0)
        await write.answered
        world.extents.puts[0].set_exception(EngineFull("no space"))
        await world.pending.drained()
        await let_run()
        assert isinstance(world.pending.late_error, EngineFull)
        assert world.unwritten == 0

    run(body)


def test_a_write_that_is_committed_before_its_mark_leaves_no_mark() -> None:
    async def body(world: World) -> None:
        gate = asyncio.get_running_loop().create_future()
        write = world.write_behind(0, LARGE)
        await let_run()
        world.engine.gate = gate
        world.extents.write(0)
        world.extents.finish(0)
        await let_run()
        gate.set_result(None)
        await write.done
        await let_run()
        assert world.unwritten == 0

    run(body)
