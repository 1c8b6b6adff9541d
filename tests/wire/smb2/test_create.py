"""CREATE and its contexts."""

import struct
import uuid
from typing import Any

import pytest
from smbprotocol import create_contexts as oracle_contexts
from smbprotocol.open import SMB2CreateRequest, SMB2CreateResponse

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import create, create_contexts
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.create import CreateAction, CreateResponse, Disposition, OplockLevel
from kyanite.wire.smb2.create_contexts import (
    NO_CONTEXTS,
    CreateContexts,
    DurableReconnectV2,
    DurableRequestV2,
    LeaseContext,
    ResponseContext,
)
from kyanite.wire.smb2.filetime import FileTimes
from tests.wire.smb2 import oracle

KEY, PARENT = bytes(range(16)), bytes(range(16, 32))
GUID = uuid.UUID("11223344-5566-7788-99aa-bbccddeeff00")
FILE_ID = FileId(0x0102030405060708, 0x1112131415161718)
FILE_ID_BYTES = struct.pack("<QQ", *FILE_ID)


def named(name: bytes, data: bytes = b"") -> Any:
    return oracle.build(oracle_contexts.SMB2CreateContextRequest, buffer_name=name, buffer_data=data)


def area(*contexts: Any) -> bytes:
    packed: bytes = oracle_contexts.SMB2CreateContextRequest.pack_multiple(contexts)
    return packed


CASES = [
    ("nothing", b"", NO_CONTEXTS),
    ("maximal access", area(named(b"MxAc")), CreateContexts(frozenset([b"MxAc"]), wants_maximal_access=True)),
    (
        "maximal access since",
        area(named(b"MxAc", bytes(8))),
        CreateContexts(frozenset([b"MxAc"]), wants_maximal_access=True),
    ),
    ("disk id", area(named(b"QFid")), CreateContexts(frozenset([b"QFid"]), wants_disk_id=True)),
    (
        "lease",
        area(oracle.build(oracle_contexts.SMB2CreateRequestLease, lease_key=KEY, lease_state=7)),
        CreateContexts(frozenset([b"RqLs"]), lease=LeaseContext(KEY, 7)),
    ),
    (
        "lease of version 2",
        area(
            oracle.build(
                oracle_contexts.SMB2CreateRequestLeaseV2,
                lease_key=KEY,
                lease_state=3,
                lease_flags=4,
                parent_lease_key=PARENT,
                epoch=b"\x05\x00",
            )
        ),
        CreateContexts(frozenset([b"RqLs"]), lease=LeaseContext(KEY, 3, 4, 2, PARENT, 5)),
    ),
    (
        "durable",
        area(oracle.build(oracle_contexts.SMB2CreateDurableHandleRequest)),
        CreateContexts(frozenset([b"DHnQ"]), wants_durable=True),
    ),
    (
        "reconnect",
        area(
            named(b"DHnC", FILE_ID_BYTES),
        ),
        CreateContexts(frozenset([b"DHnC"]), durable_reconnect=FILE_ID),
    ),
    (
        "durable of version 2",
        area(
            oracle.build(
                oracle_contexts.SMB2CreateDurableHandleRequestV2, timeout=60000, flags=2, create_guid=GUID
            )
        ),
        CreateContexts(frozenset([b"DH2Q"]), durable_v2=DurableRequestV2(60000, 2, GUID.bytes)),
    ),
    (
        "reconnect of version 2",
        area(
            oracle.build(
                oracle_contexts.SMB2CreateDurableHandleReconnectV2,
                file_id=FILE_ID_BYTES,
                create_guid=GUID,
                flags=2,
            )
        ),
        CreateContexts(frozenset([b"DH2C"]), durable_reconnect_v2=DurableReconnectV2(FILE_ID, GUID.bytes, 2)),
    ),
    (
        "snapshot and size",
        area(
            named(b"TWrp", (1 << 60).to_bytes(8, "little")),
            oracle.build(oracle_contexts.SMB2CreateAllocationSize, allocation_size=123456),
        ),
        CreateContexts(frozenset([b"TWrp", b"AlSi"]), timewarp=1 << 60, allocation_size=123456),
    ),
    (
        "security, attributes, Apple",
        area(named(b"SecD", b"12345"), named(b"ExtA", b"ea"), named(b"AAPL", b"apple")),
        CreateContexts(
            frozenset([b"SecD", b"ExtA", b"AAPL"]),
            security_descriptor=memoryview(b"12345"),
            extended_attributes=memoryview(b"ea"),
            apple=memoryview(b"apple"),
        ),
    ),
    (
        "others, which are ignored",
        area(named(GUID.bytes, b"x"), named(b"four", b""), named(b"unknown")),
        CreateContexts(frozenset([GUID.bytes, b"four", b"unknown"])),
    ),
    (
        "the first of a name",
        area(named(b"AlSi", b"\1" + bytes(7)), named(b"AlSi", b"\2" + bytes(7))),
        CreateContexts(frozenset([b"AlSi"]), allocation_size=1),
    ),
]


