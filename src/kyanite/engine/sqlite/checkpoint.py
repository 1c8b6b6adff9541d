"""Checkpoints: copying the write-ahead log into the database file, so that SQLite can start the log again.

One process of a store does this, the *checkpoint leader*, in a thread. It has a file lock; when it dies, another gets
the lock. SQLite starts the log again only when all of it was copied at a moment without a writer, so with
a busy writer a passive checkpoint would never finish. Hence three steps:

1. copy what the log has, while others write;
2. sync the database file, also while others write, so that the third step needs no slow sync;
3. acquire the write lock and copy the little that was added since. The next writer starts the log again.

A read that takes long keeps what it began with from being copied. If there is always one, the log grows. So when it has
become several times as long as it should be, no process begins a long read until all of it was copied.

A commit that makes the log file longer waits twice as long for the disk, because the sync then writes the file system's
own records as well. So once a log is in use, the leader makes its file as long as it will be, with zeros, which SQLite
takes for the end of the log.

A checkpoint that finds the store busy is retried soon. A full disk is left to the writers to report. Any other failure
means that a write may not be on disk: the store refuses writes from then on.
"""

import fcntl
import logging
import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import apsw

from kyanite.engine.sqlite.database import LOG_FILE, PAGE_BYTES
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.sqlite.write_lock import WriteLock

LOG_BYTES = 16 * 1024 * 1024
"""How long the log may become before it is copied."""

_LONG_LOGS = 4
_USED_FRAMES = 16
"""A log with fewer frames than this is not made longer: the store is hardly written to."""
_FRAME_BYTES = PAGE_BYTES + 24
_PIECE_BYTES = 1024 * 1024
"""How much is added to the log file at a time, with the write lock held."""

_LEADER_FILE = "checkpoint.lock"
_PAUSE_SECONDS = 0.1
_PAUSE_BEFORE_LEADING_SECONDS = 1.0
_PAUSE_AFTER_FAILURE_SECONDS = 1.0

_log = logging.getLogger("kyanite.checkpoint")


class Checkpointer:
    """Runs in a thread of its own, with a connection of its own and a descriptor of the database file."""

    def __init__(
        self,
        connection: apsw.Connection,
        database_fd: int,
        folder: Path,
        shared_state: SharedState,
        log_bytes: int,
    ) -> None:
        self._connection = connection
        self._shared_state = shared_state
        self._frames_max = max(1, log_bytes // PAGE_BYTES)
        self._log_file = folder / LOG_FILE
        self._is_log_file_long = False
        self._write_lock = WriteLock(folder, shared_state)
        self._database_fd = database_fd
        self._leader_lock = os.open(folder / _LEADER_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._stopping = Event()
        self._thread = Thread(target=self._work, name="kyanite-checkpoint", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Blocks until a running checkpoint has ended."""
        self._stopping.set()
        self._thread.join()
        self._write_lock.close()
        os.close(self._leader_lock)

    def _work(self) -> None:
        while not self._becomes_leader():
            if self._stopping.wait(_PAUSE_BEFORE_LEADING_SECONDS):
                return
        while not self._stopping.wait(_PAUSE_SECONDS):
            try:
                if not self._shared_state.failed:
                    self._check_log()
            except apsw.BusyError:
                continue
            except (apsw.Error, OSError) as error:
                self._report(error)
                if self._stopping.wait(_PAUSE_AFTER_FAILURE_SECONDS):
                    return

    def _becomes_leader(self) -> bool:
        try:
            fcntl.flock(self._leader_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _check_log(self) -> None:
        in_log, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        self._shared_state.is_log_long = copied < in_log and in_log > _LONG_LOGS * self._frames_max
        if in_log - copied >= self._frames_max or self._shared_state.is_log_long:
            self._checkpoint()
        elif in_log >= _USED_FRAMES and not self._is_log_file_long:
            self._is_log_file_long = True
            with suppress(OSError):  # A full disk is left to the writers to report.
                self._lengthen_log_file()

    def _lengthen_log_file(self) -> None:
        """A checkpoint begins a little late, so the file is a quarter longer than the log should become."""
        enough = self._frames_max * _FRAME_BYTES * 5 // 4
        file = os.open(self._log_file, os.O_RDWR | os.O_CLOEXEC)
        try:
            while not self._stopping.is_set() and self._add_piece(file, enough):
                os.fdatasync(file)  # Else the next commit would have to wait for these bytes.
        finally:
            os.close(file)

    def _add_piece(self, file: int, enough: int) -> bool:
        """Under the write lock, because writers add to the end of the file."""
        self._write_lock.acquire()
        try:
            length = os.fstat(file).st_size
            return length < enough and os.pwrite(file, bytes(min(_PIECE_BYTES, enough - length)), length) > 0
        finally:
            self._write_lock.release()

    def _checkpoint(self) -> None:
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        os.fdatasync(self._database_fd)
        self._write_lock.acquire()
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        finally:
            self._write_lock.release()

    def _report(self, error: apsw.Error | OSError) -> None:
        _log.error("a checkpoint failed: %s", error)
        if not isinstance(error, apsw.FullError):
            self._shared_state.fail()
