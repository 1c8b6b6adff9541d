"""Races about the history of one blob, through several workers: every outcome is an allowed one, and nothing leaks."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import StorageErrorCode
from azure.storage.blob.aio import BlobClient, ContainerClient

from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from tests.sdk.operator import set_blob_settings
from tests.server_process import ServerProcess

CLIENTS = 12
ROUNDS = 3

Act = Callable[[], Awaitable[object]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Afterwards the store is verified: nothing is lost, and nothing is left over."""
    location = Path(tmp_path_factory.mktemp("races"))
    with ServerProcess("--workers", "3", location=location) as started:
        yield started
        assert started.stop() == 0
        command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(location)]
        verified = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert verified.returncode == 0, verified.stdout + verified.stderr


async def keep(server: ServerProcess, *, versioning: bool, days: int | None) -> None:
    retention = DeleteRetention(Retention(days))
    await set_blob_settings(server, ServiceProperties(versioning=versioning, delete_retention=retention))


@asynccontextmanager
async def clients(server: ServerProcess, name: str) -> AsyncIterator[list[BlobClient]]:
    """Clients of one blob, each with connections of its own, so that all workers are at it."""
    address = f"{server.endpoints['blob']}/races"
    async with ContainerClient.from_container_url(address, credential=server.account_key) as container:
        if not await container.exists():
            await container.create_container()
    made = [
        BlobClient.from_blob_url(f"{address}/{name}", credential=server.account_key, retry_total=0)
        for _ in range(CLIENTS)
    ]
    try:
        yield made
    finally:
        await asyncio.gather(*(client.close() for client in made))


async def outcome(act: Act) -> str:
    try:
        await act()
    except HttpResponseError as error:
        return StorageErrorCode(getattr(error, "error_code", "")).value
    return "ok"


async def race(acts: list[Act]) -> Counter[str]:
    return Counter(await asyncio.gather(*map(outcome, acts)))


async def listed(blob: BlobClient, server: ServerProcess) -> list[Any]:
    address = f"{server.endpoints['blob']}/races"
    async with ContainerClient.from_container_url(address, credential=server.account_key) as container:
        every = container.list_blobs(blob.blob_name, include=["snapshots", "versions", "deleted"])
        return [item async for item in every if item.name == blob.blob_name]


async def text_of(blob: BlobClient, **options: Any) -> bytes:
    return bytes(await (await blob.download_blob(**options)).readall())


async def test_two_undeletes(server: ServerProcess) -> None:
    await keep(server, versioning=False, days=7)
    async with clients(server, "undeletes") as blobs:
        for _ in range(ROUNDS):
            await blobs[0].upload_blob(b"kept", overwrite=True)
            await blobs[0].create_snapshot()
            await blobs[0].delete_blob(delete_snapshots="include")
            assert await race([blob.undelete_blob for blob in blobs]) == {"ok": CLIENTS}
            assert await text_of(blobs[0]) == b"kept"
            assert not any(item.deleted for item in await listed(blobs[0], server))
            await blobs[0].delete_blob(delete_snapshots="include")


async def test_deletes_beside_undeletes(server: ServerProcess) -> None:
    """Whatever is last: the blob and its snapshot are both there, or both deleted and restorable."""
    await keep(server, versioning=False, days=7)
    async with clients(server, "both") as blobs:
        await blobs[0].upload_blob(b"kept", overwrite=True)
        await blobs[0].create_snapshot()
        for _ in range(ROUNDS):
            deletes = [partial(blob.delete_blob, delete_snapshots="include") for blob in blobs[::2]]
            outcomes = await race([*deletes, *(blob.undelete_blob for blob in blobs[1::2])])
            assert outcomes.keys() <= {"ok", "BlobNotFound"}
            items = await listed(blobs[0], server)
            assert len(items) == 2
            assert len({bool(item.deleted) for item in items}) == 1
            await blobs[0].undelete_blob()
            assert await text_of(blobs[0]) == b"kept"


async def test_overwrites_beside_deletes_of_versions(server: ServerProcess) -> None:
    """A version is deleted once. Every overwrite adds one, and none is lost."""
    await keep(server, versioning=True, days=None)
    async with clients(server, "versions") as blobs:
        for number in range(ROUNDS):
            first = (await blobs[0].upload_blob(b"first", overwrite=True))["version_id"]
            await blobs[0].upload_blob(b"second", overwrite=True)
            before = len(await listed(blobs[0], server))
            deletes = [partial(blob.delete_blob, version_id=first) for blob in blobs[::2]]
            puts = [partial(blob.upload_blob, b"%d" % number, overwrite=True) for blob in blobs[1::2]]
            outcomes = await race([*deletes, *puts])
            assert outcomes == {"ok": 1 + len(puts), "BlobNotFound": len(deletes) - 1}
            assert len(await listed(blobs[0], server)) == before + len(puts) - 1


async def test_deletes_of_a_version_beside_its_promotion(server: ServerProcess) -> None:
    """It is deleted once. A copy of it is whole, or is refused because there is no such version any more."""
    await keep(server, versioning=True, days=None)
    async with clients(server, "promoted") as blobs:
        for _ in range(ROUNDS):
            first = (await blobs[0].upload_blob(b"first" * 9_000, overwrite=True))["version_id"]
            await blobs[0].upload_blob(b"second", overwrite=True)
            source = f"{blobs[0].url}?versionid={first}"
            deletes = [partial(blob.delete_blob, version_id=first) for blob in blobs[:2]]
            copies = [partial(blob.start_copy_from_url, source) for blob in blobs[2:]]
            deleted, copied = await asyncio.gather(race(list(deletes)), race(list(copies)))
            assert deleted == {"ok": 1, "BlobNotFound": 1}
            assert copied.keys() <= {"ok", "CannotVerifyCopySource"}
            assert await text_of(blobs[0]) == (b"first" * 9_000 if copied["ok"] else b"second")


async def test_overwrites_beside_undeletes(server: ServerProcess) -> None:
    """Every overwritten state is a snapshot, deleted or restored, and the newest blob stays."""
    await keep(server, versioning=False, days=7)
    async with clients(server, "overwritten") as blobs:
        await blobs[0].upload_blob(b"0", overwrite=True)
        puts = [partial(blob.upload_blob, b"1", overwrite=True) for blob in blobs[::2]]
        outcomes = await race([*puts, *(blob.undelete_blob for blob in blobs[1::2])])
        assert outcomes == {"ok": CLIENTS}
        items = await listed(blobs[0], server)
        assert len(items) == 1 + len(puts)
        assert await text_of(blobs[0]) == b"1"
