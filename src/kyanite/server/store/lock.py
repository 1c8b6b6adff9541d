"""One server per store: the locks on its folder.

Two locks, because workers outlive a killed supervisor for a moment. ``server.lock`` belongs to the supervisor: if it is
locked, another server is running, and starting fails. ``workers.lock`` is inherited by the workers: if only that is
locked, the last of them are about to end, and starting waits for them. Both are ``flock`` locks, which the kernel frees
when the processes end, however they end.
"""

import fcntl
import os
import time
from pathlib import Path

from kyanite.server.failures import Failure

WAIT_SECONDS = 5.0
_RETRY_SECONDS = 0.01


class StoreLock:
    """Locked from ``take_store_lock`` until ``release``, or until every process that inherited it has ended."""

    def __init__(self, server: int, workers: int) -> None:
        self._server = server
        self._workers = workers

    def keep_as_worker(self) -> None:
        """In a worker: close the supervisor's lock and keep the other one."""
        os.close(self._server)

    def release(self) -> None:
        os.close(self._workers)
        os.close(self._server)


def take_store_lock(location: Path) -> StoreLock:
    server = _open(location / "server.lock")
    if not _try_lock(server):
        os.close(server)
        raise Failure(f"The store {location} is in use by another Kyanite server.")
    workers = _open(location / "workers.lock")
    deadline = time.monotonic() + WAIT_SECONDS
    while not _try_lock(workers):
        if time.monotonic() > deadline:
            os.close(workers)
            os.close(server)
            raise Failure(
                f"The store {location} is still in use by workers of a Kyanite server that has ended."
            )
        time.sleep(_RETRY_SECONDS)
    return StoreLock(server, workers)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failure(f"Cannot open {path}: {error.strerror}.") from None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
