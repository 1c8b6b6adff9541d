"""Oplock and lease breaks over connections: when they are sent, what waits for them, and what ends the wait."""

import asyncio
import struct

import pytest

from kyanite.model.files.opens import grants
from kyanite.model.files.opens.records import Grant, key_of_lease
from kyanite.rules.oplocks import Break, Caching
from kyanite.services.smb import breaks
from kyanite.wire.smb2 import create_contexts
from kyanite.wire.smb2.create_contexts import LEASE, ResponseContext
from kyanite.wire.smb2.header import BREAK_MESSAGE_ID, Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import RawClient, Reply, create_body, split
from tests.services.smb.service import SmbService

EVERYTHING = 0x001F01FF
OPEN_IF, OVERWRITE = 3, 4
R, RH, RWH = 1, 3, 7
II, BATCH, LEASE_LEVEL = 1, 9, 0xFF
RENAME = 10


def body_of(name: str, *, level: int = 0, key: bytes = b"", state: int = 0, **terms: int) -> bytes:
    """A CREATE with an oplock, or with a lease of version 2."""
    body = bytearray(create_body(name, **{"access": EVERYTHING, "disposition": OPEN_IF, **terms}))
    if not key:
        body[3] = level
        return bytes(body)
    body[3] = LEASE_LEVEL
    body += bytes(-len(body) % 8)
    data = struct.pack("<16sIIQ16sHH", key, state, 0, 0, bytes(16), 7, 0)
    packed = create_contexts.encode([ResponseContext(LEASE, data)])
    struct.pack_into("<II", body, 48, 64 + len(body), len(packed))
    return bytes(body) + packed


KEY, OTHER_KEY = b"a lease key.....", b"another key....."


async def opened(client: RawClient, name: str = "f", **terms: object) -> bytes:
    reply = await client.request(Command.CREATE, body_of(name, **terms))  # type: ignore[arg-type]
    assert reply.status is Status.SUCCESS
    return reply.body[64:80]


async def next_break(client: RawClient) -> tuple[int, int, int, bool]:
    """What a lease has and is broken to, its epoch, and whether the break is to be acknowledged."""
    (message,) = await client.next()
    return lease_break(message)


def lease_break(message: Reply) -> tuple[int, int, int, bool]:
    assert (message.command, message.message_id) == (Command.OPLOCK_BREAK, BREAK_MESSAGE_ID)
    assert (message.session_id, message.tree_id) == (0, 0)
    size, epoch, flags, _, current, new = struct.unpack_from("<HHI16sII", message.body)
    assert size == 44
    return current, new, epoch, bool(flags & 1)


async def acknowledge(client: RawClient, state: int, key: bytes = KEY) -> Status:
    body = struct.pack("<HHI16sIQ", 36, 0, 0, key, state, 0)
    return (await client.request(Command.OPLOCK_BREAK, body)).status


def write_body(file_id: bytes) -> bytes:
    return struct.pack("<HHIQ", 49, 112, 4, 0) + file_id + bytes(16) + b"1234"


def close_body(file_id: bytes) -> bytes:
    return struct.pack("<HHI", 24, 0, 0) + file_id


def rename_body(file_id: bytes, name: str) -> bytes:
    encoded = name.encode("utf-16-le")
    data = struct.pack("<B7xQI", 0, 0, len(encoded)) + encoded
    return struct.pack("<HBBIHHI", 33, 1, RENAME, len(data), 96, 0, 0) + file_id + data


@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_an_open_waits_for_the_acknowledgement(smb: SmbService, is_elsewhere: bool) -> None:
    """Whichever process serves the other client."""
    first = await smb.connected()
    await opened(first, key=KEY, state=RWH)
    if is_elsewhere:
        smb.another_process()
    second = await smb.connected()
    interim = await second.request(Command.CREATE, body_of("f"))
    assert interim.status is Status.PENDING
    assert await next_break(first) == (RWH, RH, 9, True)
    assert second.transport.sent.empty()
    assert await acknowledge(first, RH) is Status.SUCCESS
    (final,) = await second.next()
    assert final.status is Status.SUCCESS


