"""Chains of requests, requests that wait, and CANCEL (MS-SMB2 §3.3.5.2.7, §3.3.4.2, §3.3.5.16)."""

import asyncio
import gc
import struct
import weakref
from collections.abc import Sequence

import pytest

from kyanite.services.smb.commands import COMMANDS, CommandRow, Needs
from kyanite.services.smb.connections import chains, in_flight
from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.request import Answer, Failed
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import ASYNC, EMPTY, RELATED, SIGNED, RawClient, Reply, create_body, split
from tests.services.smb.service import SmbService

ONES = b"\xff" * 16
CLOSE = struct.pack("<HHI", 24, 0, 0) + ONES
LOCK = struct.pack("<HHI", 48, 1, 0) + ONES + bytes(24)


def joined(client: RawClient, *parts: tuple[int, bytes, int], signs: bool = False, **fields: object) -> bytes:
    """A chain of requests: command, body and flags of each."""
    messages = []
    for number, (command, body, flags) in enumerate(parts):
        following = 0
        if number < len(parts) - 1:
            body += bytes(-len(body) % 8)
            following = 64 + len(body)
        message = client.message(
            command,
            body,
            flags=flags,
            following=following,
            signs=signs,
            **fields,  # type: ignore[arg-type]
        )
        messages.append(message)
    return b"".join(messages)


def statuses(replies: Sequence[Reply]) -> list[Status]:
    return [reply.status for reply in replies]


async def connected(smb: SmbService, **options: object) -> RawClient:
    """A client with enough credits for a chain."""
    client = await smb.connected(**options)
    await client.echo(credits=200)
    return client


# --- Chains


async def test_a_chain_uses_the_file_that_it_opens(smb: SmbService) -> None:
    client = await connected(smb)
    client.give(joined(client, (Command.CREATE, create_body(""), 0), (Command.CLOSE, CLOSE, RELATED)))
    replies = await client.next()
    assert statuses(replies) == [Status.SUCCESS, Status.SUCCESS]
    assert [reply.flags & RELATED for reply in replies] == [0, RELATED]
    assert await smb.handle_count() == 0


async def test_ids_of_a_related_request_do_not_count(smb: SmbService) -> None:
    client = await connected(smb)
    first = client.message(Command.CREATE, create_body("") + bytes(7), following=128)
    second = client.message(
        Command.CLOSE, CLOSE, flags=RELATED, session_id=0xFFFFFFFFFFFFFFFF, tree_id=0xFFFFFFFF
    )
    client.give(first + second)
    replies = await client.next()
    assert statuses(replies) == [Status.SUCCESS, Status.SUCCESS]
    assert replies[1].session_id == client.session_id
    assert replies[1].tree_id == client.tree_id


async def test_after_a_close_the_file_is_closed(smb: SmbService) -> None:
    client = await connected(smb)
    close = (Command.CLOSE, CLOSE, RELATED)
    client.give(joined(client, (Command.CREATE, create_body(""), 0), close, close, close))
    assert statuses(await client.next()) == [
        Status.SUCCESS,
        Status.SUCCESS,
        Status.FILE_CLOSED,
        Status.FILE_CLOSED,
    ]


async def test_the_failure_of_a_create_spreads(smb: SmbService) -> None:
    """But not to a request that is about no file."""
    client = await connected(smb)
    client.give(
        joined(
            client,
            (Command.CREATE, create_body("missing"), 0),
            (Command.CLOSE, CLOSE, RELATED),
            (Command.ECHO, EMPTY, RELATED),
            (Command.CLOSE, CLOSE, RELATED),
            (Command.CLOSE, CLOSE, 0),
        )
    )
    missing = Status.OBJECT_NAME_NOT_FOUND
    assert statuses(await client.next()) == [missing, missing, Status.SUCCESS, missing, Status.FILE_CLOSED]


async def test_other_failures_do_not_spread(smb: SmbService) -> None:
    client = await connected(smb)
    bad_close = struct.pack("<HHI", 25, 0, 0) + ONES
    client.give(
        joined(
            client,
            (Command.CREATE, create_body(""), 0),
            (Command.CLOSE, bad_close, RELATED),
            (Command.CLOSE, CLOSE, RELATED),
        )
    )
    assert statuses(await client.next()) == [Status.SUCCESS, Status.INVALID_PARAMETER, Status.SUCCESS]


