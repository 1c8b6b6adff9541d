"""Open files: never more than agreed, and none closed under a reader."""

import os
from pathlib import Path

import pytest

from kyanite.engine.api import EngineBusy
from kyanite.extents.local import descriptor_cache
from kyanite.extents.local.descriptor_cache import DescriptorCache


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DescriptorCache:
    monkeypatch.setattr(descriptor_cache, "IDLE_MAX", 2)
    monkeypatch.setattr(descriptor_cache, "IN_USE_MAX", 3)
    for number in range(5):
        (tmp_path / f"{number}").write_text(f"{number}")
    return DescriptorCache(lambda segment: tmp_path / segment.decode())


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_file_is_opened_once_and_kept_a_while(files: DescriptorCache) -> None:
    first, second = files.acquire(b"0"), files.acquire(b"0")
    assert first is second
    files.release(first)
    assert is_open(first.fd)
    files.release(second)
    assert files.acquire(b"0") is first
    files.release(first)
    files.close()
    assert not is_open(first.fd)


def test_the_longest_idle_is_closed_first(files: DescriptorCache) -> None:
    opened = [files.acquire(b"%d" % number) for number in range(3)]
    for file in opened:
        files.release(file)
    assert [is_open(file.fd) for file in opened] == [False, True, True]
    files.close()


def test_there_is_a_limit(files: DescriptorCache) -> None:
    opened = [files.acquire(b"%d" % number) for number in range(3)]
    with pytest.raises(EngineBusy):
        files.acquire(b"3")
    files.acquire(b"0")
    files.release(opened[1])
    files.acquire(b"3")
    files.close()


def test_a_forgotten_file_is_closed_unless_somebody_reads_it(files: DescriptorCache) -> None:
    idle, used = files.acquire(b"0"), files.acquire(b"1")
    files.release(idle)
    files.forget(b"0")
    files.forget(b"1")
    files.forget(b"2")
    assert [is_open(file.fd) for file in (idle, used)] == [False, True]
    files.close()
