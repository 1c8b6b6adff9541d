"""Content in an object store: what came in through one node is read through another; an upload ends with its node."""

import http.client
import os
import socket
from contextlib import closing
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient, generate_account_sas

from tests.nodes.cluster import PATIENCE_SECONDS, new_prefix, pause, running_nodes, wake
from tests.nodes.shares import share_of
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess, eventually
from tests.smb.messages import CREATE, OPEN, connected

LARGE = os.urandom(3 * 1024 * 1024)
MIDDLING = os.urandom(100_000)


def container_of(node: ServerProcess, name: str = "content") -> ContainerClient:
    service = BlobServiceClient(node.endpoints["blob"], credential=node.account_key, retry_total=0)
    return service.get_container_client(name)


def test_blobs(nodes: list[ServerProcess]) -> None:
    first, second = map(container_of, nodes)
    first.create_container()
    for number, data in enumerate((LARGE, MIDDLING)):
        first.upload_blob(f"put {number}", data)
        assert second.download_blob(f"put {number}").readall() == data
        assert (
            second.download_blob(f"put {number}", offset=5000, length=70_000).readall() == data[5000:75_000]
        )
    # Blocks of one blob come in through both.
    blocks = [MIDDLING[at : at + 20_000] for at in range(0, len(MIDDLING), 20_000)]
    for number, block in enumerate(blocks):
        (first, second)[number % 2].get_blob_client("blocks").stage_block(f"{number:04}", block)
    second.get_blob_client("blocks").commit_block_list([BlobBlock(f"{n:04}") for n in range(len(blocks))])
    assert first.download_blob("blocks").readall() == MIDDLING
    first.get_blob_client("append").create_append_blob()
    for number, block in enumerate(blocks):
        (first, second)[number % 2].get_blob_client("append").append_block(block)
    assert first.download_blob("append").readall() == MIDDLING
    # What one reads for long, another may overwrite.
    reading = second.download_blob("put 0", max_concurrency=1).chunks()
    begun = next(reading)
    first.upload_blob("put 0", MIDDLING, overwrite=True)
    assert begun + b"".join(reading) == LARGE
    assert second.download_blob("put 0").readall() == MIDDLING


def test_files(nodes: list[ServerProcess]) -> None:
    first, second = share_of(nodes)
    with connected(first.login, first.name) as client, connected(second.login, second.name) as other:
        opened = client.create("f", disposition=CREATE)
        for at in range(0, len(MIDDLING), 50_000):
            client.write(opened, MIDDLING[at : at + 50_000], at)
        found = other.create("f", disposition=OPEN)
        assert other.read(found, 0, 60_000) == MIDDLING[:60_000]
    assert second.rest.get_file_client("f").download_file().readall() == MIDDLING
    second.rest.get_file_client("g").upload_file(LARGE)
    assert first.rest.get_file_client("g").download_file().readall() == LARGE


def test_an_upload_to_a_node_that_was_paused(postgres_server: PostgresServer, seaweed: SeaweedServer) -> None:
    """It is half received when its node is declared dead: the rest of it makes no blob."""
    with running_nodes(postgres_server.new_schema_url(), seaweed.url(new_prefix())) as nodes:
        paused, other = nodes
        container = container_of(other)
        container.create_container()
        parts = urlsplit(paused.endpoints["blob"])
        token = generate_account_sas(
            paused.account,
            paused.account_key,
            resource_types="o",
            permission="w",
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as upload:
            upload.putrequest("PUT", f"{parts.path}/content/late?{token}")
            upload.putheader("Content-Length", str(len(LARGE)))
            upload.putheader("x-ms-blob-type", "BlockBlob")
            upload.putheader("x-ms-version", "2021-12-02")
            upload.endheaders()
            upload.send(LARGE[: len(LARGE) // 2])
            pids = pause(paused)
            try:
                eventually(lambda: is_declared_dead(other), PATIENCE_SECONDS)
            finally:
                wake(pids)
            with pytest.raises((OSError, http.client.HTTPException)):  # noqa: PT012
                upload.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                upload.send(LARGE[len(LARGE) // 2 :])
                answer = upload.getresponse()
                if answer.status >= 500:
                    raise http.client.HTTPException(answer.status)
        assert not container.get_blob_client("late").exists()
        container.upload_blob("late", MIDDLING)
        eventually(lambda: reads(paused, "late") == MIDDLING, PATIENCE_SECONDS)


def is_declared_dead(observer: ServerProcess) -> bool:
    return any(line["message"] == "process declared dead" for line in observer.log)


def reads(node: ServerProcess, name: str) -> bytes | None:
    try:
        data: bytes = container_of(node).download_blob(name).readall()
    except Exception:  # It is being started again.
        return None
    return data
