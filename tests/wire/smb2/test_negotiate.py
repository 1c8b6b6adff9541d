"""NEGOTIATE, with the contexts of 3.1.1."""

import struct
import uuid
from typing import Any

import pytest
from smbprotocol.connection import (
    SMB2EncryptionCapabilities,
    SMB2NegotiateContextRequest,
    SMB2NegotiateRequest,
    SMB2NegotiateResponse,
    SMB2NetnameNegotiateContextId,
    SMB2PreauthIntegrityCapabilities,
    SMB2SigningCapabilities,
    SMB3NegotiateRequest,
)

from kyanite.wire import spnego
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import filetime, negotiate, negotiate_contexts
from kyanite.wire.smb2.negotiate import Dialect, NegotiateResponse
from kyanite.wire.smb2.negotiate_contexts import RequestContexts, ResponseContexts
from tests.wire.smb2 import oracle, recorded_logon

GUID = uuid.UUID("11223344-5566-7788-99aa-bbccddeeff00")
SALT = bytes(range(32))


def context(kind: int, data: Any) -> Any:
    return oracle.build(SMB2NegotiateContextRequest, context_type=kind, data=data)


CONTEXTS = [
    context(1, oracle.build(SMB2PreauthIntegrityCapabilities, hash_algorithms=[1], salt=SALT)),
    context(2, oracle.build(SMB2EncryptionCapabilities, ciphers=[2, 1])),
    context(8, oracle.build(SMB2SigningCapabilities, signing_algorithms=[2, 1, 0])),
    context(5, oracle.build(SMB2NetnameNegotiateContextId, net_name="server.example".encode("utf-16-le"))),
]
DECODED = RequestContexts((1,), SALT, (2, 1), (2, 1, 0), None, "server.example")


def test_a_request_of_the_oracle() -> None:
    message = oracle.request(
        SMB3NegotiateRequest,
        security_mode=1,
        capabilities=0x7F,
        client_guid=GUID,
        dialects=[0x0202, 0x0210, 0x0300, 0x0302, 0x0311],
        negotiate_context_list=CONTEXTS,
    )
    found = negotiate.decode(message)
    assert found == (1, 0x7F, GUID.bytes, (0x0202, 0x0210, 0x0300, 0x0302, 0x0311), DECODED)


def test_a_request_without_3_1_1() -> None:
    message = oracle.request(
        SMB2NegotiateRequest, security_mode=2, client_guid=GUID, dialects=[0x0210, 0x0300], capabilities=4
    )
    assert negotiate.decode(message) == (2, 4, GUID.bytes, (0x0210, 0x0300), None)


def test_the_request_of_smbclient() -> None:
    found = negotiate.decode(memoryview(recorded_logon.NEGOTIATE_REQUEST))
    assert found.dialects == (0x0202, 0x0210, 0x0300, 0x0302, 0x0311)
    assert found.contexts is not None
    assert found.contexts.ciphers == (2, 1, 4, 3)
    assert found.contexts.signing_algorithms == (2, 1, 0)
    assert found.contexts.netname == "127.0.0.1"
    negotiate.check_hash(found.contexts)


def request(dialects: list[int], contexts: bytes = b"", count: int = 0, at: int | None = None) -> memoryview:
    """A request spelled out."""
    listed = struct.pack(f"<{len(dialects)}H", *dialects)
    if contexts:
        listed += bytes(-(100 + len(listed)) % 8)
    index = 100 + len(listed) if at is None else at
    fixed = struct.pack("<HHHHI16sIHH", 36, len(dialects), 1, 0, 0, GUID.bytes, index, count, 0)
    return memoryview(bytes(64) + fixed + listed + contexts)


PREAUTH = bytes.fromhex("0100 0600 00000000 0100 0000 0100")
CIPHERS = bytes.fromhex("0200 0400 00000000 0100 0200")
SIGNING = bytes.fromhex("0800 0400 00000000 0100 0200")
COMPRESSION = bytes.fromhex("0300 0a00 00000000 0100 0000 00000000 0100")
UNKNOWN = bytes.fromhex("0001 0200 00000000 ffff")


