"""Since when each process reads: a table in shared memory with one slot per process.

A slot has its owner's id and the time at which the oldest running reader of that process began, or NO_READER. Times are
of the monotonic clock, which all processes of a machine share and which never steps. A slot whose owner is dead does
not count, so nothing needs to be cleaned up after a crash or a restart.

Readers of one process that begin within the same tenth of a second count as if all had begun with the first. That errs
on the safe side, and a pin costs well under a microsecond.
"""

import fcntl
import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final

from kyanite.engine.api import EngineBusy
from kyanite.extents.api import Mark
from kyanite.membership.api import OWNER_BYTES, Membership

_SLOTS: Final = 1024
_SLOT_BYTES: Final = 32
_WORDS: Final = _SLOT_BYTES // 8
_OWNER_AT: Final = 8
_NO_READER: Final = 0
_UNUSED: Final = bytes(OWNER_BYTES)
_TOGETHER_NS: Final = 100_000_000

_GRACE_NS: Final = 10_000_000
"""The least time between a mark and the moment it has passed. Another processor may see a reader's pin a little after
the reader has taken its snapshot; ten milliseconds are thousands of times that delay."""


class Pin:
    """Readers that began together. Released once for each."""

    __slots__ = ("_table", "began", "readers")

    def __init__(self, table: "ReaderTable", began: int) -> None:
        self._table = table
        self.began = began
        self.readers = 1

    def release(self) -> None:
        self.readers -= 1
        if not self.readers:
            self._table.retire(self)


class ReaderTable:
    """The slot of this process and those of the others. Pins are made and released on one thread."""

    def __init__(self, path: Path, membership: Membership) -> None:
        self._is_alive = membership.is_alive
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_size < _SLOTS * _SLOT_BYTES:
                # Real bytes and not a hole: on a full disk, a write to a hole through the map is a bus error.
                os.pwrite(fd, bytes(_SLOTS * _SLOT_BYTES), 0)
            self._memory = mmap.mmap(fd, _SLOTS * _SLOT_BYTES)
            self._slot = self._claim(membership.id)
        finally:
            # The map keeps a duplicate of the descriptor, so closing this one does not release the lock.
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)
        self._view = memoryview(self._memory)
        self._words = self._view.cast("Q")
        self._word = self._slot * _WORDS
        self._pins: dict[int, Pin] = {}
        """By the time at which they began, the oldest first."""
        self._newest: Pin | None = None

    def pin(self) -> Pin:
        now = time.monotonic_ns()
        newest = self._newest
        if newest is not None:
            if now - newest.began < _TOGETHER_NS:
                newest.readers += 1
                return newest
        elif not self._pins:
            self._words[self._word] = now
        pin = self._pins[now] = self._newest = Pin(self, now)
        return pin

    def retire(self, pin: Pin) -> None:
        """All readers of this pin have finished: publish the oldest that is left."""
        del self._pins[pin.began]
        if pin is self._newest:
            self._newest = None
        self._words[self._word] = next(iter(self._pins)) if self._pins else _NO_READER

    def mark(self) -> Mark:
        return Mark(time.monotonic_ns())

    def passed(self, mark: Mark) -> bool:
        """Whether every reader that may have pinned before the mark has released."""
        if time.monotonic_ns() < mark + _GRACE_NS:
            return False
        return not any(
            _NO_READER < self._words[slot * _WORDS] <= mark and self._is_alive(self._owner_of(slot))
            for slot in range(_SLOTS)
        )

    def close(self) -> None:
        """Free the slot. The owner is overwritten last, so that no time is read as that of another owner."""
        self._words[self._word] = _NO_READER
        self._write_owner(self._slot, _UNUSED)
        self._words.release()
        self._view.release()
        self._memory.close()

    def _claim(self, owner: bytes) -> int:
        for slot in range(_SLOTS):
            present = self._owner_of(slot)
            if present == _UNUSED or not self._is_alive(present):
                struct.pack_into("Q", self._memory, slot * _SLOT_BYTES, _NO_READER)
                self._write_owner(slot, owner)
                return slot
        raise EngineBusy("Too many processes have this store open.")

    def _owner_of(self, slot: int) -> bytes:
        at = slot * _SLOT_BYTES + _OWNER_AT
        return self._memory[at : at + OWNER_BYTES]

    def _write_owner(self, slot: int, owner: bytes) -> None:
        at = slot * _SLOT_BYTES + _OWNER_AT
        self._memory[at : at + OWNER_BYTES] = owner
