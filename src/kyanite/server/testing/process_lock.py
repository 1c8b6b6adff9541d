"""A lock between processes that were forked from the one that made it.

A process that dies releases it. It is held for microseconds, so waiting for it may block an event loop.
"""

import fcntl
import os
import tempfile
import weakref


class ProcessLock:
    def __init__(self) -> None:
        self._descriptor, path = tempfile.mkstemp(prefix="kyanite-testing-")
        os.unlink(path)
        weakref.finalize(self, os.close, self._descriptor)

    def __enter__(self) -> None:
        # A lock of POSIX belongs to the process, also on a descriptor that it has inherited.
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
