"""The memory of the uploads of a process: how much of it they use, and the buffers that bodies are received into.

A buffer is used again and again, because the pages of a new one would have to be cleared. When none has been taken for
a while, those that are free go back to the system.
"""

import asyncio
import mmap
from threading import Lock

from kyanite.extents.api import PACK_MAX

BUFFER_BYTES = PACK_MAX
MEMORY_BYTES = 64 * 1024 * 1024
"""What all uploads of a process should have in memory at most."""
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_FREE_MAX = 16
_FREE_SECONDS = 5.0
"""How long free buffers are kept."""


class UploadMemory:
    """The event loop takes, threads give back."""

    __slots__ = ("_free", "_lock", "_timer", "_was_used", "used_bytes")

    def __init__(self) -> None:
        self.used_bytes = 0
        self._lock = Lock()
        self._free: list[mmap.mmap] = []
        self._timer: asyncio.TimerHandle | None = None
        self._was_used = False

    @property
    def is_tight(self) -> bool:
        """Whether uploads should keep as little in memory as possible."""
        return self.used_bytes > MEMORY_BYTES

    @property
    def is_exhausted(self) -> bool:
        return self.used_bytes > 2 * MEMORY_BYTES

    def add(self, count: int) -> None:
        with self._lock:
            self.used_bytes += count

    def take(self) -> mmap.mmap | None:
        """A buffer, if there is room for it. It counts as used until the taker subtracts it."""
        with self._lock:
            if self.used_bytes + BUFFER_BYTES > MEMORY_BYTES:
                return None
            self.used_bytes += BUFFER_BYTES
            buffer = self._free.pop() if self._free else None
        self._was_used = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FREE_SECONDS, self._drop_free)
        return mmap.mmap(-1, BUFFER_BYTES, flags=_PRIVATE) if buffer is None else buffer

    def give_back(self, buffer: mmap.mmap) -> None:
        """Nothing refers to its bytes any more."""
        with self._lock:
            if len(self._free) < _FREE_MAX:
                self._free.append(buffer)

    def _drop_free(self) -> None:
        self._timer = None
        if self._was_used:
            self._was_used = False
            self._timer = asyncio.get_running_loop().call_later(_FREE_SECONDS, self._drop_free)
        else:
            with self._lock:
                self._free.clear()
