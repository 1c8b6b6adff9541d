"""``kyanite restore``: a store in an empty folder, from a restore point of a backup.

The database must have the checksum that the backup has noted, and every extent its own. A file ``restoring`` in the
folder says that the store is not whole yet: it is removed last, no server starts while it is there, and a restore that
finds it begins again.

The processes that had the store open at the time of the point are dead for the restored store. They are listed as such,
so maintenance cleans up after them as after a crash: open handles, sessions and slow reads end.
"""

import os
import shutil
from pathlib import Path

from kyanite.engine.api import EngineError
from kyanite.engine.sqlite.copies import DatabaseReader, database_path, open_copy
from kyanite.extents.api import Extent
from kyanite.extents.crc64 import BlockChecksums, crc64
from kyanite.extents.local.file_system import FileSystem
from kyanite.model import keys
from kyanite.model.content.references import decode_extent
from kyanite.model.verification.extent_check import extent_of
from kyanite.server.backup.backup import PIECE_BYTES, rows_from
from kyanite.server.backup.files import copy_files, make_folder, sync_folder, write_file
from kyanite.server.backup.points import Manifest, Point, locked, points_of
from kyanite.server.backup.pool import segment_path
from kyanite.server.backup.source import ENGINE, OWNERS, SEGMENTS
from kyanite.server.failures import Failure
from kyanite.server.progress import Progress
from kyanite.server.store.format import RESTORING

_FINDINGS_MAX = 100


def show_points(source: Path) -> None:
    """One line for each restore point, the oldest first."""
    for point in _points(source):
        manifest = point.manifest()
        print(
            f"{point.name}  {manifest.rows} rows and {manifest.extents} extents with {manifest.bytes} bytes"
            f" of {manifest.store}"
        )


def restore(source: Path, location: Path, *, name: str | None, progress: Progress) -> None:
    """Restore a point, the newest one without a name. Raises a Failure."""
    point = _choose(_points(source), name, source)
    manifest = point.manifest()
    with locked(source, is_shared=True):
        _begin(location)
        try:
            _copy_database(point, location, manifest, progress)
            with open_copy(database_path(location / ENGINE)) as database:
                damaged = _copy_extents(
                    database, source / "segments", location / SEGMENTS, manifest, progress
                )
        except EngineError as error:
            raise Failure(f"The backup {point.folder} cannot be read. {error}") from error
        except OSError as error:
            raise Failure(
                f"The restore could not be completed: {error.strerror}: {error.filename}."
            ) from error
        _copy_small_files(point, location, manifest)
        (location / RESTORING).unlink()
        sync_folder(location)
    print(
        f"{point.name}: {manifest.rows} rows and {manifest.extents} extents with {manifest.bytes} bytes"
        f" are in {location}."
    )
    if damaged:
        raise Failure(f"The store {location} is restored, but extents are damaged in the backup: {damaged}.")


def _points(source: Path) -> list[Point]:
    points = points_of(source)
    if not points:
        raise Failure(f"There is no backup in {source}.")
    return points


def _choose(points: list[Point], name: str | None, source: Path) -> Point:
    if name is None:
        return points[-1]
    for point in points:
        if point.name == name:
            return point
    raise Failure(f"The backup {source} has no restore point {name}. The newest one is {points[-1].name}.")


def _begin(location: Path) -> None:
    make_folder(location)
    if (location / RESTORING).exists():
        for entry in location.iterdir():
            if entry.name != RESTORING:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    elif any(True for _ in location.iterdir()):
        raise Failure(f"The folder {location} is not empty, so nothing is restored into it.")
    write_file(location / RESTORING, b"This store is being restored.\n")
    sync_folder(location)


def _copy_database(point: Point, location: Path, manifest: Manifest, progress: Progress) -> None:
    advance = progress.begin("Database", manifest.database_bytes)
    make_folder(location / ENGINE)
    target = database_path(location / ENGINE)
    crc = 0
    with point.database.open("rb") as read, target.open("wb") as written:
        target.chmod(0o600)
        while piece := read.read(PIECE_BYTES):
            crc = crc64(piece, crc)
            written.write(piece)
            advance(len(piece))
        written.flush()
        os.fsync(written.fileno())
    sync_folder(target.parent)
    if f"{crc:016x}" != manifest.database_crc64:
        raise Failure(
            f"The checksum of {point.database} is wrong, so nothing can be restored from {point.name}."
        )


def _copy_extents(
    database: DatabaseReader, pool: Path, segments: Path, manifest: Manifest, progress: Progress
) -> int:
    """Prints a line for each extent that is damaged, and returns their number."""
    advance = progress.begin("Extents", manifest.bytes)
    make_folder(segments)
    damaged = 0
    target = _Segments(segments)
    for key, value in rows_from(database, keys.EXTENTS, keys.after(keys.EXTENTS)):
        extent = extent_of(key, decode_extent(value))
        if not _copy_extent(extent, segment_path(pool, extent.segment), target):
            damaged += 1
            if damaged <= _FINDINGS_MAX:
                print(f"The CRC of {extent} is wrong.")
        advance(extent.length)
    target.close()
    return damaged


def _copy_extent(extent: Extent, source: Path, target: "_Segments") -> bool:
    computed = BlockChecksums()
    try:
        with source.open("rb") as file:
            file.seek(extent.start)
            while computed.length < extent.length:
                piece = file.read(min(PIECE_BYTES, extent.length - computed.length))
                if not piece:
                    return False
                target.write(extent, computed.length, piece)
                computed.add(piece)
    except FileNotFoundError:
        return False
    return computed.finish()[0] == extent.crc64


class _Segments:
    """Writes segments one after the other. Each is durable and sealed when the next one begins."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = FileSystem()
        self._segment = b""
        self._fd = -1

    def write(self, extent: Extent, offset: int, data: bytes) -> None:
        if extent.segment != self._segment:
            self.close()
            path = segment_path(self._folder, extent.segment)
            self._files.make_folder(path.parent)
            self._fd = self._files.create(path)
            self._segment = extent.segment
        self._files.write(self._fd, [data], extent.start + offset)

    def close(self) -> None:
        if self._fd >= 0:
            path = segment_path(self._folder, self._segment)
            self._files.seal(path)
            self._files.sync(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._files.sync_folder(path.parent)


def _copy_small_files(point: Point, location: Path, manifest: Manifest) -> None:
    copy_files(point.files, location)
    make_folder(location / OWNERS)
    for owner in manifest.owners:
        write_file(location / OWNERS / owner, b"")
    sync_folder(location / OWNERS)
