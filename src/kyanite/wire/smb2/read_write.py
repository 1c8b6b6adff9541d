"""READ and WRITE (MS-SMB2 §2.2.19 to §2.2.22). Data is neither copied nor looked at."""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import HEADER_BYTES, FileId, invalid, unpack

WRITE_THROUGH = 0x1
WRITE_UNBUFFERED = 0x2

_READ = struct.Struct("<HBBIQQQIIIHH")
_READ_SIZE = 49
_READ_RESPONSE = struct.Struct("<HBBIII")
_READ_RESPONSE_SIZE = 17
_DATA_AT = HEADER_BYTES + _READ_RESPONSE.size
_WRITE = struct.Struct("<HHIQQQIIHHI")
_WRITE_SIZE = 49
_WRITTEN_AT = HEADER_BYTES + _WRITE.size
_WRITE_RESPONSE = struct.Struct("<HHIIHH")
_WRITE_RESPONSE_SIZE = 17


class ReadRequest(NamedTuple):
    length: int
    offset: int
    file_id: FileId
    minimum_count: int


class WriteRequest(NamedTuple):
    offset: int
    file_id: FileId
    flags: int
    data: memoryview


def decode_read(message: memoryview) -> ReadRequest:
    _, _, _, length, offset, persistent, volatile, minimum_count, _, _, _, _ = unpack(
        message, _READ, _READ_SIZE
    )
    return ReadRequest(length, offset, FileId(persistent, volatile), minimum_count)


def encode_read(length: int) -> bytes:
    """What stands before the data, which is sent behind it as it is."""
    return _READ_RESPONSE.pack(_READ_RESPONSE_SIZE, _DATA_AT, 0, length, 0, 0)


def decode_write(message: memoryview) -> WriteRequest:
    _, data_at, length, offset, persistent, volatile, _, _, _, _, flags = unpack(
        message, _WRITE, _WRITE_SIZE, needs_buffer=False
    )
    if data_at != _WRITTEN_AT or data_at + length > len(message):
        raise invalid()
    return WriteRequest(offset, FileId(persistent, volatile), flags, message[data_at : data_at + length])


def encode_write(count: int) -> bytes:
    """How many bytes were written."""
    return _WRITE_RESPONSE.pack(_WRITE_RESPONSE_SIZE, 0, count, 0, 0, 0)
