"""Checking the bytes of one extent against its checksums, a piece at a time."""

from collections.abc import Iterable
from typing import NamedTuple

from kyanite.engine.api import Damaged
from kyanite.extents import crc64
from kyanite.extents.api import BLOCK_BYTES, EXTENT_MAX, SEGMENT_BYTES, Extent, Inspectable
from kyanite.model.content.references import ExtentRow

PIECE_BYTES = 4 * BLOCK_BYTES


class Span(NamedTuple):
    """Bytes from ``start`` up to ``end``."""

    start: int
    end: int


class ExtentCheck:
    """Reads an extent from its beginning to its end. An extent whose row has no checksums is checked as a whole."""

    def __init__(self, extents: Inspectable, key: bytes, row: ExtentRow) -> None:
        self._extents = extents
        self.extent = extent_of(key, row)
        self._row = row
        self._position = 0
        self._computed: list[int] = []
        self.damaged: list[Span] = []
        self.problem = ""
        """What is wrong, in one sentence."""
        if not 0 < row.length <= EXTENT_MAX:
            self._position = row.length
            self._add_damage(0, EXTENT_MAX, f"The length of {self.extent} is wrong.")

    @property
    def is_done(self) -> bool:
        return self._position >= self.extent.length

    @property
    def missing_checksums(self) -> bytes:
        """The checksums of the blocks, if the row has none and should have: known when all bytes were sound."""
        is_long = self.extent.length > BLOCK_BYTES
        return b"" if self._row.checksums or self.damaged or not is_long else crc64.encode(self._computed)

    async def read_piece(self) -> int:
        """Check the next piece; how many bytes it has."""
        start, end = self._position, min(self._position + PIECE_BYTES, self.extent.length)
        self._position = end
        try:
            await self._read_blocks(start, end)
        except Damaged:
            await self._read_each_block(start, end)
        if self.is_done:
            self._check_whole()
        return end - start

    def _check_whole(self) -> None:
        length = self.extent.length
        if self.damaged and not self._row.checksums:
            self._add_damage(0, length, "")  # No part of it can be checked by itself.
        elif not self.damaged and crc64.whole(crc64.encode(self._computed), length) != self.extent.crc64:
            self._add_damage(0, length, self._wrong_crc)

    async def _read_blocks(self, start: int, end: int) -> None:
        data = memoryview(await self._extents.read_cold(self.extent, start, end - start))
        for at in range(0, len(data), BLOCK_BYTES):
            self._check_block(start + at, crc64.crc64(data[at : at + BLOCK_BYTES]))

    async def _read_each_block(self, start: int, end: int) -> None:
        """Find out which blocks of a piece cannot be read."""
        for at in range(start, end, BLOCK_BYTES):
            try:
                await self._read_blocks(at, min(at + BLOCK_BYTES, end))
            except Damaged as damage:
                self._add_damage(at, min(at + BLOCK_BYTES, end), str(damage))

    def _check_block(self, at: int, computed: int) -> None:
        self._computed.append(computed)
        expected = self._row.checksums[at // BLOCK_BYTES * 8 :][:8]
        if expected and int.from_bytes(expected, "big") != computed:
            self._add_damage(at, min(at + BLOCK_BYTES, self.extent.length), self._wrong_crc)

    @property
    def _wrong_crc(self) -> str:
        return f"The CRC of {self.extent} is wrong."

    def _add_damage(self, start: int, end: int, problem: str) -> None:
        self.damaged = joined([*self.damaged, Span(start, end)])
        self.problem = self.problem or problem


def extent_of(key: bytes, row: ExtentRow) -> Extent:
    segment, start = key[1 : 1 + SEGMENT_BYTES], int.from_bytes(key[1 + SEGMENT_BYTES :], "big")
    return Extent(segment, start, row.length, row.crc64)


def joined(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch one another as one."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found