@pytest.mark.parametrize(
    ("packed", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_contexts_of_the_oracle(packed: bytes, expected: CreateContexts) -> None:
    assert create_contexts.decode(memoryview(packed)) == expected


def raw(step: int, name_at: int, name_length: int, data_at: int, data_length: int, rest: bytes) -> bytes:
    return struct.pack("<IHHHHI", step, name_at, name_length, 0, data_at, data_length) + rest


MXAC = raw(0, 16, 4, 0, 0, b"MxAc")


@pytest.mark.parametrize(
    "packed",
    [
        MXAC[:15],
        MXAC[:-1],
        raw(0, 15, 4, 0, 0, b"MxAc"),
        raw(0, 16, 4, 8, 8, b"MxAc"),
        raw(0, 16, 4, 24, 1, b"MxAc1234"),
        raw(0, 16, 4, 24, 0xFFFFFFFF, b"MxAc1234"),
        raw(20, 16, 4, 0, 0, b"MxAc") + MXAC,
        raw(8, 16, 4, 0, 0, b"MxAc1234") + MXAC,
        raw(24, 16, 4, 0, 0, b"MxAc1234"),
        raw(24, 16, 4, 0, 0, b"MxAc1234") + MXAC[:10],
        raw(24, 16, 4, 24, 8, b"MxAc1234") + MXAC,
        raw(0xFFFFFFF8, 16, 4, 0, 0, b"MxAc1234"),
        raw(24, 16, 4, 0, 0, b"MxAc1234") * 100 + MXAC,
        *(area(named(b"xxx"[:length])) for length in range(4)),
        *(
            area(named(name, bytes(length)))
            for name, lengths in {
                b"MxAc": (4, 9),
                b"QFid": (1,),
                b"RqLs": (0, 31, 33, 51, 53),
                b"DHnQ": (0, 15, 17),
                b"DHnC": (15, 17),
                b"DH2Q": (31, 33),
                b"DH2C": (35, 37),
                b"TWrp": (0, 7, 9),
                b"AlSi": (0, 7, 9),
            }.items()
            for length in lengths
        ),
        area(named(b"DHnC", bytes(16)), named(b"DH2Q", bytes(32))),
        area(named(b"DHnC", bytes(16)), named(b"DH2C", bytes(36))),
        area(named(b"DH2C", bytes(36)), named(b"DHnQ", bytes(16))),
        area(named(b"DH2C", bytes(36)), named(b"DH2Q", bytes(32))),
    ],
)
def test_malformed_contexts(packed: bytes) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        create_contexts.decode(memoryview(packed))


def test_a_request_of_the_oracle() -> None:
    message = oracle.request(
        SMB2CreateRequest,
        requested_oplock_level=0xFF,
        impersonation_level=2,
        desired_access=0x0012019F,
        file_attributes=0x80,
        share_access=7,
        create_disposition=5,
        create_options=0x40,
        buffer_path="dir\\Größe.txt".encode("utf-16-le"),
        buffer_contexts=[
            oracle.build(oracle_contexts.SMB2CreateContextRequest, buffer_name=b"MxAc"),
        ],
    )
    assert create.decode(message) == (
        OplockLevel.LEASE,
        2,
        0x0012019F,
        0x80,
        7,
        Disposition.OVERWRITE_IF,
        create.NON_DIRECTORY_FILE,
        "dir\\Größe.txt",
        CreateContexts(frozenset([b"MxAc"]), wants_maximal_access=True),
    )


def test_the_root_of_a_share() -> None:
    found = create.decode(oracle.request(SMB2CreateRequest, buffer_path=b"\0\0"))
    assert (found.name, found.contexts) == ("", NO_CONTEXTS)


def request(
    name: bytes = b"a\0",
    *,
    size: int = 57,
    name_at: int = 120,
    name_length: int | None = None,
    contexts_at: int = 0,
    contexts_length: int = 0,
) -> memoryview:
    length = len(name) if name_length is None else name_length
    fixed = struct.pack(
        "<HBBIQQIIIIIHHII", size, 0, 0, 2, 0, 0, 1, 0, 7, 1, 0, name_at, length, contexts_at, contexts_length
    )
    return memoryview(bytes(64) + fixed + name)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (request(size=56), "INVALID_PARAMETER"),
        (request(b""), "INVALID_PARAMETER"),
        (request()[:119], "INVALID_PARAMETER"),
        (request(name_length=4), "INVALID_PARAMETER"),
        (request(name_at=118), "INVALID_PARAMETER"),
        (request(b"abc"), "INVALID_PARAMETER"),
        (request(b"\0\xd8a\0"), "ILLEGAL_CHARACTER"),
        (request(contexts_at=120, contexts_length=3), "INVALID_PARAMETER"),
        (request(contexts_at=0xFFFFFFF8, contexts_length=0xFFFFFFF8), "INVALID_PARAMETER"),
        (request(contexts_at=64, contexts_length=16), "INVALID_PARAMETER"),
    ],
)
def test_malformed_requests(message: memoryview, code: str) -> None:
    with pytest.raises(Malformed, match=code):
        create.decode(message)


