"""A CREATE that a client repeats, because it does not know whether the first one was carried out."""

import struct

import pytest

from kyanite.wire.smb2 import create_contexts
from kyanite.wire.smb2.create_contexts import DURABLE_REQUEST_V2, ResponseContext
from kyanite.wire.smb2.header import REPLAY, Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import RawClient, Reply, create_body
from tests.services.smb.service import SmbService

EVERYTHING = 0x001F01FF
OPEN_IF = 3
CREATED = 2
NONE, BATCH = 0, 9
GUID, OTHER_GUID = b"a create guid...", b"another guid...."


def body_of(name: str = "f", *, guid: bytes = GUID, level: int = BATCH, share: int = 7) -> bytes:
    body = bytearray(create_body(name, access=EVERYTHING, disposition=OPEN_IF, share=share))
    body[3] = level
    body += bytes(-len(body) % 8)
    data = struct.pack("<IIQ16s", 0, 0, 0, guid)
    packed = create_contexts.encode([ResponseContext(DURABLE_REQUEST_V2, data)])
    struct.pack_into("<II", body, 48, 64 + len(body), len(packed))
    return bytes(body) + packed


async def created(client: RawClient, *, flags: int = 0, **terms: object) -> Reply:
    return await client.request(Command.CREATE, body_of(**terms), flags=flags)  # type: ignore[arg-type]


async def test_it_is_answered_as_the_first_time(smb: SmbService) -> None:
    client = await smb.connected()
    first = await created(client, share=0)
    again = await created(client, share=0, flags=REPLAY)
    assert first.status is Status.SUCCESS
    assert again.body == first.body
    assert struct.unpack_from("<I", again.body, 4) == (CREATED,)
    assert await smb.handle_count() == 1


async def test_without_the_flag_it_is_refused(smb: SmbService) -> None:
    client = await smb.connected()
    await created(client)
    assert (await created(client)).status is Status.DUPLICATE_OBJECTID
    assert (await created(client, guid=OTHER_GUID)).status is Status.PENDING, "That is another CREATE."


async def test_with_the_flag_alone_it_is_carried_out(smb: SmbService) -> None:
    client = await smb.connected()
    assert (await created(client, flags=REPLAY)).status is Status.SUCCESS
    assert await smb.handle_count() == 1


async def test_the_response_has_the_level_that_it_requests_now(smb: SmbService) -> None:
    client = await smb.connected()
    await created(client)
    again = await created(client, level=NONE, flags=REPLAY)
    assert again.body[2] == NONE
    assert struct.unpack_from("<II", again.body, 80) == (0, 0), "It has no context: it is not durable."


async def test_a_client_that_has_used_the_handle_wants_another(smb: SmbService) -> None:
    client = await smb.connected()
    await client.echo(credits=8)
    first = await created(client, level=NONE)
    await client.request(Command.FLUSH, struct.pack("<HHI", 24, 0, 0) + first.body[64:80])
    again = await created(client, level=NONE, flags=REPLAY)
    assert again.status is Status.SUCCESS
    assert again.body[64:80] != first.body[64:80]
    assert await smb.handle_count() == 2


async def test_it_cannot_be_repeated_while_it_waits(smb: SmbService) -> None:
    other, client = await smb.connected(), await smb.connected()
    await client.echo(credits=8)
    await created(other, guid=OTHER_GUID)
    assert (await created(client)).status is Status.PENDING
    assert (await created(client, flags=REPLAY)).status is Status.FILE_NOT_AVAILABLE
    assert (await created(client)).status is Status.DUPLICATE_OBJECTID


@pytest.mark.parametrize("is_lost", [False, True])
async def test_over_a_new_connection(smb: SmbService, is_lost: bool) -> None:
    """The client takes up the handle if the server knows that the old connection is lost."""
    old, new = await smb.connected(), await smb.connected()
    first = await created(old)
    if is_lost:
        await old.leave()
    again = await created(new, flags=REPLAY)
    if is_lost:
        assert again.status is Status.SUCCESS
        assert again.body[64:72] == first.body[64:72]
        assert struct.unpack_from("<I", again.body, 4) == (CREATED,)
    else:
        assert again.status is Status.FILE_NOT_AVAILABLE
    assert await smb.handle_count() == 1
