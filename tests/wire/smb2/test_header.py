"""Headers, chains and the errors that answer them."""

from typing import Any

import pytest
from smbprotocol.connection import SMB2TransformHeader
from smbprotocol.exceptions import SMB2ErrorResponse
from smbprotocol.header import SMB2HeaderAsync, SMB2HeaderRequest, SMB2HeaderResponse

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import compound, error, header, transform
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.error import ErrorContext
from kyanite.wire.smb2.header import Command, Header
from kyanite.wire.smb2.status import Status
from kyanite.wire.smb2.transform import TransformHeader
from tests.wire.smb2 import oracle

SIGNATURE = bytes(range(16))
FULL = Header(
    command=Command.READ,
    message_id=0x1122334455667788,
    credit_charge=3,
    status=0x0007,
    credits=31,
    flags=header.RELATED | header.SIGNED,
    next_command=0x80,
    process_id=0xFEFF,
    tree_id=5,
    session_id=0xAABBCCDD00112233,
    signature=SIGNATURE,
)


def packed(value: Header) -> bytes:
    return bytes(header.encode(value))


def test_a_request_of_the_oracle() -> None:
    written = oracle.build(
        SMB2HeaderRequest,
        credit_charge=3,
        channel_sequence=7,
        command=8,
        credit_request=31,
        flags=0xC,
        next_command=0x80,
        message_id=0x1122334455667788,
        process_id=0xFEFF,
        tree_id=5,
        session_id=0xAABBCCDD00112233,
        signature=SIGNATURE,
    ).pack()
    found = header.decode(written)
    assert found == FULL
    assert found.channel_sequence == 7
    assert packed(found) == written


def test_a_response_for_the_oracle() -> None:
    response = FULL._replace(status=Status.ACCESS_DENIED, flags=header.RESPONSE, next_command=0)
    fields = oracle.read(SMB2HeaderResponse, packed(response))
    assert fields["status"] == 0xC0000022
    assert fields["command"] == 8
    assert fields["credit_response"] == 31
    assert fields["message_id"] == 0x1122334455667788
    assert fields["tree_id"] == 5
    assert fields["session_id"] == 0xAABBCCDD00112233
    assert header.decode(packed(response)) == response


def test_the_asynchronous_form() -> None:
    interim = Header(Command.LOCK, 9, status=Status.PENDING, flags=header.RESPONSE, session_id=1)
    interim = interim.with_async_id(0x8877665544332211)
    fields = oracle.read(SMB2HeaderAsync, packed(interim))
    assert fields["async_id"] == 0x8877665544332211
    assert fields["flags"] == header.RESPONSE | header.ASYNC
    assert header.decode(packed(interim)).async_id == 0x8877665544332211


@pytest.mark.parametrize(
    "data",
    [b"", packed(FULL)[:63], b"\xfd" + packed(FULL)[1:], packed(FULL)[:4] + b"\x41" + packed(FULL)[5:]],
)
def test_malformed_headers(data: bytes) -> None:
    with pytest.raises(Malformed):
        header.decode(data)


def chain(*lengths: int, last_next: int = 0) -> bytes:
    """Messages of so many bytes each."""
    data = b""
    for number, length in enumerate(lengths, 1):
        following = length if number < len(lengths) else last_next
        data += packed(Header(Command.ECHO, number, next_command=following)) + bytes(length - 64)
    return data


@pytest.mark.parametrize("lengths", [(66,), (68,), (72, 68), (72, 72), (128, 72, 66), (72,) * 63 + (66,)])
def test_a_chain_is_split(lengths: tuple[int, ...]) -> None:
    parts = compound.split(memoryview(chain(*lengths)))
    assert [len(part.message) for part in parts] == list(lengths)
    assert [part.header.message_id for part in parts] == list(range(1, len(lengths) + 1))
    assert all(header.decode(part.message) == part.header for part in parts)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        chain(64),
        chain(65),
        chain(70, 66),
        chain(64, 66),
        chain(72, 65),
        chain(72, last_next=72),
        chain(72, last_next=80),
        chain(72, last_next=0xFFFFFFF8),
        chain(72, 68)[:-10],
        chain(*(72,) * 65),
    ],
)
def test_a_broken_chain_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        compound.split(memoryview(data))


def test_a_single_response_is_not_padded() -> None:
    (buffers,) = compound.join([(Header(Command.ECHO, 1), [b"abc", b"de"])])
    assert b"".join(buffers) == packed(Header(Command.ECHO, 1)) + b"abcde"


def test_all_responses_of_a_chain_are_padded() -> None:
    bodies: list[list[Data]] = [[b"abc", memoryview(b"defgh")], [b"12345"], [b"12"]]
    joined = compound.join([(Header(Command.ECHO, number), body) for number, body in enumerate(bodies)])
    message = b"".join(b"".join(buffers) for buffers in joined)
    parts = compound.split(memoryview(message))
    assert [bytes(part.message[64:]) for part in parts] == [b"abcdefgh", b"12345\0\0\0", b"12" + bytes(6)]
    assert [part.header.next_command for part in parts] == [72, 72, 0]
    assert joined[0][2] is bodies[0][1], "data is not copied"


def test_an_error_without_data_has_nine_bytes() -> None:
    assert bytes.fromhex("090000000000000000") == error.EMPTY
    assert error.encode(b"\x10\x27\0\0") == bytes.fromhex("0900000004000000 10270000")
    assert error.encode_buffer_too_small(10000, in_context=False) == error.encode(b"\x10\x27\0\0")


def test_error_contexts() -> None:
    body = error.encode_buffer_too_small(10000, in_context=True)
    assert body == bytes.fromhex("090001000c000000 04000000 00000000 10270000")
    body = error.encode_with_contexts([ErrorContext(b"abc", 7), ErrorContext(b"d")])
    assert body == bytes.fromhex("0900020019000000 03000000 07000000 6162630000000000 01000000 00000000 64")
    fields: dict[str, Any] = oracle.read(
        SMB2ErrorResponse, error.encode_with_contexts([ErrorContext(b"abcdefgh")])
    )
    assert fields["error_context_count"] == 1
    assert fields["byte_count"] == 16


TRANSFORM = TransformHeader(SIGNATURE, bytes(range(12)) + bytes(4), 5, 0x1122334455667788)


def test_a_transform_header() -> None:
    written = oracle.build(
        SMB2TransformHeader,
        signature=SIGNATURE,
        nonce=bytes(range(12)) + bytes(4),
        original_message_size=5,
        flags=1,
        session_id=0x1122334455667788,
        data=b"abcde",
    ).pack()
    assert transform.decode(written) == TRANSFORM
    assert transform.encode(TRANSFORM) + b"abcde" == written


@pytest.mark.parametrize(
    "data",
    [
        b"",
        transform.encode(TRANSFORM)[:51],
        transform.encode(TRANSFORM) + b"abcd",
        transform.encode(TRANSFORM) + b"abcdef",
        b"\xfe" + transform.encode(TRANSFORM)[1:] + b"abcde",
        transform.encode(TRANSFORM)[:42] + b"\x02\x00" + transform.encode(TRANSFORM)[44:] + b"abcde",
    ],
)
def test_malformed_transform_headers(data: bytes) -> None:
    with pytest.raises(Malformed):
        transform.decode(data)