async def test_unrelated_requests_share_nothing(smb: SmbService) -> None:
    client = await connected(smb)
    client.give(
        joined(
            client,
            (Command.CREATE, create_body(""), 0),
            (Command.CLOSE, CLOSE, 0),
            (Command.CLOSE, CLOSE, RELATED),
        )
    )
    closed = Status.FILE_CLOSED
    assert statuses(await client.next()) == [Status.SUCCESS, closed, closed]


async def test_a_chain_that_begins_with_a_related_request(smb: SmbService) -> None:
    client = await connected(smb)
    file_id = await client.open_root()
    close = struct.pack("<HHI", 24, 0, 0) + file_id
    client.give(joined(client, (Command.CLOSE, close, RELATED), (Command.CLOSE, close, RELATED)))
    assert statuses(await client.next()) == [Status.INVALID_PARAMETER] * 2
    assert await smb.handle_count() == 1


async def test_the_responses_of_a_chain_are_padded(smb: SmbService) -> None:
    """The last one, too; a single one is not."""
    client = await connected(smb)
    client.give(joined(client, (99, EMPTY, 0), (Command.ECHO, EMPTY, 0), (99, EMPTY, 0)))
    assert [len(reply.raw) for reply in await client.next()] == [80, 72, 80]
    assert len((await client.request(99, EMPTY)).raw) == 73


async def test_the_last_response_has_the_credits_of_all(smb: SmbService) -> None:
    client = await connected(smb)
    echo = (Command.ECHO, EMPTY, 0)
    client.give(joined(client, echo, echo, echo, credits=3))
    assert [reply.credits for reply in await client.next()] == [0, 0, 9]


@pytest.mark.parametrize("dialect", [0x0210, 0x0302, 0x0311])
async def test_each_response_of_a_chain_is_signed(smb: SmbService, dialect: int) -> None:
    client = await smb.connected(dialect)
    await client.echo(credits=9)
    client.give(
        joined(client, (Command.CREATE, create_body(""), 0), (Command.CLOSE, CLOSE, RELATED), signs=True)
    )
    replies = await client.next()
    assert statuses(replies) == [Status.SUCCESS, Status.SUCCESS]
    assert all(client.is_signed(reply) for reply in replies)


async def test_one_bad_signature_in_a_chain(smb: SmbService) -> None:
    client = await connected(smb)
    chain = bytearray(joined(client, (Command.ECHO, EMPTY, 0), (Command.ECHO, EMPTY, 0), signs=True))
    chain[-1] ^= 1
    client.give(bytes(chain))
    assert statuses(await client.next()) == [Status.SUCCESS, Status.ACCESS_DENIED]


async def test_an_encrypted_chain_is_one_message_each_way(smb: SmbService) -> None:
    client = await connected(smb)
    chain = joined(client, (Command.CREATE, create_body(""), 0), (Command.CLOSE, CLOSE, RELATED))
    client.give(client.encrypted(chain))
    replies = split(client.decrypted(await client.transport.sent.get()))
    assert statuses(replies) == [Status.SUCCESS, Status.SUCCESS]
    assert not any(reply.flags & SIGNED for reply in replies)


async def test_the_longest_chain(smb: SmbService) -> None:
    client = await connected(smb)
    client.give(joined(client, *[(Command.ECHO, EMPTY, 0)] * 64))
    assert len(await client.next()) == 64
    await client.echo(credits=200)
    client.give(joined(client, *[(Command.ECHO, EMPTY, 0)] * 65))
    assert client.is_closed


# --- Requests that wait


