"""Memory that a process no longer needs.

By itself the C library gives the end of the heap back to the system as soon as half a megabyte of it is free, so every
list of 5,000 blobs needed 1,800 new pages, which took a third of its time. Memory of more than 128 KiB it gives back
even alone, so every WRITE of 8 MiB over SMB needed 2,000 new pages, and 4,000 if it was encrypted: more than half of
its time. So a worker keeps some for the next requests, and none while there are no requests. Only glibc can be told so.
"""

import ctypes
import mmap
import sys
from collections.abc import Callable

KEPT_BYTES = 40 * 1024 * 1024
"""A little more than two of the longest messages of SMB, each encrypted and in clear text."""
_MAPPED_BYTES = 32 * 1024 * 1024
"""What is at least so long has pages of its own, and gives them back at once. glibc accepts no larger number."""

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


class FreedMemory:
    """Keeps freed memory from now on."""

    def __init__(self) -> None:
        self._requests = -1
        self._is_given_back = False
        self._trim: Callable[[int], int] | None = None
        if sys.platform.startswith("linux"):
            library = ctypes.CDLL(None)
            self._trim = getattr(library, "malloc_trim", None)
        if self._trim is not None:
            library.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
            library.mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)

    def beat(self, requests: int) -> None:
        """To be called now and then, with the count of requests so far, those of SMB included: gives back what is free
        if none has come."""
        if requests != self._requests:
            self._requests = requests
            self._is_given_back = False
        elif not self._is_given_back and self._trim is not None:
            self._trim(0)
            self._is_given_back = True


def give_back_what_the_start_needed() -> None:
    """For a process that has little to do from now on: free memory, and the pages of programs and libraries in memory.

    These are as they are in their files, so the kernel reads those again that are used again.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    trim = getattr(library, "malloc_trim", None)
    if trim is not None:
        trim(0)
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[0] for line in maps if " r-xp " in line and " /" in line]
    for each in ranges:
        start, end = (int(address, 16) for address in each.split("-"))
        library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)
