"""One incarnation of one process, as the others see it: alive for as long as its lock file is locked.

The lock belongs to the open file, so it is gone the moment the process is, however it ended. A lock file is
made under another name and gets its own only when it is locked: whoever finds it unlocked knows that its
owner is dead.
"""

import fcntl
import os
import time
from pathlib import Path

from kyanite.membership.api import OWNER_BYTES

_NEW = ".new"


class Owner:
    __slots__ = ("_fd", "_path", "id")

    def __init__(self, folder: Path) -> None:
        """Take a new identity. It begins with the time, so that what one incarnation wrote lies together in
        the engine."""
        self.id = (time.time_ns() // 1_000_000).to_bytes(6, "big") + os.urandom(OWNER_BYTES - 6)
        self._path = folder / self.id.hex()
        nascent = self._path.with_suffix(_NEW)
        self._fd = os.open(nascent, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        nascent.rename(self._path)

    def close(self) -> None:
        """Be dead from now on."""
        os.close(self._fd)


def is_alive(folder: Path, owner: bytes) -> bool:
    try:
        fd = os.open(folder / owner.hex(), os.O_RDWR | os.O_CLOEXEC)
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


def dead_owners(folder: Path) -> list[bytes]:
    """Owners that have died without being forgotten, the oldest first."""
    owners = (bytes.fromhex(name) for name in sorted(os.listdir(folder)) if not name.endswith(_NEW))
    return [owner for owner in owners if not is_alive(folder, owner)]


def forget(folder: Path, owner: bytes) -> None:
    (folder / owner.hex()).unlink(missing_ok=True)
