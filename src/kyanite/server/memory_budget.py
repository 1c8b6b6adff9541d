"""The memory that messages take in a process: requests that were received, and responses that were not sent.

All connections of HTTP and SMB share one budget, so that no number of clients can exhaust the memory. An HTTP body that
does not fit is refused with 503. SMB has no such answer: its connections wait until there is room (``when_room``). A
quarter is kept for short messages: clients with long ones cannot keep the others out.
"""

import asyncio
import ctypes
import time
from collections import deque
from collections.abc import Callable

SHORT_BYTES = 64 * 1024
_TRIMMED_BYTES = 16 * 1024 * 1024
_POLL_SECONDS = 0.01
"""How soon those that wait notice that there is room. Memory is given back at very many points, of which none calls."""


class RoomWaiter:
    """A connection that waits for room."""

    __slots__ = ("go_on", "is_cancelled", "since_seconds", "size")

    def __init__(self, size: int, go_on: Callable[[], None]) -> None:
        self.size = size
        self.go_on = go_on
        self.since_seconds = time.monotonic()
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class MemoryBudget:
    __slots__ = ("_peak", "_polling", "_trim", "_waiting", "limit_bytes", "long_limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int, trim: Callable[[], None] | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.long_limit_bytes = limit_bytes * 3 // 4
        self.used_bytes = 0
        """Users add to this and subtract from it themselves, because every piece of a message does."""
        self._peak = 0
        self._trim = give_back if trim is None else trim
        self._waiting: tuple[deque[RoomWaiter], deque[RoomWaiter]] = deque(), deque()
        """With short messages, and with long ones."""
        self._polling: asyncio.TimerHandle | None = None

    @property
    def is_tight(self) -> bool:
        """Whether as little as possible should be buffered."""
        return self.used_bytes * 2 > self.limit_bytes

    def limit_for(self, length: int | None) -> int:
        """Up to where the budget may be used when a message of this length goes on."""
        return self.limit_bytes if length is not None and length <= SHORT_BYTES else self.long_limit_bytes

    def has_room(self, size: int) -> bool:
        """Whether a message of this size fits. One that is longer than all there is fits when nothing else is there."""
        limit = self.limit_bytes if size <= SHORT_BYTES else self.long_limit_bytes
        return self.used_bytes + min(size, limit) <= limit

    def when_room(self, size: int, go_on: Callable[[], None]) -> RoomWaiter:
        """Call back as soon as there is room, in the order of these calls."""
        waiter = RoomWaiter(size, go_on)
        self._waiting[size > SHORT_BYTES].append(waiter)
        if self._polling is None:
            self._polling = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._poll)
        return waiter

    @property
    def longest_wait_seconds(self) -> float:
        """How long the first has been waiting for room."""
        first = [queue[0].since_seconds for queue in self._waiting if queue]
        return time.monotonic() - min(first) if first else 0.0

    def _poll(self) -> None:
        self._polling = None
        for queue in self._waiting:
            while queue and (queue[0].is_cancelled or self.has_room(queue[0].size)):
                waiter = queue.popleft()
                if not waiter.is_cancelled:
                    waiter.go_on()
        if self._polling is None and any(self._waiting):
            self._polling = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._poll)

    def tick(self) -> None:
        """Called now and then: give memory back to the system after much of it was used."""
        self._peak = max(self._peak, self.used_bytes)
        if self._peak - self.used_bytes > _TRIMMED_BYTES and self.used_bytes < _TRIMMED_BYTES:
            self._peak = self.used_bytes
            self._trim()


def give_back() -> None:
    """Ask the allocator to return free memory, which it would keep for later. Only glibc's can."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    trim(0)
