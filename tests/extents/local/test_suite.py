"""What ``extents/api.py`` promises, on local files."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from tests.extents.suite import ExtentsSuite, Process


class LocalFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Process]:
        membership = LocalMembership(self._folder / "owners")
        extents = LocalExtents(self._folder, membership)
        try:
            yield Process(extents, membership)
        finally:
            await extents.close()
            membership.close()

    def segments(self) -> set[bytes]:
        found = (self._folder / "segments").glob("*/*")
        return {bytes.fromhex(path.parent.name + path.name) for path in found}

    def change(self, segment: bytes, change: Callable[[bytes], bytes]) -> None:
        path = self._folder / "segments" / segment[:12].hex() / segment[12:].hex()
        path.write_bytes(change(path.read_bytes()))

    def unfinished(self) -> int:
        return 0


class TestLocalExtents(ExtentsSuite):
    @pytest.fixture
    def site(self, tmp_path: Path) -> LocalFolder:
        return LocalFolder(tmp_path)
