"""A page of memory that all processes of a store share: a few numbers that would cost too much as rows.

Nothing here has to survive. Whoever opens the store first, alone, writes the page anew from what is stored. Each
number is one aligned 64-bit word, so it is read and written whole.

*high*: no committed transaction has a later instant. Raised before the commit, by whoever has the turn.
*failed*: a commit ended with an unknown outcome. All processes refuse writes until the store was opened anew.
*holder*, *held_since*: who has the turn to write (0: nobody), and since when on the monotonic clock. A process that
dies in its turn leaves its number here, although the kernel has freed the lock.
*bells*: changes whenever a process begins or ceases to listen.
*commits*: counts up before and after every commit, by whoever has the turn. While it is odd, a commit is under way
(or its process died in it), and what can be seen may change at any moment. While it is even and the same, nothing does.
"""

import mmap
import os
from dataclasses import dataclass
from pathlib import Path

from kyanite.values import Instant

_FILE = "board"
_PAGE_BYTES = 4096
_HIGH, _FAILED, _HOLDER, _HELD_SINCE, _BELLS, _COMMITS = range(6)


@dataclass(frozen=True, slots=True)
class Turn:
    """Who has the turn to write, and for how long already. The supervisor ends a worker that keeps it for seconds."""

    pid: int
    since_ns: int
    """On the machine's monotonic clock, ``time.monotonic_ns()``."""


class SharedState:
    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < _PAGE_BYTES:
                # Real bytes and not a hole: on a full disk, touching a hole through the map would be a bus error.
                os.pwrite(descriptor, bytes(_PAGE_BYTES), 0)
            self._map = mmap.mmap(descriptor, _PAGE_BYTES)
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map).cast("Q")

    def reset(self, high: Instant) -> None:
        for word in (_FAILED, _HOLDER, _HELD_SINCE):
            self._words[word] = 0
        self._words[_HIGH] = high

    @property
    def high(self) -> Instant:
        return Instant(self._words[_HIGH])

    def raise_high(self, instant: Instant) -> None:
        self._words[_HIGH] = instant

    @property
    def failed(self) -> bool:
        return self._words[_FAILED] != 0

    def fail(self) -> None:
        self._words[_FAILED] = 1

    @property
    def turn(self) -> Turn | None:
        pid = self._words[_HOLDER]
        return Turn(pid, self._words[_HELD_SINCE]) if pid else None

    def take_turn(self, pid: int, since_ns: int) -> None:
        self._words[_HELD_SINCE] = since_ns
        self._words[_HOLDER] = pid

    def leave_turn(self) -> None:
        self._words[_HOLDER] = 0

    @property
    def bells(self) -> int:
        return self._words[_BELLS]

    def change_bells(self, token: int) -> None:
        self._words[_BELLS] = token

    @property
    def commits(self) -> int:
        return self._words[_COMMITS]

    def begin_commit(self) -> None:
        self._words[_COMMITS] = (self._words[_COMMITS] + 1) | 1

    def end_commit(self) -> None:
        self._words[_COMMITS] += 1

    def close(self) -> None:
        self._words.release()
        self._map.close()
