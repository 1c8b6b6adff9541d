"""The memory that bodies take in a process: those of requests that were received, and of responses that were not sent.

All connections share one budget, those of HTTP and of SMB. A body that does not fit is refused with 503, and a long
message of SMB waits, so that no number of clients can exhaust the memory. A quarter is kept for short bodies: clients
with long ones cannot keep the others out.
"""

import ctypes
from collections.abc import Callable
from typing import Final

SHORT_BYTES: Final = 64 * 1024
_TRIMMED_BYTES: Final = 16 * 1024 * 1024


class MemoryBudget:
    __slots__ = ("_trim", "limit_bytes", "long_limit_bytes", "peak_bytes", "used_bytes")

    def __init__(self, limit_bytes: int, trim: Callable[[], None] | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.long_limit_bytes = limit_bytes * 3 // 4
        self.used_bytes = 0
        """Bodies add to this and subtract from it themselves, because every piece of a body does."""
        self.peak_bytes = 0
        """The most that was used since memory was given back. Who adds much raises this."""
        self._trim = give_back if trim is None else trim

    @property
    def is_tight(self) -> bool:
        """Whether bodies should be buffered as little as possible."""
        return self.used_bytes * 2 > self.limit_bytes

    def limit_for(self, length: int | None) -> int:
        """Up to where the budget may be used when a body of this length goes on."""
        return self.limit_bytes if length is not None and length <= SHORT_BYTES else self.long_limit_bytes

    def add(self, size: int) -> None:
        self.used_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)

    def tick(self) -> None:
        """Called now and then: give memory back to the system after much of it was used."""
        used = self.used_bytes
        if self.peak_bytes - used > _TRIMMED_BYTES and used < _TRIMMED_BYTES:
            self.peak_bytes = used
            self._trim()


def give_back() -> None:
    """Ask the allocator to return free memory, which it would keep for later. Only glibc's can."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    trim(0)
