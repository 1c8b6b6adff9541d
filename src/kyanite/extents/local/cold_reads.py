"""Reading bytes that no client has requested, without an effect on what the system keeps in memory for clients.

What was not in the page cache before is dropped from it afterwards. The file is opened anew for every read: reading
ahead can be switched off for a descriptor only, and readers that serve clients share theirs.
"""

import errno
import os
from pathlib import Path

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_ADVISE = getattr(os, "posix_fadvise", None)


def read_cold(path: Path, offset: int, length: int) -> bytes:
    """The bytes, fewer if the file ends before. Raises OSError. To be called in a thread."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _ADVISE is not None:
            _ADVISE(fd, 0, 0, os.POSIX_FADV_RANDOM)
        buffer = bytearray(length)
        view = memoryview(buffer)
        cached = count = _read_cached_into(fd, offset, view)
        while count < length and (more := os.preadv(fd, [view[count:]], offset + count)):
            count += more
        if _ADVISE is not None and count > cached:
            _ADVISE(fd, offset + cached, count - cached, os.POSIX_FADV_DONTNEED)
        return bytes(view[:count])
    finally:
        os.close(fd)


def _read_cached_into(fd: int, offset: int, buffer: memoryview) -> int:
    """Fill the beginning of the buffer with what is in the page cache; how many bytes that are."""
    if not _NOWAIT:
        return 0
    try:
        return os.preadv(fd, [buffer], offset, _NOWAIT)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EOPNOTSUPP):
            raise
    return 0
