"""The file system: short writes are finished, and errors are distinguished."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kyanite.engine.api import EngineError, EngineFull
from kyanite.extents.local.file_system import Buffer, FileSystem, failure


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffers: list[Buffer] = [b"abc", bytearray(b"defgh"), memoryview(b"i"), b"", b"jklmnopq" * 400]
    buffers += [bytes((65 + number % 26,)) for number in range(3000)]
    whole = b"".join(buffers)

    def pwrite_some(fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        assert 0 < len(buffers) <= 1024
        return os.pwrite(fd, b"".join(buffers)[:700], offset)

    file_system = FileSystem()
    fd = file_system.create(tmp_path / "file")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", pwrite_some)
        file_system.write(fd, buffers, 10)
    os.close(fd)
    assert (tmp_path / "file").read_bytes() == bytes(10) + whole


def test_failures_are_distinguished() -> None:
    assert type(failure(OSError(errno.ENOSPC, "full"))) is EngineFull
    assert type(failure(OSError(errno.EDQUOT, "quota"))) is EngineFull
    assert type(failure(OSError(errno.EIO, "broken"))) is EngineError
    known = EngineFull("known")
    assert failure(known) is known


def test_what_is_gone_is_not_missed(tmp_path: Path) -> None:
    file_system = FileSystem()
    file_system.punch(tmp_path / "gone", [(0, 4096)])
    file_system.unlink(tmp_path / "gone")


def test_folders_are_made_all_the_way_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(FileSystem, "sync_folder", lambda _, path: synced.append(path))
    FileSystem().make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert synced == [tmp_path, tmp_path / "a"]
