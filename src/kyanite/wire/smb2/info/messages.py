"""QUERY_INFO and SET_INFO (MS-SMB2 §2.2.37 to §2.2.40); the response to QUERY_INFO is ``body.encode_output``.

What the buffers hold is in ``file``, ``changes``, ``file_system`` and ``security``.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.body import HEADER_BYTES, FileId, buffer, unpack


class InfoType(IntEnum):
    FILE = 1
    FILE_SYSTEM = 2
    SECURITY = 3
    QUOTA = 4


_QUERY = struct.Struct("<HBBIHHIIIQQ")
_QUERY_SIZE = 41
_SET = struct.Struct("<HBBIHHIQQ")
_SET_SIZE = 33
_SET_RESPONSE_SIZE = 2


class QueryInfoRequest(NamedTuple):
    info_type: int
    information_class: int
    output_bytes: int
    additional_information: int
    flags: int
    file_id: FileId
    input: memoryview


class SetInfoRequest(NamedTuple):
    info_type: int
    information_class: int
    additional_information: int
    file_id: FileId
    data: memoryview


def decode_query(message: memoryview) -> QueryInfoRequest:
    _, kind, information_class, output_bytes, at, _, length, additional, flags, persistent, volatile = unpack(
        message, _QUERY, _QUERY_SIZE, needs_buffer=False
    )
    data = buffer(message, at, length, HEADER_BYTES + _QUERY.size)
    file_id = FileId(persistent, volatile)
    return QueryInfoRequest(kind, information_class, output_bytes, additional, flags, file_id, data)


def decode_set(message: memoryview) -> SetInfoRequest:
    _, kind, information_class, length, at, _, additional, persistent, volatile = unpack(
        message, _SET, _SET_SIZE
    )
    data = buffer(message, at, length, HEADER_BYTES + _SET.size)
    return SetInfoRequest(kind, information_class, additional, FileId(persistent, volatile), data)


SET_RESPONSE = _SET_RESPONSE_SIZE.to_bytes(2, "little")


class Fitted(NamedTuple):
    data: bytes
    is_cut: bool
    """Then the status is BUFFER_OVERFLOW."""


def fit(data: bytes, fixed_bytes: int, output_bytes: int) -> Fitted:
    """What the client's buffer can take: the fixed part at least, else INFO_LENGTH_MISMATCH (§3.3.5.20.1)."""
    if output_bytes < fixed_bytes:
        raise Malformed("INFO_LENGTH_MISMATCH")
    return Fitted(data[:output_bytes], len(data) > output_bytes)
