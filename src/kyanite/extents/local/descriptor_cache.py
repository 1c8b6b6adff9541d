"""Descriptors of segments that are read: a bounded number, and none is closed while it is used."""

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from kyanite.engine.api import EngineBusy

IDLE_MAX = 128
IN_USE_MAX = 1024


class CachedDescriptor:
    """One descriptor and the number of its users."""

    __slots__ = ("fd", "segment", "users")

    def __init__(self, segment: bytes, fd: int) -> None:
        self.segment = segment
        self.fd = fd
        self.users = 0


class DescriptorCache:
    def __init__(self, path_of: Callable[[bytes], Path]) -> None:
        self._path_of = path_of
        self._in_use: dict[bytes, CachedDescriptor] = {}
        self._idle: OrderedDict[bytes, CachedDescriptor] = OrderedDict()

    def acquire(self, segment: bytes) -> CachedDescriptor:
        """The descriptor, open until it is released. Raises OSError when the file cannot be opened."""
        file = self._in_use.get(segment)
        if file is None:
            file = self._idle.pop(segment, None) or self._open(segment)
            self._in_use[segment] = file
        file.users += 1
        return file

    def release(self, file: CachedDescriptor) -> None:
        file.users -= 1
        if file.users == 0:
            del self._in_use[file.segment]
            self._idle[file.segment] = file
            if len(self._idle) > IDLE_MAX:
                os.close(self._idle.popitem(last=False)[1].fd)

    def forget(self, segment: bytes) -> None:
        """The file was removed: close its descriptor if it is idle."""
        file = self._idle.pop(segment, None)
        if file is not None:
            os.close(file.fd)

    def close(self) -> None:
        for file in [*self._in_use.values(), *self._idle.values()]:
            os.close(file.fd)
        self._in_use.clear()
        self._idle.clear()

    def _open(self, segment: bytes) -> CachedDescriptor:
        if len(self._in_use) >= IN_USE_MAX:
            raise EngineBusy("Too many files are being read.")
        return CachedDescriptor(segment, os.open(self._path_of(segment), os.O_RDONLY | os.O_CLOEXEC))
