"""CLOSE and FLUSH (MS-SMB2 §2.2.15 to §2.2.18). The response to a FLUSH is ``session.EMPTY``."""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import FileId, unpack
from kyanite.wire.smb2.filetime import NO_TIMES, FileTimes

POSTQUERY_ATTRIBUTES = 0x1

_REQUEST = struct.Struct("<HHIQQ")
_REQUEST_SIZE = 24
_RESPONSE = struct.Struct("<HHIQQQQQQI")
_RESPONSE_SIZE = 60


class CloseRequest(NamedTuple):
    wants_attributes: bool
    file_id: FileId


class ClosedFile(NamedTuple):
    """What a client that asks for it learns of the file that it has closed."""

    times: FileTimes
    allocation_size: int
    end_of_file: int
    file_attributes: int


def decode_close(message: memoryview) -> CloseRequest:
    _, flags, _, persistent, volatile = unpack(message, _REQUEST, _REQUEST_SIZE)
    return CloseRequest(bool(flags & POSTQUERY_ATTRIBUTES), FileId(persistent, volatile))


def encode_close(closed: ClosedFile | None = None) -> bytes:
    """With the attributes of the file, or with zeros."""
    if closed is None:
        return _RESPONSE.pack(_RESPONSE_SIZE, 0, 0, *NO_TIMES, 0, 0, 0)
    return _RESPONSE.pack(
        _RESPONSE_SIZE,
        POSTQUERY_ATTRIBUTES,
        0,
        *closed.times,
        closed.allocation_size,
        closed.end_of_file,
        closed.file_attributes,
    )


def decode_flush(message: memoryview) -> FileId:
    _, _, _, persistent, volatile = unpack(message, _REQUEST, _REQUEST_SIZE)
    return FileId(persistent, volatile)
