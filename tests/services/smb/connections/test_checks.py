"""The order in which a request is checked, row by row (MS-SMB2 §3.3.5.2): what closes the connection, what is said."""

import struct
from collections.abc import Callable

import pytest

from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import ASYNC, EMPTY, RELATED, SIGNED, RawClient, tree_body
from tests.services.smb.service import SmbService

ONES = b"\xff" * 16
NO_FILE = struct.pack("<QQ", 7, 7)


def close_body(file_id: bytes = NO_FILE) -> bytes:
    return struct.pack("<HHI", 24, 0, 0) + file_id


# --- 1 to 3: the connection is closed

BROKEN: dict[str, Callable[[RawClient], bytes]] = {
    "no magic": lambda client: client.message(Command.ECHO, EMPTY, magic=b"\xfeSMC"),
    "compressed": lambda client: b"\xfcSMB" + bytes(60),
    "SMB1 later on": lambda client: b"\xffSMB" + bytes(60),
    "wrong size": lambda client: client.message(Command.ECHO, EMPTY, size=65),
    "half a header": lambda client: client.message(Command.ECHO, EMPTY)[:40],
    "no body": lambda client: client.message(Command.ECHO, b""),
    "one byte of a body": lambda client: client.message(Command.ECHO, b"\4"),
    "next command is not aligned": lambda client: client.message(Command.ECHO, EMPTY * 20, following=76),
    "next command is beyond the end": lambda client: client.message(Command.ECHO, EMPTY, following=72),
    "next command is too near": lambda client: client.message(Command.ECHO, EMPTY * 20, following=64),
    "id outside the window": lambda client: client.message(
        Command.ECHO, EMPTY, message_id=client.next_id + 1
    ),
    "id used twice": lambda client: client.message(Command.ECHO, EMPTY, message_id=0),
    "charge beyond the window": lambda client: client.message(Command.ECHO, EMPTY, charge=2),
    "a second NEGOTIATE": lambda client: client.message(
        Command.NEGOTIATE, client.negotiate_body(0x0311), session_id=0
    ),
    "encrypted for no session": lambda client: b"\xfdSMB" + bytes(38) + b"\1\0" + bytes(8) + bytes(68),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_broken_messages_close_the_connection(smb: SmbService, what: str) -> None:
    client = await smb.logged_on()
    client.give(BROKEN[what](client))
    assert client.is_closed
    assert client.transport.sent.empty()


async def test_a_chain_is_checked_as_a_whole(smb: SmbService) -> None:
    """The first request has a right message id, the second one has not: neither is answered."""
    client = await smb.logged_on()
    first = client.message(Command.ECHO, EMPTY + bytes(4), following=72)
    client.give(first + client.message(Command.ECHO, EMPTY, message_id=99))
    assert client.is_closed
    assert client.transport.sent.empty()


@pytest.mark.parametrize("command", [each for each in Command if each is not Command.NEGOTIATE])
async def test_nothing_precedes_the_negotiation(smb: SmbService, command: Command) -> None:
    client = smb.client()
    client.give(client.message(command, EMPTY, message_id=0))
    assert client.is_closed
    assert client.transport.sent.empty()


# --- 4: encryption


async def test_a_session_that_requires_encryption_gets_no_plain_request(smb: SmbService) -> None:
    smb.require_encryption()
    await smb.make_share()
    client = await smb.logged_on()
    reply = await client.connect_tree(signs=False)
    assert reply.status is Status.ACCESS_DENIED
    assert (await client.connect_tree()).status is Status.ACCESS_DENIED
    assert (await client.echo()).status is Status.ACCESS_DENIED


async def test_a_forged_encrypted_message_closes_the_connection(smb: SmbService) -> None:
    client = await smb.logged_on()
    message = bytearray(client.encrypted(client.message(Command.ECHO, EMPTY)))
    message[-1] ^= 1
    client.give(bytes(message))
    assert client.is_closed
    assert client.transport.sent.empty()


async def test_an_encrypted_message_of_another_length_closes_the_connection(smb: SmbService) -> None:
    client = await smb.logged_on()
    client.give(client.encrypted(client.message(Command.ECHO, EMPTY)) + b"\0")
    assert client.is_closed


async def test_a_request_inside_may_not_name_another_session(smb: SmbService) -> None:
    client = await smb.connected()
    client.give(client.encrypted(client.message(Command.TREE_DISCONNECT, EMPTY, session_id=77)))
    reply = client.decrypted(await client.transport.sent.get())
    assert struct.unpack_from("<I", reply, 8) == (Status.ACCESS_DENIED,)


# --- 5 and 6: command, flags, chain


@pytest.mark.parametrize("command", [19, 20, 0x7FFF, 0xFFFF])
async def test_unknown_commands(smb: SmbService, command: int) -> None:
    client = await smb.connected()
    reply = await client.request(command, EMPTY)
    assert (reply.status, reply.command) == (Status.INVALID_PARAMETER, command)
    assert reply.body == bytes.fromhex("090000000000000000")


@pytest.mark.parametrize("flags", [1, ASYNC, 0x100, 0x40000000, 0x80000000])
async def test_flags_that_no_request_has(smb: SmbService, flags: int) -> None:
    client = await smb.connected()
    assert (await client.echo(flags=flags)).status is Status.INVALID_PARAMETER


@pytest.mark.parametrize("flags", [0x10, 0x70, 0x10000000, 0x20000000])
async def test_flags_that_any_request_may_have(smb: SmbService, flags: int) -> None:
    client = await smb.connected()
    assert (await client.echo(flags=flags)).status is Status.SUCCESS


async def test_the_first_of_a_chain_is_not_related(smb: SmbService) -> None:
    client = await smb.connected()
    assert (await client.echo(flags=RELATED)).status is Status.INVALID_PARAMETER


async def test_what_is_related_to_a_request_that_was_not_is_refused_as_well(smb: SmbService) -> None:
    client = await smb.connected()
    await client.echo(credits=8)
    first = client.message(Command.ECHO, EMPTY + bytes(4), flags=RELATED, following=72)
    second = client.message(Command.CLOSE, close_body(), flags=RELATED, following=88)
    client.give(first + second + client.message(Command.CLOSE, close_body()))
    assert [reply.status for reply in await client.next()] == [
        Status.INVALID_PARAMETER,
        Status.INVALID_PARAMETER,
        Status.FILE_CLOSED,
    ]


async def test_the_file_of_a_chain_that_has_none(smb: SmbService) -> None:
    client = await smb.connected()
    await client.echo(credits=8)
    first = client.message(Command.CLOSE, close_body(ONES), following=88)
    second = client.message(Command.CLOSE, close_body(ONES), flags=RELATED, following=88)
    client.give(first + second + client.message(Command.CLOSE, close_body(ONES), flags=RELATED))
    assert [reply.status for reply in await client.next()] == [Status.FILE_CLOSED] * 3


# --- 7: signatures


@pytest.mark.parametrize("dialect", [0x0210, 0x0300, 0x0302, 0x0311])
async def test_signatures(smb: SmbService, dialect: int) -> None:
    client = await smb.connected(dialect)
    reply = await client.echo(signs=True)
    assert (reply.status, client.is_signed(reply)) == (Status.SUCCESS, True)
    assert not (await client.echo()).flags & SIGNED
    wrong = await client.echo(flags=SIGNED, signature=b"0123456789abcdef")
    assert (wrong.status, client.is_signed(wrong)) == (Status.ACCESS_DENIED, True)


async def test_a_signed_request_of_an_unknown_session(smb: SmbService) -> None:
    client = await smb.connected()
    reply = await client.echo(signs=True, session_id=client.session_id + 1)
    assert reply.status is Status.USER_SESSION_DELETED
    assert not reply.flags & SIGNED


async def test_a_client_that_requires_signing_cannot_leave_it_out(smb: SmbService) -> None:
    await smb.make_share()
    client = await smb.negotiated(0x0302)
    await client.log_on(security_mode=2)
    reply = await client.connect_tree(signs=False)
    assert (reply.status, client.is_signed(reply)) == (Status.ACCESS_DENIED, True)
    assert (await client.connect_tree()).status is Status.SUCCESS


# --- 9 and 10: session and tree


@pytest.mark.parametrize(
    "command", [each for each in Command if each not in (Command.NEGOTIATE, Command.SESSION_SETUP, 12, 13)]
)
async def test_a_session_is_needed(smb: SmbService, command: Command) -> None:
    client = await smb.connected(0x0302)
    reply = await client.request(command, EMPTY, session_id=77)
    assert reply.status is Status.USER_SESSION_DELETED


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (Command.CREATE, Status.INVALID_HANDLE),
        (Command.TREE_CONNECT, Status.INVALID_HANDLE),
        (Command.QUERY_INFO, Status.INVALID_HANDLE),
        (Command.SET_INFO, Status.INVALID_HANDLE),
        (Command.READ, Status.USER_SESSION_DELETED),
        (Command.LOGOFF, Status.USER_SESSION_DELETED),
    ],
)
async def test_requests_while_the_session_is_being_set_up(
    smb: SmbService, command: Command, status: Status
) -> None:
    client = await smb.negotiated()
    first = await client.request(Command.SESSION_SETUP, client.first_setup_body())
    assert first.status is Status.MORE_PROCESSING_REQUIRED
    reply = await client.request(command, EMPTY, session_id=first.session_id)
    assert reply.status is status


