"""The descriptor cache: never more than allowed, and none closed under a reader."""

import os
from pathlib import Path

import pytest

from kyanite.engine.api import EngineBusy
from kyanite.extents.local import descriptor_cache
from kyanite.extents.local.descriptor_cache import DescriptorCache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DescriptorCache:
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


def test_a_file_is_opened_once_and_kept_a_while(cache: DescriptorCache) -> None:
    first, second = cache.acquire(b"0"), cache.acquire(b"0")
    assert first is second
    cache.release(first)
    assert is_open(first.fd)
    cache.release(second)
    assert cache.acquire(b"0") is first
    cache.release(first)
    cache.close()
    assert not is_open(first.fd)


def test_the_longest_idle_is_closed_first(cache: DescriptorCache) -> None:
    opened = [cache.acquire(b"%d" % number) for number in range(3)]
    for file in opened:
        cache.release(file)
    assert [is_open(file.fd) for file in opened] == [False, True, True]
    cache.close()


def test_there_is_a_limit(cache: DescriptorCache) -> None:
    opened = [cache.acquire(b"%d" % number) for number in range(3)]
    with pytest.raises(EngineBusy):
        cache.acquire(b"3")
    cache.acquire(b"0")
    cache.release(opened[1])
    cache.acquire(b"3")
    cache.close()


def test_a_forgotten_file_is_closed_unless_it_is_read(cache: DescriptorCache) -> None:
    idle, used = cache.acquire(b"0"), cache.acquire(b"1")
    cache.release(idle)
    cache.forget(b"0")
    cache.forget(b"1")
    cache.forget(b"2")
    assert [is_open(file.fd) for file in (idle, used)] == [False, True]
    cache.close()
