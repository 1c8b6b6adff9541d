"""Bytes that are read for a check leave no trace in the page cache."""

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kyanite.extents.local.cold_reads import read_cold
from tests.extents.local.test_store import noise

BLOCK = 64 * 1024
LENGTH = 16 * BLOCK
FILES = 20
"""To drop pages is advice. For moments the kernel does not follow it, so one of these is enough."""
PAUSE = 0.05
libc = ctypes.CDLL(None)


def cached(path: Path, offset: int, length: int) -> bool:
    """Whether any of these bytes are in the page cache. To read them would bring them there."""
    resident = (ctypes.c_ubyte * (LENGTH // mmap.PAGESIZE))()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), LENGTH) as mapped:
        address = ctypes.addressof(start := ctypes.c_char.from_buffer(mapped))
        result = libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(LENGTH), resident)
        del start
    assert result == 0
    return any(resident[at // mmap.PAGESIZE] & 1 for at in range(offset, offset + length, mmap.PAGESIZE))


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    """Files of which nothing is cached, with a pause between them."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux takes advice on what to cache")
    return uncached_files(tmp_path)


def uncached_files(folder: Path) -> Iterator[Path]:
    found = False
    for number in range(FILES):
        path = folder / str(number)
        path.write_bytes(noise(LENGTH))
        fd = os.open(path, os.O_RDWR)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        if not cached(path, 0, LENGTH):
            found = True
            yield path
        time.sleep(PAUSE)
    if not found:
        pytest.skip("this file system keeps everything cached")


def test_what_was_not_cached_is_not_cached_afterwards(paths: Iterator[Path]) -> None:
    for path in paths:
        assert read_cold(path, BLOCK, 4 * BLOCK) == noise(LENGTH)[BLOCK : 5 * BLOCK]
        if not cached(path, 0, LENGTH):
            return
    pytest.fail("what was read stays cached")


def test_what_was_cached_stays(paths: Iterator[Path]) -> None:
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            os.pread(file.fileno(), 2 * BLOCK, 0)
        assert cached(path, 0, 2 * BLOCK)
        assert read_cold(path, 0, 8 * BLOCK) == noise(LENGTH)[: 8 * BLOCK]
        assert cached(path, 0, 2 * BLOCK)
        if not cached(path, 2 * BLOCK, LENGTH - 2 * BLOCK):
            return
    pytest.fail("what was read stays cached")


def test_the_end_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"short")
    assert read_cold(path, 2, 100) == b"ort"
    assert read_cold(path, 5, 100) == b""


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_cold(tmp_path / "missing", 0, 1)
