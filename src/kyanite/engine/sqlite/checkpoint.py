"""Checkpoints: bringing what the log holds into the database file, so that the log can begin again.

One process of a store does this, in a thread: whoever holds the lock of the office; when it dies another takes over.
The log begins again only when all of it has been copied at a moment when nobody writes, so a busy writer would keep
a modest checkpoint from ever finishing. Hence three steps:

1. copy what is there, beside the writers;
2. sync the database file ourselves, also beside them, so that no slow sync is left for the third step;
3. take the turn to write and copy the little that has come since. The next writer begins the log again.

That a checkpoint finds the store busy is normal, and it tries again soon. A full disk is for the writers to report.
Any other failure means that what was written may not have reached the disk: the store takes no more writes then.
"""

import fcntl
import logging
import os
from pathlib import Path
from threading import Event, Thread

import apsw

from kyanite.engine.sqlite.database import PAGE_BYTES
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.sqlite.write_lock import WriteLock

LOG_BYTES = 16 * 1024 * 1024
"""How much of the log may wait to be copied."""

_OFFICE_FILE = "checkpoint.lock"
_PAUSE_SECONDS = 0.1
_PAUSE_OUT_OF_OFFICE_SECONDS = 1.0
_PAUSE_AFTER_TROUBLE_SECONDS = 1.0

_log = logging.getLogger("kyanite.checkpoint")


class Checkpointer:
    """Works in a thread of its own with a connection of its own, and a descriptor of the database file."""

    def __init__(
        self,
        connection: apsw.Connection,
        database: int,
        folder: Path,
        shared_state: SharedState,
        log_bytes: int,
    ) -> None:
        self._connection = connection
        self._shared_state = shared_state
        self._frames_max = max(1, log_bytes // PAGE_BYTES)
        self._write_lock = WriteLock(folder, shared_state)
        self._database = database
        self._office = os.open(folder / _OFFICE_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._stopping = Event()
        self._thread = Thread(target=self._work, name="kyanite-checkpoint", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Blocks until a checkpoint that is under way has ended."""
        self._stopping.set()
        self._thread.join()
        self._write_lock.close()
        os.close(self._office)

    def _work(self) -> None:
        while not self._takes_office():
            if self._stopping.wait(_PAUSE_OUT_OF_OFFICE_SECONDS):
                return
        while not self._stopping.wait(_PAUSE_SECONDS):
            try:
                if not self._shared_state.failed and self._frames() >= self._frames_max:
                    self._checkpoint()
            except apsw.BusyError:
                continue
            except (apsw.Error, OSError) as error:
                self._report(error)
                if self._stopping.wait(_PAUSE_AFTER_TROUBLE_SECONDS):
                    return

    def _takes_office(self) -> bool:
        try:
            fcntl.flock(self._office, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _frames(self) -> int:
        in_log, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        return in_log - copied

    def _checkpoint(self) -> None:
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        os.fdatasync(self._database)
        self._write_lock.enter()
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        finally:
            self._write_lock.leave()

    def _report(self, error: apsw.Error | OSError) -> None:
        _log.error("a checkpoint failed: %s", error)
        if not isinstance(error, apsw.FullError):
            self._shared_state.fail()
