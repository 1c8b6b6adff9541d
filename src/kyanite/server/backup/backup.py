"""``kyanite backup``: a store as it was at one instant, while it serves.

Most bytes are copied beforehand, an extent at a time, and until then nothing in the store waits for the backup. When
little is left, a pin is taken, and then the instant: one snapshot of the database, copied as fast as the disks can,
and after it the extents that were written meanwhile. The pin keeps what is freed from then on, so every extent that the
snapshot names is still there. It is released when they are copied; the rest of the work needs nothing of the store.

Extents are checked while they are copied. One that is damaged in the store is copied as it is, and the backup ends with
an error after it has completed: a restore gives back what is sound.
"""

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import apsw
import uvloop

from kyanite.engine.api import Damaged, EngineError, EngineFull
from kyanite.engine.sqlite.copies import DatabaseReader, open_copy
from kyanite.extents.crc64 import BlockChecksums, crc64
from kyanite.model import keys
from kyanite.model.content.references import ExtentRow, decode_extent
from kyanite.model.maintenance.pace import Pace
from kyanite.model.verification.extent_check import extent_of
from kyanite.model.verification.pages import BEHIND_ALL
from kyanite.server.backup.files import make_folder, sync_folder, write_file
from kyanite.server.backup.points import (
    DATABASE,
    FILES,
    Manifest,
    Point,
    begin_point,
    drop_point,
    finish_point,
    locked,
    points_of,
)
from kyanite.server.backup.pool import Pool
from kyanite.server.backup.source import Source, check_source, open_source
from kyanite.server.failures import BadUsage, Failure
from kyanite.server.progress import Progress

PAGE_ROWS = 500
PIECE_BYTES = 1 << 20
FEW_BYTES = 64 * 1024 * 1024
"""When a pass has copied no more than this, the next one is the last."""
PASSES_MAX = 5
"""A store that is written faster than it is copied: the last pass then takes as long as it takes."""
_NICE = 10


@dataclass(slots=True)
class Totals:
    """What a backup has, and what it had to copy."""

    rows: int = 0
    extents: int = 0
    bytes: int = 0
    copied_extents: int = 0
    copied_bytes: int = 0
    damaged: list[str] = field(default_factory=list)
    """What is damaged in the store itself."""


def backup(
    location: Path, destination: Path, *, keep: int | None, mib_per_second: int, progress: Progress
) -> None:
    """Make a restore point. Raises a Failure; the points that are there stay whole."""
    check_source(location)
    _check_apart(location, destination)
    os.nice(_NICE)
    try:
        make_folder(destination)
        with locked(destination):
            point, totals = uvloop.run(_backup(location, destination, mib_per_second, progress))
            dropped = _drop_old(destination, keep)
    except (EngineFull, apsw.FullError):
        raise _incomplete(os.strerror(errno.ENOSPC)) from None
    except OSError as error:
        raise _incomplete(error.strerror or str(error)) from error
    except EngineError as error:
        raise Failure(f"The store {location} cannot be backed up. {error}") from error
    print(
        f"{point.name}: {totals.rows} rows and {totals.extents} extents with {totals.bytes} bytes,"
        f" of which {totals.copied_extents} with {totals.copied_bytes} bytes were copied."
    )
    for name in dropped:
        print(f"{name}: dropped.")
    if totals.damaged:
        for text in totals.damaged[:100]:
            print(text)
        raise Failure(
            f"The restore point {point.name} is complete, but extents are damaged in the store: {len(totals.damaged)}."
        )


def _incomplete(reason: str) -> Failure:
    return Failure(f"The backup could not be completed: {reason}. Earlier restore points are whole.")


def _check_apart(location: Path, destination: Path) -> None:
    store, target = location.resolve(), destination.resolve()
    if target == store or target.is_relative_to(store) or store.is_relative_to(target):
        raise BadUsage(f"A backup in {destination} would be part of the store, or the store of the backup.")


async def _backup(
    location: Path, destination: Path, mib_per_second: int, progress: Progress
) -> tuple[Point, Totals]:
    pace = Pace(mib_per_second * 1024 * 1024, clock=time.monotonic, sleep=asyncio.sleep)
    totals = Totals()
    with ExitStack() as at_end:
        source = at_end.enter_context(open_source(location))
        try:
            source.check_content()
            pool = Pool(destination)
            at_end.callback(pool.close)
            partial = begin_point(destination)
            copying = _Copying(source, pool, pace if mib_per_second else None, totals, progress)
            await copying.copy_beforehand()
            name, owners = await copying.copy_instant(partial / DATABASE)
        finally:
            await source.extents.close()
        _copy_files(source, partial / FILES)
        manifest = _check(partial / DATABASE, totals, owners, location, progress)
        pool.sync()
        return finish_point(partial, name, manifest), totals


