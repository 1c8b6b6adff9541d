"""QUERY_DIRECTORY (MS-SMB2 §2.2.33). The entries of its response are in ``info.directory``."""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import HEADER_BYTES, FileId, buffer, text, unpack

RESTART_SCANS = 0x01
RETURN_SINGLE_ENTRY = 0x02
INDEX_SPECIFIED = 0x04
REOPEN = 0x10

_REQUEST = struct.Struct("<HBBIQQHHI")
_REQUEST_SIZE = 33


class QueryDirectoryRequest(NamedTuple):
    information_class: int
    flags: int
    file_id: FileId
    pattern: str
    output_bytes: int


def decode(message: memoryview) -> QueryDirectoryRequest:
    _, information_class, flags, _, persistent, volatile, name_at, name_length, output_bytes = unpack(
        message, _REQUEST, _REQUEST_SIZE
    )
    pattern = text(buffer(message, name_at, name_length, HEADER_BYTES + _REQUEST.size))
    return QueryDirectoryRequest(
        information_class, flags, FileId(persistent, volatile), pattern, output_bytes
    )
