"""NEGOTIATE in all its forms (MS-SMB2 §3.3.5.3, §3.3.5.4), and the FSCTL that validates it (§3.3.5.15.12)."""

import struct

import pytest

from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import EMPTY, GUID, SIGNED, RawClient, Reply, split
from tests.services.smb.service import SmbService

LEASING, LARGE_MTU, ENCRYPTION = 0x02, 0x04, 0x40
MAX_BYTES = 8 * 1024 * 1024
CHAIN_FILE = b"\xff" * 16


def capabilities_of(reply: Reply) -> int:
    return int(struct.unpack_from("<I", reply.body, 24)[0])


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ((0x0202, 0x0210), 0x0210),
        ((0x0210,), 0x0210),
        ((0x0202, 0x0210, 0x0300), 0x0300),
        ((0x0300, 0x0302), 0x0302),
        ((0x0311, 0x0210), 0x0311),
        ((0x0202, 0x0210, 0x0300, 0x0302, 0x0311), 0x0311),
        ((0x0310, 0x0300), 0x0300),
    ],
)
async def test_the_greatest_common_dialect(smb: SmbService, offered: tuple[int, ...], chosen: int) -> None:
    client = smb.client()
    reply = await client.negotiate(*offered)
    assert (reply.status, client.dialect) == (Status.SUCCESS, chosen)
    assert reply.credits == 1
    size, mode, _, _, guid, _, transact, read, write = struct.unpack_from("<HHHH16sIIII", reply.body)
    assert (size, mode, guid) == (65, 1, b"the server's id.")
    assert (transact, read, write) == (MAX_BYTES,) * 3
    assert struct.unpack_from("<H", reply.body, 56) == (128,)


@pytest.mark.parametrize("offered", [(0x0202,), (0x0310,), (0x02FF,), (0xFFFF, 0)])
async def test_no_common_dialect(smb: SmbService, offered: tuple[int, ...]) -> None:
    client = smb.client()
    assert (await client.negotiate(*offered)).status is Status.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("dialect", "offered", "expected"),
    [
        (0x0210, 0x7F, LEASING | LARGE_MTU),
        (0x0300, 0x7F, LEASING | LARGE_MTU | ENCRYPTION),
        (0x0302, 0x3F, LEASING | LARGE_MTU),
        (0x0311, 0x7F, LEASING | LARGE_MTU),
        (0x0311, 0x00, LEASING | LARGE_MTU),
    ],
)
async def test_capabilities(smb: SmbService, dialect: int, offered: int, expected: int) -> None:
    client = smb.client()
    assert capabilities_of(await client.negotiate(dialect, capabilities=offered)) == expected


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [((1, 2, 3, 4), 2), ((4, 1), 4), ((1, 3), 1), ((3,), 3), ((9,), 0), ((9, 1), 1)],
)
async def test_the_cipher(smb: SmbService, offered: tuple[int, ...], chosen: int) -> None:
    client = smb.client()
    client.cipher = 99
    await client.negotiate(0x0311, ciphers=offered)
    assert client.cipher == chosen


@pytest.mark.parametrize(
    ("offered", "chosen"), [((0, 1, 2), 2), ((0, 1), 1), ((0,), 0), ((1,), 1), ((), 1), ((9,), 1)]
)
async def test_the_signing_algorithm(smb: SmbService, offered: tuple[int, ...], chosen: int) -> None:
    """Without a common one there is no context, and AES-CMAC."""
    client = smb.client()
    reply = await client.negotiate(0x0311, signing=offered)
    assert client.signing_algorithm == chosen
    assert struct.unpack_from("<H", reply.body, 6) == (3 if set(offered) & {0, 1, 2} else 2,)
    await client.log_on()
    assert client.is_signed(await client.echo(signs=True))


async def test_contexts_that_are_not_known(smb: SmbService) -> None:
    client = smb.client()
    more = [(5, "server".encode("utf-16-le")), (0x100, b"posix" * 3), (6, bytes(4)), (7, bytes(10))]
    reply = await client.negotiate(0x0311, more_contexts=more)
    assert reply.status is Status.SUCCESS
    assert struct.unpack_from("<H", reply.body, 6) == (3,)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"hashes": ()}, Status.INVALID_PARAMETER),
        ({"hashes": (2,)}, Status.SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP),
        ({"more_contexts": [(1, struct.pack("<HHH", 1, 0, 1))]}, Status.INVALID_PARAMETER),
        ({"more_contexts": [(2, struct.pack("<HH", 1, 1))]}, Status.INVALID_PARAMETER),
        ({"more_contexts": [(8, struct.pack("<HH", 1, 1))]}, Status.INVALID_PARAMETER),
        ({"more_contexts": [(8, b"")]}, Status.INVALID_PARAMETER),
    ],
)
async def test_bad_contexts(smb: SmbService, options: dict[str, object], status: Status) -> None:
    assert (await smb.client().negotiate(0x0311, **options)).status is status


async def test_the_salts_differ(smb: SmbService) -> None:
    replies = [await smb.client().negotiate(0x0311) for _ in range(2)]
    assert replies[0].body[64:] != replies[1].body[64:]


@pytest.mark.parametrize(
    "body",
    [
        struct.pack("<HHHHI16sIHH", 36, 0, 1, 0, 0, GUID, 0, 0, 0),
        struct.pack("<HHHHI16sIHH", 36, 9, 1, 0, 0, GUID, 0, 0, 0) + bytes(4),
        struct.pack("<HHHHI16sIHHH", 37, 1, 1, 0, 0, GUID, 0, 0, 0, 0x0210),
        EMPTY,
    ],
    ids=["no dialects", "dialects beyond the end", "wrong size", "too short"],
)
async def test_bad_requests(smb: SmbService, body: bytes) -> None:
    assert (await smb.client().request(Command.NEGOTIATE, body)).status is Status.INVALID_PARAMETER