class Waits:
    """A command that waits until the test says so. It needs an open, as LOCK and CHANGE_NOTIFY do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, command: Command = Command.LOCK) -> None:
        self.until: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        needs = Needs.TREE if command is Command.CREATE else Needs.OPEN
        monkeypatch.setitem(COMMANDS, command, CommandRow(needs, self.handle))
        self._at_close = None if command is Command.CREATE else Status.RANGE_NOT_LOCKED
        self.was_cancelled = False

    async def handle(self, request: PartRequest) -> Answer:
        try:
            return Answer(await request.wait(self._wait(), at_close=self._at_close))
        except Failed:
            self.was_cancelled = True
            raise

    async def _wait(self) -> bytes:
        return await asyncio.shield(self.until)


async def begun(client: RawClient, command: Command = Command.LOCK, **fields: object) -> Reply:
    """The interim response to a request that waits for a file that the client opens for it."""
    if command is not Command.CREATE:
        fields.setdefault("body", struct.pack("<HHI", 48, 1, 0) + await client.open_root() + bytes(24))
    body = fields.pop("body", create_body(""))
    assert isinstance(body, bytes)
    return await client.request(command, body, **fields)


async def test_an_interim_response_and_the_final_one(
    smb: SmbService, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Waits(monkeypatch)
    client = await connected(smb)
    interim = await begun(client, credits=5, signs=True)
    assert interim.status is Status.PENDING
    assert interim.flags & (ASYNC | SIGNED) == ASYNC
    assert interim.async_id
    assert interim.credits == 5
    assert interim.body == bytes.fromhex("090000000000000000")
    assert struct.unpack_from("<H", interim.raw, 6) == (0,)
    assert (await client.echo()).status is Status.SUCCESS
    waits.until.set_result(EMPTY)
    (final,) = await client.next()
    assert (final.status, final.body) == (Status.SUCCESS, EMPTY)
    assert (final.message_id, final.async_id) == (interim.message_id, interim.async_id)
    assert final.flags & ASYNC
    assert final.credits == 0
    assert client.is_signed(final)


@pytest.mark.parametrize("by", ["async id", "message id"])
async def test_cancel(smb: SmbService, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    waits = Waits(monkeypatch)
    client = await connected(smb)
    interim = await begun(client)
    ids = {"message_id": interim.message_id}
    if by == "async id":
        ids = {"flags": ASYNC, "process_id": interim.process_id, "tree_id": interim.tree_id, "message_id": 0}
    client.give(client.message(Command.CANCEL, EMPTY, **ids))  # type: ignore[arg-type]
    (final,) = await client.next()
    assert (final.status, final.async_id) == (Status.CANCELLED, interim.async_id)
    assert waits.was_cancelled
    assert client.transport.sent.empty()
    assert not client.connection.waiting


async def test_a_cancel_needs_no_credit_and_has_no_answer(smb: SmbService) -> None:
    client = await connected(smb)
    for ids in ({"message_id": 7}, {"message_id": 0, "flags": ASYNC, "process_id": 3}):
        client.give(client.message(Command.CANCEL, EMPTY, **ids))  # type: ignore[arg-type]
    assert (await client.echo()).status is Status.SUCCESS
    assert client.transport.sent.empty()


async def test_a_cancel_of_another_session(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    client = await connected(smb)
    interim = await begun(client)
    await client.log_on()
    client.give(client.message(Command.CANCEL, EMPTY, message_id=interim.message_id))
    await client.echo()
    assert client.transport.sent.empty()
    waits.until.set_result(EMPTY)
    (final,) = await client.next()
    assert final.status is Status.SUCCESS


async def test_what_is_done_cannot_be_cancelled(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    client = await connected(smb)
    interim = await begun(client)
    waits.until.set_result(EMPTY)
    await asyncio.sleep(0)
    client.give(client.message(Command.CANCEL, EMPTY, message_id=interim.message_id))
    (final,) = await client.next()
    assert final.status in (Status.SUCCESS, Status.CANCELLED)
    assert client.transport.sent.empty()


async def test_a_chain_ends_when_the_client_is_gone(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its requests would wait, for an oplock that no client gives up any more."""
    Waits(monkeypatch, Command.CREATE)
    client = await connected(smb)
    client.give(joined(client, *[(Command.CREATE, create_body("") + bytes(7), 0)] * 3))
    assert statuses(await client.next()) == [Status.PENDING]
    async with asyncio.timeout(5):
        await client.leave()


