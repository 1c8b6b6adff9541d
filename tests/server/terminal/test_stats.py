"""``kyanite stats`` of a server with something of everything."""

import json
from collections.abc import Iterator

import pytest
import smbclient
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from kyanite.engine.api import STEP_ROWS
from tests.server.terminal.commands import failure, output
from tests.server_process import ServerProcess

ENTITIES = 3 * STEP_ROWS + 7
"""Several pages."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "1", location=tmp_path_factory.mktemp("stats")) as server:
        text = server.connection_string
        with BlobServiceClient.from_connection_string(text) as blobs:
            container = blobs.create_container("one")
            blobs.create_container("two").acquire_lease()
            for number in range(5):
                container.upload_blob(f"b{number}", b"x" * 1000)
            blob = container.get_blob_client("b0")
            blob.create_snapshot()
            blob.acquire_lease()
            container.get_blob_client("b1").acquire_lease().release()
            container.get_blob_client("new").stage_block("AAAA", b"block")
        with QueueServiceClient.from_connection_string(text) as queues:
            queue = queues.create_queue("jobs")
            for _ in range(3):
                queue.send_message("hello")
        with TableServiceClient.from_connection_string(text) as tables:
            people = tables.create_table("people")
            for start in range(0, ENTITIES, 100):
                people.submit_transaction(
                    [
                        ("create", {"PartitionKey": "p", "RowKey": str(row)})
                        for row in range(start, min(start + 100, ENTITIES))
                    ]
                )
        with ShareServiceClient.from_connection_string(text) as shares:
            share = shares.create_share("papers")
            share.create_directory("dir")
            share.get_file_client("dir/a").upload_file(b"y" * 2048)
            share.create_snapshot()
        yield server


def test_everything_is_counted(filled: ServerProcess) -> None:
    port = int(filled.endpoints["smb"].rstrip("/").rpartition(":")[2])
    options = {"username": filled.account, "password": filled.account_key, "port": port}
    smbclient.register_session("127.0.0.1", **options)
    try:
        with smbclient.open_file(r"\\127.0.0.1\papers\dir\a", mode="rb", share_access="rw", **options):
            figures = json.loads(output(filled, "stats", "--json"))[filled.account]
            text = output(filled, "stats", "--account", filled.account)
    finally:
        smbclient.reset_connection_cache()
    assert figures == {
        "containers": 2,
        "containers_leased": 1,
        "blobs": 5,
        "blob_bytes": 5000,
        "blobs_leased": 1,
        "snapshots": 1,
        "snapshot_bytes": 1000,
        "versions": 0,
        "version_bytes": 0,
        "deleted_blobs": 0,
        "deleted_blob_bytes": 0,
        "uncommitted_blocks": 1,
        "queues": 1,
        "messages": 3,
        "tables": 1,
        "entities": ENTITIES,
        "shares": 1,
        "shares_leased": 0,
        "directories": 1,
        "files": 1,
        "file_bytes": 2048,
        "files_leased": 0,
        "share_snapshots": 1,
        "open_files": 1,
        "open_handles": 1,
        "pending_deletes": 0,
    }
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == [filled.account]
    assert ["blobs", "5", "4.9", "KiB", "1", "leased"] in lines
    assert ["entities", f"{ENTITIES:,}"] in lines
    assert ["open", "handles", "1"] in lines
    assert "versions" not in text


def test_an_account_with_nothing(server: ServerProcess) -> None:
    assert output(server, "stats", "--account", "other") == "other\n  nothing\n"


def test_an_unknown_account(server: ServerProcess) -> None:
    assert "has no account 'nowhere'" in failure(server, "stats", "--account", "nowhere", code=2)
