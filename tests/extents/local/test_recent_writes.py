"""The last written bytes stay in the page cache, those before are dropped from it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kyanite.extents.local import store
from kyanite.extents.local.file_system import FileSystem
from kyanite.extents.local.recent_writes import JOINED_BYTES, KEPT_BYTES, RecentWrites
from kyanite.extents.local.segment import aligned
from kyanite.extents.local.store import LocalExtents
from tests.extents.local.test_cold_reads import LENGTH, cached, uncached_files
from tests.extents.local.test_store import noise, run

MIB = 1024 * 1024
PIECES = KEPT_BYTES // (64 * MIB)


class Noted(FileSystem):
    def __init__(self) -> None:
        self.dropped: list[tuple[Path, int, int]] = []

    def drop_cached(self, path: Path, start: int, length: int) -> None:
        self.dropped.append((path, start, length))


def test_the_oldest_bytes_are_dropped_when_there_are_too_many() -> None:
    disk = Noted()
    recent = RecentWrites(disk)
    added = [(Path(str(number % 3)), number * 64 * MIB, 64 * MIB) for number in range(PIECES + 3)]
    for number, each in enumerate(added, 1):
        recent.add(*each)
        assert disk.dropped == added[: max(number - PIECES, 0)]


def test_what_is_longer_than_all_that_is_kept_is_dropped_itself() -> None:
    disk = Noted()
    recent = RecentWrites(disk)
    recent.add(Path("a"), 0, MIB)
    recent.add(Path("b"), 0, KEPT_BYTES + 1)
    assert disk.dropped == [(Path("a"), 0, MIB), (Path("b"), 0, KEPT_BYTES + 1)]


def test_neighbours_are_dropped_together_up_to_a_limit() -> None:
    disk = Noted()
    recent = RecentWrites(disk)
    path, piece = Path("a"), JOINED_BYTES // 4
    for number in range(9):
        recent.add(path, number * piece, piece)
    recent.add(path, 20 * piece, piece)  # Behind a gap.
    recent.add(Path("b"), 21 * piece, piece)
    recent.add(Path("b"), 0, KEPT_BYTES - 1)
    assert disk.dropped == [
        (path, 0, JOINED_BYTES),
        (path, JOINED_BYTES, JOINED_BYTES),
        (path, 8 * piece, piece),
        (path, 20 * piece, piece),
        (Path("b"), 21 * piece, piece),
    ]


class Remembering(RecentWrites):
    def __init__(self, file_system: FileSystem) -> None:
        super().__init__(file_system)
        self.added: list[tuple[Path, int, int]] = []

    def add(self, path: Path, start: int, length: int) -> None:
        self.added.append((path, start, length))


@pytest.mark.parametrize("length", [100_000, MIB, 3 * MIB + 5, 20 * MIB])
def test_all_written_bytes_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, length: int) -> None:
    recent = Remembering(FileSystem())
    monkeypatch.setattr(store, "RecentWrites", lambda _: recent)

    async def body(extents: LocalExtents) -> None:
        upload = extents.upload(size_hint=length)
        data = noise(length)
        for first in range(0, length, 100_000):
            await upload.write(data[first : first + 100_000])
        written = await upload.finish()
        extents.commit(written)
        assert await extents.read(written[0], 0, 1000) == data[:1000]

    run(tmp_path, body)
    assert aligned(sum(size for _, _, size in recent.added)) == aligned(length)
    ends = [start + size for _, start, size in recent.added]
    assert [start for _, start, _ in recent.added][1:] == ends[:-1]


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux takes advice on what to cache")
    return uncached_files(tmp_path)


def test_dropped_bytes_are_not_cached(paths: Iterator[Path]) -> None:
    for path in paths:
        path.read_bytes()
        assert cached(path, 0, LENGTH)
        FileSystem().drop_cached(path, 0, LENGTH)
        if not cached(path, 0, LENGTH):
            assert path.read_bytes() == noise(LENGTH)
            return
    pytest.fail("what was dropped stays cached")


def test_bytes_that_are_not_on_the_disk_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "new"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, noise(LENGTH), 0)
    FileSystem().drop_cached(path, 0, LENGTH)
    assert os.pread(fd, LENGTH, 0) == noise(LENGTH)
    os.close(fd)


def test_a_file_that_is_gone_is_no_error(tmp_path: Path) -> None:
    FileSystem().drop_cached(tmp_path / "gone", 0, LENGTH)
