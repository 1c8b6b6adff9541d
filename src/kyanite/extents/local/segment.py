"""A segment while its owner writes it: a file that grows at its end, in stretches that were set aside
beforehand.

Setting aside and counting happen on the event loop; writing and syncing in threads. Every stretch begins on a
block of its own: a write never touches the block of a neighbour that is already on the disk, and punching a
hole frees all of it.
"""

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from kyanite.engine.api import EngineError
from kyanite.extents.local.file_system import Buffer, Disk

BLOCK = 4096


def aligned(length: int, block: int = BLOCK) -> int:
    return -(-length // block) * block


class Segment:
    __slots__ = (
        "_allocated",
        "_broken",
        "_disk",
        "_fd",
        "_in_hand",
        "_kept",
        "_listed",
        "_opening",
        "_path",
        "_syncing",
        "_writers",
        "end",
        "full",
        "id",
    )

    def __init__(self, segment_id: bytes, path: Path, disk: Disk) -> None:
        self.id = segment_id
        self.end = 0
        """Where the next stretch will begin."""
        self.full = False
        """No more stretches are set aside."""
        self._path = path
        self._disk = disk
        self._fd = -1
        self._allocated = 0
        self._listed = False
        self._broken = False
        self._opening = threading.Lock()
        self._syncing = threading.Lock()
        self._writers = 0
        self._in_hand = 0
        self._kept = False

    # On the event loop

    def set_aside(self, length: int) -> int:
        """Begin a stretch of at most this length; answers where. A writer holds it until ``written``."""
        start = self.end
        self.end = start + aligned(length)
        self._writers += 1
        return start

    def written(self, extents: int) -> None:
        """A writer has finished, and so many extents were handed out."""
        self._writers -= 1
        self._in_hand += extents

    def commit(self) -> None:
        self._in_hand -= 1
        self._kept = True

    def discard(self) -> None:
        self._in_hand -= 1

    @property
    def is_idle(self) -> bool:
        """Nothing is on its way into it any more, nor from it into a transaction."""
        return self.full and self._writers == 0 and self._in_hand == 0

    # In threads

    def allocate(self, end: int) -> None:
        """Have the file there, with space up to this place."""
        with self._opening:
            if self._fd < 0:
                self._disk.make_folder(self._path.parent)
                self._fd = self._disk.create(self._path)
            if end > self._allocated:
                self._disk.allocate(self._fd, self._allocated, end - self._allocated)
                self._allocated = end

    def write(self, pieces: Sequence[Buffer], offset: int) -> None:
        self.allocate(0)
        self._disk.write(self._fd, pieces, offset)

    def sync(self) -> None:
        """All that was written before is on the disk. After one failure nothing in the segment is ever
        believed again: the kernel reports a lost write once and then calls the page clean."""
        with self._syncing:
            if self._broken:
                raise EngineError("An earlier sync of this segment failed.")
            try:
                self._disk.sync(self._fd)
                if not self._listed:
                    self._disk.sync_folder(self._path.parent)
                    self._listed = True
            except OSError:
                self._broken = True
                raise

    def punch(self, start: int, length: int) -> None:
        self._disk.punch(self._path, [(start, aligned(length))])

    def sealed(self) -> None:
        """Give the file out of hand, or remove it if nothing in it was kept."""
        if self._fd < 0:
            return
        os.close(self._fd)
        self._fd = -1
        if not self._kept:
            self._disk.unlink(self._path)
            return
        if self._allocated > self.end:
            self._disk.truncate(self._path, self.end)
        self._disk.sealed(self._path)
