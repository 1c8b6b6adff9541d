"""Segments that are open for reading: a bounded number of descriptors, those in use never closed."""

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from kyanite.engine.api import EngineBusy

IDLE_MAX = 128
IN_USE_MAX = 1024


class OpenFile:
    """One descriptor and how many use it."""

    __slots__ = ("fd", "segment", "users")

    def __init__(self, segment: bytes, fd: int) -> None:
        self.segment = segment
        self.fd = fd
        self.users = 0


class OpenFiles:
    def __init__(self, path_of: Callable[[bytes], Path]) -> None:
        self._path_of = path_of
        self._in_use: dict[bytes, OpenFile] = {}
        self._idle: OrderedDict[bytes, OpenFile] = OrderedDict()

    def acquire(self, segment: bytes) -> OpenFile:
        """The open file, held until it is given back. Raises OSError when it cannot be opened."""
        file = self._in_use.get(segment)
        if file is None:
            file = self._idle.pop(segment, None) or self._open(segment)
            self._in_use[segment] = file
        file.users += 1
        return file

    def give_back(self, file: OpenFile) -> None:
        file.users -= 1
        if file.users == 0:
            del self._in_use[file.segment]
            self._idle[file.segment] = file
            if len(self._idle) > IDLE_MAX:
                os.close(self._idle.popitem(last=False)[1].fd)

    def forget(self, segment: bytes) -> None:
        """The file is gone: keep no idle descriptor of it."""
        file = self._idle.pop(segment, None)
        if file is not None:
            os.close(file.fd)

    def close(self) -> None:
        for file in [*self._in_use.values(), *self._idle.values()]:
            os.close(file.fd)
        self._in_use.clear()
        self._idle.clear()

    def _open(self, segment: bytes) -> OpenFile:
        if len(self._in_use) >= IN_USE_MAX:
            raise EngineBusy("Too many files are being read.")
        return OpenFile(segment, os.open(self._path_of(segment), os.O_RDONLY | os.O_CLOEXEC))
