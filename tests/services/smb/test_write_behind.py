"""A server that promises durability at FLUSH only: what it answers before the disk has it, and who waits for that."""

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kyanite.extents.local.file_system import FileSystem
from kyanite.model.files import file, tree
from kyanite.model.files.share import ShareKey
from kyanite.wire.smb2.create import WRITE_THROUGH
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.harness import ACCOUNT
from tests.services.smb.raw_client import RawClient, Reply, create_body
from tests.services.smb.service import SHARE, SmbService
from tests.services.smb.test_data import Client, data_of, lock_body, read_body, write_body

LARGE = 100_000
DATA = bytes(range(250)) * 400
EXCLUSIVE_AT_ONCE = 0x12


class HeldDisk(FileSystem):
    """Syncs of segments wait until the test lets them go on."""

    def __init__(self) -> None:
        self.may_sync = threading.Event()

    def sync(self, fd: int) -> None:
        assert self.may_sync.wait(30)
        super().sync(fd)


class World:
    """A client that has a file open, on a server whose disk is slow."""

    def __init__(self, folder: Path) -> None:
        self.disk = HeldDisk()
        self.service = SmbService(folder, file_system=self.disk)
        self.service.answer_writes_early()

    async def aclose(self) -> None:
        self.disk.may_sync.set()
        await self.service.aclose()

    async def connect(self) -> Client:
        raw = await self.service.connected()
        await raw.echo(credits=512)
        return Client(raw)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def give_write(client: Client, opened: bytes, offset: int = 0, *, flags: int = 0) -> None:
    body = bytearray(write_body(opened, offset, DATA))
    struct.pack_into("<I", body, 44, flags)
    client.raw.give(client.raw.message(Command.WRITE, bytes(body), charge=2, credits=2))


async def is_silent(raw: RawClient) -> bool:
    """Whether no response comes, for as long as anything takes that does not wait for the disk."""
    await asyncio.sleep(0.05)
    return raw.transport.sent.empty()


async def next_status(client: Client) -> Status:
    (reply,) = await client.raw.next()
    return reply.status


async def test_a_write_is_answered_and_a_flush_waits_for_the_disk(world: World) -> None:
    client = await world.connect()
    opened = await client.open("f")
    assert (await client.write(opened, 0, DATA)).status is Status.SUCCESS
    client.raw.give(client.raw.message(Command.FLUSH, struct.pack("<HHI", 24, 0, 0) + opened))
    assert await is_silent(client.raw)
    world.disk.may_sync.set()
    assert await next_status(client) is Status.SUCCESS
    assert data_of(await client.read(opened, 0, len(DATA))) == DATA


async def test_a_close_waits_for_the_disk(world: World) -> None:
    client = await world.connect()
    opened = await client.open("f")
    await client.write(opened, 0, DATA)
    client.raw.give(client.raw.message(Command.CLOSE, struct.pack("<HHI", 24, 0, 0) + opened))
    assert await is_silent(client.raw)
    world.disk.may_sync.set()
    assert await next_status(client) is Status.SUCCESS


@pytest.mark.parametrize(("flags", "options"), [(1, 0), (0, WRITE_THROUGH)], ids=["flag", "option"])
async def test_a_client_that_wants_it_on_disk_waits(world: World, flags: int, options: int) -> None:
    client = await world.connect()
    opened = await client.open("f", options=options)
    give_write(client, opened, flags=flags)
    assert await is_silent(client.raw)
    world.disk.may_sync.set()
    assert await next_status(client) is Status.SUCCESS


async def read(client: Client, opened: bytes) -> None:
    client.raw.give(client.raw.message(Command.READ, read_body(opened, 0, LARGE), charge=2))


async def lock(client: Client, opened: bytes) -> None:
    client.raw.give(client.raw.message(Command.LOCK, lock_body(opened, (0, 1, EXCLUSIVE_AT_ONCE))))


async def query_length(client: Client, opened: bytes) -> None:
    body = struct.pack("<HBBIHHIII", 41, 1, 5, 24, 0, 0, 0, 0, 0) + opened
    client.raw.give(client.raw.message(Command.QUERY_INFO, body))


async def open_again(client: Client, _: bytes) -> None:
    client.raw.give(client.raw.message(Command.CREATE, create_body("f", access=1)))


Act = Callable[[Client, bytes], Awaitable[None]]


async def final(client: Client) -> Reply:
    """The next response that is not an interim one."""
    while True:
        (reply,) = await client.raw.next()
        if reply.status is not Status.PENDING:
            return reply


@pytest.mark.parametrize("act", [read, lock, query_length, open_again])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "another process"])
async def test_others_wait_and_then_see_it(world: World, act: Act, elsewhere: bool) -> None:
    writer = await world.connect()
    opened = await writer.open("f")
    if elsewhere:
        world.service.another_process()
    other = await world.connect()
    theirs = await other.open("f")
    assert (await writer.write(opened, 0, DATA)).status is Status.SUCCESS
    await act(other, theirs)
    await asyncio.sleep(0.05)
    while not other.raw.transport.sent.empty():
        assert await next_status(other) is Status.PENDING
    world.disk.may_sync.set()
    reply = await final(other)
    assert reply.status is Status.SUCCESS
    if act is read:
        assert data_of(reply) == DATA
    elif act is query_length:
        assert struct.unpack_from("<Q", reply.body, 16) == (len(DATA),)


async def test_rest_waits_and_then_sees_it(world: World) -> None:
    """Here by the transaction of REST alone: its service repeats what needs a break."""
    client = await world.connect()
    opened = await client.open("f")
    await client.write(opened, 0, DATA)
    path = tree.FilePath(ShareKey(ACCOUNT.name, SHARE), ("f",))
    with pytest.raises(Exception, match="flush"):
        await file.get_properties(world.service.engine, path, None)
    world.disk.may_sync.set()
    assert (await client.flush(opened)).status is Status.SUCCESS
    found = await file.get_properties(world.service.engine, path, None)
    assert found.length == len(DATA)
