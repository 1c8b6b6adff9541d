"""The restore points of a backup: one folder each, named by the time at which the store was as it says.

    backup.lock                  locked while a backup or a restore works here
    points/<time>/store.sqlite3  all rows of that time
    points/<time>/files/         the store's small files: its format, the key file, the identity folder
    points/<time>/point.json     what the point has, and the checksum of its database
    index.sqlite3, segments/     the bytes of all points (``pool.py``)

A folder whose name ends with ``.partial`` is a point that is being made, or that was not finished. It gets its name
when all of it, and every extent that it needs, is durable.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kyanite.server.backup.files import make_folder, remove_folder, sync_folder, write_file
from kyanite.server.failures import Failure

DATABASE = "store.sqlite3"
FILES = "files"
_POINTS = "points"
_MANIFEST = "point.json"
_LOCK = "backup.lock"
_PARTIAL = ".partial"
FORMAT = 1
"""Of a backup. A program refuses a newer one."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Stored as JSON: fields are only ever added, with a default."""

    format: int = FORMAT
    store: str
    """The folder that was backed up."""
    rows: int
    extents: int
    bytes: int
    """Of the extents."""
    database_bytes: int
    database_crc64: str
    owners: list[str]
    """The processes that had the store open, or had left something in it."""
    damaged_extents: int = 0
    """Extents that were damaged in the store already."""


class Point:
    """One restore point."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    @property
    def files(self) -> Path:
        return self.folder / FILES

    def manifest(self) -> Manifest:
        path = self.folder / _MANIFEST
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except OSError as error:
            raise Failure(f"Cannot read {path}: {error.strerror}.") from None
        except msgspec.DecodeError as error:
            raise Failure(f"The file {path} is damaged: {error}.") from None
        if manifest.format > FORMAT:
            raise Failure(
                f"The backup {path.parent} has format {manifest.format}, and this version of Kyanite knows"
                f" format {FORMAT} at most."
            )
        return manifest


def points_of(backup: Path) -> list[Point]:
    """The finished points, the oldest first."""
    folder = backup / _POINTS
    if not folder.is_dir():
        return []
    names = sorted(name for name in os.listdir(folder) if not name.endswith(_PARTIAL))
    return [Point(folder / name) for name in names]


def begin_point(backup: Path) -> Path:
    """A folder for a new point. What interrupted ones have left is removed."""
    folder = backup / _POINTS
    make_folder(folder)
    for left in folder.glob(f"*{_PARTIAL}"):
        remove_folder(left)
    partial = folder / f"new{_PARTIAL}"
    make_folder(partial)
    return partial


def finish_point(partial: Path, name: str, manifest: Manifest) -> Point:
    """All files of the point are synced but for the manifest."""
    write_file(partial / _MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    sync_folder(partial)
    present = {point.name for point in points_of(partial.parents[1])}
    unique = name
    number = 1
    while unique in present:
        number += 1
        unique = f"{name}-{number}"
    finished = partial.with_name(unique)
    partial.rename(finished)
    sync_folder(finished.parent)
    return Point(finished)


def drop_point(point: Point) -> None:
    """At once: an interrupted removal leaves no half of a point."""
    dropped = point.folder.with_name(f"{point.name}{_PARTIAL}")
    point.folder.rename(dropped)
    sync_folder(dropped.parent)
    remove_folder(dropped)


@contextmanager
def locked(backup: Path, *, is_shared: bool = False) -> Iterator[None]:
    """Restores may work at the same time, also where they cannot write; a backup works alone."""
    flags = os.O_RDONLY if is_shared else os.O_RDWR | os.O_CREAT
    try:
        descriptor = os.open(backup / _LOCK, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failure(f"Cannot open {backup / _LOCK}: {error.strerror}.") from None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Failure(f"Another backup or restore works with {backup} at present.") from None
    try:
        yield
    finally:
        os.close(descriptor)
