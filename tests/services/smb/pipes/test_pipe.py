"""IPC$ and the pipe ``srvsvc``: the list of shares, by hand-made packets."""

import struct

import pytest

from kyanite.services.smb.pipes import pipe
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import ASYNC, EMPTY, RawClient, Reply, create_body
from tests.services.smb.service import SmbService

BIND = bytes.fromhex(
    "05000b03100000004800000001000000b810b810000000000100000000000100c84f324b7016d30112785a47bf6ee18803000000"
    "045d888aeb1cc9119fe808002b10486002000000"
)
TRANSCEIVE = 0x0011C017


def call(operation: int, stub: bytes, call_id: int = 2) -> bytes:
    head = struct.pack("<BBBB4sHHI", 5, 0, 0, 3, b"\x10\0\0\0", 24 + len(stub), 0, call_id)
    return head + struct.pack("<IHH", len(stub), 0, operation) + stub


def enum_stub(level: int = 1) -> bytes:
    name = "\\\\server\0".encode("utf-16-le")
    units = len(name) // 2
    server = struct.pack("<IIII", 0x20000, units, 0, units) + name + bytes(-len(name) % 4)
    return server + struct.pack("<IIIIIIII", level, level, 0x20004, 0, 0, 0xFFFFFFFF, 0x20008, 0)


async def connected(smb: SmbService) -> tuple[RawClient, bytes]:
    """A client, and the id of the pipe that it has open."""
    await smb.make_share("alpha")
    await smb.make_share("beta")
    await smb.make_share("nfs-share", protocol="NFS")
    client = await smb.logged_on()
    await client.connect_tree("IPC$")
    await client.echo(credits=40)
    reply = await client.request(Command.CREATE, create_body("srvsvc", access=0x12019F))
    assert reply.status is Status.SUCCESS
    return client, reply.body[64:80]


async def write(client: RawClient, file_id: bytes, data: bytes) -> Reply:
    fixed = struct.pack("<HHIQ", 49, 112, len(data), 0) + file_id + bytes(16)
    return await client.request(Command.WRITE, fixed + data)


def read_body(file_id: bytes, length: int = 4280) -> bytes:
    return struct.pack("<HBBIQ", 49, 0, 0, length, 0) + file_id + bytes(17)


async def read(client: RawClient, file_id: bytes, length: int = 4280) -> tuple[Status, bytes]:
    reply = await client.request(Command.READ, read_body(file_id, length))
    return reply.status, reply.body[16:]


async def transceive(
    client: RawClient, file_id: bytes, data: bytes, most: int = 4280
) -> tuple[Status, bytes]:
    fixed = struct.pack("<HHI", 57, 0, TRANSCEIVE) + file_id
    fixed += struct.pack("<IIIIIIII", 120, len(data), 0, 0, 0, most, 1, 0)
    reply = await client.request(Command.IOCTL, fixed + data)
    return reply.status, reply.body[48:]


