"""The paths of files and directories, from their rows up to the root of their share.

A row is keyed by the id of its directory, and nothing leads from that id to the directory's own row. So the rows of the
share are read backwards: a directory is nearly always newer than the one that contains it, so that one pass finds all
directories of a path. A directory that was moved into a newer one takes a further pass.
"""

from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot
from kyanite.model import keys
from kyanite.model.files.entry import FILE, Entry, decode_entry
from kyanite.model.files.share_snapshots import instants
from kyanite.model.files.tree import ROOT_ID
from kyanite.model.verification.hurt import ROW_COST_BYTES, Spend
from kyanite.model.verification.pages import Row, Unreadable, pages, read_if_possible, take
from kyanite.values import Instant, iso_text

_ROWS_AT_ONCE = 200
_DEPTH_MAX = 300
_NAME_AT = len(keys.entries(0, 0))
_INSTANT_BYTES = 8

At = Instant | None
"""A snapshot of the share, or None for the share as it is."""


class FileName(NamedTuple):
    kind: str
    path: str


class _Location(NamedTuple):
    directory_id: int
    name: str


async def file_names(engine: Engine, rows: Collection[bytes], spend: Spend) -> dict[bytes, list[FileName]]:
    """The names of files and directories by the keys of their rows. A file that no client can reach has none."""
    shares: dict[int, list[bytes]] = {}
    for key in rows:
        shares.setdefault(keys.id_of(key), []).append(key)
    found: dict[bytes, list[FileName]] = {}
    for share_id, some in shares.items():
        found |= await _ShareTree(engine, spend, share_id).names(some)
    return found


