"""Reading bytes that no client has requested, without an effect on what the system keeps in memory for clients.

What was not in the page cache before is dropped from it afterwards. The file is opened anew for every read: reading
ahead can be switched off for a descriptor only, and readers that serve clients share theirs.
"""

import os
from pathlib import Path

from kyanite.extents.local.file_reads import read_cached_into, read_fully_into

_ADVISE = getattr(os, "posix_fadvise", None)
_TIMES_ADVISED = 3
"""Linux leaves pages that a processor has not yet put on its lists, without a word. Another call drops most of them."""


def read_cold(path: Path, offset: int, length: int) -> bytes:
    """The bytes, fewer if the file ends before. Raises OSError. To be called in a thread."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _ADVISE is not None:
            _ADVISE(fd, 0, 0, os.POSIX_FADV_RANDOM)
        buffer = bytearray(length)
        view = memoryview(buffer)
        cached = count = read_cached_into(fd, offset, view)
        count += read_fully_into(fd, offset + count, view[count:])
        if _ADVISE is not None and count > cached:
            for _ in range(_TIMES_ADVISED):
                _ADVISE(fd, offset + cached, count - cached, os.POSIX_FADV_DONTNEED)
        return bytes(view[:count])
    finally:
        os.close(fd)
