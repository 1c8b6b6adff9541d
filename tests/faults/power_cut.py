"""Power cuts without a plug: record what is done to files, then build what a disk might hold if it had stopped there.

A ``Tape`` holds, in one sequence, every write, truncation, sync and change of a name, and whatever the test notes in
between (above all: that something was acknowledged). ``Tape.image`` takes the first so many of these events and
answers with files as a disk might have them: everything that was synced, and of the rest what chance keeps: any of
the writes, whole, not at all or torn into sectors; of the changes of names in a folder the first few.

``RecordedSQLite`` is the file layer that records SQLite. Other code that writes files calls the tape beside each
of its own calls: ``open``, ``write``, ``truncate``, ``rename``, ``unlink`` before or after them, and ``with
tape.syncing(...)`` or ``tape.syncing_folder(...)`` around a sync, since only what was written before it began is
covered, and only when it has ended.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NewType

import apsw

SECTOR_BYTES = 512

FileId = NewType("FileId", int)
Image = dict[Path, bytes]


@dataclass(frozen=True, slots=True)
class Written:
    file: FileId
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    file: FileId
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Synced:
    file: FileId
    began: int
    """How many events there were when the sync began."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name came to mean a file (it was made, or renamed to this), or nothing any more."""

    path: Path
    file: FileId | None


@dataclass(frozen=True, slots=True)
class Renamed:
    old: Path
    new: Path
    file: FileId


@dataclass(frozen=True, slots=True)
class FolderSynced:
    folder: Path
    began: int


@dataclass(frozen=True, slots=True)
class Noted:
    what: object


Event = Written | Truncated | Synced | Named | Renamed | FolderSynced | Noted


