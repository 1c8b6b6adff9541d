"""The bytes of a backup: every extent that a restore point needs, once, whatever number of points need it.

    index.sqlite3                which extents are there
    segments/<owner>/<count>     their bytes, at the same place of the same file as in the store

Names of segments are never used twice, and extents never change. So an extent that a former backup has copied need not
be read again, and one that is copied twice is overwritten with the same bytes. The index lists an extent after its
bytes were synced: what an interrupted backup has copied is there for the next one.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from kyanite.extents.api import SEGMENT_BYTES, Extent
from kyanite.extents.local.file_system import FileSystem
from kyanite.extents.local.segment import aligned
from kyanite.membership.api import OWNER_BYTES
from kyanite.server.backup.files import make_folder

SYNC_BYTES = 64 * 1024 * 1024
"""After so many bytes of a file they are synced and listed."""
_ROWS = 1000
_INDEX = (
    "CREATE TABLE IF NOT EXISTS extent (segment BLOB, start INTEGER, length INTEGER, crc64 BLOB,"
    " is_damaged INTEGER, is_unneeded INTEGER DEFAULT 0, PRIMARY KEY (segment, start)) WITHOUT ROWID"
)
_ADD = "INSERT OR REPLACE INTO extent VALUES (?, ?, ?, ?, ?, 0)"
_HAS = (
    "SELECT 1 FROM extent WHERE segment = ? AND start = ? AND length = ? AND crc64 = ?"
    " AND NOT is_damaged AND NOT is_unneeded"
)
_NEXT = "SELECT segment, start, length FROM extent WHERE (segment, start) > (?, ?) ORDER BY segment, start LIMIT ?"
_MARK = "UPDATE extent SET is_unneeded = 1 WHERE segment = ? AND start = ?"
_UNNEEDED = "SELECT segment, start, length FROM extent WHERE is_unneeded ORDER BY segment, start LIMIT ?"
_REMOVE = "DELETE FROM extent WHERE segment = ? AND start = ?"
_HAS_SEGMENT = "SELECT 1 FROM extent WHERE segment = ? AND NOT is_unneeded LIMIT 1"


class Pool:
    """Of one destination, which the caller has locked."""

    def __init__(self, folder: Path) -> None:
        self._segments = folder / "segments"
        make_folder(self._segments)
        self._index = apsw.Connection(str(folder / "index.sqlite3"))
        self._index.pragma("journal_mode", "truncate")
        self._index.pragma("synchronous", "full")
        self._index.execute(_INDEX)
        self._files = FileSystem()
        self._segment = b""
        self._fd = -1
        self._unsynced: list[tuple[Extent, bool]] = []
        self._unsynced_bytes = 0
        self._remove_unneeded()

    def path_of(self, segment: bytes) -> Path:
        return segment_path(self._segments, segment)

    def has(self, extent: Extent) -> bool:
        """Whether its bytes are there, as they should be."""
        row = (extent.segment, extent.start, extent.length, _crc(extent))
        return bool(self._index.execute(_HAS, row).fetchall())

    # Adding

    def write(self, extent: Extent, offset: int, data: bytes) -> None:
        """Bytes of an extent. Extents come in the order of their segments."""
        if extent.segment != self._segment:
            self.sync()
            self._open(extent.segment)
        self._files.write(self._fd, [data], extent.start + offset)
        self._unsynced_bytes += len(data)

    def add(self, extent: Extent, *, is_damaged: bool) -> None:
        """All bytes of the extent were written, or as many as could be read."""
        self._unsynced.append((extent, is_damaged))
        if self._unsynced_bytes >= SYNC_BYTES:
            self._sync_file()

    def sync(self) -> None:
        """What was added is durable and listed when this returns."""
        self._sync_file()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._segment = b""

    def _open(self, segment: bytes) -> None:
        path = self.path_of(segment)
        self._files.make_folder(path.parent)
        is_new = not path.exists()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._segment = segment
        if is_new:
            self._files.sync_folder(path.parent)

    def _sync_file(self) -> None:
        if self._fd >= 0:
            self._files.sync(self._fd)
        if self._unsynced:
            with self._index:
                for extent, is_damaged in self._unsynced:
                    row = (extent.segment, extent.start, extent.length, _crc(extent), is_damaged)
                    self._index.execute(_ADD, row)
        self._unsynced.clear()
        self._unsynced_bytes = 0

    # Removing

    def keep_only(self, is_needed: Callable[[bytes, int], bool]) -> None:
        """Free the space of all other extents. They are marked first, so that none is taken for whole meanwhile."""
        self.sync()
        for rows in self._pages():
            unneeded = [(segment, start) for segment, start, _ in rows if not is_needed(segment, start)]
            if unneeded:
                with self._index:
                    self._index.executemany(_MARK, unneeded)
        self._remove_unneeded()

    def _pages(self) -> Iterator[list[tuple[bytes, int, int]]]:
        after: tuple[bytes, int] = (b"", -1)
        while rows := self._select(_NEXT, *after, _ROWS):
            yield rows
            after = rows[-1][:2]

    def _select(self, statement: str, *values: bytes | int) -> list[tuple[bytes, int, int]]:
        rows: list[Any] = self._index.execute(statement, values).fetchall()
        return rows

    def _remove_unneeded(self) -> None:
        while rows := self._select(_UNNEEDED, _ROWS):
            for segment, start, length in rows:
                path = self.path_of(segment)
                if self._index.execute(_HAS_SEGMENT, (segment,)).fetchall():
                    self._files.punch(path, [(start, aligned(length))])
                else:
                    path.unlink(missing_ok=True)
            with self._index:
                self._index.executemany(_REMOVE, [(segment, start) for segment, start, _ in rows])

    def close(self) -> None:
        """Without syncing: what was not synced is not listed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._index.close()


def segment_path(folder: Path, segment: bytes) -> Path:
    """Where the file of a segment is, in a pool as in a store."""
    assert len(segment) == SEGMENT_BYTES
    return folder / segment[:OWNER_BYTES].hex() / segment[OWNER_BYTES:].hex()


def _crc(extent: Extent) -> bytes:
    return extent.crc64.to_bytes(8, "big")
