"""Damaged content over SMB: READ answers an error, the connection goes on, and no copy of a wrong byte is made."""

import random
import struct
from pathlib import Path

import pytest

from kyanite.wire.smb2.fsctl import Fsctl
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.damaged import flip
from tests.services.smb.raw_client import RawClient, Reply, create_body
from tests.services.smb.service import SmbService

KIB = 1024
MIB = 1024 * KIB
BLOCK_BYTES = 256 * KIB
ALL = 0x1F01FF
CREATE_OR_OPEN = 3


async def opened(client: RawClient, name: str) -> bytes:
    reply = await client.request(
        Command.CREATE, create_body(name, access=ALL, disposition=CREATE_OR_OPEN), credits=512
    )
    assert reply.status is Status.SUCCESS
    return reply.body[64:80]


async def write(client: RawClient, handle: bytes, offset: int, data: bytes) -> None:
    body = struct.pack("<HHIQ", 49, 112, len(data), offset) + handle + bytes(16) + data
    charge = -(-len(data) // 65536)
    reply = await client.request(Command.WRITE, body, charge=charge, credits=charge)
    assert reply.status is Status.SUCCESS


async def read(client: RawClient, handle: bytes, offset: int, length: int) -> tuple[Status, bytes]:
    body = struct.pack("<HBBIQ", 49, 80, 0, length, offset) + handle + bytes(17)
    charge = -(-length // 65536)
    reply = await client.request(Command.READ, body, charge=charge, credits=charge)
    return reply.status, reply.body[16:] if reply.status is Status.SUCCESS else b""


async def control(client: RawClient, handle: bytes, code: int, data: bytes, room: int) -> Reply:
    fields = struct.pack("<IIIIII", 120, len(data), 0, 0, 0, room)
    body = struct.pack("<HHI", 57, 0, code) + handle + fields + struct.pack("<II", 1, 0) + data
    return await client.request(Command.IOCTL, body)


@pytest.mark.parametrize("size", [64 * KIB, MIB])
async def test_a_read_of_damaged_bytes_is_a_data_error(
    smb: SmbService, tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    data = random.Random(size).randbytes(size)
    client = await smb.connected()
    handle = await opened(client, "f")
    await write(client, handle, 0, data)
    damaged_at = size // 2 + 100
    flip(tmp_path, data[damaged_at : damaged_at + 64])
    block = min(BLOCK_BYTES, size)
    start = damaged_at // block * block
    for offset, length in [(0, size), (start, 4 * KIB), (start + block - 4 * KIB, 4 * KIB)]:
        assert await read(client, handle, offset, length) == (Status.DATA_ERROR, b"")
    if start:
        assert await read(client, handle, 0, 4 * KIB) == (Status.SUCCESS, data[: 4 * KIB])
        assert await read(client, handle, 0, start) == (Status.SUCCESS, data[:start])
    (line,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert line.getMessage() == "damaged"
    assert vars(line)["command"] == Command.READ
    assert (await client.echo()).status is Status.SUCCESS


async def test_a_copy_of_chunks_is_as_damaged_as_its_source(smb: SmbService, tmp_path: Path) -> None:
    data = random.Random(1).randbytes(MIB)
    client = await smb.connected()
    source, target = await opened(client, "source"), await opened(client, "target")
    await write(client, source, 0, data)
    flip(tmp_path, data[:64])
    key = (await control(client, source, Fsctl.SRV_REQUEST_RESUME_KEY, b"", 32)).body[48:72]
    chunks = key + struct.pack("<II", 1, 0) + struct.pack("<QQII", 0, 0, MIB, 0)
    copied = await control(client, target, Fsctl.SRV_COPYCHUNK_WRITE, chunks, 12)
    assert copied.status is Status.SUCCESS
    for handle in (source, target):
        assert await read(client, handle, 0, 4 * KIB) == (Status.DATA_ERROR, b"")
        found = await read(client, handle, BLOCK_BYTES, BLOCK_BYTES)
        assert found == (Status.SUCCESS, data[BLOCK_BYTES : 2 * BLOCK_BYTES])