def area(*contexts: bytes) -> bytes:
    return b"".join(each.ljust(-(-len(each) // 8) * 8, b"\0") for each in contexts[:-1]) + contexts[-1]


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([PREAUTH], RequestContexts((1,))),
        ([UNKNOWN, PREAUTH, UNKNOWN, UNKNOWN], RequestContexts((1,))),
        ([COMPRESSION, CIPHERS, SIGNING], RequestContexts(None, b"", (2,), (2,), (1,))),
        ([PREAUTH + b"behind"], RequestContexts((1,))),
    ],
)
def test_contexts(contexts: list[bytes], expected: RequestContexts) -> None:
    found = negotiate.decode(request([0x0311], area(*contexts), len(contexts)))
    assert found.contexts == expected


@pytest.mark.parametrize(
    "message",
    [
        request([]),
        request([0x0210])[:-1],
        request([0x0210])[:99],
        request([0x0210])[:64],
        memoryview(bytes(64) + b"\x25" + bytes(request([0x0210]))[65:]),
        request([0x0311], PREAUTH, 2),
        request([0x0311], PREAUTH[:-1], 1),
        request([0x0311], PREAUTH[:7], 1),
        request([0x0311], PREAUTH, 1, at=100),
        request([0x0311], PREAUTH, 1, at=112),
        request([0x0311], at=0x10000000),
        request([0x0311], area(PREAUTH, PREAUTH), 2),
        request([0x0311], area(CIPHERS, PREAUTH, CIPHERS), 3),
        request([0x0311], area(SIGNING, SIGNING), 2),
        request([0x0311], area(COMPRESSION, COMPRESSION), 2),
        request([0x0311], bytes.fromhex("0200 0200 00000000 0000"), 1),
        request([0x0311], bytes.fromhex("0200 0200 00000000 0100"), 1),
        request([0x0311], bytes.fromhex("0200 0100 00000000 01"), 1),
        request([0x0311], bytes.fromhex("0100 0600 00000000 0100 0100 0100"), 1),
        request([0x0311], bytes.fromhex("0100 0300 00000000 010000"), 1),
        request([0x0311], bytes.fromhex("0300 0200 00000000 0000"), 1),
        request([0x0311], UNKNOWN.ljust(16, b"\0") * 100, 100),
    ],
)
def test_malformed_requests(message: memoryview) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        negotiate.decode(message)


@pytest.mark.parametrize(
    ("contexts", "code"),
    [
        (None, "INVALID_PARAMETER"),
        (RequestContexts(), "INVALID_PARAMETER"),
        (RequestContexts(()), "INVALID_PARAMETER"),
        (RequestContexts((2,)), "SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP"),
    ],
)
def test_3_1_1_needs_a_hash(contexts: RequestContexts | None, code: str) -> None:
    with pytest.raises(Malformed, match=code):
        negotiate.check_hash(contexts)


RESPONSE = NegotiateResponse(
    security_mode=1,
    dialect=Dialect.SMB_3_1_1,
    server_guid=b"kyatest" + bytes(9),
    capabilities=0xF,
    max_transact_bytes=0x800000,
    max_read_bytes=0x800000,
    max_write_bytes=0x800000,
    system_time=0x01DD7570253F4AD2,
    security_buffer=spnego.encode_init(),
    contexts=ResponseContexts(SALT, 1, 2),
)


def test_the_response_of_smbd_is_written_alike() -> None:
    captured = recorded_logon.NEGOTIATE_RESPONSE[64:]
    salt_at = captured.index(bytes.fromhex("0100260000000000010020000100")) + 14
    contexts = ResponseContexts(captured[salt_at : salt_at + 32], 2, 2)
    assert negotiate.encode(RESPONSE._replace(contexts=contexts)) == captured


def test_a_response_for_the_oracle() -> None:
    # The oracle forgets the padding between contexts when it counts what it has read.
    fields = oracle.read(SMB2NegotiateResponse, negotiate.encode(RESPONSE), is_whole=False)
    assert fields["dialect_revision"] == 0x0311
    assert fields["server_guid"].bytes == RESPONSE.server_guid
    assert fields["max_write_size"] == 0x800000
    assert fields["security_buffer_offset"] == 128
    assert fields["buffer"] == spnego.encode_init()
    kinds = [each["context_type"].get_value() for each in fields["negotiate_context_list"]]
    assert kinds == [1, 2, 8]


@pytest.mark.parametrize(
    ("token", "context_at"), [(b"", 128), (b"1", 136), (b"12345678", 136), (b"123456789", 144)]
)
def test_contexts_are_aligned(token: bytes, context_at: int) -> None:
    body = negotiate.encode(RESPONSE._replace(security_buffer=token))
    assert int.from_bytes(body[60:64], "little") == context_at
    assert body[context_at - 64 :][:2] == b"\1\0"


def test_older_dialects_have_no_contexts() -> None:
    body = negotiate.encode(RESPONSE._replace(dialect=Dialect.SMB_3_0, contexts=None))
    assert body[6:8] == b"\0\0"
    assert body[60:] == bytes(4) + spnego.encode_init()


def test_contexts_that_are_not_sent() -> None:
    count, packed = negotiate_contexts.encode(ResponseContexts(SALT))
    assert (count, len(packed)) == (1, 8 + 6 + 32)


def test_filetimes() -> None:
    assert filetime.decode(filetime.encode(RESPONSE_INSTANT)) == RESPONSE_INSTANT
    assert filetime.encode(RESPONSE_INSTANT) == 0x01DD7570253F4AD2
    assert filetime.encode(filetime.decode(-2)) == 0
    assert filetime.encode(type(RESPONSE_INSTANT)(0)) == 0


RESPONSE_INSTANT = filetime.decode(0x01DD7570253F4AD2)
