"""SESSION_SETUP and LOGOFF (MS-SMB2 §3.3.5.5, §3.3.5.6): who may log on, how, and what becomes of sessions."""

import base64
import struct
from dataclasses import replace
from typing import Any

import pytest

from kyanite.model import settings
from kyanite.model.accounts import AccountSettings
from kyanite.service_properties import ProtocolSettings
from kyanite.wire import spnego
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.harness import ACCOUNT
from tests.services.smb.raw_client import EMPTY, PASSWORD, SIGNED, RawClient
from tests.services.smb.service import SmbService

DIALECTS = [0x0210, 0x0300, 0x0302, 0x0311]
SECOND_PASSWORD = base64.b64encode(ACCOUNT.keys[1]).decode()
ENCRYPT_DATA = 4


def flags_of(body: bytes) -> int:
    return int(struct.unpack_from("<H", body, 2)[0])


async def is_alive(client: RawClient) -> bool:
    """Whether the session of the client still exists."""
    return (await client.connect_tree()).status is not Status.USER_SESSION_DELETED


# --- Who may log on


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("raw", [False, True], ids=["SPNEGO", "NTLMSSP"])
async def test_a_logon(smb: SmbService, dialect: int, raw: bool) -> None:
    client = await smb.negotiated(dialect)
    reply = await client.log_on(raw=raw)
    assert reply.status is Status.SUCCESS
    assert client.is_signed(reply)
    assert flags_of(reply.body) == 0
    assert reply.session_id


@pytest.mark.parametrize("domain", ["AZURE", "localhost", "", "Some.Domain"])
async def test_the_domain_does_not_matter(smb: SmbService, domain: str) -> None:
    client = await smb.negotiated()
    assert (await client.log_on(domain=domain)).status is Status.SUCCESS


async def test_either_key_is_a_password(smb: SmbService) -> None:
    client = await smb.negotiated()
    assert (await client.log_on(password=SECOND_PASSWORD)).status is Status.SUCCESS


async def test_the_name_in_capitals(smb: SmbService) -> None:
    client = await smb.negotiated()
    assert (await client.log_on(user=ACCOUNT.name.upper())).status is Status.SUCCESS


@pytest.mark.parametrize(
    ("user", "password"),
    [
        (ACCOUNT.name, "wrong"),
        (ACCOUNT.name, ""),
        (ACCOUNT.name, PASSWORD[:-1]),
        ("unknown", PASSWORD),
        ("guest", ""),
        ("other", PASSWORD),
    ],
)
@pytest.mark.parametrize("raw", [False, True], ids=["SPNEGO", "NTLMSSP"])
async def test_a_failure_says_nothing(smb: SmbService, user: str, password: str, raw: bool) -> None:
    client = await smb.negotiated()
    reply = await client.log_on(user, password, raw=raw)
    assert reply.status is Status.LOGON_FAILURE
    assert reply.body == bytes.fromhex("090000000000000000")
    assert not reply.flags & SIGNED
    again = await client.request(
        Command.SESSION_SETUP, client.first_setup_body(), session_id=reply.session_id
    )
    assert again.status is Status.USER_SESSION_DELETED
    assert not client.connection.is_authenticated
    assert (await client.log_on()).status is Status.SUCCESS


@pytest.mark.parametrize("token", [b"", b"\0", b"NTLMSSP\0", b"NTLMSSP\0\3\0\0\0" + bytes(80), b"\x60\x80"])
async def test_tokens_that_are_none(smb: SmbService, token: bytes) -> None:
    client = await smb.negotiated()
    reply = await client.request(Command.SESSION_SETUP, client.setup_body(token) + b"\0")
    assert reply.status is Status.LOGON_FAILURE


@pytest.mark.parametrize(("offset", "length"), [(88, 200), (87, 4), (90, 4), (0, 0)])
async def test_a_token_out_of_bounds(smb: SmbService, offset: int, length: int) -> None:
    client = await smb.negotiated()
    body = struct.pack("<HBBIIHHQ", 25, 0, 1, 1, 0, offset, length, 0) + bytes(10)
    assert (await client.request(Command.SESSION_SETUP, body)).status is Status.INVALID_PARAMETER


