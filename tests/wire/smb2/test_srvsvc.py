"""The list of shares over DCE/RPC. The packets are those of smbclient and of another library, spelled out."""

import struct

import pytest

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import rpc, srvsvc
from kyanite.wire.smb2.rpc import NDR, Bind, Call, Context
from kyanite.wire.smb2.srvsvc import Share, ShareEnum, ShareGetInfo

BIND = bytes.fromhex(
    "05000b03100000004800000001000000b810b810000000000100000000000100"
    "c84f324b7016d30112785a47bf6ee18803000000 045d888aeb1cc9119fe808002b10486002000000"
)
NDR64 = bytes.fromhex("33057171babe37498319b5dbef9ccc3601000000")
CALL = Call(2, 0, srvsvc.Operation.SHARE_ENUM, memoryview(b""))


def test_the_bind_of_smbclient() -> None:
    bind = rpc.decode(memoryview(BIND))
    assert bind == Bind(1, False, 4280, (Context(0, srvsvc.INTERFACE, (NDR,)),))
    assert isinstance(bind, Bind)
    ack = rpc.encode_bind_ack(bind, interface=srvsvc.INTERFACE, pipe=srvsvc.PIPE, group_id=0x1234)
    assert ack == bytes.fromhex(
        "05000c03100000004400000001000000b810b810 34120000 0d00 5c706970655c73727673766300 00"
        "01000000 0000 0000 045d888aeb1cc9119fe808002b10486002000000"
    )


def test_what_is_not_spoken_is_refused_by_context() -> None:
    contexts = (
        Context(0, srvsvc.INTERFACE, (NDR,)),
        Context(1, srvsvc.INTERFACE, (NDR64,)),
        Context(2, bytes(20), (NDR,)),
    )
    bind = Bind(9, True, 4280, contexts)
    ack = rpc.encode_bind_ack(bind, interface=srvsvc.INTERFACE, pipe=srvsvc.PIPE, group_id=1)
    assert ack[2] == rpc.PacketType.ALTER_CONTEXT_RESPONSE
    refused = bytes.fromhex("02000200") + bytes(20), bytes.fromhex("02000100") + bytes(20)
    assert ack.endswith(bytes.fromhex("03000000 00000000") + NDR + refused[0] + refused[1])


def call_packet(*, flags: int = 3, extra: bytes = b"", stub: bytes = b"stub") -> bytes:
    body = struct.pack("<IHH", 4, 0, 15) + extra + stub
    return struct.pack("<BBBB4sHHI", 5, 0, 0, flags, b"\x10\0\0\0", 16 + len(body), 0, 7) + body


def test_calls() -> None:
    assert rpc.decode(memoryview(call_packet())) == Call(7, 0, 15, memoryview(b"stub"))
    with_object = call_packet(flags=0x83, extra=bytes(16))
    assert rpc.decode(memoryview(with_object)) == Call(7, 0, 15, memoryview(b"stub"))


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        BIND[:15],
        BIND[:-1],
        BIND + b"\0",
        b"\4" + BIND[1:],
        BIND[:2] + b"\x0d" + BIND[3:],
        BIND[:4] + b"\0" + BIND[5:],
        BIND[:10] + b"\1" + BIND[11:],
        BIND[:24] + b"\2" + BIND[25:],
        BIND[:30] + b"\2" + BIND[31:],
        BIND[:8] + b"\x12\0" + BIND[10:18],
        call_packet(flags=1),
        call_packet(flags=2),
        call_packet()[:8] + b"\x14\0" + call_packet()[10:20],
    ],
)
def test_malformed_packets(packet: bytes) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        rpc.decode(memoryview(packet))


def test_a_short_answer_is_one_fragment() -> None:
    (fragment,) = rpc.encode_response(CALL, b"answer")
    assert fragment == bytes.fromhex("0500020310000000 1e00 0000 02000000 06000000 0000 00 00") + b"answer"
    assert rpc.encode_response(CALL, b"") == [
        bytes.fromhex("0500020310000000 1800 0000 02000000 00000000 0000 00 00")
    ]


@pytest.mark.parametrize("limit", [0, 100, 4280, 65535])
def test_a_long_answer_is_cut(limit: int) -> None:
    stub = bytes(range(256)) * 40
    fragments = rpc.encode_response(CALL, stub, limit)
    assert b"".join(each[24:] for each in fragments) == stub
    assert [each[3] for each in fragments] == [1, *[0] * (len(fragments) - 2), 2]
    assert all(len(each) == int.from_bytes(each[8:10], "little") for each in fragments)
    assert all(len(each) <= max(min(limit, rpc.FRAGMENT_BYTES), 32) for each in fragments)
    assert int.from_bytes(fragments[-1][16:20], "little") == len(fragments[-1]) - 24


