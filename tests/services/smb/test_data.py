"""READ, WRITE, FLUSH and LOCK over a connection: what each answers, and in which order."""

import asyncio
import struct

import pytest

from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import ASYNC, RawClient, Reply, create_body
from tests.services.smb.service import SmbService

READ_ACCESS, WRITE_ACCESS, APPEND, EXECUTE, ATTRIBUTES = 0x1, 0x2, 0x4, 0x20, 0x80
ALL = 0x1F01FF
OPEN_IF = 3
DIRECTORY = 1
SHARED, EXCLUSIVE, UNLOCK, FAIL = 0x1, 0x2, 0x4, 0x10
LARGE = 300_000
LAST_OFFSET = 2**63 - 1


class Client:
    """A client that is connected to the share, with the bodies of the requests that are tested here."""

    def __init__(self, raw: RawClient) -> None:
        self.raw = raw

    async def open(self, name: str, access: int = ALL, options: int = 0) -> bytes:
        body = create_body(name, access=access, disposition=OPEN_IF, options=options)
        reply = await self.raw.request(Command.CREATE, body)
        assert reply.status is Status.SUCCESS
        return reply.body[64:80]

    async def write(self, file: bytes, offset: int, data: bytes) -> Reply:
        return await self._request(Command.WRITE, write_body(file, offset, data), len(data))

    async def read(self, file: bytes, offset: int, length: int, minimum: int = 0) -> Reply:
        return await self._request(Command.READ, read_body(file, offset, length, minimum), length)

    async def flush(self, file: bytes) -> Reply:
        return await self.raw.request(Command.FLUSH, struct.pack("<HHI", 24, 0, 0) + file)

    async def close(self, file: bytes) -> Reply:
        return await self.raw.request(Command.CLOSE, struct.pack("<HHI", 24, 0, 0) + file)

    async def lock(self, file: bytes, *elements: tuple[int, int, int], sequence: int = 0) -> Reply:
        return await self.raw.request(Command.LOCK, lock_body(file, *elements, sequence=sequence))

    async def _request(self, command: Command, body: bytes, length: int) -> Reply:
        charge = max(1, -(-length // 65536))
        return await self.raw.request(command, body, charge=charge, credits=charge + 1)


def write_body(file: bytes, offset: int, data: bytes) -> bytes:
    return struct.pack("<HHIQ", 49, 112, len(data), offset) + file + bytes(16) + data


def read_body(file: bytes, offset: int, length: int, minimum: int = 0) -> bytes:
    return (
        struct.pack("<HBBIQ", 49, 0, 0, length, offset)
        + file
        + struct.pack("<IIIHH", minimum, 0, 0, 0, 0)
        + b"\0"
    )


def lock_body(file: bytes, *elements: tuple[int, int, int], sequence: int = 0) -> bytes:
    packed = [struct.pack("<QQII", *each, 0) for each in elements]
    return struct.pack("<HHI", 48, len(elements), sequence) + file + b"".join(packed)


def data_of(reply: Reply) -> bytes:
    assert reply.status is Status.SUCCESS
    _, at, length = struct.unpack_from("<HBxI", reply.body)
    assert at == 80
    return reply.raw[at : at + length]


async def connect(smb: SmbService) -> Client:
    """Another client of the share."""
    raw = await smb.connected()
    await raw.echo(credits=512)
    return Client(raw)


@pytest.mark.parametrize("length", [1, 16_384, 16_385, LARGE, 3 * 2**20 + 5])
async def test_what_is_written_is_read_back(smb: SmbService, length: int) -> None:
    client = await connect(smb)
    file = await client.open("f")
    data = bytes(number % 251 for number in range(length))
    written = await client.write(file, 7, data)
    assert written.status is Status.SUCCESS
    assert struct.unpack_from("<I", written.body, 4) == (length,)
    assert data_of(await client.read(file, 0, length + 50)) == bytes(7) + data
    assert data_of(await client.read(file, 7 + length // 2, 9)) == data[length // 2 :][:9]


async def test_reading_at_the_end(smb: SmbService) -> None:
    client = await connect(smb)
    file = await client.open("f")
    await client.write(file, 0, b"abcdef")
    assert data_of(await client.read(file, 4, 10)) == b"ef"
    assert data_of(await client.read(file, 4, 10, minimum=2)) == b"ef"
    assert data_of(await client.read(file, 6, 0)) == b""
    assert data_of(await client.read(file, LAST_OFFSET, 0)) == b""
    assert (await client.read(file, 4, 10, minimum=3)).status is Status.END_OF_FILE
    assert (await client.read(file, 6, 1)).status is Status.END_OF_FILE
    assert (await client.read(file, LAST_OFFSET - 1, 1)).status is Status.END_OF_FILE


@pytest.mark.parametrize(
    ("offset", "length"), [(LAST_OFFSET, 1), (LAST_OFFSET + 1, 0), (2**64 - 1, 1), (LAST_OFFSET - 9, 10 + 1)]
)
async def test_offsets_are_signed(smb: SmbService, offset: int, length: int) -> None:
    client = await connect(smb)
    file = await client.open("f")
    assert (await client.read(file, offset, length)).status is Status.INVALID_PARAMETER
    assert (await client.write(file, offset, bytes(length))).status is Status.INVALID_PARAMETER


async def test_a_write_without_bytes_changes_nothing(smb: SmbService) -> None:
    client = await connect(smb)
    file = await client.open("f")
    assert (await client.write(file, LAST_OFFSET, b"")).status is Status.SUCCESS
    assert (await client.read(file, 0, 1)).status is Status.END_OF_FILE


@pytest.mark.parametrize(
    ("offset", "status"), [(4 << 40, Status.DISK_FULL), (0xFFFFFFF0000, Status.INVALID_PARAMETER)]
)
async def test_no_file_becomes_too_long(smb: SmbService, offset: int, status: Status) -> None:
    client = await connect(smb)
    file = await client.open("f")
    assert (await client.write(file, offset, b"x")).status is status


async def test_more_than_the_largest_size_and_more_than_was_paid_for(smb: SmbService) -> None:
    client = await connect(smb)
    file = await client.open("f")
    body = read_body(file, 0, 65_537)
    assert (await client.raw.request(Command.READ, body)).status is Status.INVALID_PARAMETER
    assert (await client.read(file, 0, 2**23 + 1)).status is Status.INVALID_PARAMETER


@pytest.mark.parametrize(
    ("access", "reads", "writes"),
    [
        (READ_ACCESS, True, False),
        (EXECUTE, True, False),
        (WRITE_ACCESS, False, True),
        (APPEND, False, True),
        (ATTRIBUTES, False, False),
    ],
)
async def test_the_access_that_was_granted(smb: SmbService, access: int, reads: bool, writes: bool) -> None:
    client = await connect(smb)
    await client.write(await client.open("f"), 0, b"abc")
    file = await client.open("f", access)
    allowed = {True: Status.SUCCESS, False: Status.ACCESS_DENIED}
    assert (await client.read(file, 0, 1)).status is allowed[reads]
    assert (await client.write(file, 0, b"x")).status is allowed[writes]
    assert (await client.flush(file)).status is allowed[writes]


async def test_directories_have_no_bytes(smb: SmbService) -> None:
    client = await connect(smb)
    directory = await client.open("d", ALL, DIRECTORY)
    assert (await client.read(directory, 0, 1)).status is Status.INVALID_DEVICE_REQUEST
    assert (await client.write(directory, 0, b"x")).status is Status.INVALID_DEVICE_REQUEST
    assert (await client.lock(directory, (0, 1, SHARED | FAIL))).status is Status.INVALID_PARAMETER
    assert (await client.flush(directory)).status is Status.SUCCESS


async def test_requests_of_one_open_see_its_earlier_writes(smb: SmbService) -> None:
    """A READ, a FLUSH and a CLOSE are sent before the WRITEs are answered."""
    client = await connect(smb)
    file = await client.open("f")
    raw = client.raw
    for at in range(4):
        raw.give(raw.message(Command.WRITE, write_body(file, at * LARGE, bytes([65 + at]) * LARGE), charge=5))
    raw.give(raw.message(Command.READ, read_body(file, 3 * LARGE - 1, 2)))
    raw.give(raw.message(Command.FLUSH, struct.pack("<HHI", 24, 0, 0) + file))
    raw.give(raw.message(Command.CLOSE, struct.pack("<HHI", 24, 1, 0) + file))
    replies = [(await raw.next())[0] for _ in range(7)]
    assert {reply.status for reply in replies} == {Status.SUCCESS}
    commands = [reply.command for reply in replies]
    assert commands[:4] == [Command.WRITE] * 4
    assert data_of(replies[commands.index(Command.READ)]) == b"CD"
    closed = replies[commands.index(Command.CLOSE)]
    assert struct.unpack_from("<Q", closed.body, 48) == (4 * LARGE,)


async def test_overlapping_writes_are_carried_out_as_they_arrive(smb: SmbService) -> None:
    client = await connect(smb)
    file = await client.open("f")
    raw = client.raw
    for data in (b"a" * LARGE, b"b" * 10, b"c" * LARGE, b"d" * 5):
        raw.give(raw.message(Command.WRITE, write_body(file, 0, data), charge=5))
    for _ in range(4):
        assert (await raw.next())[0].status is Status.SUCCESS
    assert data_of(await client.read(file, 0, 12)) == b"dddddccccccc"


# --- Locks


async def test_a_lock_of_another_handle_forbids_reading_and_writing(smb: SmbService) -> None:
    client = await connect(smb)
    mine = await client.open("f")
    await client.write(mine, 0, b"0123456789")
    other = await connect(smb)
    theirs = await other.open("f")
    assert (await other.lock(theirs, (2, 3, EXCLUSIVE | FAIL))).status is Status.SUCCESS
    assert (await client.read(mine, 0, 3)).status is Status.FILE_LOCK_CONFLICT
    assert (await client.write(mine, 4, b"x")).status is Status.FILE_LOCK_CONFLICT
    assert data_of(await client.read(mine, 5, 3)) == b"567"
    assert (await other.write(theirs, 4, b"x")).status is Status.SUCCESS
    assert (await client.lock(mine, (4, 1, SHARED | FAIL))).status is Status.LOCK_NOT_GRANTED
    assert (await other.close(theirs)).status is Status.SUCCESS
    assert data_of(await client.read(mine, 2, 3)) == b"23x"


async def test_lists_of_locks(smb: SmbService) -> None:
    client = await connect(smb)
    file = await client.open("f")
    locked = (0, 10, EXCLUSIVE | FAIL)
    assert (await client.lock(file, locked, (5, 1, SHARED | FAIL))).status is Status.SUCCESS
    assert (await client.lock(file, (20, 1, SHARED | FAIL), locked)).status is Status.LOCK_NOT_GRANTED
    assert (await client.lock(file, (20, 1, UNLOCK))).status is Status.RANGE_NOT_LOCKED
    assert (await client.lock(file, (0, 10, UNLOCK), (0, 10, UNLOCK))).status is Status.RANGE_NOT_LOCKED
    assert (await client.lock(file, (5, 1, UNLOCK), locked)).status is Status.INVALID_PARAMETER
    assert (await client.lock(file, (5, 1, UNLOCK))).status is Status.RANGE_NOT_LOCKED
    assert (await client.lock(file, (0, 1, SHARED), (5, 1, SHARED))).status is Status.INVALID_PARAMETER
    assert (await client.lock(file)).status is Status.INVALID_PARAMETER
    assert (await client.lock(file, (2, 2**64 - 1, SHARED | FAIL))).status is Status.INVALID_LOCK_RANGE


async def test_the_access_that_a_lock_needs(smb: SmbService) -> None:
    client = await connect(smb)
    await client.open("f")
    file = await client.open("f", APPEND | ATTRIBUTES)
    assert (await client.lock(file, (0, 1, SHARED | FAIL))).status is Status.ACCESS_DENIED


async def waiting_lock(client: Client, file: bytes) -> Reply:
    """Ask for a lock that is not free; the interim response."""
    reply = await client.lock(file, (0, 10, EXCLUSIVE))
    assert (reply.status, reply.flags & ASYNC) == (Status.PENDING, ASYNC)
    return reply


@pytest.mark.parametrize("how", ["unlock", "close", "lost"])
async def test_a_lock_waits_until_the_other_is_gone(smb: SmbService, how: str) -> None:
    client = await connect(smb)
    mine = await client.open("f")
    other = await connect(smb)
    theirs = await other.open("f")
    await other.lock(theirs, (5, 1, SHARED | FAIL))
    interim = await waiting_lock(client, mine)
    await asyncio.sleep(0)
    assert client.raw.transport.sent.empty()
    if how == "unlock":
        await other.lock(theirs, (5, 1, UNLOCK))
    elif how == "close":
        await other.close(theirs)
    else:
        other.raw.connection.lost()
    (final,) = await client.raw.next()
    assert (final.status, final.async_id) == (Status.SUCCESS, interim.async_id)
    assert (await client.lock(mine, (0, 10, UNLOCK))).status is Status.SUCCESS


async def test_a_waiting_lock_is_cancelled_and_never_granted(smb: SmbService) -> None:
    client = await connect(smb)
    mine = await client.open("f")
    other = await connect(smb)
    theirs = await other.open("f")
    await other.lock(theirs, (5, 1, SHARED | FAIL))
    interim = await waiting_lock(client, mine)
    cancel = client.raw.message(
        Command.CANCEL,
        struct.pack("<HH", 4, 0),
        flags=ASYNC,
        process_id=interim.async_id & 0xFFFFFFFF,
        tree_id=interim.async_id >> 32,
    )
    client.raw.give(cancel)
    (final,) = await client.raw.next()
    assert final.status is Status.CANCELLED
    await other.lock(theirs, (5, 1, UNLOCK))
    assert (await client.lock(mine, (0, 10, UNLOCK))).status is Status.RANGE_NOT_LOCKED


async def test_closing_a_file_ends_its_waiting_locks(smb: SmbService) -> None:
    client = await connect(smb)
    mine = await client.open("f")
    other = await connect(smb)
    await other.lock(await other.open("f"), (5, 1, SHARED | FAIL))
    interim = await waiting_lock(client, mine)
    client.raw.give(client.raw.message(Command.CLOSE, struct.pack("<HHI", 24, 0, 0) + mine))
    replies = [(await client.raw.next())[0] for _ in range(2)]
    by_command = {reply.command: reply for reply in replies}
    assert by_command[Command.CLOSE].status is Status.SUCCESS
    assert by_command[Command.LOCK].status is Status.RANGE_NOT_LOCKED
    assert by_command[Command.LOCK].async_id == interim.async_id


async def test_a_lock_that_is_repeated_is_carried_out_once(smb: SmbService) -> None:
    client = await connect(smb)
    file = await client.open("f")
    lock = (0, 10, EXCLUSIVE | FAIL)
    first, second = (1 << 4) | 3, (1 << 4) | 4
    assert (await client.lock(file, lock, sequence=first)).status is Status.SUCCESS
    assert (await client.lock(file, lock, sequence=first)).status is Status.SUCCESS
    assert (await client.lock(file, lock, sequence=second)).status is Status.LOCK_NOT_GRANTED
    assert (await client.lock(file, lock, sequence=second)).status is Status.LOCK_NOT_GRANTED
    unlock = (0, 10, UNLOCK)
    assert (await client.lock(file, unlock, sequence=second)).status is Status.SUCCESS
    assert (await client.lock(file, unlock, sequence=second)).status is Status.SUCCESS
    assert (await client.lock(file, unlock)).status is Status.RANGE_NOT_LOCKED