@pytest.mark.parametrize("command", [each for each in Command if each not in (0, 1, 2, 3, 12, 13)])
async def test_a_tree_is_needed(smb: SmbService, command: Command) -> None:
    client = await smb.connected()
    reply = await client.request(command, EMPTY, tree_id=99)
    assert reply.status is Status.NETWORK_NAME_DELETED


async def test_an_echo_needs_nothing(smb: SmbService) -> None:
    client = await smb.negotiated()
    reply = await client.echo()
    assert (reply.status, reply.body) == (Status.SUCCESS, EMPTY)
    assert reply.process_id == 0xFEFF


async def test_ids_of_another_connection_mean_nothing(smb: SmbService) -> None:
    mine, other = await smb.connected(), await smb.connected()
    reply = await other.request(Command.TREE_DISCONNECT, EMPTY, session_id=mine.session_id)
    assert reply.status is Status.USER_SESSION_DELETED


# --- 11: a share that requires encryption


async def test_plain_requests_for_a_tree_that_requires_encryption(smb: SmbService) -> None:
    client = await smb.connected()
    session = client.connection.state.sessions[client.session_id]
    session.trees[client.tree_id].requires_encryption = True
    assert (await client.request(Command.CLOSE, close_body())).status is Status.ACCESS_DENIED


