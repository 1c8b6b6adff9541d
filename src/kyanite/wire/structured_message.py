"""Structured bodies, ``XSM/1.0; properties=crc64``: data in segments, with a CRC-64 after each and after all.

    header    version 1 (1), length of the whole message (8), flags (2), number of segments (2)
    segment   number from 1 on (2), length (8), data, CRC-64 of the data (8)
    footer    CRC-64 of all data (8)

All numbers are little-endian. An empty body is one empty segment.
"""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable

from kyanite.wire import crc64
from kyanite.wire.malformed import Malformed, bad_header

FORM = "XSM/1.0; properties=crc64"
SEGMENT_BYTES = 4 * 1024 * 1024
"""The size of the segments of a response."""
SEGMENTS_MAX = 0xFFFF

_HEADER = struct.Struct("<BQHH")
_SEGMENT = struct.Struct("<HQ")
_CRC = struct.Struct("<Q")
_VERSION = 1
_WITH_CRC = 1


def is_structured(text: str | None) -> bool:
    """Whether a header names this form. Any other is refused."""
    if not text:
        return False
    if text.replace(" ", "").lower() != FORM.replace(" ", "").lower():
        raise bad_header("x-ms-structured-body", text)
    return True


def framed_length(length: int) -> int:
    """The length of a message with that much data."""
    each = _SEGMENT.size + _CRC.size
    return _HEADER.size + segments_of(length) * each + length + _CRC.size


def segments_of(length: int) -> int:
    return -(-length // SEGMENT_BYTES) or 1


async def decode(
    read: Callable[[], Awaitable[bytes]], message_length: int, length: int
) -> AsyncIterator[bytes]:
    """The data of a message as it arrives. There must be ``length`` bytes.

    Raises Malformed when the message is incomplete or a checksum is wrong. That may be after all of the data was
    yielded: the caller must not use the data before the end.
    """
    source = _Source(read)
    version, declared_length, flags, count = _HEADER.unpack(await source.field(_HEADER.size))
    if version != _VERSION or declared_length != message_length or flags != _WITH_CRC:
        raise _invalid()
    whole, left = crc64.EMPTY, length
    for number in range(1, count + 1):
        declared, size = _SEGMENT.unpack(await source.field(_SEGMENT.size))
        left -= size
        if declared != number or left < 0:
            raise _invalid()
        missing, checksum = size, crc64.EMPTY
        while missing:
            piece = await source.some(missing)
            missing -= len(piece)
            checksum = crc64.compute(piece, checksum)
            yield piece
        _check(checksum, *_CRC.unpack(await source.field(_CRC.size)))
        whole = crc64.combine(whole, checksum, size)
    _check(whole, *_CRC.unpack(await source.field(_CRC.size)))
    if left or not await source.is_at_end():
        raise _invalid()


class _Source:
    """Reads the source in the units of the format."""

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read
        self._waiting = b""

    async def field(self, size: int) -> bytes:
        while len(self._waiting) < size:
            self._waiting += await self._more()
        return await self.some(size)

    async def some(self, most: int) -> bytes:
        """At least one byte and at most ``most``."""
        data = self._waiting or await self._more()
        self._waiting = data[most:]
        return data[:most]

    async def is_at_end(self) -> bool:
        return not self._waiting and not await self._read()

    async def _more(self) -> bytes:
        piece = await self._read()
        if not piece:
            raise _invalid()
        return piece


async def encode(pieces: AsyncIterator[bytes | memoryview], length: int) -> AsyncIterator[bytes]:
    """A message of these chunks, which have ``length`` bytes together. One segment at a time is in memory."""
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


def _check(found: int, declared: int) -> None:
    if found != declared:
        raise Malformed(
            "Crc64Mismatch",
            UserSpecifiedCrc64=crc64.encode(declared),
            ServerCalculatedCrc64=crc64.encode(found),
        )


def _invalid() -> Malformed:
    return Malformed("InvalidInput", Reason="The structured body is not well formed.")
