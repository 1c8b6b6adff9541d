"""A file system layer for SQLite that a test can listen to and spoil: ``hook`` sees every write and every sync first.

A hook may raise one of apsw's errors in place of the call, or block until the test lets it go on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, cast

import apsw

WRITE = "write"
SYNC = "sync"
Hook = Callable[[str, str], None]
"""Called with WRITE or SYNC and the name of the file."""

_numbers = count()


class SpoiledFiles(apsw.VFS):
    def __init__(self) -> None:
        self.name = f"spoiled-{next(_numbers)}"
        self.hook: Hook = lambda _what, _file: None
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "SpoiledFile":
        return SpoiledFile(self, name, flags)


class SpoiledFile(apsw.VFSFile):
    def __init__(self, files: SpoiledFiles, name: Any, flags: list[int]) -> None:
        self._files = files
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._files.hook(WRITE, self._name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._files.hook(SYNC, self._name)
        super().xSync(flags)


@contextmanager
def spoiled_files() -> Iterator[SpoiledFiles]:
    files = SpoiledFiles()
    try:
        yield files
    finally:
        files.unregister()


def io_error(extended_code: int) -> apsw.IOError:
    error: Any = apsw.IOError("planned by the test")
    error.result = apsw.SQLITE_IOERR
    error.extendedresult = extended_code
    return cast(apsw.IOError, error)
