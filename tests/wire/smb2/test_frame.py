"""Frames, kinds of messages and the multi-protocol negotiation."""

import pytest
from smbprotocol.transport import DirectTCPPacket

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import frame
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.frame import Kind
from tests.wire.smb2 import oracle

LIMIT = 0x810000


@pytest.mark.parametrize(
    ("data", "length"),
    [
        (b"", None),
        (b"\0\0\0", None),
        (b"\0\0\0\0", 0),
        (b"\0\x00\x01\x02", 0x102),
        (b"\0\x81\x00\x00rest", 0x810000),
    ],
)
def test_a_prefix_tells_the_length_of_a_message(data: bytes, length: int | None) -> None:
    assert frame.decode_prefix(data, LIMIT) == length
    assert frame.decode_prefix(b"xx" + data, LIMIT, 2) == length


@pytest.mark.parametrize(
    "data", [b"\x81", b"\x85\0\0\0", b"\x01\0\0\0", b"\0\x81\0\x01", b"\0\xff\xff\xff", b"GET "]
)
def test_another_first_byte_or_a_message_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        frame.decode_prefix(data, LIMIT)


def test_a_message_is_framed_as_the_oracle_frames_it() -> None:
    buffers: list[Data] = [b"ab", bytearray(b"cd"), memoryview(b"e" * 300)]
    packet = oracle.build(DirectTCPPacket, smb2_message=b"".join(buffers))
    assert b"".join(frame.frame(buffers)) == packet.pack()
    with pytest.raises(ValueError, match="too long"):
        frame.encode_prefix(1 << 24)


@pytest.mark.parametrize("kind", Kind)
def test_the_first_bytes_tell_the_kind_of_a_message(kind: Kind) -> None:
    assert frame.kind_of(kind.value + b"rest") is kind
    assert frame.kind_of(memoryview(kind.value)) is kind


@pytest.mark.parametrize("data", [b"", b"\xfeSM", b"\xfbSMB", b"GET / HTTP/1.1"])
def test_other_first_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        frame.kind_of(data)


SMB1_HEAD = b"\xffSMB\x72" + bytes(27)
NT = b"\x02NT LM 0.12\0"
SMB2_002 = b"\x02SMB 2.002\0"
SMB2_ANY = b"\x02SMB 2.???\0"


def smb1(dialects: bytes) -> bytes:
    return SMB1_HEAD + b"\0" + len(dialects).to_bytes(2, "little") + dialects


@pytest.mark.parametrize(
    ("dialects", "offered", "offers_smb2"),
    [
        (NT, ("NT LM 0.12",), False),
        (NT + SMB2_002, ("NT LM 0.12", "SMB 2.002"), False),
        (NT + SMB2_002 + SMB2_ANY, ("NT LM 0.12", "SMB 2.002", "SMB 2.???"), True),
        (b"\x02\0", ("",), False),
    ],
)
def test_dialects_of_smb1(dialects: bytes, offered: tuple[str, ...], offers_smb2: bool) -> None:
    found = frame.decode_smb1_negotiate(smb1(dialects))
    assert found.dialects == offered
    assert found.offers_smb2 is offers_smb2


@pytest.mark.parametrize(
    "message",
    [
        smb1(b""),
        smb1(NT[:-1]),
        smb1(NT[1:]),
        smb1(NT + b"SMB 2.???\0"),
        smb1(NT)[:-1],
        SMB1_HEAD,
        b"\xffSMB\x73" + smb1(NT)[5:],
        b"\xfe" + smb1(NT)[1:],
        SMB1_HEAD + b"\x01" + smb1(NT)[33:],
    ],
)
def test_malformed_negotiations_of_smb1(message: bytes) -> None:
    with pytest.raises(Malformed):
        frame.decode_smb1_negotiate(message)


def test_no_common_dialect_in_smb1() -> None:
    answer = frame.encode_smb1_no_dialect()
    assert len(answer) == 37
    assert answer[:5] == b"\xffSMB\x72"
    assert answer[32:] == bytes.fromhex("01ffff0000")
