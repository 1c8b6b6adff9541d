"""LOCK (MS-SMB2 §2.2.26). Its response is ``session.EMPTY``."""

import struct
from typing import NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.body import HEADER_BYTES, FileId, invalid, unpack

SHARED = 0x01
EXCLUSIVE = 0x02
UNLOCK = 0x04
FAIL_IMMEDIATELY = 0x10

_REQUEST = struct.Struct("<HHIQQ")
_SIZE = 48
_ELEMENT = struct.Struct("<QQII")
_ELEMENTS_AT = HEADER_BYTES + _REQUEST.size


ELEMENTS_MAX = 256
"""Of one request; Linux sends up to 170."""


class LockElement(NamedTuple):
    offset: int
    length: int
    flags: int


class LockRequest(NamedTuple):
    sequence_number: int
    """0 to 15; it and the index tell a repeated request from a new one."""
    sequence_index: int
    file_id: FileId
    elements: tuple[LockElement, ...]
    """At least one."""


def decode(message: memoryview) -> LockRequest:
    _, count, sequence, persistent, volatile = unpack(message, _REQUEST, _SIZE)
    end = _ELEMENTS_AT + count * _ELEMENT.size
    if not count or end > len(message):
        raise invalid()
    if count > ELEMENTS_MAX:
        raise Malformed("INSUFFICIENT_RESOURCES")
    listed = _ELEMENT.iter_unpack(message[_ELEMENTS_AT:end])
    elements = tuple(LockElement(offset, length, flags) for offset, length, flags, _ in listed)
    return LockRequest(sequence & 0xF, sequence >> 4, FileId(persistent, volatile), elements)
