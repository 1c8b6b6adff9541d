"""A page of memory that all processes of a store share: a few numbers that would cost too much as rows.

Nothing here has to survive a restart: the first process that opens the store writes the page from what is stored. Each
number is one aligned 64-bit word, so it is read and written whole. Only the process with the write lock changes
*last_instant*, *writer* and *commits*.

*last_instant*: no committed transaction has a later instant. Set before the commit.
*reserved_until*: instants up to this one are stored as given already, so that not every commit has to store one.
*failed*: a commit ended with an unknown outcome. All processes refuse writes until the store is opened again.
*writer*: the process that has the write lock (0: none), and since when on the monotonic clock. A process that dies with
the lock leaves its id here, although the kernel has freed the lock.
*subscriptions*: changes whenever a process gets its first subscriber or closes.
*commits*: incremented before and after every commit. While it is odd, a commit is in flight (or its process died),
and the committed state may change at any moment. While it is even and the same, the state does not change.
*clock_base*: the instant at which the machine started, by the clock of the store, and *boot*, a number for that start.
These two stay when the store is opened anew.
*is_log_long*: the log has to be copied at a moment without long reads, so no process begins one.
"""

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kyanite.values import Instant

_FILE: Final = "board"
"""Its name in existing stores."""

_PAGE_BYTES: Final = 4096
(
    _LAST_INSTANT,
    _FAILED,
    _WRITER,
    _WRITER_SINCE,
    _SUBSCRIPTIONS,
    _COMMITS,
    _CLOCK_BASE,
    _BOOT,
    _LOG_LONG,
    _RESERVED,
) = range(10)


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that has the write lock. The supervisor ends a worker that keeps it for seconds."""

    pid: int
    since_ns: int
    """On the machine's monotonic clock, ``time.monotonic_ns()``."""


class SharedState:
    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < _PAGE_BYTES:
                # Real bytes and not a hole: on a full disk, a write to a hole through the map is a bus error.
                os.pwrite(descriptor, bytes(_PAGE_BYTES), 0)
            self._map = mmap.mmap(descriptor, _PAGE_BYTES)
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map).cast("Q")

    def reset(self, reserved_until: Instant, boot: int) -> None:
        """Begin anew with the instant that is stored. Only of this start of the machine are the numbers here still
        true: then they say which of the reserved instants were given."""
        for word in (_FAILED, _WRITER, _WRITER_SINCE, _LOG_LONG):
            self._words[word] = 0
        is_true = boot != 0 and boot == self.boot and self.last_instant <= reserved_until
        if not is_true:
            self._words[_LAST_INSTANT] = reserved_until
        self._words[_RESERVED] = reserved_until

    @property
    def last_instant(self) -> Instant:
        return Instant(self._words[_LAST_INSTANT])

    def set_last_instant(self, instant: Instant) -> None:
        self._words[_LAST_INSTANT] = instant

    @property
    def reserved_until(self) -> Instant:
        return Instant(self._words[_RESERVED])

    def set_reserved(self, until: Instant) -> None:
        self._words[_RESERVED] = until

    @property
    def failed(self) -> bool:
        return self._words[_FAILED] != 0

    def fail(self) -> None:
        self._words[_FAILED] = 1

    @property
    def writer(self) -> Writer | None:
        pid = self._words[_WRITER]
        return Writer(pid, self._words[_WRITER_SINCE]) if pid else None

    def set_writer(self, pid: int, since_ns: int) -> None:
        self._words[_WRITER_SINCE] = since_ns
        self._words[_WRITER] = pid

    def clear_writer(self) -> None:
        self._words[_WRITER] = 0

    @property
    def subscriptions(self) -> int:
        return self._words[_SUBSCRIPTIONS]

    def change_subscriptions(self, token: int) -> None:
        self._words[_SUBSCRIPTIONS] = token

    @property
    def commits(self) -> int:
        return self._words[_COMMITS]

    def begin_commit(self) -> None:
        self._words[_COMMITS] = (self._words[_COMMITS] + 1) | 1

    def end_commit(self) -> None:
        self._words[_COMMITS] += 1

    @property
    def is_log_long(self) -> bool:
        return self._words[_LOG_LONG] != 0

    @is_log_long.setter
    def is_log_long(self, is_long: bool) -> None:
        self._words[_LOG_LONG] = is_long

    @property
    def clock_base(self) -> int:
        return self._words[_CLOCK_BASE]

    @clock_base.setter
    def clock_base(self, instant: int) -> None:
        self._words[_CLOCK_BASE] = instant

    @property
    def boot(self) -> int:
        return self._words[_BOOT]

    @boot.setter
    def boot(self, number: int) -> None:
        self._words[_BOOT] = number

    def close(self) -> None:
        self._words.release()
        self._map.close()