async def test_the_list_of_shares(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    status, ack = await transceive(client, file_id, BIND)
    assert (status, ack[2]) == (Status.SUCCESS, 12)
    assert ack[-24:-20] == bytes(4)
    status, answer = await transceive(client, file_id, call(15, enum_stub()))
    assert (status, answer[2]) == (Status.SUCCESS, 2)
    text = answer.decode("utf-16-le", "replace")
    assert [name in text for name in ("alpha", "beta", "IPC$", "nfs-share")] == [True, True, True, False]
    assert answer[-4:] == bytes(4)


async def test_by_writing_and_reading(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    reply = await write(client, file_id, BIND)
    assert (reply.status, struct.unpack_from("<I", reply.body, 4)) == (Status.SUCCESS, (len(BIND),))
    status, ack = await read(client, file_id)
    assert (status, ack[2]) == (Status.SUCCESS, 12)


async def test_a_packet_in_parts(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    whole = (await transceive(client, file_id, BIND))[1]
    await write(client, file_id, BIND)
    status, first = await read(client, file_id, 10)
    assert (status, first) == (Status.BUFFER_OVERFLOW, whole[:10])
    assert await read(client, file_id) == (Status.SUCCESS, whole[10:])
    status, first = await transceive(client, file_id, BIND, 16)
    assert (status, first) == (Status.BUFFER_OVERFLOW, whole[:16])
    assert await read(client, file_id) == (Status.SUCCESS, whole[16:])


async def test_a_list_in_several_packets(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    for number in range(80):
        await smb.make_share(f"share-{number:03}")
    await transceive(client, file_id, BIND)
    status, packet = await transceive(client, file_id, call(15, enum_stub()))
    flags, packets = packet[3], [packet]
    assert (status, flags) == (Status.SUCCESS, 1)
    while not packets[-1][3] & 2:
        packets.append((await read(client, file_id))[1])
    assert len(packets) > 1
    stub = b"".join(each[24:] for each in packets)
    assert struct.unpack_from("<I", stub, 12) == (83,)


async def test_one_share(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    await transceive(client, file_id, BIND)
    for name, expected in (("alpha", 0), ("ALPHA", 0), ("ipc$", 0), ("missing", 2310), ("nfs-share", 2310)):
        encoded = f"{name}\0".encode("utf-16-le")
        units = len(encoded) // 2
        stub = struct.pack("<IIII", 0, units, 0, units) + encoded + bytes(-len(encoded) % 4)
        _, answer = await transceive(client, file_id, call(16, stub + struct.pack("<I", 1)))
        assert struct.unpack("<I", answer[-4:]) == (expected,), name


@pytest.mark.parametrize(
    ("packet", "status"),
    [
        (call(99, b""), 0x1C010002),
        (call(15, b"\1\0\0\0"), 0x000006F7),
    ],
)
async def test_faults(smb: SmbService, packet: bytes, status: int) -> None:
    client, file_id = await connected(smb)
    await transceive(client, file_id, BIND)
    _, answer = await transceive(client, file_id, packet)
    assert answer[2] == 3
    assert struct.unpack_from("<I", answer, 24) == (status,)


async def test_a_call_before_the_bind(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    assert (await transceive(client, file_id, call(15, enum_stub())))[1][2] == 3


@pytest.mark.parametrize("packet", [b"", b"\5", BIND[:-1], BIND[:2] + b"\x63" + BIND[3:], bytes(80)])
async def test_packets_that_are_none(smb: SmbService, packet: bytes) -> None:
    client, file_id = await connected(smb)
    assert (await transceive(client, file_id, packet))[0] is Status.INVALID_PARAMETER
    assert (await transceive(client, file_id, BIND))[0] is Status.SUCCESS


async def test_reading_waits_for_an_answer(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    interim = await client.request(Command.READ, read_body(file_id))
    assert (interim.status, interim.flags & ASYNC) == (Status.PENDING, ASYNC)
    client.give(
        client.message(
            Command.WRITE, struct.pack("<HHIQ", 49, 112, len(BIND), 0) + file_id + bytes(16) + BIND
        )
    )
    found = {reply.command: reply for _ in range(2) for reply in await client.next()}
    assert found[Command.WRITE].status is Status.SUCCESS
    assert (found[Command.READ].status, found[Command.READ].body[18]) == (Status.SUCCESS, 12)


async def test_closing_ends_a_read(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    await client.request(Command.READ, read_body(file_id))
    client.give(client.message(Command.CLOSE, struct.pack("<HHI", 24, 0, 0) + file_id))
    found = {reply.command: reply.status for _ in range(2) for reply in await client.next()}
    assert found == {Command.READ: Status.FILE_CLOSED, Command.CLOSE: Status.SUCCESS}


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("srvsvc", Status.SUCCESS),
        ("\\SrvSvc", Status.SUCCESS),
        ("samr", Status.OBJECT_NAME_NOT_FOUND),
        ("", Status.OBJECT_NAME_NOT_FOUND),
        ("srvsvc\\x", Status.OBJECT_NAME_NOT_FOUND),
    ],
)
async def test_names(smb: SmbService, name: str, status: Status) -> None:
    client, _ = await connected(smb)
    assert (await client.request(Command.CREATE, create_body(name))).status is status


async def test_pipes_are_bounded(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "PIPES_MAX", 2)
    client, _ = await connected(smb)
    found = [(await client.request(Command.CREATE, create_body("srvsvc"))).status for _ in range(2)]
    assert found == [Status.SUCCESS, Status.INSUFFICIENT_RESOURCES]


async def test_answers_that_are_not_read_are_bounded(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    found = [(await write(client, file_id, BIND)).status for _ in range(65)]
    assert found == [Status.SUCCESS] * 64 + [Status.INSUFFICIENT_RESOURCES]


def ioctl(code: int, file_id: bytes) -> bytes:
    return struct.pack("<HHI", 57, 0, code) + file_id + struct.pack("<IIIIIIII", 0, 0, 0, 0, 0, 64, 1, 0)


@pytest.mark.parametrize(
    ("code", "on_file", "status"),
    [
        (0x00060194, False, Status.NOT_FOUND),
        (0x000601B0, False, Status.NOT_FOUND),
        (0x001401FC, False, Status.FS_DRIVER_REQUIRED),
        (0x00110018, False, Status.NOT_SUPPORTED),
        (0x0011400C, True, Status.INVALID_DEVICE_REQUEST),
        (0x00140078, True, Status.FS_DRIVER_REQUIRED),
        (0x00140078, False, Status.FILE_CLOSED),
        (TRANSCEIVE, False, Status.FILE_CLOSED),
    ],
)
async def test_other_codes(smb: SmbService, code: int, on_file: bool, status: Status) -> None:
    client, file_id = await connected(smb)
    body = ioctl(code, file_id if on_file else b"\xff" * 16)
    assert (await client.request(Command.IOCTL, body)).status is status


@pytest.mark.parametrize(
    "command", [Command.LOCK, Command.QUERY_DIRECTORY, Command.CHANGE_NOTIFY, Command.SET_INFO]
)
async def test_commands_that_are_about_files(smb: SmbService, command: Command) -> None:
    client, file_id = await connected(smb)
    body = bytes(16 if command is Command.SET_INFO else 8) + file_id + bytes(40)
    assert (await client.request(command, body)).status is Status.INVALID_DEVICE_REQUEST


async def test_information_and_flush(smb: SmbService) -> None:
    client, file_id = await connected(smb)
    query = struct.pack("<HBBIHHIII", 41, 1, 5, 100, 0, 0, 0, 0, 0) + file_id
    reply = await client.request(Command.QUERY_INFO, query)
    assert reply.status is Status.SUCCESS
    assert struct.unpack("<QQIBB", reply.body[8:30]) == (4096, 0, 1, 1, 0)
    flush = struct.pack("<HHI", 24, 0, 0) + file_id
    assert (await client.request(Command.FLUSH, flush)).status is Status.SUCCESS
    assert (await client.request(Command.TREE_DISCONNECT, EMPTY)).status is Status.SUCCESS
