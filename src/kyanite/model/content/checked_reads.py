"""Reading bytes of extents: none is handed out that this process has not checked itself a short time ago.

An extent is checked by blocks (``BLOCK_BYTES``), so a range costs as much as the blocks that it touches. What their
checksums should be is in the extent's row (``references.py``), which is read when the first block is checked. Where
the row has none, because an older version wrote the extent, or is gone, because the extent was freed under a reader,
the whole extent is checked against its CRC.

The reader remembers which blocks it has found right and when, for a bounded number of extents. Within that time the
bytes are read or sent by the kernel without looking at them again.
"""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from functools import partial
from time import monotonic

from kyanite.engine.api import Damaged, Engine, Snapshot
from kyanite.extents.api import BLOCK_BYTES, Extent, Extents, OpenExtent
from kyanite.extents.crc64 import CHECKSUM_BYTES, block_count, crc64, encode, whole
from kyanite.model import keys
from kyanite.model.content.references import decode_extent

RECHECK_SECONDS = 600.0
"""How long a block counts as checked."""

REMEMBERED_BYTES = 8 * 1024 * 1024
"""How much memory the reader uses for what it has checked: enough for 120 GiB in long extents."""

_BYTES_PER_EXTENT = 600
_BYTES_PER_BLOCK = CHECKSUM_BYTES + 8

_FIRST_PIECE_BYTES = 4 * BLOCK_BYTES
_PIECE_BYTES = 16 * BLOCK_BYTES
"""A long part is checked and sent in pieces. The first is shorter, because the client waits for it."""

_NEVER = float("-inf")


class _Checked:
    """What is known of one extent."""

    __slots__ = ("checked_at", "checksums", "used_bytes")

    def __init__(self, blocks: int) -> None:
        self.checksums = b""
        """What the checksums should be. Empty until they were read or computed."""
        self.checked_at = array("d", [_NEVER]) * blocks
        self.used_bytes = _BYTES_PER_EXTENT + blocks * _BYTES_PER_BLOCK


