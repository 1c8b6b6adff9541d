"""Tags set by many clients while others overwrite, delete and search: every search is one state of the store."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob.aio import ContainerClient

from tests.server_process import ServerProcess

BLOBS = 700
"""More than a search reads in one step."""
WRITERS = 8
SEARCHES = 12


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """Afterwards the store is verified: index and records agree."""
    with ServerProcess("--workers", "3", location=tmp_path) as started:
        yield started
        assert started.stop() == 0
        command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(tmp_path)]
        verified = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert verified.returncode == 0, verified.stdout + verified.stderr


@asynccontextmanager
async def containers(server: ServerProcess, count: int) -> AsyncIterator[list[ContainerClient]]:
    """Clients of one container, each with connections of its own."""
    address = f"{server.endpoints['blob']}/races"
    made = [
        ContainerClient.from_container_url(address, credential=server.account_key, retry_total=0)
        for _ in range(count)
    ]
    try:
        await made[0].create_container()
        yield made
    finally:
        await asyncio.gather(*(client.close() for client in made))


async def test_a_blob_that_changes_its_tag_is_found_exactly_once(server: ServerProcess) -> None:
    """Blobs go back and forth between two values, and a search for both reads one after the other."""
    async with containers(server, WRITERS + 2) as clients:
        names = [f"{number:04}" for number in range(BLOBS)]
        for first in range(0, BLOBS, 50):
            some = names[first : first + 50]
            await asyncio.gather(*(clients[0].upload_blob(name, b"", tags={"side": "a"}) for name in some))
        is_over = asyncio.Event()
        changes = 0

        async def write(client: ContainerClient, seed: int) -> None:
            nonlocal changes
            chance = random.Random(seed)
            while not is_over.is_set():
                side = {"side": chance.choice("az")}
                if chance.random() < 0.5:
                    await client.get_blob_client(chance.choice(names)).set_blob_tags(side)
                else:
                    await client.upload_blob(chance.choice(names), b"new", overwrite=True, tags=side)
                changes += 1

        async def search(client: ContainerClient) -> None:
            for _ in range(SEARCHES):
                found = [each.name async for each in client.find_blobs_by_tags("side >= 'a' AND side <= 'z'")]
                assert sorted(found) == names

        writers = [asyncio.create_task(write(client, seed)) for seed, client in enumerate(clients[:WRITERS])]
        try:
            await asyncio.gather(*(search(client) for client in clients[WRITERS:]))
        finally:
            is_over.set()
            await asyncio.gather(*writers)
        assert changes > SEARCHES


async def test_set_tags_beside_overwrite_and_delete(server: ServerProcess) -> None:
    """Whatever comes last, the blob is found by the tags that it has, and by no others."""
    async with containers(server, WRITERS) as clients:

        async def write(client: ContainerClient, seed: int) -> None:
            chance, blob = random.Random(seed), client.get_blob_client("blob")
            for number in range(30):
                tags = {"writer": str(seed), "number": str(number)}
                with suppress(ResourceNotFoundError):
                    match chance.randrange(5):
                        case 0:
                            await blob.delete_blob()
                        case 1:
                            await blob.upload_blob(b"plain", overwrite=True)
                        case 2:
                            await blob.upload_blob(b"tagged", overwrite=True, tags=tags)
                        case _:
                            await blob.set_blob_tags(tags)

        await asyncio.gather(*(write(client, seed) for seed, client in enumerate(clients)))
        blob = clients[0].get_blob_client("blob")
        actual = {} if not await blob.exists() else await blob.get_blob_tags()
        for seed in range(WRITERS):
            found = [each.tags async for each in clients[0].find_blobs_by_tags(f"writer = '{seed}'")]
            assert found == ([{"writer": str(seed)}] if actual.get("writer") == str(seed) else [])
