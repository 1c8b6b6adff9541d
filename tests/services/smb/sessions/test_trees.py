"""TREE_CONNECT and TREE_DISCONNECT (MS-SMB2 §3.3.5.7, §3.3.5.8)."""

import struct

import pytest

from kyanite.model.files import share_snapshots
from kyanite.model.files.share import ShareKey
from kyanite.service_properties import ProtocolSettings
from kyanite.services.smb.sessions import trees
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.harness import ACCOUNT
from tests.services.smb.raw_client import EMPTY, Reply, create_body, split, tree_body
from tests.services.smb.service import SmbService

DISK, PIPE = 1, 2
ENCRYPT_DATA = 0x8000


def fields(reply: Reply) -> tuple[int, ...]:
    """Type, flags, capabilities, maximal access."""
    return struct.unpack_from("<BxIII", reply.body, 2)


@pytest.mark.parametrize("dialect", [0x0210, 0x0302, 0x0311])
@pytest.mark.parametrize("name", ["share", "SHARE", "Share"])
async def test_a_share(smb: SmbService, dialect: int, name: str) -> None:
    await smb.make_share()
    client = await smb.logged_on(dialect)
    reply = await client.connect_tree(name)
    assert reply.status is Status.SUCCESS
    assert reply.tree_id
    assert fields(reply) == (DISK, 0, 0, 0x001F01FF)
    assert len(reply.body) == 16


@pytest.mark.parametrize("name", ["IPC$", "ipc$"])
async def test_ipc(smb: SmbService, name: str) -> None:
    client = await smb.logged_on()
    assert fields(await client.connect_tree(name)) == (PIPE, 0x30, 0, 0x001F00A9)


@pytest.mark.parametrize(
    "name", ["missing", "", "a", "x" * 64, "a\0b", "Ünïcode", "nfs-share", "C$", "share "]
)
async def test_no_such_share(smb: SmbService, name: str) -> None:
    await smb.make_share()
    await smb.make_share("nfs-share", protocol="NFS")
    client = await smb.logged_on()
    assert (await client.connect_tree(name)).status is Status.BAD_NETWORK_NAME


async def test_shares_of_another_account(smb: SmbService) -> None:
    await smb.make_share()
    client = await smb.negotiated()
    await client.log_on("other", "a2V5IG9mIHRoZSBvdGhlcg==")
    assert (await client.connect_tree()).status is Status.BAD_NETWORK_NAME


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (struct.pack("<HHHH", 9, 0, 72, 200) + bytes(20), Status.INVALID_PARAMETER),
        (struct.pack("<HHHH", 9, 0, 71, 4) + bytes(20), Status.INVALID_PARAMETER),
        (struct.pack("<HHHH", 9, 0, 72, 3) + bytes(20), Status.INVALID_PARAMETER),
        (struct.pack("<HHHH", 8, 0, 72, 4) + bytes(20), Status.INVALID_PARAMETER),
        (struct.pack("<HHHH", 9, 0, 72, 4) + b"\\\0\x00\xd8", Status.ILLEGAL_CHARACTER),
    ],
)
async def test_bad_paths(smb: SmbService, body: bytes, status: Status) -> None:
    client = await smb.logged_on()
    assert (await client.request(Command.TREE_CONNECT, body, signs=True)).status is status


async def test_the_same_share_twice(smb: SmbService) -> None:
    client = await smb.connected()
    first = client.tree_id
    await client.connect_tree()
    assert client.tree_id != first
    assert (await client.request(Command.TREE_DISCONNECT, EMPTY)).status is Status.SUCCESS
    assert (await client.request(Command.TREE_DISCONNECT, EMPTY, tree_id=first)).status is Status.SUCCESS


async def test_ids_are_not_used_again(smb: SmbService) -> None:
    client = await smb.connected()
    first = client.tree_id
    await client.request(Command.TREE_DISCONNECT, EMPTY)
    await client.connect_tree()
    assert client.tree_id != first
    reply = await client.request(Command.TREE_DISCONNECT, EMPTY, tree_id=first)
    assert reply.status is Status.NETWORK_NAME_DELETED


async def test_trees_are_bounded(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "TREES_MAX", 2)
    client = await smb.connected()
    assert (await client.connect_tree()).status is Status.SUCCESS
    assert (await client.connect_tree()).status is Status.INSUFFICIENT_RESOURCES
    await client.request(Command.TREE_DISCONNECT, EMPTY)
    assert (await client.connect_tree()).status is Status.SUCCESS


async def test_a_disconnect_closes_what_is_open(smb: SmbService) -> None:
    client = await smb.connected()
    await client.open_root()
    first = client.tree_id
    await client.connect_tree()
    await client.open_root()
    assert await smb.handle_count() == 2
    await client.request(Command.TREE_DISCONNECT, EMPTY)
    assert await smb.handle_count() == 1
    await client.request(Command.TREE_DISCONNECT, EMPTY, tree_id=first)
    assert await smb.handle_count() == 0


async def test_a_share_that_was_deleted(smb: SmbService) -> None:
    """One of the same name that is made later is another share."""
    client = await smb.connected()
    await share_snapshots.delete(smb.engine, ShareKey(ACCOUNT.name, "share"), None)
    create = create_body("")
    assert (await client.request(Command.CREATE, create)).status is Status.NETWORK_NAME_DELETED
    await smb.make_share()
    assert (await client.request(Command.CREATE, create)).status is Status.NETWORK_NAME_DELETED
    assert (await client.request(Command.TREE_DISCONNECT, EMPTY)).status is Status.SUCCESS


async def test_encryption_is_required_since_the_logon(smb: SmbService) -> None:
    """The property counts for the next share that a client connects to; IPC$ has no files to protect."""
    client = await smb.connected()
    await smb.set_protocols(ProtocolSettings(smb_encryption=True))
    assert (await client.connect_tree()).status is Status.ACCESS_DENIED
    message = client.message(Command.TREE_CONNECT, tree_body("share"))
    client.give(client.encrypted(message))
    (reply,) = split(client.decrypted(await client.transport.sent.get()))
    assert fields(reply) == (DISK, ENCRYPT_DATA, 0, 0x001F01FF)
    client.tree_id = reply.tree_id
    assert (await client.request(Command.CREATE, create_body(""))).status is Status.ACCESS_DENIED
    client.give(client.encrypted(client.message(Command.CREATE, create_body(""))))
    (reply,) = split(client.decrypted(await client.transport.sent.get()))
    assert reply.status is Status.SUCCESS
