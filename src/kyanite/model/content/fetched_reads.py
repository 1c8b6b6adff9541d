"""Reading bytes of extents that come over a network: what was fetched is checked, and then handed out.

A block that was checked before would have to be fetched again, and nothing says that the same bytes come the second
time. So whole blocks are fetched (``BLOCK_BYTES``) and checked in memory, each time. What their checksums should be is
remembered as for files (``checked_reads.py``).

A stream fetches the next piece while the client takes the one before. What all streams of a process have in memory is
bounded: near the bound pieces are as short as one block, and nothing is fetched ahead.
"""

import asyncio
from collections.abc import AsyncIterator

from kyanite.engine.api import Damaged
from kyanite.extents.api import BLOCK_BYTES, Extent, OpenExtent
from kyanite.extents.crc64 import CHECKSUM_BYTES, block_count, crc64, whole
from kyanite.model.content.checked_reads import CheckedReader, damaged_block

PIECE_BYTES = 16 * BLOCK_BYTES
FIRST_PIECE_BYTES = 4 * BLOCK_BYTES
"""A long range is fetched in pieces. The first is shorter, because the client waits for it."""

STREAMS_BYTES = 64 * 1024 * 1024
"""What all streams of a process should have in memory at most."""

_CHECKSUMS_AT_ONCE = 16


class FetchingReader(CheckedReader):
    """Reads extents that have no files."""

    sends_files = False
    _streams_bytes = 0
    """What the streams have in memory, or have begun to fetch."""

    async def read(self, extent: Extent, offset: int, length: int) -> bytes:
        first, end = offset // BLOCK_BYTES, -(-(offset + length) // BLOCK_BYTES)
        start = first * BLOCK_BYTES
        expected = await self._expected(extent)
        data = await self._extents.read(extent, start, min(end * BLOCK_BYTES, extent.length) - start)
        blocks = memoryview(data)
        for block in range(first, end):
            at = block * BLOCK_BYTES - start
            stated = expected[block * CHECKSUM_BYTES : (block + 1) * CHECKSUM_BYTES]
            if crc64(blocks[at : at + BLOCK_BYTES]) != int.from_bytes(stated, "big"):
                raise damaged_block(extent, block)
        return data if len(data) == length else data[offset - start : offset - start + length]

    async def read_into(self, extent: Extent, offset: int, buffer: memoryview) -> None:
        buffer[:] = await self.read(extent, offset, len(buffer))

    async def stream(self, extent: Extent, offset: int, length: int) -> AsyncIterator[bytes]:
        """The bytes in chunks of at most a block."""
        end = offset + length
        piece = self._reserve(offset, end, FIRST_PIECE_BYTES)
        fetching: asyncio.Future[bytes] = asyncio.ensure_future(self.read(extent, offset, piece))
        ahead: asyncio.Future[bytes] | None = None
        ahead_bytes = 0
        try:
            while True:
                data = await fetching
                offset += piece
                if offset < end and self._streams_bytes < STREAMS_BYTES:
                    ahead_bytes = self._reserve(offset, end, PIECE_BYTES)
                    ahead = asyncio.ensure_future(self.read(extent, offset, ahead_bytes))
                for at in range(0, piece, BLOCK_BYTES):
                    yield data if piece <= BLOCK_BYTES else data[at : at + BLOCK_BYTES]
                del data
                self._streams_bytes -= piece
                piece = 0
                if offset == end:
                    return
                if ahead is None:
                    piece = self._reserve(offset, end, PIECE_BYTES)
                    fetching = asyncio.ensure_future(self.read(extent, offset, piece))
                else:
                    fetching, piece, ahead, ahead_bytes = ahead, ahead_bytes, None, 0
        finally:
            self._streams_bytes -= piece + ahead_bytes
            for each in (fetching, ahead):
                if each is not None and not each.done():
                    each.cancel()
                elif each is not None and not each.cancelled():
                    each.exception()  # Marked as retrieved.

    async def open_checked(self, extent: Extent, offset: int, length: int, *, is_first: bool) -> OpenExtent:
        raise NotImplementedError("These extents have no files.")

    def _reserve(self, offset: int, end: int, most: int) -> int:
        """How long the next piece is; it ends with a block."""
        if self._streams_bytes + most > STREAMS_BYTES:
            most = BLOCK_BYTES
        piece = min(most - offset % BLOCK_BYTES, end - offset)
        self._streams_bytes += piece
        return piece

    async def _expected(self, extent: Extent) -> bytes:
        """What the checksums of all blocks should be.

        If the row of the extent does not say, all of it is fetched once to compute them.
        """
        known = self._known.get(extent)
        if known is not None and known.checksums:
            self._known.move_to_end(extent)
            return known.checksums
        expected = await self._load_checksums(extent) or await self._compute_checksums(extent)
        (self._known.get(extent) or self._remember(extent)).checksums = expected
        return expected

    async def _compute_checksums(self, extent: Extent) -> bytes:
        count = block_count(extent.length)
        computed = b""
        for first in range(0, count, _CHECKSUMS_AT_ONCE):
            computed += await self._extents.checksums(extent, first, min(_CHECKSUMS_AT_ONCE, count - first))
        if whole(computed, extent.length) != extent.crc64:
            raise Damaged(f"The CRC of {extent} is wrong.")
        return computed
