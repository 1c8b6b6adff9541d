"""Membership of the processes of one machine: a folder with a lock file per process, locked while it lives.

The lock belongs to the open file, so the kernel drops it when the process ends, however it ends. A lock file is
created under a temporary name and renamed once it is locked: a file without that suffix which is not locked belongs to
a dead process.

Opened after the fork, once per process.
"""

import fcntl
import os
import time
from pathlib import Path

from kyanite.membership.api import OWNER_BYTES

_TIME_BYTES = 6
_UNLOCKED_SUFFIX = ".new"


class LocalMembership:
    __slots__ = ("_fd", "_folder", "id")

    def __init__(self, folder: Path) -> None:
        """Join under a new id. It begins with the time, so that in the engine the rows of one process lie together."""
        milliseconds = time.time_ns() // 1_000_000
        self.id = milliseconds.to_bytes(_TIME_BYTES, "big") + os.urandom(OWNER_BYTES - _TIME_BYTES)
        self._folder = folder
        _make_folder(folder)
        path = self._path_of(self.id)
        unlocked = path.with_suffix(_UNLOCKED_SUFFIX)
        self._fd = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        unlocked.rename(path)
        _sync_folder(folder)

    def is_alive(self, owner: bytes) -> bool:
        try:
            fd = os.open(self._path_of(owner), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(fd)

    def dead_owners(self) -> list[bytes]:
        names = sorted(name for name in os.listdir(self._folder) if not name.endswith(_UNLOCKED_SUFFIX))
        return [owner for owner in map(bytes.fromhex, names) if not self.is_alive(owner)]

    def forget(self, owner: bytes) -> None:
        self._path_of(owner).unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self._fd)

    def _path_of(self, owner: bytes) -> Path:
        return self._folder / owner.hex()


def _make_folder(folder: Path) -> None:
    """Make the folder so that it is still there after a power cut."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
