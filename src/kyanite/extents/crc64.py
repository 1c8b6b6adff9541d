"""CRC-64/NVME, Azure Storage's own CRC64, at memory speed: of bytes, and of the blocks of an extent.

The checksums of an extent are those of its blocks, one after the other, eight bytes each. Each block has BLOCK_BYTES,
the last one what is left. An extent of one block has the same CRC as its block.
"""

import struct
from collections.abc import Sequence

import anycrc

from kyanite.extents.api import BLOCK_BYTES

CHECKSUM_BYTES = 8

_MODEL = anycrc.Model("CRC64-NVME")


def crc64(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The CRC of bytes that have the CRC ``before``, followed by the data."""
    crc: int = _MODEL.calc(data, before)
    return crc


def block_count(length: int) -> int:
    """How many blocks an extent of this length has."""
    return -(-length // BLOCK_BYTES)


def encode(checksums: Sequence[int]) -> bytes:
    return struct.pack(f">{len(checksums)}Q", *checksums)


def whole(checksums: bytes, length: int) -> int:
    """The CRC of an extent of this length from those of all its blocks. Costs 0.2 µs for a block."""
    crc, left = 0, length
    for (checksum,) in struct.iter_unpack(">Q", checksums):
        crc = _MODEL.combine(crc, checksum, min(left, BLOCK_BYTES))
        left -= BLOCK_BYTES
    return crc


def checksums_of(*chunks: bytes | bytearray | memoryview) -> tuple[int, bytes]:
    """The CRC of an extent, and the checksums of its blocks if it has more than one."""
    if len(chunks) == 1 and len(chunks[0]) <= BLOCK_BYTES:
        return crc64(chunks[0]), b""
    computed = BlockChecksums()
    for chunk in chunks:
        computed.add(chunk)
    return computed.finish()


class BlockChecksums:
    """Computes the checksums of an extent while its bytes come, in pieces of any length."""

    __slots__ = ("_block", "_checksums", "_room", "length")

    def __init__(self) -> None:
        self.length = 0
        self._checksums: list[int] = []
        self._block = 0
        """The CRC of the last block so far."""
        self._room = BLOCK_BYTES

    def add(self, data: bytes | bytearray | memoryview) -> None:
        self.length += len(data)
        if len(data) < self._room:
            self._block = crc64(data, self._block)
            self._room -= len(data)
            return
        rest = memoryview(data)
        while len(rest) >= self._room:
            self._checksums.append(crc64(rest[: self._room], self._block))
            rest = rest[self._room :]
            self._block, self._room = 0, BLOCK_BYTES
        if rest:
            self._block, self._room = crc64(rest), BLOCK_BYTES - len(rest)

    def finish(self) -> tuple[int, bytes]:
        """As ``checksums_of`` all bytes."""
        if self._room < BLOCK_BYTES:
            self._checksums.append(self._block)
        if len(self._checksums) == 1:
            return self._checksums[0], b""
        checksums = encode(self._checksums)
        return whole(checksums, self.length), checksums
