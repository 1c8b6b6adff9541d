"""Reading bytes of a file: from the page cache without waiting, or to the end of what is wanted, in a thread."""

import errno
import mmap
import os

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


def page_aligned(length: int) -> memoryview:
    """A buffer for reading files. A long bytearray begins 16 bytes behind the beginning of a page, and some processors
    copy pages to such an address at a fifth of their speed."""
    return memoryview(mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


scratch = page_aligned(1024 * 1024)
"""Cached bytes pass through this buffer: a new one for each read would have to be cleared first, which takes longer
than the read. Used on the event loop only."""


def read_cached(fd: int, offset: int, length: int) -> bytes | None:
    """The bytes if they are all in the page cache, else None."""
    if not _NOWAIT:
        return None
    buffer = scratch[:length] if length <= len(scratch) else memoryview(bytearray(length))
    return bytes(buffer) if read_cached_into(fd, offset, buffer) == length else None


def read_cached_into(fd: int, offset: int, buffer: memoryview) -> int:
    """Fill the beginning of the buffer with what is in the page cache; how many bytes that are."""
    if not _NOWAIT:
        return 0
    try:
        return os.preadv(fd, [buffer], offset, _NOWAIT)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EOPNOTSUPP):
            raise
    return 0


def read_fully_into(fd: int, offset: int, buffer: memoryview) -> int:
    """Fill the buffer, as far as the file has bytes; how many these are."""
    count = 0
    while count < len(buffer) and (more := os.preadv(fd, [buffer[count:]], offset + count)):
        count += more
    return count


def read_fully(fd: int, offset: int, length: int) -> bytes:
    data = os.pread(fd, length, offset)
    while len(data) < length and (more := os.pread(fd, length - len(data), offset + len(data))):
        data += more
    return data
