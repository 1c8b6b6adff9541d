"""A fair lock between the processes that write one store.

A process that wants the lock first acquires a second one, the queue, and releases that once it has the lock. So at most
one process waits for the lock itself and the others wait in the queue; a process that has just released the lock finds
the queue taken and cannot overtake. With a single lock it could: the kernel wakes waiters late, and a busy process got
several times its share.

The kernel frees both locks when a process dies. Each instance has descriptors of its own, because such locks belong to
the open file: two threads of one process exclude each other only with two instances.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from kyanite.engine.sqlite.shared_state import SharedState

_QUEUE_FILE: Final = "turnstile.lock"
_LOCK_FILE: Final = "turn.lock"
"""Processes of another version must use the same files."""


class WriteLock:
    def __init__(self, folder: Path, shared_state: SharedState) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._queue = os.open(folder / _QUEUE_FILE, flags, 0o600)
        self._lock = os.open(folder / _LOCK_FILE, flags, 0o600)
        self._shared_state = shared_state
        self._pid = os.getpid()

    def acquire(self) -> None:
        """Wait for the lock. Blocks; to be called in a thread."""
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)
        self._shared_state.set_writer(self._pid, time.monotonic_ns())

    def try_acquire(self) -> bool:
        """Acquire the lock if no process has it or waits for it."""
        try:
            fcntl.flock(self._queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)
        self._shared_state.set_writer(self._pid, time.monotonic_ns())
        return True

    def release(self) -> None:
        self._shared_state.clear_writer()
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._queue)
        os.close(self._lock)