def test_a_fault() -> None:
    assert rpc.encode_fault(CALL, rpc.FAULT_UNKNOWN_OPERATION) == bytes.fromhex(
        "0500030310000000 2000 0000 02000000 00000000 0000 00 00 0200011c 00000000"
    )


SERVER = "ce3c0000 07000000 00000000 07000000 5c005c0068006f00730074000000 abab"
ENUM = bytes.fromhex(SERVER + "01000000 01000000 6ff20000 00000000 00000000 ffffffff 4cda0000 00000000")
ENUM_WITHOUT = bytes.fromhex("00000000 01000000 01000000 23470000 00000000 00000000 ffffffff 00000000")
GET_INFO = bytes.fromhex(SERVER + "05000000 00000000 05000000 64006f00630073000000 bfbf 01000000")
SHARES = [Share("docs", srvsvc.SHARE_DISK, "Größe"), Share("IPC$", srvsvc.SHARE_PIPE)]


@pytest.mark.parametrize(
    ("stub", "expected"), [(ENUM, ShareEnum(1, True)), (ENUM_WITHOUT, ShareEnum(1, False))]
)
def test_requests_for_the_list(stub: bytes, expected: ShareEnum) -> None:
    assert srvsvc.decode_share_enum(memoryview(stub)) == expected
    for length in range(len(stub)):
        with pytest.raises(Malformed):
            srvsvc.decode_share_enum(memoryview(stub[:length]))


@pytest.mark.parametrize(
    "stub",
    [
        ENUM_WITHOUT[:8] + b"\2" + ENUM_WITHOUT[9:],
        ENUM_WITHOUT[:16] + b"\1" + ENUM_WITHOUT[17:],
        ENUM_WITHOUT[:20] + b"\1" + ENUM_WITHOUT[21:],
        ENUM[:4] + b"\x06" + ENUM[5:],
        ENUM[:8] + b"\x01" + ENUM[9:],
        ENUM[:12] + b"\0" + ENUM[13:],
        ENUM[:4] + b"\xff\xff\xff\xff" + ENUM[8:12] + b"\xff\xff\xff\xff" + ENUM[16:],
        ENUM[:16] + b"\0\xd8" + ENUM[18:],
    ],
)
def test_malformed_requests(stub: bytes) -> None:
    with pytest.raises(Malformed):
        srvsvc.decode_share_enum(memoryview(stub))


def test_a_request_for_one_share() -> None:
    assert srvsvc.decode_share_get_info(memoryview(GET_INFO)) == ShareGetInfo("docs", 1)
    for length in range(len(GET_INFO)):
        with pytest.raises(Malformed):
            srvsvc.decode_share_get_info(memoryview(GET_INFO[:length]))


DOCS = "05000000 00000000 05000000 64006f00630073000000 0000"
REMARK = "06000000 00000000 06000000 47007200f600df0065000000"
IPC = "05000000 00000000 05000000 49005000430024000000 0000"
EMPTY = "01000000 00000000 01000000 0000 0000"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            ShareEnum(1, True),
            "01000000 01000000 00000200 02000000 04000200 02000000"
            "08000200 00000000 0c000200 10000200 03000080 14000200"
            f"{DOCS} {REMARK} {IPC} {EMPTY} 02000000 18000200 00000000 00000000",
        ),
        (
            ShareEnum(0, False),
            "00000000 00000000 00000200 02000000 04000200 02000000 08000200 0c000200"
            f"{DOCS} {IPC} 02000000 00000000 00000000",
        ),
        (ShareEnum(2, False), "02000000 02000000 00000000 00000000 00000000 7c000000"),
        (ShareEnum(502, True), "f6010000 f6010000 00000000 00000000 00000200 00000000 7c000000"),
    ],
)
def test_the_list_of_shares(call: ShareEnum, expected: str) -> None:
    assert srvsvc.encode_share_enum(call, SHARES) == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("level", "share", "expected"),
    [
        (1, SHARES[0], f"01000000 00000200 04000200 00000000 08000200 {DOCS} {REMARK} 00000000"),
        (0, SHARES[1], f"00000000 00000200 04000200 {IPC} 00000000"),
        (1, None, "01000000 00000000 06090000"),
        (2, SHARES[0], "02000000 00000000 7c000000"),
    ],
)
def test_one_share(level: int, share: Share | None, expected: str) -> None:
    assert srvsvc.encode_share_get_info(ShareGetInfo("docs", level), share) == bytes.fromhex(expected)