class Tape:
    """May be written by several threads."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._lock = threading.Lock()
        self._files: dict[Path, FileId] = {}
        self._ids = count()

    def open(self, path: Path) -> FileId:
        """The file of that name; a new one if the tape knows of none."""
        with self._lock:
            if path not in self._files:
                self._files[path] = FileId(next(self._ids))
                self.events.append(Named(path, self._files[path]))
            return self._files[path]

    def write(self, file: FileId, offset: int, data: bytes) -> None:
        self._add(Written(file, offset, bytes(data)))

    def truncate(self, file: FileId, size_bytes: int) -> None:
        self._add(Truncated(file, size_bytes))

    def rename(self, old: Path, new: Path) -> None:
        with self._lock:
            self._files[new] = self._files.pop(old)
            self.events.append(Renamed(old, new, self._files[new]))

    def unlink(self, path: Path) -> None:
        with self._lock:
            if self._files.pop(path, None) is not None:
                self.events.append(Named(path, None))

    def note(self, what: object) -> None:
        self._add(Noted(what))

    @contextmanager
    def syncing(self, file: FileId) -> Iterator[None]:
        began = len(self.events)
        yield
        self._add(Synced(file, began))

    @contextmanager
    def syncing_folder(self, folder: Path) -> Iterator[None]:
        began = len(self.events)
        yield
        self._add(FolderSynced(folder, began))

    def noted(self, cut: int) -> list[Any]:
        return [event.what for event in self.events[:cut] if isinstance(event, Noted)]

    def cuts(self, random: Random, number: int) -> list[int]:
        """Places to cut at: half of them next to a sync, where it matters most, the others anywhere."""
        syncs = [at for at, event in enumerate(self.events, 1) if isinstance(event, Synced | FolderSynced)]
        near = [min(max(random.choice(syncs) + random.randint(-2, 1), 0), len(self.events)) for _ in syncs]
        anywhere = [random.randint(0, len(self.events)) for _ in range(number)]
        return sorted(near[: number // 2] + anywhere[: number - min(len(near), number // 2)])

    def image(self, cut: int, random: Random, *, lying: bool = False) -> Image:
        """What the disk might hold when the power went after that many events.

        A ``lying`` disk has not synced what it said it had: to show that a check would notice.
        """
        disk = _Disk()
        for at, event in enumerate(self.events[:cut]):
            if not (lying and isinstance(event, Synced)):
                disk.take(at, event)
        return disk.survivors(random)

    def _add(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)


@dataclass(slots=True)
class _Disk:
    """What is certainly on it, and what is on its way there."""

    contents: dict[FileId, bytearray] = field(default_factory=lambda: defaultdict(bytearray))
    writes: dict[FileId, list[tuple[int, Written | Truncated]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    names: dict[Path, FileId] = field(default_factory=dict)
    changes: dict[Path, list[tuple[int, Named | Renamed]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, at: int, event: Event) -> None:
        match event:
            case Written(file) | Truncated(file):
                self.writes[file].append((at, event))
            case Named(path):
                self.changes[path.parent].append((at, event))
            case Renamed(old):
                self.changes[old.parent].append((at, event))
            case Synced(file, began):
                for number, write in self.writes[file]:
                    if number < began:
                        _apply(write, self.contents[file])
                self.writes[file] = [item for item in self.writes[file] if item[0] >= began]
            case FolderSynced(folder, began):
                for number, change in self.changes[folder]:
                    if number < began:
                        self._rename(change)
                self.changes[folder] = [item for item in self.changes[folder] if item[0] >= began]
            case Noted():
                pass

    def survivors(self, random: Random) -> Image:
        for changes in self.changes.values():
            for _, change in changes[: random.randint(0, len(changes))]:
                self._rename(change)
        mood = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for file, writes in self.writes.items():
            for _, write in writes:
                if random.random() < mood:
                    _apply(write, self.contents[file])
                elif isinstance(write, Written) and random.random() < 0.3:
                    for sector in _torn(write, random):
                        _apply(sector, self.contents[file])
        return {path: bytes(self.contents[file]) for path, file in self.names.items()}

    def _rename(self, change: Named | Renamed) -> None:
        match change:
            case Renamed(old, new, file):
                self.names.pop(old, None)
                self.names[new] = file
            case Named(path, None):
                self.names.pop(path, None)
            case Named(path, file) if file is not None:
                self.names[path] = file


def _apply(write: Written | Truncated, content: bytearray) -> None:
    match write:
        case Written(_, offset, data):
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
        case Truncated(_, size_bytes):
            content.extend(bytes(max(0, size_bytes - len(content))))
            del content[size_bytes:]


def _torn(write: Written, random: Random) -> Iterator[Written]:
    """Some of the sectors that a write covers, at least in part."""
    first = write.offset - write.offset % SECTOR_BYTES
    for start in range(first, write.offset + len(write.data), SECTOR_BYTES):
        if random.random() < 0.5:
            low = max(start, write.offset)
            high = min(start + SECTOR_BYTES, write.offset + len(write.data))
            yield Written(write.file, low, write.data[low - write.offset : high - write.offset])


def put_on_disk(image: Image, *, of: Path, into: Path) -> None:
    """Write the files of an image, which were recorded in one folder, into another."""
    for path, content in image.items():
        copy = into / path.relative_to(of)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)


_numbers = count()


class RecordedSQLite(apsw.VFS):
    """SQLite's own file layer, with a tape beside it. Shared memory is not recorded: no power cut leaves any."""

    def __init__(self, tape: Tape) -> None:
        self.name = f"recorded-{next(_numbers)}"
        self.tape = tape
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "_RecordedFile":
        return _RecordedFile(self.tape, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        path = Path(filename)
        super().xDelete(filename, syncdir)
        self.tape.unlink(path)
        if syncdir:
            with self.tape.syncing_folder(path.parent):
                pass


_LOGS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL


class _RecordedFile(apsw.VFSFile):
    def __init__(self, tape: Tape, name: Any, flags: list[int]) -> None:
        self._tape = tape
        self._path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        # SQLite syncs the folder along with a connection's first sync of a log, below the layer that we see.
        self._syncs_folder = bool(flags[0] & _LOGS) and bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        super().__init__("", name, flags)
        self._file = tape.open(self._path)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._tape.write(self._file, offset, data)

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._tape.truncate(self._file, newsize)

    def xSync(self, flags: int) -> None:
        with self._tape.syncing(self._file):
            super().xSync(flags)
        if self._syncs_folder:
            self._syncs_folder = False
            with self._tape.syncing_folder(self._path.parent):
                pass


@contextmanager
def recorded_sqlite(tape: Tape) -> Iterator[RecordedSQLite]:
    files = RecordedSQLite(tape)
    try:
        yield files
    finally:
        files.unregister()