async def test_other_opens_of_a_client_do_not_wait(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    await second.echo(credits=8)
    await opened(first, key=KEY, state=RWH)
    assert (await second.request(Command.CREATE, body_of("f"))).status is Status.PENDING
    await opened(second, "g")


async def test_closing_ends_the_wait(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    file_id = await opened(first, level=BATCH)
    assert (await second.request(Command.CREATE, body_of("f"))).status is Status.PENDING
    (message,) = await first.next()
    size, level = struct.unpack_from("<HB", message.body)
    assert (size, level, message.body[8:24]) == (24, II, file_id)
    assert message.session_id == first.session_id
    assert (await first.request(Command.CLOSE, close_body(file_id))).status is Status.SUCCESS
    assert (await second.next())[0].status is Status.SUCCESS


async def test_a_client_that_goes_ends_the_wait(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    await opened(first, key=KEY, state=RWH)
    assert (await second.request(Command.CREATE, body_of("f"))).status is Status.PENDING
    await first.leave()
    assert (await second.next())[0].status is Status.SUCCESS


async def test_a_break_is_sent_before_the_response_to_what_has_caused_it(smb: SmbService) -> None:
    """The engine in memory does not wait, so the response is sent before any other task runs."""
    first, second = await smb.connected(), await smb.connected()
    await opened(first, key=KEY, state=R)
    second.give(second.message(Command.CREATE, body_of("f", disposition=OVERWRITE)))
    assert not second.transport.sent.empty()
    (message,) = split(first.transport.sent.get_nowait())
    assert lease_break(message) == (R, 0, 9, False)


async def test_a_write_takes_what_others_cache(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    await opened(first, key=KEY, state=RH)
    own = await opened(second, key=OTHER_KEY, state=RH)
    assert (await second.request(Command.WRITE, write_body(own))).status is Status.SUCCESS
    assert await next_break(first) == (RH, 0, 9, True)
    assert second.transport.sent.empty()


async def test_an_acknowledgement_is_checked(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    await opened(first, key=KEY, state=RWH)
    assert await acknowledge(first, RH) is Status.UNSUCCESSFUL
    assert await acknowledge(first, RH, OTHER_KEY) is Status.OBJECT_NAME_NOT_FOUND
    second.give(second.message(Command.CREATE, body_of("f")))
    await next_break(first)
    assert await acknowledge(first, RWH) is Status.REQUEST_NOT_ACCEPTED
    assert await acknowledge(first, 8) is Status.INVALID_PARAMETER
    assert await acknowledge(first, 0) is Status.SUCCESS


async def test_an_acknowledgement_of_an_oplock_is_checked(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    file_id = await opened(first, level=BATCH)

    async def acknowledge_level(level: int, file_id: bytes = file_id) -> Status:
        body = struct.pack("<HBBI", 24, level, 0, 0) + file_id
        return (await first.request(Command.OPLOCK_BREAK, body)).status

    assert await acknowledge_level(II) is Status.INVALID_OPLOCK_PROTOCOL
    assert await acknowledge_level(II, bytes(16)) is Status.FILE_CLOSED
    second.give(second.message(Command.CREATE, body_of("f")))
    await first.next()
    assert await acknowledge_level(BATCH) is Status.INVALID_PARAMETER
    assert await acknowledge_level(II) is Status.SUCCESS


async def test_a_cancelled_open_does_not_wait(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    await opened(first, key=KEY, state=RWH)
    interim = await second.request(Command.CREATE, body_of("f"))
    body = struct.pack("<HH", 4, 0)
    second.give(second.message(Command.CANCEL, body, message_id=interim.message_id))
    assert (await second.next())[0].status is Status.CANCELLED
    assert await smb.handle_count() == 1


async def test_a_rename_waits_without_an_interim_response(smb: SmbService) -> None:
    first, second = await smb.connected(), await smb.connected()
    await opened(first, key=KEY, state=RH)
    own = await opened(second)
    second.give(second.message(Command.SET_INFO, rename_body(own, "g")))
    assert await next_break(first) == (RH, R, 9, True)
    assert second.transport.sent.empty()
    await acknowledge(first, R)
    (final,) = await second.next()
    assert (final.status, final.flags & 2) == (Status.SUCCESS, 0)


@pytest.mark.parametrize("goes", [False, True])
async def test_closing_ends_a_rename_that_waits(smb: SmbService, goes: bool) -> None:
    first, second = await smb.connected(), await smb.connected()
    await second.echo(credits=8)
    await opened(first, key=KEY, state=RH)
    own = await opened(second)
    second.give(second.message(Command.SET_INFO, rename_body(own, "g")))
    await next_break(first)
    if goes:
        await second.leave()
    else:
        second.give(second.message(Command.CLOSE, close_body(own)))
        statuses = {reply.command: reply.status for _ in range(2) for reply in await second.next()}
        assert statuses == {Command.SET_INFO: Status.CANCELLED, Command.CLOSE: Status.SUCCESS}
    assert await smb.handle_count() == 1


async def test_a_lost_notification_delays_a_break_only(
    smb: SmbService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaks, "_AGAIN_SECONDS", 0.01)
    client = await smb.connected()
    file_id = await opened(client, key=KEY, state=R)
    await asyncio.sleep(0)  # The delivery begins to wait.
    handle_id = int.from_bytes(file_id[:8], "little")
    rows = await smb.rows(b"Q")
    owner = rows[0][0][1:13]
    stored: dict[bytes, bytes] = {}

    class Recorder:
        def put(self, key: bytes, value: bytes) -> None:
            stored[key] = value

        def new_id(self) -> int:
            return 1

        def notify(self, topic: bytes) -> None:
            pass

    grant = Grant(key_of_lease(bytes(16), KEY), R, 2, epoch=9)
    message = Break(Caching.READ, Caching.NONE, is_acknowledged=False)
    grants.send(Recorder(), owner, handle_id, grant, message)  # type: ignore[arg-type]
    ((key, value),) = stored.items()
    await smb.engine.run(lambda tx: tx.put(key, value))
    assert await next_break(client) == (R, 0, 9, False)
    while await smb.rows(b"K"):
        await asyncio.sleep(0.01)
    assert client.transport.sent.empty()
