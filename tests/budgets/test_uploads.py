"""How much of a long body is copied in memory, and how many writes and syncs it takes, from the socket to the file.

What the kernel has received is what the threads hash and write: only what comes before the body has a buffer is copied.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from kyanite.extents.api import Upload
from kyanite.extents.local.file_system import Buffer, FileSystem
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.services.rest import uploads
from kyanite.wire.http import Request, Response
from tests.server.http.blocking_client import read_some
from tests.server.http.live_server import LiveHttp

MIB = 1024 * 1024
COPIED_BYTES_MAX = 64 * 1024 + 256_000
"""What the body may have in pieces, and one read of the event loop, however long the body is."""


class CountedDisk(FileSystem):
    def __init__(self) -> None:
        self.writes = 0
        self.buffers = 0
        self.syncs = 0

    def write(self, fd: int, buffers: Sequence[Buffer], offset: int) -> None:
        self.writes += 1
        self.buffers += len(buffers)
        super().write(fd, buffers, offset)

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


class CountedUpload:
    """An upload, and what of it came in chunks, which are copies."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self.copied_bytes = 0
        self.buffer = upload.buffer
        self.filled = upload.filled
        self.finish = upload.finish
        self.abort = upload.abort

    async def write(self, chunk: bytes) -> None:
        self.copied_bytes += len(chunk)
        await self._upload.write(chunk)


@pytest.mark.parametrize("length", [4 * MIB, 32 * MIB])
def test_a_long_body_is_written_as_it_was_received(tmp_path: Path, length: int) -> None:
    disk = CountedDisk()
    copied: list[int] = []
    observed: list[int] = []

    async def store(request: Request) -> Response:
        membership = LocalMembership(tmp_path / "owners")
        extents = LocalExtents(tmp_path, membership, file_system=disk)
        upload = CountedUpload(
            extents.upload(size_hint=length, observers=(lambda data: observed.append(len(data)),))
        )
        assert await uploads._pass_on(request.body, length, upload) == length
        extents.commit(await upload.finish())
        copied.append(upload.copied_bytes)
        await extents.close()
        membership.close()
        return Response(201)

    with LiveHttp(store) as live, live.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % length + bytes(length))
        read_some(client, b"\r\n\r\n")
    mebibytes = length // MIB
    assert copied[0] <= COPIED_BYTES_MAX
    assert disk.writes <= mebibytes
    assert disk.buffers <= mebibytes + 8, "one for each write, and the chunks before the first buffer"
    assert disk.syncs == 1
    assert sum(observed) == length
    assert len(observed) == disk.buffers


def test_a_medium_body_is_one_write(tmp_path: Path) -> None:
    """Without being joined: the pieces of the socket are written as they are."""
    disk = CountedDisk()

    async def main() -> None:
        membership = LocalMembership(tmp_path / "owners")
        extents = LocalExtents(tmp_path, membership, file_system=disk)
        upload = extents.upload(size_hint=MIB)
        for _ in range(4):
            await upload.write(bytes(MIB // 4))
        extents.commit(await upload.finish())
        await extents.close()
        membership.close()

    asyncio.run(main())
    assert (disk.writes, disk.buffers, disk.syncs) == (1, 4, 1)