async def test_a_client_that_prefers_another_mechanism(smb: SmbService) -> None:
    """A member of a Windows domain lists Kerberos first, with a token of it. It is told to use NTLMSSP."""
    client = await smb.negotiated()
    kerberos = bytes.fromhex("2a864886f712010202")
    ntlmssp = spnego.NTLMSSP
    listed = b"\x30" + bytes([len(kerberos) + len(ntlmssp) + 4])
    listed += b"\x06" + bytes([len(kerberos)]) + kerberos + b"\x06" + bytes([len(ntlmssp)]) + ntlmssp
    fields = b"\xa0" + bytes([len(listed)]) + listed + b"\xa2\x06\x04\x04none"
    inner = (
        b"\x06\x06\x2b\x06\x01\x05\x05\x02\xa0" + bytes([len(fields) + 2]) + b"\x30" + bytes([len(fields)])
    )
    token = b"\x60" + bytes([len(inner + fields)]) + inner + fields
    reply = await client.request(Command.SESSION_SETUP, client.setup_body(token))
    assert reply.status is Status.MORE_PROCESSING_REQUIRED
    assert reply.body[8:] == bytes.fromhex("a1153013a0030a0101a10c060a2b06010401823702020a")


async def test_an_unknown_session(smb: SmbService) -> None:
    client = await smb.negotiated()
    reply = await client.request(Command.SESSION_SETUP, client.first_setup_body(), session_id=99)
    assert reply.status is Status.USER_SESSION_DELETED


async def test_sessions_beside_one_another(smb: SmbService) -> None:
    await smb.make_share()
    client = await smb.logged_on()
    first, key = client.session_id, client.signing_key
    await client.log_on()
    assert client.session_id != first
    assert (await client.connect_tree()).status is Status.SUCCESS
    client.session_id, client.signing_key = first, key
    assert (await client.connect_tree()).status is Status.SUCCESS


async def test_credits_come_with_the_session(smb: SmbService) -> None:
    client = await smb.negotiated()
    first = await client.request(Command.SESSION_SETUP, client.first_setup_body(), credits=8192)
    assert (first.status, first.credits) == (Status.MORE_PROCESSING_REQUIRED, 1)
    client = await smb.negotiated()
    assert (await client.log_on(credits=8192)).credits == 8192


async def test_half_made_sessions_are_bounded(smb: SmbService) -> None:
    client = await smb.negotiated()
    replies = []
    for _ in range(40):
        client.session_id = 0
        replies.append(await client.request(Command.SESSION_SETUP, client.first_setup_body()))
    statuses = [reply.status for reply in replies]
    assert statuses[:32] == [Status.MORE_PROCESSING_REQUIRED] * 32
    assert set(statuses[32:]) == {Status.INSUFFICIENT_RESOURCES}


