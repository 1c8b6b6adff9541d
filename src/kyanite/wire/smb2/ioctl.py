"""IOCTL (MS-SMB2 §2.2.31, §2.2.32). What the codes carry is in ``fsctl``."""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import HEADER_BYTES, FileId, buffer, unpack

IS_FSCTL = 0x1

_REQUEST = struct.Struct("<HHIQQIIIIIIII")
_REQUEST_SIZE = 57
_RESPONSE = struct.Struct("<HHIQQIIIIII")
_RESPONSE_SIZE = 49
_OUTPUT_AT = HEADER_BYTES + _RESPONSE.size


class IoctlRequest(NamedTuple):
    code: int
    file_id: FileId
    max_input_bytes: int
    max_output_bytes: int
    flags: int
    input: memoryview


def decode(message: memoryview) -> IoctlRequest:
    _, _, code, persistent, volatile, input_at, input_length, max_input, _, _, max_output, flags, _ = unpack(
        message, _REQUEST, _REQUEST_SIZE, needs_buffer=False
    )
    data = buffer(message, input_at, input_length, HEADER_BYTES + _REQUEST.size)
    return IoctlRequest(code, FileId(persistent, volatile), max_input, max_output, flags, data)


def encode(code: int, file_id: FileId, output: bytes) -> bytes:
    return (
        _RESPONSE.pack(_RESPONSE_SIZE, 0, code, *file_id, _OUTPUT_AT, 0, _OUTPUT_AT, len(output), 0, 0)
        + output
    )