async def test_closing_ends_what_waits(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    Waits(monkeypatch)
    client = await connected(smb)
    file_id = await client.open_root()
    lock = struct.pack("<HHI", 48, 1, 0) + file_id + bytes(24)
    assert (await client.request(Command.LOCK, lock)).status is Status.PENDING
    client.give(client.message(Command.CLOSE, struct.pack("<HHI", 24, 0, 0) + file_id))
    found = {reply.command: reply.status for _ in range(2) for reply in await client.next()}
    assert found == {Command.LOCK: Status.RANGE_NOT_LOCKED, Command.CLOSE: Status.SUCCESS}


@pytest.mark.parametrize("command", [Command.TREE_DISCONNECT, Command.LOGOFF])
@pytest.mark.parametrize("waiting", [Command.LOCK, Command.CREATE])
async def test_leaving_ends_what_waits(
    smb: SmbService, monkeypatch: pytest.MonkeyPatch, command: Command, waiting: Command
) -> None:
    Waits(monkeypatch, waiting)
    client = await connected(smb)
    assert (await begun(client, waiting)).status is Status.PENDING
    client.give(client.message(command, EMPTY, signs=True))
    found = {reply.command: reply.status for _ in range(2) for reply in await client.next()}
    ended = Status.RANGE_NOT_LOCKED if waiting is Command.LOCK else Status.CANCELLED
    assert found == {waiting: ended, command: Status.SUCCESS}
    assert await smb.handle_count() == 0


async def test_a_lost_connection_ends_what_waits(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    client = await connected(smb)
    await begun(client)
    await client.leave()
    assert waits.was_cancelled
    assert await smb.handle_count() == 0
    assert client.transport.sent.empty()


async def test_the_last_of_a_chain_may_wait(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    client = await connected(smb)
    client.give(
        joined(client, (Command.CREATE, create_body(""), 0), (Command.LOCK, LOCK, RELATED), credits=2)
    )
    replies = await client.next()
    assert statuses(replies) == [Status.SUCCESS, Status.PENDING]
    assert [reply.credits for reply in replies] == [0, 4]
    waits.until.set_result(EMPTY)
    (final,) = await client.next()
    assert (final.status, final.credits, final.flags & ASYNC) == (Status.SUCCESS, 0, ASYNC)


async def test_a_create_may_wait_anywhere(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch, Command.CREATE)
    client = await connected(smb)
    echo = (Command.ECHO, EMPTY, 0)
    client.give(joined(client, echo, (Command.CREATE, create_body(""), 0), echo))
    assert statuses(await client.next()) == [Status.SUCCESS, Status.PENDING]
    waits.until.set_result(bytes(88))
    assert statuses(await client.next()) == [Status.SUCCESS, Status.SUCCESS]


async def test_others_may_not_wait_in_the_middle(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    Waits(monkeypatch)
    client = await connected(smb)
    client.give(
        joined(
            client,
            (Command.CREATE, create_body(""), 0),
            (Command.LOCK, LOCK, RELATED),
            (Command.CLOSE, CLOSE, RELATED),
        )
    )
    assert statuses(await client.next()) == [Status.SUCCESS, Status.INTERNAL_ERROR, Status.SUCCESS]


async def test_what_waits_is_bounded(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "WAITING_MAX", 3)
    waits = Waits(monkeypatch)
    client = await connected(smb)
    found = [(await begun(client)).status for _ in range(4)]
    assert found == [Status.PENDING] * 3 + [Status.INSUFFICIENT_RESOURCES]
    waits.until.set_result(EMPTY)


async def test_encrypted_requests_are_answered_encrypted_at_last(
    smb: SmbService, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Waits(monkeypatch)
    client = await connected(smb)
    body = struct.pack("<HHI", 48, 1, 0) + await client.open_root() + bytes(24)
    client.give(client.encrypted(client.message(Command.LOCK, body)))
    (interim,) = split(client.decrypted(await client.transport.sent.get()))
    waits.until.set_result(EMPTY)
    (final,) = split(client.decrypted(await client.transport.sent.get()))
    assert (interim.status, final.status) == (Status.PENDING, Status.SUCCESS)


# --- What is in flight


async def test_nothing_more_is_received_while_too_much_is_in_flight(
    smb: SmbService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for other clients does not count."""
    released = asyncio.get_running_loop().create_future()

    async def slow(_request: PartRequest) -> Answer:
        await asyncio.shield(released)
        return Answer(EMPTY)

    monkeypatch.setitem(COMMANDS, Command.ECHO, CommandRow(Needs.NOTHING, slow))
    waits = Waits(monkeypatch)
    client = await smb.connected()
    await begun(client, credits=20)
    cost = in_flight.REQUEST_BYTES + len(client.message(Command.ECHO, EMPTY))
    client.next_id -= 1
    monkeypatch.setattr(in_flight, "CLIENT_BYTES_MAX", 3 * cost)
    for expected in (False, False, False, True):
        client.give(client.message(Command.ECHO, EMPTY))
        assert client.transport.is_paused == expected
    released.set_result(None)
    for _ in range(4):
        await client.next()
    await asyncio.sleep(0)
    assert not client.transport.is_paused
    waits.until.set_result(EMPTY)


async def test_what_all_clients_have_in_flight_is_bounded(
    smb: SmbService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then each of them has one request in progress at a time."""
    released = asyncio.get_running_loop().create_future()

    async def slow(_request: PartRequest) -> Answer:
        await asyncio.shield(released)
        return Answer(EMPTY)

    clients = [await smb.connected() for _ in range(4)]
    monkeypatch.setitem(COMMANDS, Command.ECHO, CommandRow(Needs.NOTHING, slow))
    cost = in_flight.REQUEST_BYTES + len(clients[0].message(Command.ECHO, EMPTY))
    clients[0].next_id -= 1
    smb.environment.memory.limit_bytes = 4 * cost
    for client, expected in zip(clients, (False, False, True, True), strict=True):
        client.give(client.message(Command.ECHO, EMPTY))
        assert client.transport.is_paused == expected
    released.set_result(None)
    for client in clients:
        await client.next()
        await asyncio.sleep(0)
        assert not client.transport.is_paused


async def test_what_requests_take_of_the_memory(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a long response what their credits pay for; while they wait for other clients the message only."""
    released = asyncio.get_running_loop().create_future()

    async def slow(_request: PartRequest) -> Answer:
        await asyncio.shield(released)
        return Answer(EMPTY)

    for command in (Command.ECHO, Command.READ):
        monkeypatch.setitem(COMMANDS, command, CommandRow(Needs.NOTHING, slow))
    waits = Waits(monkeypatch)
    memory = smb.environment.memory
    client = await smb.connected()
    body = struct.pack("<HHI", 48, 1, 0) + await client.open_root() + bytes(24)
    await client.request(Command.LOCK, body, credits=20)
    assert memory.used_bytes == 64 + len(body)
    waits.until.set_result(EMPTY)
    await client.next()
    await asyncio.sleep(0)
    assert memory.used_bytes == 0
    for command, response_bytes in ((Command.ECHO, 0), (Command.READ, in_flight.CREDIT_BYTES)):
        before = memory.used_bytes
        message = client.message(command, EMPTY)
        client.give(message)
        assert memory.used_bytes - before == len(message) + in_flight.REQUEST_BYTES + response_bytes
    released.set_result(None)
    for _ in range(2):
        await client.next()
    await asyncio.sleep(0)
    assert memory.used_bytes == 0


async def test_a_failure_of_the_server(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_request: PartRequest) -> Answer:
        raise ZeroDivisionError

    monkeypatch.setitem(COMMANDS, Command.ECHO, CommandRow(Needs.NOTHING, broken))
    client = await smb.connected()
    assert (await client.echo()).status is Status.INTERNAL_ERROR
    assert not client.is_closed


async def test_a_connection_leaves_nothing_behind(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even to the garbage collector, which seldom runs."""
    Waits(monkeypatch)
    client = await connected(smb)
    client.give(client.encrypted(client.message(Command.ECHO, EMPTY)))
    await client.transport.sent.get()
    await begun(client)
    left = weakref.ref(client.connection)
    gc.disable()
    try:
        await client.leave()
        smb.forget(client)
        del client.connection
        assert left() is None
    finally:
        gc.enable()