async def test_a_negotiation_is_not_signed(smb: SmbService) -> None:
    client = smb.client()
    reply = await client.request(Command.NEGOTIATE, client.negotiate_body(0x0302), flags=SIGNED)
    assert reply.status is not Status.SUCCESS


# --- Clients that speak SMB1 as well


def smb1_negotiate(*dialects: str) -> bytes:
    listed = b"".join(b"\2" + name.encode() + b"\0" for name in dialects)
    return b"\xffSMB\x72" + bytes(27) + b"\0" + struct.pack("<H", len(listed)) + listed


async def test_smb1_leads_to_smb2(smb: SmbService) -> None:
    client = smb.client()
    client.give(smb1_negotiate("NT LM 0.12", "SMB 2.002", "SMB 2.???"))
    (reply,) = split(await client.transport.sent.get())
    assert (reply.status, reply.message_id, reply.credits) == (Status.SUCCESS, 0, 1)
    assert struct.unpack_from("<H", reply.body, 4) == (0x02FF,)
    client.next_id = 1
    await client.negotiate(0x0302, 0x0311)
    assert (await client.log_on()).status is Status.SUCCESS


@pytest.mark.parametrize("dialects", [("NT LM 0.12",), ("SMB 2.002",)])
async def test_smb1_alone_is_not_spoken(smb: SmbService, dialects: tuple[str, ...]) -> None:
    client = smb.client()
    client.give(smb1_negotiate(*dialects))
    reply = await client.transport.sent.get()
    assert reply[:5] == b"\xffSMB\x72"
    assert reply[32:] == b"\1\xff\xff\0\0"
    assert client.is_closed


async def test_smb1_comes_first_or_never(smb: SmbService) -> None:
    client = smb.client()
    message = smb1_negotiate("SMB 2.???")
    client.give(message)
    client.give(message)
    assert client.is_closed


@pytest.mark.parametrize("message", [b"\xffSMB", b"\xffSMB\x73" + bytes(60), b"SMB", b"", bytes(100)])
async def test_garbage_comes_first(smb: SmbService, message: bytes) -> None:
    client = smb.client()
    client.give(message)
    assert client.is_closed
    assert client.transport.sent.empty()


# --- FSCTL_VALIDATE_NEGOTIATE_INFO


def validation(
    *dialects: int, capabilities: int = 0x7F, guid: bytes = GUID, mode: int = 1, max_output: int = 24
) -> bytes:
    data = struct.pack("<I16sHH", capabilities, guid, mode, len(dialects))
    data += struct.pack(f"<{len(dialects)}H", *dialects)
    return ioctl(0x00140204, data, max_output)


def ioctl(code: int, data: bytes, max_output: int, file_id: bytes = CHAIN_FILE) -> bytes:
    fixed = struct.pack("<HHI", 57, 0, code) + file_id
    return fixed + struct.pack("<IIIIIIII", 120, len(data), 0, 0, 0, max_output, 1, 0) + data


async def validated(client: RawClient, body: bytes) -> Reply:
    return await client.request(Command.IOCTL, body, signs=True)


@pytest.mark.parametrize("share", ["share", "IPC$"])
@pytest.mark.parametrize("dialects", [(0x0210, 0x0300, 0x0302), (0x0210,)])
async def test_a_negotiation_is_validated(smb: SmbService, share: str, dialects: tuple[int, ...]) -> None:
    client = await smb.connected(*dialects)
    await client.connect_tree(share)
    reply = await validated(client, validation(*dialects))
    assert reply.status is Status.SUCCESS
    capabilities = LEASING | LARGE_MTU | (ENCRYPTION if client.dialect >= 0x0300 else 0)
    output = struct.pack("<I16sHH", capabilities, b"the server's id.", 1, client.dialect)
    assert reply.body[48:] == output


@pytest.mark.parametrize(
    "body",
    [
        validation(0x0210, 0x0302, capabilities=0x3F),
        validation(0x0210, 0x0302, guid=bytes(16)),
        validation(0x0210, 0x0302, mode=3),
        validation(0x0210, 0x0302, 0x0311),
        validation(0x0210),
    ],
    ids=["capabilities", "GUID", "security mode", "a greater dialect", "a smaller dialect"],
)
async def test_a_changed_negotiation_closes_the_connection(smb: SmbService, body: bytes) -> None:
    client = await smb.connected(0x0210, 0x0302)
    client.give(client.message(Command.IOCTL, body, signs=True))
    assert client.is_closed


async def test_clients_of_3_1_1_do_not_validate(smb: SmbService) -> None:
    client = await smb.connected(0x0311)
    client.give(client.message(Command.IOCTL, validation(0x0311), signs=True))
    assert client.is_closed


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (validation(0x0302, max_output=23), Status.BUFFER_TOO_SMALL),
        (ioctl(0x00140204, bytes(23), 24), Status.INVALID_PARAMETER),
        (ioctl(0x00140204, bytes(22) + b"\2\0" + bytes(2), 24), Status.INVALID_PARAMETER),
        (ioctl(0x00140204, bytes(26), 24, bytes(16)), Status.FILE_CLOSED),
    ],
)
async def test_bad_validations(smb: SmbService, body: bytes, status: Status) -> None:
    client = await smb.connected(0x0302)
    assert (await validated(client, body)).status is status
    assert not client.is_closed
