"""Thirty-two clients at one thing, half of them at each of two nodes: exactly the allowed winners, and exact counts."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.data.tables import TableTransactionError
from azure.data.tables.aio import TableClient
from azure.storage.blob.aio import BlobClient, BlobLeaseClient, ContainerClient
from azure.storage.queue.aio import QueueClient

from tests.server_process import ServerProcess

CLIENTS = 32
ROUNDS = 3
APPENDS = 2

Nodes = list[ServerProcess]


def unique(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex[:12]}"


@asynccontextmanager
async def blobs_of(nodes: Nodes, name: str) -> AsyncIterator[list[BlobClient]]:
    """Clients of one blob, each with connections of its own, at the nodes in turn."""
    async with AsyncExitStack() as stack:
        for node in nodes:
            container = ContainerClient.from_container_url(
                f"{node.endpoints['blob']}/races", credential=node.account_key, retry_total=0
            )
            await stack.enter_async_context(container)
            if not await container.exists():
                await container.create_container()
        made = []
        for number in range(CLIENTS):
            node = nodes[number % len(nodes)]
            url = f"{node.endpoints['blob']}/races/{name}"
            client = BlobClient.from_blob_url(url, credential=node.account_key, retry_total=0)
            made.append(await stack.enter_async_context(client))
        yield made


async def race(acts: Sequence[Callable[[], Awaitable[object]]]) -> Counter[str]:
    """Let all act concurrently, and count the outcomes: ``ok``, or the code of the refusal."""

    async def outcome(act: Callable[[], Awaitable[object]]) -> str:
        try:
            await act()
        except HttpResponseError as error:
            code = getattr(error, "error_code", "") or ""
            return str(getattr(code, "value", code))
        return "ok"

    return Counter(await asyncio.gather(*map(outcome, acts)))


async def test_one_etag_has_one_winner(nodes: Nodes) -> None:
    async with blobs_of(nodes, unique("etag")) as blobs:
        for _ in range(ROUNDS):
            etag = (await blobs[0].upload_blob(b"0", overwrite=True))["etag"]
            same: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
            outcomes = await race([partial(b.upload_blob, b"1", overwrite=True, **same) for b in blobs])
            assert outcomes == {"ok": 1, "ConditionNotMet": CLIENTS - 1}


async def test_a_counter_by_etag_is_exact(nodes: Nodes) -> None:
    async with blobs_of(nodes, unique("counter")) as blobs:
        await blobs[0].upload_blob(b"0")

        async def increment(blob: BlobClient) -> None:
            while True:
                read = await blob.download_blob()
                value = int(await read.readall())
                same: dict[str, Any] = {
                    "etag": read.properties.etag,
                    "match_condition": MatchConditions.IfNotModified,
                }
                try:
                    await blob.upload_blob(b"%d" % (value + 1), overwrite=True, **same)
                    return
                except ResourceModifiedError:
                    continue

        await asyncio.gather(*map(increment, blobs))
        for blob in blobs[:2]:
            assert int(await (await blob.download_blob()).readall()) == CLIENTS


async def test_one_blob_is_created_once(nodes: Nodes) -> None:
    for _ in range(ROUNDS):
        async with blobs_of(nodes, unique("new")) as blobs:
            outcomes = await race([partial(b.upload_blob, b"mine") for b in blobs])
            assert outcomes == {"ok": 1, "BlobAlreadyExists": CLIENTS - 1}


async def test_one_lease_has_one_holder(nodes: Nodes) -> None:
    async with blobs_of(nodes, unique("lease")) as blobs:
        await blobs[0].upload_blob(b"")
        leases = [BlobLeaseClient(blob) for blob in blobs]
        outcomes = await race([partial(lease.acquire, lease_duration=60) for lease in leases])
        assert outcomes == {"ok": 1, "LeaseAlreadyPresent": CLIENTS - 1}


async def test_appends_are_exact(nodes: Nodes) -> None:
    async with blobs_of(nodes, unique("append")) as blobs:
        await blobs[0].create_append_blob()
        texts = [[b"%d.%d\n" % (number, each) for each in range(APPENDS)] for number in range(CLIENTS)]

        async def append(number: int) -> None:
            for text in texts[number]:
                await blobs[number].append_block(text)

        await asyncio.gather(*map(append, range(CLIENTS)))
        lines = (await (await blobs[1].download_blob()).readall()).splitlines(keepends=True)
        assert sorted(lines) == sorted(text for each in texts for text in each)
        for each in texts:
            assert [line for line in lines if line in each] == each
        # One position is taken once.
        end = (await blobs[0].get_blob_properties()).size
        outcomes = await race([partial(b.append_block, b"x", appendpos_condition=end) for b in blobs])
        assert outcomes == {"ok": 1, "AppendPositionConditionNotMet": CLIENTS - 1}


async def test_every_message_is_got_once(nodes: Nodes) -> None:
    name, messages = unique("queue"), 4 * CLIENTS
    async with AsyncExitStack() as stack:
        clients = []
        for number in range(CLIENTS):
            node = nodes[number % len(nodes)]
            url = f"{node.endpoints['queue']}/{name}"
            client = QueueClient.from_queue_url(url, credential=node.account_key, retry_total=0)
            clients.append(await stack.enter_async_context(client))
        await clients[0].create_queue()
        sent = [f"message {number}" for number in range(messages)]
        await asyncio.gather(*(clients[n % CLIENTS].send_message(text) for n, text in enumerate(sent)))
        got: list[str] = []

        async def consume(client: QueueClient) -> None:
            while (message := await client.receive_message(visibility_timeout=600)) is not None:
                got.append(message.content)
                await client.delete_message(message)

        await asyncio.gather(*map(consume, clients))
        assert sorted(got) == sorted(sent)
        for client in clients[:2]:
            assert (await client.get_queue_properties()).approximate_message_count == 0


async def test_one_batch_wins(nodes: Nodes) -> None:
    name = unique("table")
    async with AsyncExitStack() as stack:
        clients = []
        for number in range(CLIENTS):
            node = nodes[number % len(nodes)]
            client = TableClient(
                node.endpoints["table"],
                name,
                credential=AzureNamedKeyCredential(node.account, node.account_key),
                retry_total=0,
            )
            clients.append(await stack.enter_async_context(client))
        await clients[0].create_table()

        async def insert(number: int, round_number: int) -> bool:
            rows = [
                {"PartitionKey": "p", "RowKey": f"{round_number} {row}", "by": number} for row in range(5)
            ]
            try:
                await clients[number].submit_transaction([("create", row) for row in rows])
            except TableTransactionError as error:
                if getattr(error, "error_code", "") != "EntityAlreadyExists":
                    raise
                return False
            return True

        for round_number in range(ROUNDS):
            won = await asyncio.gather(*(insert(number, round_number) for number in range(CLIENTS)))
            assert sum(won) == 1
            rows = [
                row
                async for row in clients[1].query_entities("PartitionKey eq 'p'")
                if row["RowKey"].startswith(f"{round_number} ")
            ]
            assert [row["by"] for row in rows] == [won.index(True)] * 5
