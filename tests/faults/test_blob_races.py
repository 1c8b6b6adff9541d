"""Thirty-two clients at one blob, through several workers: exactly the allowed winners, the others with a reason."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.storage.blob import BlobBlock, StorageErrorCode
from azure.storage.blob.aio import BlobClient, BlobLeaseClient, ContainerClient

from tests.server_process import ServerProcess

CLIENTS = 32
ROUNDS = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "3", location=Path(tmp_path_factory.mktemp("races"))) as started:
        yield started


@asynccontextmanager
async def clients(server: ServerProcess, name: str) -> AsyncIterator[list[BlobClient]]:
    """As many clients of one blob, each with connections of its own, so that all workers are at it."""
    address = f"{server.endpoints['blob']}/races"
    container = ContainerClient.from_container_url(address, credential=server.account_key, retry_total=0)
    async with container:
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


async def race(acts: list[Callable[[], Awaitable[object]]]) -> Counter[str]:
    """Let all act concurrently, and count the outcomes: ``ok``, or the code of the refusal."""

    async def outcome(act: Callable[[], Awaitable[object]]) -> str:
        try:
            await act()
        except HttpResponseError as error:
            return StorageErrorCode(getattr(error, "error_code", "")).value
        return "ok"

    return Counter(await asyncio.gather(*(outcome(act) for act in acts)))


async def test_one_etag_has_one_winner(server: ServerProcess) -> None:
    async with clients(server, "etag") as blobs:
        for number in range(ROUNDS):
            etag = (await blobs[0].upload_blob(b"0", overwrite=True))["etag"]
            same: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
            outcomes = await race(
                [partial(b.upload_blob, b"%d" % n, overwrite=True, **same) for n, b in enumerate(blobs)]
            )
            assert outcomes == {"ok": 1, "ConditionNotMet": CLIENTS - 1}, number


async def test_one_blob_is_created_once(server: ServerProcess) -> None:
    for number in range(ROUNDS):
        async with clients(server, f"new-{number}") as blobs:
            outcomes = await race([partial(b.upload_blob, b"mine") for b in blobs])
            assert outcomes == {"ok": 1, "BlobAlreadyExists": CLIENTS - 1}


async def test_one_lease_has_one_holder(server: ServerProcess) -> None:
    async with clients(server, "lease") as blobs:
        await blobs[0].upload_blob(b"x", overwrite=True)
        for _ in range(ROUNDS):
            outcomes = await race([partial(b.acquire_lease, 15) for b in blobs])
            assert outcomes == {"ok": 1, "LeaseAlreadyPresent": CLIENTS - 1}
            await BlobLeaseClient(blobs[0]).break_lease(lease_break_period=0)


async def test_block_lists_are_whole(server: ServerProcess) -> None:
    """Every client commits its own pair of blocks: the blob is one of the pairs, never a mixture."""
    async with clients(server, "blocks") as blobs:
        ids = [base64.b64encode(b"%04d" % n).decode() for n in range(2 * CLIENTS)]
        for n, blob in enumerate(blobs):
            for half in (0, 1):
                await blob.stage_block(ids[2 * n + half], b"<%02d-%d>" % (n, half))
        outcomes = await race(
            [
                partial(b.commit_block_list, [BlobBlock(ids[2 * n]), BlobBlock(ids[2 * n + 1])])
                for n, b in enumerate(blobs)
            ]
        )
        assert outcomes == {"ok": 1, "InvalidBlockList": CLIENTS - 1}
        text = await (await blobs[0].download_blob()).readall()
        assert text[1:3] == text[7:9]
        assert text == b"<%b-0><%b-1>" % (text[1:3], text[1:3])


async def test_appends_are_serialised_and_return_their_offsets(server: ServerProcess) -> None:
    async with clients(server, "log") as blobs:
        await blobs[0].create_append_blob()
        answers: list[tuple[int, bytes]] = []

        async def append(blob: BlobClient, number: int) -> None:
            for repetition in range(ROUNDS):
                line = b"%02d:%d;" % (number, repetition)
                answer = await blob.append_block(line)
                answers.append((int(str(answer["blob_append_offset"])), line))

        await asyncio.gather(*(append(blob, number) for number, blob in enumerate(blobs)))
        text = await (await blobs[0].download_blob()).readall()
        assert len(text) == CLIENTS * ROUNDS * 5
        assert all(text[offset : offset + 5] == line for offset, line in answers)
        assert len({offset for offset, _ in answers}) == CLIENTS * ROUNDS


async def test_one_append_position_has_one_winner(server: ServerProcess) -> None:
    async with clients(server, "position") as blobs:
        await blobs[0].create_append_blob()
        outcomes = await race([partial(b.append_block, b"x", appendpos_condition=0) for b in blobs])
        assert outcomes == {"ok": 1, "AppendPositionConditionNotMet": CLIENTS - 1}


async def test_sequence_numbers_count_every_increment(server: ServerProcess) -> None:
    async with clients(server, "disk") as blobs:
        await blobs[0].create_page_blob(512)
        outcomes = await race([partial(b.set_sequence_number, "increment") for b in blobs])
        assert outcomes == {"ok": CLIENTS}
        properties = await blobs[0].get_blob_properties()
        assert properties.page_blob_sequence_number == CLIENTS
        conditional = await race(
            [partial(b.upload_page, b"p" * 512, 0, 512, if_sequence_number_lt=CLIENTS) for b in blobs]
        )
        assert conditional == {"SequenceNumberConditionNotMet": CLIENTS}


async def test_a_counter_kept_by_etags_loses_no_update(server: ServerProcess) -> None:
    async with clients(server, "counter") as blobs:
        await blobs[0].upload_blob(b"0", overwrite=True)
        successes = 0

        async def count_up(blob: BlobClient) -> None:
            nonlocal successes
            for _ in range(200):
                download = await blob.download_blob()
                value = int(await download.readall())
                try:
                    await blob.upload_blob(
                        b"%d" % (value + 1),
                        overwrite=True,
                        etag=download.properties.etag,
                        match_condition=MatchConditions.IfNotModified,
                    )
                except ResourceModifiedError:
                    continue
                successes += 1
                return

        await asyncio.gather(*(count_up(blob) for blob in blobs))
        assert int(await (await blobs[0].download_blob()).readall()) == successes == CLIENTS


async def test_a_counter_kept_under_a_lease_loses_no_update(server: ServerProcess) -> None:
    async with clients(server, "leased-counter") as blobs:
        await blobs[0].upload_blob(b"0", overwrite=True)

        async def count_up(blob: BlobClient) -> None:
            for _ in range(2000):
                try:
                    lease = await blob.acquire_lease(15)
                except HttpResponseError:
                    await asyncio.sleep(0.005)
                    continue
                value = int(await (await blob.download_blob(lease=lease)).readall())
                await blob.upload_blob(b"%d" % (value + 1), overwrite=True, lease=lease)
                await lease.release()
                return
            raise AssertionError("the lease never came free")

        await asyncio.gather(*(count_up(blob) for blob in blobs[:12]))
        assert int(await (await blobs[0].download_blob()).readall()) == 12
