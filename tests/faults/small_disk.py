"""A small file system of its own for a store: in a mount namespace, so that nothing stays mounted whatever happens.

A user that is not root makes a user namespace as well, in which it is.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_AS_ROOT = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
_MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$0" && echo mounted && exec sleep 3600'


class SmallDisk:
    def __init__(self, folder: Path, mounting: int) -> None:
        self.folder = folder
        user = ["--user", "--preserve-credentials"] if _AS_ROOT else []
        self.enter = ("nsenter", "--target", str(mounting), "--mount", *user)
        """Put before a command, this runs it where the disk can be seen."""
        self._outside = Path(f"/proc/{mounting}/root") / folder.relative_to("/")

    @property
    def free_bytes(self) -> int:
        stat = os.statvfs(self._outside)
        return stat.f_bavail * stat.f_frsize

    def fill(self) -> None:
        """Take all the space that is left."""
        with (self._outside / "ballast").open("ab", buffering=0) as ballast:
            while self.free_bytes:
                ballast.write(bytes(min(self.free_bytes, 1024 * 1024)))

    def empty(self) -> None:
        """Give back what was taken."""
        (self._outside / "ballast").unlink()


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[SmallDisk | None]:
    """None when the system does not let us mount anything."""
    folder.mkdir()
    mounting = subprocess.Popen(
        ["unshare", *_AS_ROOT, "--mount", "sh", "-c", _MOUNT, str(folder), str(size_bytes)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert mounting.stdout is not None
    try:
        mounted = mounting.stdout.readline() == "mounted\n"
        yield SmallDisk(folder, mounting.pid) if mounted else None
    finally:
        mounting.kill()
        mounting.wait()
        mounting.stdout.close()