RESPONSE = CreateResponse(
    OplockLevel.BATCH,
    CreateAction.CREATED,
    FileTimes(10, 20, 30, 40),
    allocation_size=4096,
    end_of_file=5,
    file_attributes=0x20,
    file_id=FILE_ID,
)


def test_a_response_spelled_out() -> None:
    assert create.encode(RESPONSE) == bytes.fromhex(
        "5900 09 00 02000000 0a00000000000000 1400000000000000 1e00000000000000 2800000000000000"
        "0010000000000000 0500000000000000 20000000 00000000 0807060504030201 1817161514131211 00000000 00000000"
    )


RESPONSE_CONTEXTS = [
    create_contexts.maximal_access(0, 0x001F01FF),
    create_contexts.disk_id(77, 88),
    create_contexts.lease(LeaseContext(KEY, 7, 2)),
    create_contexts.lease(LeaseContext(KEY, 7, 4, 2, PARENT, 9)),
    create_contexts.durable(),
    create_contexts.durable_v2(60000, 2),
]


def test_a_response_for_the_oracle() -> None:
    fields = oracle.read(SMB2CreateResponse, create.encode(RESPONSE, RESPONSE_CONTEXTS), is_whole=False)
    assert fields["create_action"] == 2
    assert fields["file_id"] == FILE_ID_BYTES
    assert fields["create_contexts_offset"] == 152
    contexts = fields["buffer"]
    assert [each["buffer_name"].get_value() for each in contexts] == [
        b"MxAc",
        b"QFid",
        b"RqLs",
        b"RqLs",
        b"DHnQ",
        b"DH2Q",
    ]
    access, disk, lease, lease_v2, _, durable = (each.get_context_data() for each in contexts)
    assert access["maximal_access"].get_value() == 0x001F01FF
    assert (disk["disk_file_id"].get_value(), disk["volume_id"].get_value()) == (77, 88)
    assert (lease["lease_key"].get_value(), lease["lease_state"].get_value()) == (KEY, 7)
    assert lease_v2["parent_lease_key"].get_value() == PARENT
    assert lease_v2["epoch"].get_value() == 9
    assert (durable["timeout"].get_value(), durable["flags"].get_value()) == (60000, 2)


@pytest.mark.parametrize("contexts", [RESPONSE_CONTEXTS[:1], RESPONSE_CONTEXTS[2:3], RESPONSE_CONTEXTS[:3]])
def test_contexts_are_aligned_and_the_last_is_not_padded(contexts: list[ResponseContext]) -> None:
    packed = create_contexts.encode(contexts)
    found = create_contexts._split(memoryview(packed))
    assert [(name, bytes(data)) for name, data in found.items()] == contexts
    assert packed.endswith(contexts[-1].data)


def test_a_context_without_data() -> None:
    assert create_contexts.encode([ResponseContext(b"MxAc", b"")]).startswith(raw(0, 16, 4, 0, 0, b"MxAc"))
