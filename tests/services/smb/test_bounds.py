"""No step on the event loop is long, whatever an SMB client sends: every kind of request at its limit.

Steps are counted as for REST (``tests/services/test_bounds.py``). In memory a connection gets a whole frame at a time;
that frames take turns is tested with sockets (``tests/server/smb/test_connection.py``).
"""

import asyncio
from pathlib import Path

import pytest
from bench.hostile import smb_lane

from kyanite.engine.api import Transaction
from kyanite.model.files.opens.locks import LOCKS_MAX, LOCKS_OF_FILE_MAX
from kyanite.wire.smb2.compound import LONGEST_CHAIN
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.lock import ELEMENTS_MAX
from kyanite.wire.smb2.status import Status
from tests.model.counted import CountingEngine, unlimited
from tests.services.smb.raw_client import RawClient, Reply, split
from tests.services.smb.service import SmbService
from tests.services.test_bounds import CALLS_MAX, ROWS_MAX, Steps

ENTRIES = 6_000
CREDITS = 500
_EXCLUSIVE, _UNLOCK = 0x12, 0x4


class BoundedSmb:
    """One client whose requests take no long steps."""

    def __init__(self, folder: Path) -> None:
        self.engine = CountingEngine()
        self.service = SmbService(folder, engine=self.engine)
        self.client: RawClient

    async def begin(self) -> None:
        self.client = await self.service.connected()
        await self.client.log_on(credits=CREDITS)
        await self.client.connect_tree()

    async def open(self, name: str, *, of_directory: bool = False) -> bytes:
        body = smb_lane.create(name, of_directory=of_directory, disposition=3)
        reply = await self.client.request(Command.CREATE, body)
        assert reply.status is Status.SUCCESS
        return reply.body[64:80]

    async def copies(self, count: int) -> None:
        """Copy the entry of the file "first" to other names."""
        rows = await self.engine.read(lambda snap: list(snap.scan(b"", b"\xff")))
        key, value = next((key, value) for key, value in rows if key.endswith(b"FIRST"))
        base = key.removesuffix(b"FIRST")

        def body(tx: Transaction) -> None:
            for number in range(count):
                tx.put(base + b"F%08d" % number, value)

        with unlimited():
            await self.engine.run(body)

    async def check(self, *messages: bytes, answers: int = 1) -> list[Reply]:
        """Send frames, and check that no step until the answers is long."""
        self.engine.costs.clear()
        steps = Steps()
        replies: list[Reply] = []
        with steps.counted():
            for message in messages:
                self.client.give(message)
            while len(replies) < answers:
                async with asyncio.timeout(60):
                    replies += split(await self.client.transport.sent.get())
        assert max(self.engine.costs, default=0) <= ROWS_MAX
        assert steps.longest <= CALLS_MAX
        return replies

    async def request(self, command: int, body: bytes) -> Reply:
        (reply,) = await self.check(self.client.message(command, body))
        return reply


@pytest.fixture
def smb(tmp_path: Path) -> BoundedSmb:
    return BoundedSmb(tmp_path)


@pytest.mark.parametrize("pattern", ["*", "*no?such*", '<no"such'])
async def test_query_directory(smb: BoundedSmb, pattern: str) -> None:
    await smb.begin()
    await smb.open("first")
    await smb.copies(ENTRIES)
    root = await smb.open("", of_directory=True)
    body = smb_lane.query_directory(root, pattern)
    reply = await smb.request(Command.QUERY_DIRECTORY, body)
    assert reply.status is (Status.SUCCESS if pattern == "*" else Status.NO_SUCH_FILE)
    await smb.service.aclose()


async def test_the_longest_compound(smb: BoundedSmb) -> None:
    await smb.begin()
    await smb.open("first")
    await smb.copies(ENTRIES)
    root = await smb.open("", of_directory=True)
    body = smb_lane.query_directory(root)
    body += bytes(-len(body) % 8)
    parts = [
        smb.client.message(
            Command.QUERY_DIRECTORY, body, following=64 + len(body) if number < LONGEST_CHAIN - 1 else 0
        )
        for number in range(LONGEST_CHAIN)
    ]
    replies = await smb.check(b"".join(parts), answers=LONGEST_CHAIN)
    assert {reply.status for reply in replies} == {Status.SUCCESS}
    await smb.service.aclose()


async def test_locks(smb: BoundedSmb) -> None:
    """As many as a handle and a file may have, in requests as long as they may be."""
    await smb.begin()
    handles = [await smb.open("first") for _ in range(LOCKS_OF_FILE_MAX // LOCKS_MAX + 1)]
    locked = 0
    statuses = []
    for handle in handles:
        for _ in range(LOCKS_MAX // 250):
            ranges = [(10 * (locked + each), 5) for each in range(250)]
            locked += 250
            reply = await smb.request(Command.LOCK, smb_lane.lock(handle, ranges, _EXCLUSIVE))
            statuses.append(reply.status)
    full = LOCKS_OF_FILE_MAX // 250
    assert statuses[:full] == [Status.SUCCESS] * full
    assert Status.SUCCESS not in statuses[full:]
    ranges = [(10 * each, 5) for each in range(LOCKS_MAX)]
    for at in range(0, LOCKS_MAX, 250):
        body = smb_lane.lock(handles[0], ranges[at : at + 250][::-1], _UNLOCK)
        assert (await smb.request(Command.LOCK, body)).status is Status.SUCCESS
    await smb.service.aclose()


@pytest.mark.parametrize("flags", [_EXCLUSIVE, _UNLOCK])
async def test_a_request_for_too_many_locks(smb: BoundedSmb, flags: int) -> None:
    await smb.begin()
    handle = await smb.open("first")
    body = smb_lane.lock(handle, [(each, 1) for each in range(ELEMENTS_MAX + 1)], flags)
    assert (await smb.request(Command.LOCK, body)).status is Status.INSUFFICIENT_RESOURCES
    body = smb_lane.lock(handle, [(each, 1) for each in range(60_000)], flags)
    assert (await smb.request(Command.LOCK, body)).status is Status.INSUFFICIENT_RESOURCES
    await smb.service.aclose()


async def test_a_change_that_many_handles_watch(smb: BoundedSmb) -> None:
    await smb.begin()
    watched = [await smb.open("", of_directory=True) for _ in range(CREDITS - 60)]
    frames = [smb.client.message(Command.CHANGE_NOTIFY, smb_lane.change_notify(handle)) for handle in watched]
    for frame in frames:
        smb.client.give(frame)
    for _ in frames:
        (interim,) = split(await smb.client.transport.sent.get())
        assert interim.status is Status.PENDING
    create = smb.client.message(Command.CREATE, smb_lane.create("new", disposition=2))
    replies = await smb.check(create, answers=1 + len(frames))
    assert {reply.status for reply in replies} == {Status.SUCCESS}
    await smb.service.aclose()
