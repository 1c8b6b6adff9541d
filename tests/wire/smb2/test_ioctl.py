"""IOCTL and what its codes carry."""

import struct
import uuid

import pytest
from smbprotocol import ioctl as oracle_ioctl

from kyanite.values import Instant
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import fsctl, ioctl
from kyanite.wire.smb2.body import CHAIN_FILE_ID, FileId
from kyanite.wire.smb2.fsctl import ByteRange, CopyChunk, Fsctl
from tests.wire.smb2 import oracle

FILE_ID = FileId(0x0102030405060708, 0x1112131415161718)
ID = struct.pack("<QQ", *FILE_ID)
GUID = uuid.UUID("11223344-5566-7788-99aa-bbccddeeff00")


def test_a_request_of_the_oracle() -> None:
    request = oracle.request(
        oracle_ioctl.SMB2IOCTLRequest,
        ctl_code=0x001440F2,
        file_id=ID,
        max_input_response=1,
        max_output_response=12,
        flags=1,
        buffer=b"input",
    )
    assert ioctl.decode(request) == (Fsctl.SRV_COPYCHUNK, FILE_ID, 1, 12, 1, memoryview(b"input"))
    request = oracle.request(oracle_ioctl.SMB2IOCTLRequest, ctl_code=0x00060194, file_id=b"\xff" * 16)
    assert ioctl.decode(request).file_id == CHAIN_FILE_ID


def request(*, size: int = 57, at: int = 120, length: int = 5, data: bytes = b"input") -> memoryview:
    fixed = struct.pack("<HHIQQIIIIIIII", size, 0, 0x001440F2, *FILE_ID, at, length, 0, 0, 0, 12, 1, 0)
    return memoryview(bytes(64) + fixed + data)


@pytest.mark.parametrize(
    "message", [request(size=56), request(at=119), request(length=6), request(at=0xFFFFFFFF), request()[:119]]
)
def test_malformed_requests(message: memoryview) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        ioctl.decode(message)


def test_the_offset_of_an_empty_input_does_not_matter() -> None:
    assert not ioctl.decode(request(at=0, length=0, data=b"")).input


def test_a_response_for_the_oracle() -> None:
    body = ioctl.encode(Fsctl.SRV_COPYCHUNK, FILE_ID, b"output")
    fields = oracle.read(oracle_ioctl.SMB2IOCTLResponse, body)
    assert (fields["ctl_code"], fields["file_id"]) == (0x001440F2, ID)
    assert (fields["input_offset"], fields["input_count"], fields["output_offset"]) == (112, 0, 112)
    assert fields["buffer"] == b"output"


def test_validate_negotiate() -> None:
    sent = oracle.build(
        oracle_ioctl.SMB2ValidateNegotiateInfoRequest,
        capabilities=0x7F,
        guid=GUID,
        security_mode=1,
        dialects=[0x0210, 0x0300],
    ).pack()
    assert fsctl.decode_validate_negotiate(memoryview(sent)) == (0x7F, GUID.bytes, 1, (0x0210, 0x0300))
    for length in range(len(sent)):
        with pytest.raises(Malformed):
            fsctl.decode_validate_negotiate(memoryview(sent[:length]))
    answer = fsctl.encode_validate_negotiate(
        capabilities=6, server_guid=GUID.bytes, security_mode=1, dialect=0x0300
    )
    assert len(answer) == 24
    fields = oracle.read(oracle_ioctl.SMB2ValidateNegotiateInfoResponse, answer)
    assert (fields["capabilities"], fields["guid"], fields["dialect"]) == (6, GUID, 0x0300)


def test_resume_key() -> None:
    answer = fsctl.encode_resume_key(FILE_ID)
    fields = oracle.read(oracle_ioctl.SMB2SrvRequestResumeKey, answer, is_whole=False)
    assert len(answer) == 32
    assert fields["resume_key"] == ID + bytes(8)
    assert fsctl.decode_resume_key(answer[: fsctl.RESUME_KEY_BYTES]) == FILE_ID


