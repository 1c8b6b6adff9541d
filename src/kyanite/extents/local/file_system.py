"""The calls of the file system that extents need, in one class, so that a test can record them or make them fail.

All of them block; they are called in threads. Every call that decides what survives a power cut is here: ``create``,
``write``, ``sync``, ``sync_folder``, ``truncate``, ``punch`` and ``unlink``.
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

_OPEN_MODE = 0o600
_SEALED_MODE = 0o640
"""The mode of a segment's file says to other processes whether its owner has sealed it."""

_ADVISE = getattr(os, "posix_fadvise", None)
_WRITE_OUT = 2
_KEEP_SIZE = 1
_PUNCH_HOLE = 2
_IOV_MAX = 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileSystem:
    def create(self, path: Path) -> int:
        """A new file, open for writing and not sealed."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OPEN_MODE)

    def make_folder(self, path: Path) -> None:
        """Make the folder so that it is still there after a power cut."""
        if not path.is_dir():
            self.make_folder(path.parent)
            path.mkdir(mode=0o700, exist_ok=True)
            self.sync_folder(path.parent)

    def allocate(self, fd: int, start: int, length: int) -> None:
        """Allocate space, where the file system can: syncs become cheaper, and a full disk is noticed early."""
        error = _fallocate(fd, 0, start, length)
        if error in _FULL:
            raise OSError(error, os.strerror(error))

    def write(self, fd: int, buffers: Sequence[Buffer], offset: int) -> None:
        for first in range(0, len(buffers), _IOV_MAX):
            left = list(buffers[first : first + _IOV_MAX])
            while left:
                written = os.pwritev(fd, left, offset)
                offset += written
                left = _without(left, written)

    def begin_writing_out(self, fd: int, start: int, length: int) -> None:
        """Have the disk write these bytes now, so that a later sync takes less time. Promises nothing by itself."""
        _sync_file_range(fd, start, length, _WRITE_OUT)

    def drop_cached(self, path: Path, start: int, length: int) -> None:
        """Keep these bytes in memory no longer, as far as they are on the disk and the system takes advice."""
        if _ADVISE is None:
            return
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _ADVISE(fd, start, length, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)

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

    def seal(self, path: Path) -> None:
        path.chmod(_SEALED_MODE)

    def is_sealed(self, path: Path) -> bool:
        return path.stat().st_mode & 0o777 == _SEALED_MODE

    def punch(self, path: Path, stretches: Iterable[tuple[int, int]]) -> None:
        """Free the space of stretches (start, length).

        Nothing happens if the file system cannot do that, or the file is gone.
        """
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                for start, length in stretches:
                    _fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, start, length)
            finally:
                os.close(fd)

    def unlink(self, path: Path) -> None:
        """Remove the file if it is there. It is truncated first: an idle descriptor must not keep its space."""
        with contextlib.suppress(FileNotFoundError):
            self.truncate(path, 0)
            path.unlink()


def failure(error: OSError | EngineError) -> EngineError:
    """The engine's error for a failed call."""
    if isinstance(error, EngineError):
        return error
    if error.errno in _FULL:
        return EngineFull(str(error))
    return EngineError(str(error))


def _without(buffers: list[Buffer], written: int) -> list[Buffer]:
    """The buffers without their first bytes."""
    for index, buffer in enumerate(buffers):
        if written < len(buffer):
            return [memoryview(buffer)[written:], *buffers[index + 1 :]]
        written -= len(buffer)
    return []


def _find_fallocate() -> Callable[[int, int, int, int], int]:
    """Linux's fallocate, which Python does not have; it returns errno. Other systems do not support it."""
    if not sys.platform.startswith("linux"):
        return lambda _fd, _mode, _start, _length: errno.EOPNOTSUPP
    native = ctypes.CDLL(None, use_errno=True).fallocate
    native.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

    def fallocate(fd: int, mode: int, start: int, length: int) -> int:
        return ctypes.get_errno() if native(fd, mode, start, length) else 0

    return fallocate


def _find_sync_file_range() -> Callable[[int, int, int, int], int]:
    """Linux's sync_file_range, which Python does not have. Elsewhere nothing is written out early."""
    if not sys.platform.startswith("linux"):
        return lambda _fd, _start, _length, _flags: 0
    native = ctypes.CDLL(None).sync_file_range
    native.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)

    def sync_file_range(fd: int, start: int, length: int, flags: int) -> int:
        return int(native(fd, start, length, flags))

    return sync_file_range


_fallocate = _find_fallocate()
_sync_file_range = _find_sync_file_range()
