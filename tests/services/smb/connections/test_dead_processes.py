"""Handles of a process that has died refuse nothing to the clients of others."""

import struct

import pytest

from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import RawClient, create_body
from tests.services.smb.service import SmbService

EVERYTHING = 0x001F01FF
OPEN_IF, SHARE_ALL = 3, 7
EXCLUSIVE_NOW = 0x12


async def opened(client: RawClient, name: str, share: int = SHARE_ALL, access: int = EVERYTHING) -> bytes:
    body = create_body(name, access=access, disposition=OPEN_IF, share=share)
    reply = await client.request(Command.CREATE, body)
    assert reply.status == Status.SUCCESS
    return reply.body[64:80]


def lock_body(file_id: bytes) -> bytes:
    return struct.pack("<HHI", 48, 1, 0) + file_id + struct.pack("<QQII", 0, 10, EXCLUSIVE_NOW, 0)


def write_body(file_id: bytes) -> bytes:
    return struct.pack("<HHIQ", 49, 112, 4, 0) + file_id + bytes(16) + b"1234"


async def kill(smb: SmbService) -> None:
    """Of two processes the first one dies."""
    smb.memberships.pop(0).close()


@pytest.mark.parametrize("is_dead", [False, True])
async def test_their_share_modes(smb: SmbService, is_dead: bool) -> None:
    await opened(await smb.connected(), "f", share=0)
    smb.another_process()
    other = await smb.connected()
    if is_dead:
        await kill(smb)
    reply = await other.request(Command.CREATE, create_body("f", access=EVERYTHING))
    assert reply.status == (Status.SUCCESS if is_dead else Status.SHARING_VIOLATION)


@pytest.mark.parametrize("is_dead", [False, True])
async def test_their_locks(smb: SmbService, is_dead: bool) -> None:
    first = await smb.connected()
    own = await opened(first, "f")
    assert (await first.request(Command.LOCK, lock_body(own))).status == Status.SUCCESS
    smb.another_process()
    other = await smb.connected()
    file_id = await opened(other, "f")
    if is_dead:
        await kill(smb)
    written = await other.request(Command.WRITE, write_body(file_id))
    assert written.status == (Status.SUCCESS if is_dead else Status.FILE_LOCK_CONFLICT)
    locked = await other.request(Command.LOCK, lock_body(file_id))
    assert locked.status == (Status.SUCCESS if is_dead else Status.LOCK_NOT_GRANTED)


@pytest.mark.parametrize("is_dead", [False, True])
async def test_their_locks_against_a_lock(smb: SmbService, is_dead: bool) -> None:
    first = await smb.connected()
    own = await opened(first, "f")
    assert (await first.request(Command.LOCK, lock_body(own))).status == Status.SUCCESS
    smb.another_process()
    other = await smb.connected()
    file_id = await opened(other, "f")
    if is_dead:
        await kill(smb)
    locked = await other.request(Command.LOCK, lock_body(file_id))
    assert locked.status == (Status.SUCCESS if is_dead else Status.LOCK_NOT_GRANTED)