def test_copy_chunks() -> None:
    chunks = [
        oracle.build(oracle_ioctl.SMB2SrvCopyChunk, source_offset=at, target_offset=at + 5, length=9)
        for at in (0, 1 << 40)
    ]
    sent = oracle.build(oracle_ioctl.SMB2SrvCopyChunkCopy, source_key=ID + bytes(8), chunks=chunks).pack()
    found = fsctl.decode_copy_chunks(memoryview(sent))
    assert found == (ID + bytes(8), (CopyChunk(0, 5, 9), CopyChunk(1 << 40, (1 << 40) + 5, 9)))
    for length in range(len(sent)):
        with pytest.raises(Malformed):
            fsctl.decode_copy_chunks(memoryview(sent[:length]))
    many = sent[:24] + b"\xff\xff\xff\xff" + sent[28:]
    with pytest.raises(Malformed):
        fsctl.decode_copy_chunks(memoryview(many))
    answer = fsctl.encode_copied(chunks=2, bytes_of_failed_chunk=0, total_bytes=18)
    fields = oracle.read(oracle_ioctl.SMB2SrvCopyChunkResponse, answer)
    assert fields == {"chunks_written": 2, "chunk_bytes_written": 0, "total_bytes_written": 18}


TOKEN = "@GMT-2024.05.01-12.34.56"


def test_snapshot_tokens() -> None:
    assert fsctl.snapshot_token(Instant(638_501_636_969_999_999)) == TOKEN


@pytest.mark.parametrize(
    ("name", "at"),
    [
        (TOKEN, 638_501_636_960_000_000),
        ("@GMT-2024.5.1-12.34.56", None),
        ("@GMT-2024.13.01-12.34.56", None),
        ("@GMT-2024.05.01-12.34.56 ", None),
        ("@gmt-2024.05.01-12.34.56", None),
        ("@GMT-", None),
        ("file", None),
    ],
)
def test_names_that_are_snapshot_tokens(name: str, at: int | None) -> None:
    assert fsctl.decode_snapshot_token(name) == at


@pytest.mark.parametrize(("count", "array_bytes"), [(0, 2), (1, 52), (3, 152)])
def test_snapshots(count: int, array_bytes: int) -> None:
    answer = fsctl.encode_snapshots([TOKEN] * count, 12 + array_bytes)
    assert answer[:12] == struct.pack("<III", count, count, array_bytes)
    assert answer[12:].decode("utf-16-le") == (TOKEN + "\0") * count + "\0"


def test_snapshots_that_do_not_fit() -> None:
    assert fsctl.encode_snapshots([TOKEN] * 3, 163) == struct.pack("<IIII", 3, 0, 152, 0)


@pytest.mark.parametrize(
    ("start", "beyond", "expected"),
    [(0, 0, ByteRange(0, 0)), (5, 9, ByteRange(5, 4)), (0, (1 << 63) - 1, ByteRange(0, (1 << 63) - 1))],
)
def test_zero_data(start: int, beyond: int, expected: ByteRange) -> None:
    assert fsctl.decode_zero_data(memoryview(struct.pack("<qq", start, beyond))) == expected


def test_allocated_ranges() -> None:
    assert fsctl.decode_allocated_ranges(memoryview(struct.pack("<qq", 5, 9))) == ByteRange(5, 9)
    assert fsctl.encode_allocated_ranges([ByteRange(1, 2), ByteRange(5, 6)]) == struct.pack("<4Q", 1, 2, 5, 6)


@pytest.mark.parametrize(("first", "second"), [(-1, 5), (6, 5), (0, -1)])
def test_malformed_ranges(first: int, second: int) -> None:
    packed = memoryview(struct.pack("<qq", first, second))
    with pytest.raises(Malformed):
        fsctl.decode_zero_data(packed)
    with pytest.raises(Malformed):
        fsctl.decode_zero_data(packed[:15])
    if first < 0 or second < 0:
        with pytest.raises(Malformed):
            fsctl.decode_allocated_ranges(packed)
    with pytest.raises(Malformed):
        fsctl.decode_allocated_ranges(packed[:15])


def test_ranges_end_below_the_largest_offset() -> None:
    with pytest.raises(Malformed):
        fsctl.decode_allocated_ranges(memoryview(struct.pack("<qq", 1, (1 << 63) - 1)))


@pytest.mark.parametrize(("data", "expected"), [(b"", True), (b"\0", False), (b"\1", True)])
def test_set_sparse(data: bytes, expected: bool) -> None:
    assert fsctl.decode_set_sparse(memoryview(data)) is expected