class CheckedReader:
    """Reads the extents of one store for one process."""

    sends_files = True
    """Whether ``open_checked`` can be used."""

    def __init__(
        self,
        engine: Engine,
        extents: Extents,
        recheck_seconds: float = RECHECK_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._engine = engine
        self._extents = extents
        self._recheck_seconds = recheck_seconds
        self._clock = clock
        self._known: OrderedDict[Extent, _Checked] = OrderedDict()
        self._used_bytes = 0
        self._background: set[asyncio.Future[None]] = set()
        self._waiting: dict[Extent, list[asyncio.Future[None]]] = {}
        """The extents that are being checked, and who waits for that: requests for the same bytes check them once."""

    async def read(self, extent: Extent, offset: int, length: int) -> bytes:
        """Bytes of the extent, checked. Raises Damaged."""
        is_short = length == extent.length <= BLOCK_BYTES  # Then the bytes themselves are checked.
        if not is_short and not self._is_checked(extent, offset, length):
            await self._check(extent, offset, length)
        return await self._extents.read(extent, offset, length)

    async def read_into(self, extent: Extent, offset: int, buffer: memoryview) -> None:
        """The same into a buffer, which holds unchecked bytes if this fails."""
        length = len(buffer)
        is_short = length == extent.length <= BLOCK_BYTES
        if not is_short and not self._is_checked(extent, offset, length):
            await self._check(extent, offset, length)
        await self._extents.read_into(extent, offset, buffer)
        if is_short and crc64(buffer) != extent.crc64:
            raise damaged_block(extent, 0)

    async def stream(self, extent: Extent, offset: int, length: int) -> AsyncIterator[bytes]:
        """The same in chunks of at most a block."""
        end = offset + length
        while offset < end:
            chunk = await self.read(extent, offset, min(BLOCK_BYTES - offset % BLOCK_BYTES, end - offset))
            offset += len(chunk)
            yield chunk

    async def open_checked(self, extent: Extent, offset: int, length: int, *, is_first: bool) -> OpenExtent:
        """The beginning of the range in an open file, for the kernel to send: one piece, which was checked.

        The next piece is checked while the caller sends this one.
        """
        piece = min(length, _PIECE_BYTES - offset % BLOCK_BYTES)
        if not self._is_checked(extent, offset, piece):
            if is_first:
                piece = min(piece, _FIRST_PIECE_BYTES - offset % BLOCK_BYTES)
            await self._check(extent, offset, piece)
        if length > piece:
            self._begin_check(extent, offset + piece, min(length - piece, _PIECE_BYTES))
        return self._extents.open_extent(extent, offset, piece)

    def _begin_check(self, extent: Extent, offset: int, length: int) -> None:
        """Check these bytes in the background. Damage is found again when they are wanted."""
        if self._recheck_seconds and not self._is_checked(extent, offset, length):
            checking = asyncio.ensure_future(self._check(extent, offset, length))
            self._background.add(checking)
            checking.add_done_callback(self._ended)

    def _ended(self, checking: "asyncio.Future[None]") -> None:
        self._background.discard(checking)
        if not checking.cancelled():
            checking.exception()  # Marked as retrieved.

    async def _check(self, extent: Extent, offset: int, length: int) -> None:
        """Check the blocks of the range, unless another request has just done so. Raises Damaged."""
        while (waiting := self._waiting.get(extent)) is not None:
            done = asyncio.get_running_loop().create_future()
            waiting.append(done)
            await done
            if self._is_checked(extent, offset, length):
                return
        waiting = self._waiting[extent] = []
        try:
            await self._check_blocks(extent, offset // BLOCK_BYTES, -(-(offset + length) // BLOCK_BYTES))
        finally:
            del self._waiting[extent]
            for done in waiting:
                if not done.done():
                    done.set_result(None)

    def _is_checked(self, extent: Extent, offset: int, length: int) -> bool:
        known = self._known.get(extent)
        if known is None:
            return False
        self._known.move_to_end(extent)
        blocks = known.checked_at[offset // BLOCK_BYTES : -(-(offset + length) // BLOCK_BYTES)]
        return self._clock() - min(blocks) < self._recheck_seconds

    async def _check_blocks(self, extent: Extent, first: int, end: int) -> None:
        began_at = self._clock()
        known = self._known.get(extent) or self._remember(extent)
        checked_at = known.checked_at
        while first < end and began_at - checked_at[first] < self._recheck_seconds:
            first += 1
        if first == end:
            return
        expected = known.checksums or await self._load_checksums(extent)
        if not expected:
            first, end = 0, len(checked_at)
        found = await self._extents.checksums(extent, first, end - first)
        if not expected:
            if whole(found, extent.length) != extent.crc64:
                raise Damaged(f"The CRC of {extent} is wrong.")
            expected = found
        elif found != expected[first * CHECKSUM_BYTES : end * CHECKSUM_BYTES]:
            raise damaged_block(extent, first + _first_difference(found, expected[first * CHECKSUM_BYTES :]))
        known.checksums = expected
        checked_at[first:end] = array("d", [began_at]) * (end - first)

    async def _load_checksums(self, extent: Extent) -> bytes:
        """What the checksums should be; empty if the row does not say."""
        if extent.length <= BLOCK_BYTES:
            return encode([extent.crc64])
        return await self._engine.read(partial(_load, extent=extent))

    def _remember(self, extent: Extent) -> _Checked:
        known = self._known[extent] = _Checked(block_count(extent.length))
        self._used_bytes += known.used_bytes
        while self._used_bytes > REMEMBERED_BYTES and len(self._known) > 1:
            self._used_bytes -= self._known.popitem(last=False)[1].used_bytes
        return known


def _load(snapshot: Snapshot, extent: Extent) -> bytes:
    """Checksums that do not give the CRC of the extent are not used."""
    stored = snapshot.get(keys.extent(extent.segment, extent.start))
    if stored is None:
        return b""
    checksums = decode_extent(stored).checksums
    if len(checksums) != block_count(extent.length) * CHECKSUM_BYTES:
        return b""
    return checksums if whole(checksums, extent.length) == extent.crc64 else b""


def _first_difference(found: bytes, expected: bytes) -> int:
    return next(
        at
        for at in range(len(found) // CHECKSUM_BYTES)
        if found[at * CHECKSUM_BYTES : (at + 1) * CHECKSUM_BYTES]
        != expected[at * CHECKSUM_BYTES : (at + 1) * CHECKSUM_BYTES]
    )


def damaged_block(extent: Extent, block: int) -> Damaged:
    return Damaged(f"The CRC of block {block} of {extent} is wrong.")
