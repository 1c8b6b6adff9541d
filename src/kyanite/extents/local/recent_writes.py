"""What of written content stays in the page cache: the bytes that were written last.

They are often read soon after. What was written before that is dropped, so that a stream of uploads neither pushes out
what clients read nor needs ever new memory. In a virtual machine whose host has taken back what was free, new memory
made writing take ten times as long. Dropping is advice, and concerns only what is on the disk already.
"""

from collections import deque
from pathlib import Path
from threading import Lock

from kyanite.extents.local.file_system import FileSystem

KEPT_BYTES = 256 * 1024 * 1024
"""Of each process. Whoever writes and reads at once, as tests do, seldom does so with more."""

JOINED_BYTES = 1024 * 1024
"""Neighbours are joined up to this length and dropped by one call: bodies of 64 KiB come one after the other."""


_Written = tuple[Path, int, int]
"""The file, where the bytes begin, and how many they are."""


class RecentWrites:
    """Used by the threads that write."""

    __slots__ = ("_file_system", "_kept", "_kept_bytes", "_lock")

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self._lock = Lock()
        self._kept: deque[_Written] = deque()
        self._kept_bytes = 0

    def add(self, path: Path, start: int, length: int) -> None:
        """These bytes were written just now."""
        old: list[_Written] = []
        with self._lock:
            kept = self._kept
            kept.append((path, start, length))
            self._kept_bytes += length
            if len(kept) > 1:
                before_path, before_start, before_length = kept[-2]
                joined = before_length + length
                if before_path is path and before_start + before_length == start and joined <= JOINED_BYTES:
                    kept.pop()
                    kept[-1] = (path, before_start, joined)
            while self._kept_bytes > KEPT_BYTES:
                old.append(kept.popleft())
                self._kept_bytes -= old[-1][2]
        for written in old:
            self._file_system.drop_cached(*written)