class _ShareTree:
    """The directories of one share, as far as they are needed."""

    def __init__(self, engine: Engine, spend: Spend, share_id: int) -> None:
        self._engine = engine
        self._spend = spend
        self._share_id = share_id
        self._snapshots: list[Instant] = []
        self._locations: dict[int, dict[At, set[_Location]]] = {}
        """Of directories, and of files that have several names: where each is, by its id."""

    async def names(self, rows: Collection[bytes]) -> dict[bytes, list[FileName]]:
        self._snapshots = (
            await read_if_possible(self._engine, partial(instants, share_id=self._share_id)) or []
        )
        entries = {key: await self._entry(key) for key in rows}
        for key, entry in entries.items():
            for at in self._containing(key, entry)[-1:]:
                self._want(_directory_of(key), at)
        for _ in range(_DEPTH_MAX):
            before = self._count()
            await self._read_all()
            if self._count() == before or self._has_all():
                break
        return {key: list(self._names_of(key, entry)) for key, entry in entries.items()}

    async def _entry(self, key: bytes) -> Entry | None:
        return _decode(await read_if_possible(self._engine, lambda snap: snap.get(key)))

    def _containing(self, key: bytes, entry: Entry | None) -> list[At]:
        """The snapshots of the share that contain the entry as this row has it, and None for the share itself."""
        written_at = 0 if entry is None else entry.written_at
        until = _until(key)
        found: list[At] = [
            each for each in self._snapshots if written_at <= each and (until is None or each <= until)
        ]
        return found if until is not None else [*found, None]

    # Reading the share

    def _want(self, entry_id: int, at: At) -> None:
        if entry_id != ROOT_ID:
            self._locations.setdefault(entry_id, {}).setdefault(at, set())

    def _count(self) -> int:
        return sum(len(found) for each in self._locations.values() for found in each.values())

    def _has_all(self) -> bool:
        return all(found for each in self._locations.values() for found in each.values())

    async def _read_all(self) -> None:
        """One pass: add the locations of all that are wanted, and the directories that these are in."""
        await self._read_backwards(keys.entries_of_share(self._share_id))
        if any(at is not None for each in self._locations.values() for at in each):
            await self._read_backwards(keys.preserved_entries_of_share(self._share_id))

    async def _read_backwards(self, prefix: bytes) -> None:
        end = keys.after(prefix)
        while True:
            some = await read_if_possible(self._engine, partial(_rows_before, start=prefix, end=end))
            if some is None:
                return await self._read_forwards(prefix, end)
            if not some:
                return None
            self._add(some)
            end = some[-1].key
            await self._spend(len(some) * ROW_COST_BYTES)

    async def _read_forwards(self, start: bytes, end: bytes) -> None:
        """The same for rows of which some cannot be read. Each pass then finds one more directory of a path."""
        async for page in pages(self._engine, partial(take, rows_max=_ROWS_AT_ONCE), start, end):
            if not isinstance(page, Unreadable):
                self._add(page.rows)
                await self._spend(len(page.rows) * ROW_COST_BYTES)

    def _add(self, rows: list[Row]) -> None:
        for key, value in rows:
            entry = _decode(value)
            if entry is None or entry.kind == FILE or entry.id not in self._locations:
                continue
            until, directory_id = _until(key), _directory_of(key)
            for at, found in list(self._locations[entry.id].items()):
                if _contains(at, entry, until):
                    found.add(_Location(directory_id, entry.name))
                    self._want(directory_id, at)

    # Names

    def _names_of(self, key: bytes, entry: Entry | None) -> Iterator[FileName]:
        """By the share itself or the latest snapshot that contains it; how many other snapshots do is added."""
        kind = "file or directory" if entry is None else "directory" if entry.is_directory else "file"
        containing = self._containing(key, entry)
        for at in containing[-1:]:
            suffix = "" if at is None else f", share snapshot {iso_text(at)}"
            if others := len(containing) - 1:
                snapshots = "snapshot" if others == 1 else "snapshots"
                suffix += f" (and in {others} {snapshots if at is None else f'other {snapshots}'})"
            for path in self._paths(key, entry, at):
                yield FileName(kind, path + suffix)

    def _paths(self, key: bytes, entry: Entry | None, at: At) -> Iterator[str]:
        directory_id, folded_name = _directory_of(key), _folded_name(key)
        if not folded_name and directory_id != ROOT_ID:  # A file with several names.
            for location in sorted(self._locations.get(directory_id, {}).get(at, ())):
                yield self._path(location, at)
        else:
            yield self._path(_Location(directory_id, folded_name if entry is None else entry.name), at)

    def _path(self, location: _Location, at: At) -> str:
        names = [location.name]
        for _ in range(_DEPTH_MAX):
            if location.directory_id == ROOT_ID:
                return "/".join(reversed(names))
            above = self._locations.get(location.directory_id, {}).get(at)
            if not above:
                break
            location = min(above)
            names.append(location.name)
        return "/".join(("(unknown directory)", *reversed(names)))


def _rows_before(snap: Snapshot, start: bytes, end: bytes) -> list[Row]:
    return [Row(*each) for each in snap.scan(start, end, reverse=True, limit=_ROWS_AT_ONCE)]


def _contains(at: At, entry: Entry, until: Instant | None) -> bool:
    """Whether the share, or a snapshot of it, contains an entry that was preserved until that instant, if it was."""
    if at is None:
        return until is None
    return entry.written_at <= at and (until is None or at <= until)


def _decode(value: bytes | None) -> Entry | None:
    try:
        return None if value is None else decode_entry(value)
    except msgspec.DecodeError:
        return None


def _until(key: bytes) -> Instant | None:
    """The instant in the key of a row that was preserved for snapshots."""
    return Instant(int.from_bytes(key[-_INSTANT_BYTES:], "big")) if key[:1] == b"V" else None


def _directory_of(key: bytes) -> int:
    return int.from_bytes(key[_NAME_AT - 8 : _NAME_AT], "big")


def _folded_name(key: bytes) -> str:
    name = key[_NAME_AT:] if key[:1] == b"N" else key[_NAME_AT : -_INSTANT_BYTES - 1]
    return name.decode("utf-8", "backslashreplace")