async def test_guessing_is_slowed_down(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("kyanite.services.smb.sessions.session_setup.asyncio.sleep", sleep)
    for _ in range(7):
        client = await smb.negotiated()
        await client.log_on(password="guess")
    assert len(slept) == 2
    assert slept[0] < slept[1]
    other = smb.client("192.0.2.8")
    await other.negotiate(0x0311)
    await other.log_on()
    assert len(slept) == 2


# --- Encryption


@pytest.mark.parametrize(
    ("dialect", "ciphers", "status"),
    [
        (0x0210, (), Status.ACCESS_DENIED),
        (0x0300, (), Status.SUCCESS),
        (0x0302, (), Status.SUCCESS),
        (0x0311, (2,), Status.SUCCESS),
        (0x0311, (), Status.ACCESS_DENIED),
        (0x0311, (9,), Status.ACCESS_DENIED),
    ],
)
@pytest.mark.parametrize("by", ["option", "service properties"])
async def test_encryption_is_required(
    smb: SmbService, dialect: int, ciphers: tuple[int, ...], status: Status, by: str
) -> None:
    if by == "option":
        smb.require_encryption()
    else:
        await smb.set_protocols(ProtocolSettings(smb_encryption=True))
    client = await smb.negotiated(dialect, ciphers=ciphers)
    reply = await client.log_on()
    assert reply.status is status
    if status is Status.SUCCESS:
        assert flags_of(reply.body) == ENCRYPT_DATA
    else:
        assert not client.connection.is_authenticated


@pytest.mark.parametrize(
    ("dialect", "ciphers"),
    [(0x0300, ()), (0x0302, ()), (0x0311, (1,)), (0x0311, (2,)), (0x0311, (4,)), (0x0311, (3,))],
)
async def test_encrypted_requests(smb: SmbService, dialect: int, ciphers: tuple[int, ...]) -> None:
    await smb.make_share()
    client = await smb.logged_on(dialect, ciphers=ciphers)
    for _ in range(3):
        client.give(client.encrypted(client.message(Command.ECHO, EMPTY)))
        sent = await client.transport.sent.get()
        assert sent.startswith(b"\xfdSMB")
        reply = client.decrypted(sent)
        assert reply[8:12] == bytes(4)
        assert not reply[16] & SIGNED


async def test_the_nonces_of_responses_differ(smb: SmbService) -> None:
    client = await smb.logged_on()
    nonces = set()
    for _ in range(20):
        client.give(client.encrypted(client.message(Command.ECHO, EMPTY)))
        nonces.add((await client.transport.sent.get())[20:36])
    assert len(nonces) == 20


# --- The same session again


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_session_is_set_up_again(smb: SmbService, dialect: int) -> None:
    """The keys stay the old ones, and so do the trees."""
    client = await smb.connected(dialect)
    session_id = client.session_id
    reply = await client.log_on(again=True, signs=True)
    assert (reply.status, reply.session_id) == (Status.SUCCESS, session_id)
    assert client.is_signed(reply)
    assert (await client.request(Command.TREE_DISCONNECT, EMPTY, signs=True)).status is Status.SUCCESS


@pytest.mark.parametrize(
    ("user", "password"), [(ACCOUNT.name, "wrong"), ("other", "a2V5IG9mIHRoZSBvdGhlcg==")]
)
async def test_a_session_ends_when_it_cannot_be_set_up_again(
    smb: SmbService, user: str, password: str
) -> None:
    """Another account, too, is a failure: the session has trees of the first one."""
    client = await smb.connected()
    file_id = await client.open_root()
    reply = await client.log_on(user, password, again=True, signs=True)
    assert reply.status is Status.LOGON_FAILURE
    assert not await is_alive(client)
    assert await smb.handle_count() == 0
    assert file_id


async def test_the_session_lives_while_it_is_set_up_again(smb: SmbService) -> None:
    client = await smb.connected()
    reply = await client.request(Command.SESSION_SETUP, client.first_setup_body(), signs=True)
    assert reply.status is Status.MORE_PROCESSING_REQUIRED
    assert (await client.request(Command.TREE_DISCONNECT, EMPTY, signs=True)).status is Status.SUCCESS


# --- Binding, previous sessions


@pytest.mark.parametrize("where", ["same process", "another process"])
async def test_binding_is_refused_and_harms_nothing(smb: SmbService, where: str) -> None:
    client = await smb.connected()
    if where == "another process":
        smb.another_process()
    other = await smb.negotiated()
    body = other.setup_body(b"token", flags=1)
    for session_id, status in (
        (0, Status.INVALID_PARAMETER),
        (client.session_id + 1, Status.USER_SESSION_DELETED),
        (client.session_id, Status.REQUEST_NOT_ACCEPTED),
    ):
        reply = await other.request(Command.SESSION_SETUP, body, session_id=session_id)
        assert reply.status is status
    assert await is_alive(client)


@pytest.mark.parametrize("where", ["same connection", "same process", "another process"])
async def test_the_previous_session_ends_first(smb: SmbService, where: str) -> None:
    client = await smb.connected()
    await client.open_root()
    lost = client.session_id
    if where == "another process":
        smb.another_process()
    later = client if where == "same connection" else await smb.negotiated()
    assert (await later.log_on(previous=lost)).status is Status.SUCCESS
    assert await smb.handle_count() == 0
    reply = await client.request(Command.TREE_CONNECT, EMPTY, session_id=lost)
    assert reply.status is Status.USER_SESSION_DELETED
    assert await is_alive(later)


@pytest.mark.parametrize("where", ["same process", "another process"])
async def test_sessions_of_other_accounts_are_safe(smb: SmbService, where: str) -> None:
    client = await smb.connected()
    if where == "another process":
        smb.another_process()
    other = await smb.negotiated()
    reply = await other.log_on("other", "a2V5IG9mIHRoZSBvdGhlcg==", previous=client.session_id)
    assert reply.status is Status.SUCCESS
    assert await is_alive(client)


async def test_a_previous_session_of_a_dead_process(smb: SmbService) -> None:
    client = await smb.connected()
    smb.memberships.pop().close()
    smb.another_process()
    other = await smb.negotiated()
    assert (await other.log_on(previous=client.session_id)).status is Status.SUCCESS
    assert (await other.log_on(previous=12345)).status is Status.SUCCESS


async def test_two_sessions_never_have_one_id(smb: SmbService) -> None:
    """Ids are random. A client that gets one that is in use has to try again."""
    client = await smb.connected()
    smb.another_process()
    smb.next_random_bytes(client.session_id.to_bytes(4, "little"))
    other = await smb.negotiated()
    assert (await other.log_on()).status is Status.INSUFFICIENT_RESOURCES
    assert (await other.log_on()).status is Status.SUCCESS
    assert await is_alive(client)


async def test_sessions_leave_no_rows(smb: SmbService) -> None:
    client = await smb.connected()
    assert len(await smb.rows(b"Y")) == len(await smb.rows(b"Z")) == 1
    await client.request(Command.LOGOFF, EMPTY, signs=True)
    assert await smb.rows(b"Y") == await smb.rows(b"Z") == []
    client = await smb.connected()
    await client.leave()
    assert await smb.rows(b"Y") == await smb.rows(b"Z") == []


# --- Accounts that change


NEW_KEY = b"a new key of acme"
NEW_PASSWORD = base64.b64encode(NEW_KEY).decode()


def change(smb: SmbService, **changes: Any) -> None:
    """Replace the account, as the server does."""
    accounts = smb.environment.accounts
    assert isinstance(accounts, dict)
    accounts[ACCOUNT.name] = replace(accounts[ACCOUNT.name], **changes)


async def test_a_session_outlives_its_key(smb: SmbService) -> None:
    client = await smb.connected()
    change(smb, keys=(NEW_KEY,))
    assert await is_alive(client)
    stranger = await smb.negotiated()
    assert (await stranger.log_on()).status is Status.LOGON_FAILURE
    assert (await stranger.log_on(password=NEW_PASSWORD)).status is Status.SUCCESS
    reply = await client.log_on(password=NEW_PASSWORD, again=True, signs=True)
    assert reply.status is Status.SUCCESS


async def test_an_account_without_keys(smb: SmbService) -> None:
    client = await smb.connected()
    change(smb, settings=AccountSettings(shared_key_access=False))
    assert await is_alive(client)
    stranger = await smb.negotiated()
    assert (await stranger.log_on()).status is Status.LOGON_FAILURE


async def test_secure_transfer_is_encrypted(smb: SmbService) -> None:
    change(smb, settings=AccountSettings(require_https=True))
    client = await smb.negotiated(0x0210)
    assert (await client.log_on()).status is Status.ACCESS_DENIED
    client = await smb.negotiated(0x0311, ciphers=(2,))
    reply = await client.log_on()
    assert reply.status is Status.SUCCESS
    assert flags_of(reply.body) == ENCRYPT_DATA


async def test_sessions_of_a_removed_account_end(smb: SmbService) -> None:
    client = await smb.connected()
    await client.open_root()
    (end,) = smb.environment.on_accounts_removed
    await end({"other"})
    assert await is_alive(client)
    await end({ACCOUNT.name})
    assert not await is_alive(client)
    assert await smb.rows(b"Y") == await smb.rows(b"Z") == []
    assert await smb.handle_count() == 0


@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "another key"])
async def test_an_account_that_changes_during_a_logon(
    smb: SmbService, monkeypatch: pytest.MonkeyPatch, is_removed: bool
) -> None:
    """The password was right when it was checked."""
    read = settings.get

    async def change_meanwhile(*arguments: Any) -> Any:
        accounts = smb.environment.accounts
        assert isinstance(accounts, dict)
        if is_removed:
            del accounts[ACCOUNT.name]
        else:
            change(smb, keys=(NEW_KEY,))
        return await read(*arguments)

    monkeypatch.setattr(settings, "get", change_meanwhile)
    client = await smb.negotiated()
    assert (await client.log_on()).status is Status.LOGON_FAILURE
    assert await smb.rows(b"Y") == await smb.rows(b"Z") == []


# --- LOGOFF


async def test_a_logoff_closes_what_is_open(smb: SmbService) -> None:
    client = await smb.connected()
    await client.open_root()
    assert await smb.handle_count() == 1
    reply = await client.request(Command.LOGOFF, EMPTY, signs=True)
    assert (reply.status, reply.body, client.is_signed(reply)) == (Status.SUCCESS, EMPTY, True)
    assert await smb.handle_count() == 0
    again = await client.request(Command.LOGOFF, EMPTY, signs=True)
    assert again.status is Status.USER_SESSION_DELETED


async def test_an_encrypted_logoff_is_answered_encrypted(smb: SmbService) -> None:
    client = await smb.connected()
    client.give(client.encrypted(client.message(Command.LOGOFF, EMPTY)))
    assert client.decrypted(await client.transport.sent.get())[8:12] == bytes(4)


async def test_a_lost_connection_closes_what_is_open(smb: SmbService) -> None:
    client = await smb.connected()
    await client.open_root()
    await client.open_root()
    assert await smb.handle_count() == 2
    await client.leave()
    assert await smb.handle_count() == 0
