"""The few things extents ask of a file system, in one place, so that a test can record them or make them
fail.

All of them block; they are called in threads. Everything that decides what survives a power cut goes through
here: ``create``, ``write``, ``sync``, ``sync_folder``, ``truncate``, ``punch`` and ``unlink``.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kyanite.engine.api import EngineError, EngineFull

Buffer = bytes | bytearray | memoryview

_IN_HAND = 0o600
_LET_GO = 0o640
"""The mode of a file is the mark by which another process sees that its owner has let go of it."""

_KEEP_SIZE = 1
_PUNCH_HOLE = 2
_IOV_MAX = 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Disk:
    def create(self, path: Path) -> int:
        """A new file, open for writing, in the hands of its owner."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _IN_HAND)

    def make_folder(self, path: Path) -> None:
        """Make the folder, and make sure that it is still there after a power cut."""
        if not path.is_dir():
            self.make_folder(path.parent)
            path.mkdir(exist_ok=True)
            self.sync_folder(path.parent)

    def allocate(self, fd: int, start: int, length: int) -> None:
        """Take the space now, if that costs nothing: syncs get cheaper, and a full disk is noticed before the
        bytes come."""
        error = _fallocate(fd, 0, start, length)
        if error in _FULL:
            raise OSError(error, os.strerror(error))

    def write(self, fd: int, pieces: Sequence[Buffer], offset: int) -> None:
        for first in range(0, len(pieces), _IOV_MAX):
            left = list(pieces[first : first + _IOV_MAX])
            while left:
                written = os.pwritev(fd, left, offset)
                offset += written
                left = _without(left, written)

    def sync(self, fd: int) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def sync_folder(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def truncate(self, path: Path, length: int) -> None:
        os.truncate(path, length)

    def sealed(self, path: Path) -> None:
        path.chmod(_LET_GO)

    def is_sealed(self, path: Path) -> bool:
        return path.stat().st_mode & 0o777 == _LET_GO

    def punch(self, path: Path, stretches: Iterable[tuple[int, int]]) -> None:
        """Give the space of stretches (start, length) back.

        Where the file system cannot do that, or the file is gone, nothing happens.
        """
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                for start, length in stretches:
                    _fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, start, length)
            finally:
                os.close(fd)

    def unlink(self, path: Path) -> None:
        """Remove the file if it is there. It is emptied first: an idle descriptor elsewhere must not keep its
        space."""
        with contextlib.suppress(FileNotFoundError):
            self.truncate(path, 0)
            path.unlink()


def failure(error: OSError | EngineError) -> EngineError:
    """What a failed call means to those who speak to an engine."""
    if isinstance(error, EngineError):
        return error
    if error.errno in _FULL:
        return EngineFull(str(error))
    return EngineError(str(error))


def _without(pieces: list[Buffer], written: int) -> list[Buffer]:
    """What is left of the pieces after so many bytes."""
    for index, piece in enumerate(pieces):
        if written < len(piece):
            return [memoryview(piece)[written:], *pieces[index + 1 :]]
        written -= len(piece)
    return []


def _find_fallocate() -> Callable[[int, int, int, int], int]:
    """Linux's fallocate, which Python does not have; its errno is the answer. Elsewhere it is never
    supported."""
    if not sys.platform.startswith("linux"):
        return lambda _fd, _mode, _start, _length: errno.EOPNOTSUPP
    native = ctypes.CDLL(None, use_errno=True).fallocate
    native.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

    def fallocate(fd: int, mode: int, start: int, length: int) -> int:
        return ctypes.get_errno() if native(fd, mode, start, length) else 0

    return fallocate


_fallocate = _find_fallocate()