# --- 12 to 14: the file, the body


@pytest.mark.parametrize("length", [0, 8, 23])
async def test_a_body_too_short_for_its_file_id(smb: SmbService, length: int) -> None:
    client = await smb.connected()
    reply = await client.request(Command.CLOSE, (close_body() + bytes(8))[: max(length, 2)])
    assert reply.status is Status.INVALID_PARAMETER


@pytest.mark.parametrize(
    ("command", "at"),
    [
        (Command.CLOSE, 8),
        (Command.FLUSH, 8),
        (Command.READ, 16),
        (Command.WRITE, 16),
        (Command.LOCK, 8),
        (Command.IOCTL, 8),
        (Command.QUERY_DIRECTORY, 8),
        (Command.CHANGE_NOTIFY, 8),
        (Command.QUERY_INFO, 24),
        (Command.SET_INFO, 16),
    ],
)
async def test_a_file_that_is_not_open(smb: SmbService, command: Command, at: int) -> None:
    """Whatever else is wrong with the body."""
    client = await smb.connected()
    reply = await client.request(command, bytes(at) + NO_FILE)
    assert reply.status is Status.FILE_CLOSED


async def test_both_halves_of_a_file_id_count(smb: SmbService) -> None:
    client = await smb.connected()
    file_id = await client.open_root()
    persistent, volatile = struct.unpack("<QQ", file_id)
    for wrong in ((persistent + 1, volatile), (persistent, volatile + 1), (volatile + 9, persistent)):
        reply = await client.request(Command.CLOSE, close_body(struct.pack("<QQ", *wrong)))
        assert reply.status is Status.FILE_CLOSED, wrong
    assert (await client.request(Command.CLOSE, close_body(file_id))).status is Status.SUCCESS


async def test_a_file_of_another_tree(smb: SmbService) -> None:
    client = await smb.connected()
    file_id = await client.open_root()
    first = client.tree_id
    await client.connect_tree()
    assert client.tree_id != first
    assert (await client.request(Command.CLOSE, close_body(file_id))).status is Status.FILE_CLOSED
    reply = await client.request(Command.CLOSE, close_body(file_id), tree_id=first)
    assert reply.status is Status.SUCCESS


async def test_the_size_of_the_body_comes_last(smb: SmbService) -> None:
    client = await smb.connected()
    body = struct.pack("<HHI", 25, 0, 0)
    assert (await client.request(Command.CLOSE, body + NO_FILE)).status is Status.FILE_CLOSED
    file_id = await client.open_root()
    assert (await client.request(Command.CLOSE, body + file_id)).status is Status.INVALID_PARAMETER
    assert (await client.request(Command.CLOSE, close_body(file_id))).status is Status.SUCCESS


@pytest.mark.parametrize(
    ("first", "second", "is_late"),
    [(0, 0, False), (0, 1, False), (1, 0, True), (5, 4, True), (0xFFFF, 0, False), (0, 0xFFFF, True)],
)
async def test_requests_of_an_earlier_channel(
    smb: SmbService, first: int, second: int, is_late: bool
) -> None:
    client = await smb.connected()
    file_id = await client.open_root()
    set_info = struct.pack("<HBBIHHI", 0, 0, 0, 0, 0, 0, 0) + file_id
    for sequence in (first, second):
        reply = await client.request(Command.SET_INFO, set_info, channel_sequence=sequence)
    late = Status.FILE_NOT_AVAILABLE
    assert (reply.status is late) == is_late
    if first != 0xFFFF:
        flush = struct.pack("<HHI", 24, 0, 0) + file_id
        reply = await client.request(Command.FLUSH, flush, channel_sequence=second)
        assert reply.status is not late


async def test_the_sequence_of_2_1_is_a_status(smb: SmbService) -> None:
    client = await smb.connected(0x0210)
    file_id = await client.open_root()
    set_info = struct.pack("<HBBIHHI", 0, 0, 0, 0, 0, 0, 0) + file_id
    for sequence in (5, 4):
        reply = await client.request(Command.SET_INFO, set_info, channel_sequence=sequence)
        assert reply.status is not Status.FILE_NOT_AVAILABLE


def test_the_table_has_every_command() -> None:
    from kyanite.services.smb.commands import COMMANDS

    assert set(COMMANDS) == set(Command)


async def test_a_tree_connect_of_3_1_1_is_signed_or_encrypted(smb: SmbService) -> None:
    client = await smb.logged_on()
    client.give(client.message(Command.TREE_CONNECT, tree_body("share")))
    assert client.is_closed
