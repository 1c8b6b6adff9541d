"""Structured bodies, ``XSM/1.0; properties=crc64``: data in segments with a CRC-64 behind each and behind all.

    header    version 1 (1), length of the whole message (8), flags (2), number of segments (2)
    segment   number from 1 on (2), length (8), data, CRC-64 of the data (8)
    footer    CRC-64 of all data (8)

All numbers are little-endian. An empty body is one empty segment.
"""

import struct
from collections.abc import AsyncIterator

from kyanite.wire import crc64
from kyanite.wire.malformed import Malformed, bad_header

FORM = "XSM/1.0; properties=crc64"
SEGMENT_BYTES = 4 * 1024 * 1024
"""How much goes into each segment that is written here."""
SEGMENTS_MAX = 0xFFFF

_HEADER = struct.Struct("<BQHH")
_SEGMENT = struct.Struct("<HQ")
_CRC = struct.Struct("<Q")
_VERSION = 1
_WITH_CRC = 1


def is_asked(text: str | None) -> bool:
    """Whether a header asks for this form. Any other is refused."""
    if not text:
        return False
    if text.replace(" ", "").lower() != FORM.replace(" ", "").lower():
        raise bad_header("x-ms-structured-body", text)
    return True


def framed_length(length: int) -> int:
    """The length of a message with so much data in it."""
    each = _SEGMENT.size + _CRC.size
    return _HEADER.size + segments_of(length) * each + length + _CRC.size


def segments_of(length: int) -> int:
    return -(-length // SEGMENT_BYTES) or 1


def decode(message: bytes) -> bytes:
    """The data of a message. Raises Malformed when it is not whole, or a checksum is not right."""
    try:
        version, length, flags, count = _HEADER.unpack_from(message)
        if version != _VERSION or length != len(message) or flags != _WITH_CRC:
            raise _invalid()
        at, parts = _HEADER.size, []
        for number in range(1, count + 1):
            said, size = _SEGMENT.unpack_from(message, at)
            at += _SEGMENT.size
            part = message[at : at + size]
            at += size
            if said != number or len(part) != size:
                raise _invalid()
            _check(part, *_CRC.unpack_from(message, at))
            at += _CRC.size
            parts.append(part)
        data = b"".join(parts)
        _check(data, *_CRC.unpack_from(message, at))
    except struct.error:
        raise _invalid() from None
    if at + _CRC.size != len(message):
        raise _invalid()
    return data


async def encode(pieces: AsyncIterator[bytes | memoryview], length: int) -> AsyncIterator[bytes]:
    """A message of these pieces, which have so many bytes together. One segment at a time is in memory."""
    count = segments_of(length)
    yield _HEADER.pack(_VERSION, framed_length(length), _WITH_CRC, count)
    waiting, whole = bytearray(), crc64.EMPTY
    for number in range(1, count + 1):
        size = min(SEGMENT_BYTES, length)
        length -= size
        while len(waiting) < size:
            waiting += await anext(pieces)
        data = bytes(waiting[:size])
        del waiting[:size]
        whole = crc64.compute(data, whole)
        yield _SEGMENT.pack(number, size)
        yield data
        yield _CRC.pack(crc64.compute(data))
    yield _CRC.pack(whole)


def _check(data: bytes, said: int) -> None:
    found = crc64.compute(data)
    if found != said:
        raise Malformed(
            "Crc64Mismatch", UserSpecifiedCrc64=crc64.encode(said), ServerCalculatedCrc64=crc64.encode(found)
        )


def _invalid() -> Malformed:
    return Malformed("InvalidInput", Reason="The structured body is not well formed.")