class _Copying:
    """From the store to the pool."""

    def __init__(
        self, source: Source, pool: Pool, pace: Pace | None, totals: Totals, progress: Progress
    ) -> None:
        self._source = source
        self._pool = pool
        self._pace = pace
        self._totals = totals
        self._progress = progress

    async def copy_beforehand(self) -> None:
        """Without a pin that lasts: an extent that is freed meanwhile is not needed any more."""
        for _ in range(PASSES_MAX - 1):
            before = self._totals.copied_bytes
            await self._copy_missing(self._source.database, self._copy_if_there)
            if self._totals.copied_bytes - before <= FEW_BYTES:
                break
        self._totals.damaged.clear()  # The last pass finds what of it is still there.

    async def copy_instant(self, target: Path) -> tuple[str, set[str]]:
        """One state of all rows, and what it needs. Returns the name of the point, and the processes of the store."""
        owners = self._source.owners()
        pin = self._source.extents.pin()
        try:
            name = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%f}"[:-3] + "Z"
            advance: Callable[[int], None] | None = None
            done = 0
            for copied, total in self._source.database.copy_to(target):
                advance = advance or self._progress.begin("Database", total)
                advance(copied - done)
                done = copied
            owners |= self._source.owners()
            with open_copy(target) as database:
                await self._copy_missing(database, self._copy)
        finally:
            pin.release()
        return name, owners

    async def _copy_missing(self, database: DatabaseReader, copy: "_Copy") -> None:
        """All extents of the database that the pool does not have."""
        advance = self._progress.begin("Extents", sum(row.length for _, row in self._missing(database)))
        for key, row in self._missing(database):
            await copy(key, row)
            advance(row.length)
        self._pool.sync()

    def _missing(self, database: DatabaseReader) -> Iterator[tuple[bytes, ExtentRow]]:
        for key, value in rows_from(database, keys.EXTENTS, keys.after(keys.EXTENTS)):
            row = decode_extent(value)
            if not self._pool.has(extent_of(key, row)):
                yield key, row

    async def _copy_if_there(self, key: bytes, row: ExtentRow) -> None:
        """As long as the row is there, and a reader has pinned before it looked, so are the bytes."""
        pin = self._source.extents.pin()
        try:
            if self._source.database.get(key) is not None:
                await self._copy(key, row)
        finally:
            pin.release()

    async def _copy(self, key: bytes, row: ExtentRow) -> None:
        extent = extent_of(key, row)
        computed = BlockChecksums()
        try:
            for at in range(0, extent.length, PIECE_BYTES):
                data = await self._source.extents.read_cold(extent, at, min(PIECE_BYTES, extent.length - at))
                computed.add(data)
                self._pool.write(extent, at, data)
                if self._pace is not None:
                    await self._pace.spend(len(data))
            crc, checksums = computed.finish()
            problem = "" if _is_right(row, crc, checksums) else f"The CRC of {extent} is wrong."
        except Damaged as damage:
            problem = str(damage)
        self._pool.add(extent, is_damaged=bool(problem))
        if problem:
            self._totals.damaged.append(problem)
        self._totals.copied_extents += 1
        self._totals.copied_bytes += extent.length


_Copy = Callable[[bytes, ExtentRow], Awaitable[None]]


def _is_right(row: ExtentRow, crc: int, checksums: bytes) -> bool:
    return crc == row.crc64 and (not row.checksums or checksums == row.checksums)


def rows_from(database: DatabaseReader, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a range, a page at a time."""
    while page := database.page(start, end, PAGE_ROWS):
        yield from page
        start = page[-1][0] + b"\0"


def _copy_files(source: Source, target: Path) -> None:
    """Each is replaced as a whole, if at all."""
    make_folder(target)
    for path in source.private_files():
        make_folder((target / path).parent)
        write_file(target / path, (source.location / path).read_bytes())
        sync_folder((target / path).parent)


def _check(path: Path, totals: Totals, owners: set[str], location: Path, progress: Progress) -> Manifest:
    """Read every row of the copy, which checks it, and then all its bytes, for whoever restores it."""
    size = path.stat().st_size
    advance = progress.begin("Checking", size)
    with open_copy(path) as database:
        if problems := database.problems():
            raise Failure(f"The database of the store is damaged, so it is not backed up: {problems[0]}.")
        for key, value in rows_from(database, b"", BEHIND_ALL):
            totals.rows += 1
            advance(len(key) + len(value))
            if key.startswith(keys.EXTENTS):
                totals.extents += 1
                totals.bytes += decode_extent(value).length
    return Manifest(
        store=str(location.resolve()),
        rows=totals.rows,
        extents=totals.extents,
        bytes=totals.bytes,
        database_bytes=size,
        database_crc64=f"{crc_of(path):016x}",
        owners=sorted(owners),
        damaged_extents=len(totals.damaged),
    )


def crc_of(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            crc = crc64(piece, crc)
    return crc


def _drop_old(destination: Path, keep: int | None) -> list[str]:
    """Drop the oldest points but so many, and then every extent that no point needs."""
    points = points_of(destination)
    old = [] if keep is None else points[:-keep]
    for point in old:
        drop_point(point)
    with ExitStack() as at_end:
        databases = [at_end.enter_context(open_copy(point.database)) for point in points[len(old) :]]
        pool = Pool(destination)
        at_end.callback(pool.close)

        def is_needed(segment: bytes, start: int) -> bool:
            key = keys.extent(segment, start)
            return any(database.get(key) is not None for database in reversed(databases))

        pool.keep_only(is_needed)
    return [point.name for point in old]
