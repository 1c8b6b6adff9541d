"""The primary of PostgreSQL is killed under load and its synchronous standby promoted: nothing acknowledged is lost.

Clients of all services, at both nodes, write new things one after another and note what was acknowledged. During the
failover a request succeeds or is answered with an error that clients retry.
"""

import asyncio
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables.aio import TableServiceClient
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.fileshare.aio import ShareServiceClient
from azure.storage.queue.aio import QueueServiceClient
from smbprotocol.exceptions import SMBException

from tests.nodes.cluster import PATIENCE_SECONDS, new_prefix, running_nodes
from tests.postgres_server import PostgresServer, private_folder, running_postgres
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess
from tests.smb.messages import CREATE, OPEN, connected
from tests.smb.torture.targets import login_of

ROUNDS = int(os.environ.get("KYANITE_TEST_FAILOVERS", "1"))
WRITERS = 4
"""Clients of each of the four services over HTTP, at each of two nodes: 32 in all."""
LOAD_SECONDS = 1.0
"""Before and after a failover."""
NAME = "failover"

Write = Callable[[str], Awaitable[object]]
Read = Callable[[], Awaitable[set[str]]]


class Clients:
    """One client of each service at one node, and what was acknowledged to them."""

    def __init__(self, node: ServerProcess, stack: AsyncExitStack) -> None:
        self.node = node
        self.acknowledged: dict[str, set[str]] = {
            "blob": set(),
            "queue": set(),
            "table": set(),
            "file": set(),
        }
        self.errors: Counter[tuple[int, str]] = Counter()
        self.last_success: dict[str, float] = {}
        options: dict[str, Any] = {"credential": node.account_key, "retry_total": 0}
        self.blob = BlobServiceClient(node.endpoints["blob"], **options)
        self.queue = QueueServiceClient(node.endpoints["queue"], **options)
        self.file = ShareServiceClient(node.endpoints["file"], **options)
        self.table = TableServiceClient(
            node.endpoints["table"],
            credential=AzureNamedKeyCredential(node.account, node.account_key),
            retry_total=0,
        )
        for client in (self.blob, self.queue, self.file, self.table):
            stack.push_async_exit(client)

    async def make(self) -> None:
        await self.blob.create_container(NAME)
        await self.queue.create_queue(NAME)
        await self.file.create_share(NAME)
        await self.table.create_table(NAME)

    def writes(self) -> dict[str, Write]:
        return {
            "blob": lambda name: self.blob.get_blob_client(NAME, name).upload_blob(name.encode()),
            "queue": lambda name: self.queue.get_queue_client(NAME).send_message(name),
            "table": lambda name: self.table.get_table_client(NAME).create_entity(
                {"PartitionKey": name[:2], "RowKey": name}
            ),
            "file": lambda name: self.file.get_share_client(NAME).create_directory(name),
        }

    async def write_until(self, ended: asyncio.Event, service: str) -> None:
        write = self.writes()[service]
        while not ended.is_set():
            name = uuid.uuid4().hex
            try:
                await write(name)
            except HttpResponseError as error:
                code = getattr(error, "error_code", "") or ""
                self.errors[error.status_code or 0, str(getattr(code, "value", code))] += 1
                await asyncio.sleep(0.05)
            else:
                self.acknowledged[service].add(name)
                self.last_success[service] = time.monotonic()

    async def stored(self) -> dict[str, set[str]]:
        blobs = {blob.name async for blob in self.blob.get_container_client(NAME).list_blobs()}
        queue = self.queue.get_queue_client(NAME)
        messages: set[str] = set()
        while found := [m async for m in queue.receive_messages(max_messages=32, visibility_timeout=600)]:
            messages |= {message.content for message in found}
        entities = {row["RowKey"] async for row in self.table.get_table_client(NAME).list_entities()}
        share = self.file.get_share_client(NAME)
        files = {entry.name async for entry in share.list_directories_and_files()}
        return {"blob": blobs, "queue": messages, "table": entities, "file": files}


class SmbWriter(threading.Thread):
    """Writes files over SMB until it is ended."""

    def __init__(self, node: ServerProcess) -> None:
        super().__init__()
        self._login = login_of(node)
        self.acknowledged: set[str] = set()
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                with connected(self._login, NAME) as client:
                    while not self.ended.is_set():
                        self._write(client)
            except (SMBException, OSError):
                time.sleep(0.1)

    def _write(self, client: object) -> None:
        name = f"smb-{uuid.uuid4().hex}"
        opened = client.create(name, disposition=CREATE)  # type: ignore[attr-defined]
        client.write(opened, name.encode())  # type: ignore[attr-defined]
        self.acknowledged.add(name)
        client.close(opened)  # type: ignore[attr-defined]


def test_a_failover_loses_nothing_acknowledged(seaweed: SeaweedServer) -> None:
    for _ in range(ROUNDS):
        with ExitStack() as stack:
            primary = stack.enter_context(running_postgres())
            standby = primary.add_standby(stack.enter_context(private_folder()))
            stack.callback(standby.stop)
            url = primary.url(hosts=f"{primary.hosts},{standby.hosts}")
            nodes = stack.enter_context(running_nodes(url, seaweed.url(new_prefix())))
            asyncio.run(fail_over(nodes, primary, standby))


async def fail_over(nodes: list[ServerProcess], primary: PostgresServer, standby: PostgresServer) -> None:
    async with AsyncExitStack() as stack:
        everyone = [Clients(node, stack) for node in nodes]
        await everyone[0].make()
        smb = SmbWriter(nodes[1])
        smb.start()
        ended = asyncio.Event()
        writing = [
            asyncio.create_task(clients.write_until(ended, service))
            for clients in everyone
            for service in clients.acknowledged
            for _ in range(WRITERS)
        ]
        try:
            await asyncio.sleep(LOAD_SECONDS)
            await asyncio.to_thread(primary.kill)
            promoted_at = time.monotonic()
            await asyncio.to_thread(standby.promote)
            await until(partial(has_recovered, everyone, promoted_at))
            recovered_seconds = time.monotonic() - promoted_at
            written = len(smb.acknowledged)
            await until(lambda: len(smb.acknowledged) > written)
            await asyncio.sleep(LOAD_SECONDS)
        finally:
            ended.set()
            smb.ended.set()
            await asyncio.gather(*writing)
            await asyncio.to_thread(smb.join)
        acknowledged = {
            service: set.union(*(clients.acknowledged[service] for clients in everyone))
            for service in everyone[0].acknowledged
        }
        acknowledged["file"] |= smb.acknowledged
        errors = sum((clients.errors for clients in everyone), Counter[tuple[int, str]]())
        print(
            f"recovered after {recovered_seconds:.1f} s", {s: len(a) for s, a in acknowledged.items()}, errors
        )
        assert recovered_seconds <= 10
        stored = await everyone[1].stored()
        for service, names in acknowledged.items():
            assert names, service
            assert not names - stored[service], service
        assert {status for status, _ in errors} <= {500, 503}
        check_contents(nodes[0], sorted(smb.acknowledged)[-5:])


def has_recovered(everyone: list[Clients], promoted_at: float) -> bool:
    return all(
        clients.last_success.get(service, 0.0) > promoted_at
        for clients in everyone
        for service in clients.acknowledged
    )


def check_contents(node: ServerProcess, names: list[str]) -> None:
    with connected(login_of(node), NAME) as client:
        for name in names:
            assert client.read(client.create(name, disposition=OPEN), 0, 100) == name.encode()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.05)
