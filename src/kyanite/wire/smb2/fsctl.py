"""What file system control codes carry (MS-SMB2 §2.2.31, §2.2.32; MS-FSCC §2.3)."""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import IntEnum
from typing import NamedTuple

from kyanite.values import Instant, datetime_from_instant, instant_from_datetime
from kyanite.wire.smb2.body import FILE_ID, Data, FileId, invalid


class Fsctl(IntEnum):
    DFS_GET_REFERRALS = 0x00060194
    DFS_GET_REFERRALS_EX = 0x000601B0
    GET_COMPRESSION = 0x0009003C
    SET_REPARSE_POINT = 0x000900A4
    GET_REPARSE_POINT = 0x000900A8
    CREATE_OR_GET_OBJECT_ID = 0x000900C0
    SET_SPARSE = 0x000900C4
    QUERY_ALLOCATED_RANGES = 0x000940CF
    FILE_LEVEL_TRIM = 0x00098208
    DUPLICATE_EXTENTS_TO_FILE = 0x00098344
    SET_ZERO_DATA = 0x000980C8
    SET_COMPRESSION = 0x0009C040
    PIPE_WAIT = 0x00110018
    PIPE_PEEK = 0x0011400C
    PIPE_TRANSCEIVE = 0x0011C017
    SRV_REQUEST_RESUME_KEY = 0x00140078
    LMR_REQUEST_RESILIENCY = 0x001401D4
    QUERY_NETWORK_INTERFACE_INFO = 0x001401FC
    VALIDATE_NEGOTIATE_INFO = 0x00140204
    SRV_ENUMERATE_SNAPSHOTS = 0x00144064
    SRV_COPYCHUNK = 0x001440F2
    SRV_READ_HASH = 0x001441BB
    SRV_COPYCHUNK_WRITE = 0x001480F2


RESUME_KEY_BYTES = 24

_TOKEN = "@GMT-%Y.%m.%d-%H.%M.%S"

_VALIDATE = struct.Struct("<I16sHH")
_RESUME_KEY = struct.Struct("<QQ8xII")
_COPY = struct.Struct("<24sII")
_CHUNK = struct.Struct("<QQII")
_COPIED = struct.Struct("<III")
_SNAPSHOTS = struct.Struct("<III")
_RANGE = struct.Struct("<QQ")
_SIGNED_RANGE = struct.Struct("<qq")
_COMPRESSION_BYTES = 2


class ValidateNegotiate(NamedTuple):
    """§2.2.31.4: what the client has sent in NEGOTIATE."""

    capabilities: int
    client_guid: bytes
    security_mode: int
    dialects: tuple[int, ...]


def decode_validate_negotiate(data: memoryview) -> ValidateNegotiate:
    if len(data) < _VALIDATE.size:
        raise invalid()
    capabilities, guid, security_mode, count = _VALIDATE.unpack_from(data)
    if _VALIDATE.size + 2 * count > len(data):
        raise invalid()
    return ValidateNegotiate(
        capabilities, guid, security_mode, struct.unpack_from(f"<{count}H", data, _VALIDATE.size)
    )


def encode_validate_negotiate(
    *, capabilities: int, server_guid: bytes, security_mode: int, dialect: int
) -> bytes:
    """§2.2.32.6."""
    return _VALIDATE.pack(capabilities, server_guid, security_mode, dialect)


def encode_resume_key(file_id: FileId) -> bytes:
    """§2.2.32.3. The key, opaque to the client, is the file id and eight zero bytes."""
    return _RESUME_KEY.pack(*file_id, 0, 0)


def decode_resume_key(key: Data) -> FileId:
    """The file of a key from ``encode_resume_key``; any other key leads to a file id that nothing has."""
    return FileId(*FILE_ID.unpack_from(key))


class CopyChunk(NamedTuple):
    source_offset: int
    target_offset: int
    length: int


class CopyChunks(NamedTuple):
    """§2.2.31.1."""

    source_key: bytes
    chunks: tuple[CopyChunk, ...]


def decode_copy_chunks(data: memoryview) -> CopyChunks:
    if len(data) < _COPY.size:
        raise invalid()
    key, count, _ = _COPY.unpack_from(data)
    end = _COPY.size + count * _CHUNK.size
    if end > len(data):
        raise invalid()
    listed = _CHUNK.iter_unpack(data[_COPY.size : end])
    return CopyChunks(key, tuple(CopyChunk(source, target, length) for source, target, length, _ in listed))


def encode_copied(*, chunks: int, bytes_of_failed_chunk: int, total_bytes: int) -> bytes:
    """§2.2.32.1. With INVALID_PARAMETER the three are the limits: chunks, bytes of each, bytes in all."""
    return _COPIED.pack(chunks, bytes_of_failed_chunk, total_bytes)


def snapshot_token(snapshot_at: Instant) -> str:
    """``@GMT-2024.05.01-12.34.56``: whole seconds, cut (§2.2.32.2)."""
    return datetime_from_instant(snapshot_at).strftime(_TOKEN)


def decode_snapshot_token(name: str) -> Instant | None:
    """The second that such a token names; None for any other name."""
    if not name.startswith("@GMT-") or not name.isascii():
        return None
    try:
        found = instant_from_datetime(datetime.strptime(name, _TOKEN).replace(tzinfo=UTC))
    except ValueError:
        return None
    return found if snapshot_token(found) == name else None


def encode_snapshots(tokens: Sequence[str], max_output_bytes: int) -> bytes:
    """§2.2.32.2: all tokens, or only their number and the bytes that they need if they do not fit."""
    array = b"".join((token + "\0").encode("utf-16-le") for token in tokens) + bytes(2)
    if _SNAPSHOTS.size + len(array) > max_output_bytes:
        return _SNAPSHOTS.pack(len(tokens), 0, len(array)) + bytes(4)
    return _SNAPSHOTS.pack(len(tokens), len(tokens), len(array)) + array


class ByteRange(NamedTuple):
    offset: int
    length: int


def decode_zero_data(data: memoryview) -> ByteRange:
    """FSCTL_SET_ZERO_DATA: the first byte to zero and the first one to keep."""
    if len(data) < _SIGNED_RANGE.size:
        raise invalid()
    start, beyond = _SIGNED_RANGE.unpack_from(data)
    if not 0 <= start <= beyond:
        raise invalid()
    return ByteRange(start, beyond - start)


def decode_allocated_ranges(data: memoryview) -> ByteRange:
    """FSCTL_QUERY_ALLOCATED_RANGES: where to look for data."""
    if len(data) < _SIGNED_RANGE.size:
        raise invalid()
    offset, length = _SIGNED_RANGE.unpack_from(data)
    if offset < 0 or length < 0 or offset + length >= 1 << 63:
        raise invalid()
    return ByteRange(offset, length)


def encode_allocated_ranges(ranges: Sequence[ByteRange]) -> bytes:
    """Where there is data, in the order of the file."""
    return b"".join(_RANGE.pack(offset, length) for offset, length in ranges)


def decode_set_sparse(data: memoryview) -> bool:
    """FSCTL_SET_SPARSE: without a buffer it means true."""
    return not data or data[0] != 0


def decode_compression(data: memoryview) -> int:
    """FSCTL_SET_COMPRESSION: the format, 0 for none."""
    if len(data) < _COMPRESSION_BYTES:
        raise invalid()
    return int.from_bytes(data[:_COMPRESSION_BYTES], "little")
