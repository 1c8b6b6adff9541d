"""Fair turns between the processes that write one store.

The turn itself is a lock on one file. Whoever wants it first takes a second lock, the turnstile, and lets go of that
once inside. So at most one process waits at the door and the others queue up behind it; the one that has just come
out finds the turnstile taken and cannot slip in again. With a single lock it could, and did: the kernel wakes waiters
late, and a busy process took several times its share.

The kernel frees both locks when a process dies. Each instance has descriptors of its own, because such locks belong to
the open file: two threads of one process exclude each other only with two instances.
"""

import fcntl
import os
import time
from pathlib import Path

from kyanite.engine.sqlite.shared_state import SharedState

_TURNSTILE_FILE = "turnstile.lock"
_TURN_FILE = "turn.lock"


class WriteLock:
    def __init__(self, folder: Path, shared_state: SharedState) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._write_lock = os.open(folder / _TURNSTILE_FILE, flags, 0o600)
        self._turn = os.open(folder / _TURN_FILE, flags, 0o600)
        self._shared_state = shared_state
        self._pid = os.getpid()

    def enter(self) -> None:
        """Wait for the turn. Blocks; to be called in a thread."""
        fcntl.flock(self._write_lock, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._write_lock, fcntl.LOCK_UN)
        self._shared_state.take_turn(self._pid, time.monotonic_ns())

    def try_enter(self) -> bool:
        """Take the turn if nobody has it and nobody waits for it."""
        try:
            fcntl.flock(self._write_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._write_lock, fcntl.LOCK_UN)
        self._shared_state.take_turn(self._pid, time.monotonic_ns())
        return True

    def leave(self) -> None:
        self._shared_state.leave_turn()
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._write_lock)
        os.close(self._turn)
