"""Extents in a private object store, for tests."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import obstore

from kyanite.extents.s3 import unfinished
from kyanite.extents.s3.location import S3Location, parse
from kyanite.extents.s3.names import name_of, segment_of
from kyanite.extents.s3.store import S3Extents
from kyanite.membership.local import LocalMembership
from tests.extents.suite import Process
from tests.seaweed_server import SeaweedServer

KEEP_SECONDS = 0.05
NO_ENVIRONMENT: Mapping[str, str] = {}


class PrivateBucket:
    def __init__(self, server: SeaweedServer, folder: Path) -> None:
        self._folder = folder
        self.prefix = f"{folder.parent.name}/{folder.name}"
        self.location: S3Location = replace(
            parse(server.url(self.prefix), NO_ENVIRONMENT), keep_seconds=KEEP_SECONDS
        )
        self.client = server.client(self.prefix)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Process]:
        membership = LocalMembership(self._folder / "owners")
        extents = S3Extents(self.location, membership)
        try:
            yield Process(extents, membership)
        finally:
            await extents.close()
            membership.close()

    def names(self) -> list[str]:
        return [found["path"] for page in obstore.list(self.client) for found in page]

    def segments(self) -> set[bytes]:
        return {segment for name in self.names() if (segment := segment_of(name)) is not None}

    def change(self, segment: bytes, change: Callable[[bytes], bytes]) -> None:
        old = bytes(obstore.get(self.client, name_of(segment)).bytes())
        obstore.put(self.client, name_of(segment), change(old))

    def unfinished(self) -> int:
        found, _ = unfinished._list(self.location, self.location.prefix)
        return len(found)
