"""A segment while its owner writes it: a file that grows at its end, in stretches that writers reserve.

The event loop reserves and counts; threads write and sync. Every stretch begins on a block of its own: a write never
touches the block of a neighbour that is already on disk, and punching a hole frees the whole stretch.
"""

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from kyanite.engine.api import EngineError
from kyanite.extents.local.file_system import Buffer, FileSystem

BLOCK = 4096


def aligned(length: int, block: int = BLOCK) -> int:
    return -(-length // block) * block


class Segment:
    __slots__ = (
        "_allocated",
        "_broken",
        "_fd",
        "_file_system",
        "_has_committed",
        "_listed",
        "_opening",
        "_synced_writes",
        "_syncing",
        "_uncommitted",
        "_writers",
        "_writes",
        "_writing",
        "end",
        "full",
        "id",
        "path",
    )

    def __init__(self, segment_id: bytes, path: Path, file_system: FileSystem) -> None:
        self.id = segment_id
        self.path = path
        self.end = 0
        """Where the next stretch begins."""
        self.full = False
        """No more stretches are reserved."""
        self._file_system = file_system
        self._fd = -1
        self._allocated = 0
        self._listed = False
        self._broken = False
        self._opening = threading.Lock()
        self._syncing = threading.Lock()
        self._writing = threading.Lock()
        self._writes = 0
        self._synced_writes = 0
        self._writers = 0
        self._uncommitted = 0
        self._has_committed = False

    # On the event loop

    def reserve(self, length: int) -> int:
        """Reserve a stretch of this length for a writer, until ``written``; returns its start."""
        start = self.end
        self.end = start + aligned(length)
        self._writers += 1
        return start

    def written(self, extents: int) -> None:
        """A writer has finished, with so many extents."""
        self._writers -= 1
        self._uncommitted += extents

    def commit(self) -> None:
        self._uncommitted -= 1
        self._has_committed = True

    def discard(self) -> None:
        self._uncommitted -= 1

    @property
    def is_idle(self) -> bool:
        """No writer is left, nor any extent that may yet be committed."""
        return self.full and self._writers == 0 and self._uncommitted == 0

    # In threads

    def allocate(self, end: int) -> None:
        """Create the file if needed, with space up to this offset."""
        with self._opening:
            if self._fd < 0:
                self._file_system.make_folder(self.path.parent)
                self._fd = self._file_system.create(self.path)
            if end > self._allocated:
                self._file_system.allocate(self._fd, self._allocated, end - self._allocated)
                self._allocated = end

    def write(self, buffers: Sequence[Buffer], offset: int) -> None:
        self.allocate(0)
        self._file_system.write(self._fd, buffers, offset)
        with self._writing:
            self._writes += 1

    def begin_writing_out(self, start: int, length: int) -> None:
        """Leave less to the next sync."""
        self._file_system.begin_writing_out(self._fd, start, length)

    def sync(self) -> None:
        """Bring all earlier writes to the disk: those of several threads that wait here with one call.

        After one failure every later sync fails: the kernel reports a lost write once and then calls the page clean.
        """
        earlier = self._writes
        with self._syncing:
            if self._broken:
                raise EngineError("An earlier sync of this segment failed.")
            if earlier <= self._synced_writes:
                return
            covered = self._writes
            try:
                self._file_system.sync(self._fd)
                if not self._listed:
                    self._file_system.sync_folder(self.path.parent)
                    self._listed = True
            except OSError:
                self._broken = True
                raise
            self._synced_writes = covered

    def punch(self, start: int, length: int) -> None:
        self._file_system.punch(self.path, [(start, aligned(length))])

    def seal(self) -> None:
        """Mark the file as sealed, or remove it if no extent of it was committed."""
        if self._fd < 0:
            return
        os.close(self._fd)
        self._fd = -1
        if not self._has_committed:
            self._file_system.unlink(self.path)
            return
        if self._allocated > self.end:
            self._file_system.truncate(self.path, self.end)
        self._file_system.seal(self.path)
