"""An account that is read-only: every way to write is refused, reads go on, and what was under way is ended."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient
from smbprotocol.exceptions import SMBException

from tests.server.backup.test_backup import run, succeed
from tests.server_process import ServerProcess
from tests.smb.shares import KyaniteShare
from tests.smb.test_smbprotocol import Files, failing

MEDIA_WRITE_PROTECTED = 0xC00000A2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    location = tmp_path_factory.mktemp("store")
    with ServerProcess("--workers", "2", location=location) as started:
        with BlobServiceClient.from_connection_string(started.connection_string) as blobs:
            blobs.create_container("container").upload_blob("blob", b"content")
        with QueueServiceClient.from_connection_string(started.connection_string) as queues:
            queues.create_queue("queue").send_message("text")
        with TableServiceClient.from_connection_string(started.connection_string) as tables:
            tables.create_table("table").create_entity({"PartitionKey": "p", "RowKey": "r"})
        yield started


def switch(location: Path, value: str) -> None:
    succeed("account", "set", ServerProcess.account, "--location", location, "--read-only", value)


@pytest.fixture
def read_only(server: ServerProcess) -> Iterator[ServerProcess]:
    switch(server.location, "on")
    yield server
    switch(server.location, "off")


def test_rest(read_only: ServerProcess) -> None:
    text = read_only.connection_string
    with (
        BlobServiceClient.from_connection_string(text, retry_total=0) as blobs,
        QueueServiceClient.from_connection_string(text, retry_total=0) as queues,
        TableServiceClient.from_connection_string(text, retry_total=0) as tables,
        ShareServiceClient.from_connection_string(text, retry_total=0) as shares,
    ):
        container, queue, table = (
            blobs.get_container_client("container"),
            queues.get_queue_client("queue"),
            tables.get_table_client("table"),
        )
        entity = {"PartitionKey": "p", "RowKey": "s"}
        writes: list[Callable[[], object]] = [
            lambda: container.upload_blob("new", b"new"),
            lambda: container.upload_blob("new", os.urandom(100_000)),
            lambda: container.get_blob_client("blob").acquire_lease(),
            lambda: blobs.create_container("another"),
            lambda: queue.send_message("more"),
            lambda: list(queue.receive_messages()),
            lambda: table.create_entity(entity),
            lambda: table.submit_transaction([("create", entity), ("create", {**entity, "RowKey": "t"})]),
            lambda: shares.create_share("another"),
        ]
        for write in writes:
            with pytest.raises(HttpResponseError) as refused:
                write()
            assert "InsufficientAccountPermissions" in str(refused.value)
        with pytest.raises(AzureError):
            container.delete_blobs("blob")  # Each part of a batch is refused by itself.
        assert container.download_blob("blob").readall() == b"content"
        assert [each.content for each in queue.peek_messages()] == ["text"]
        assert len(list(table.list_entities())) == 1
    code, _, err = run(
        "container", "create", ServerProcess.account, "another", "--location", read_only.location
    )
    assert (code, err) == (1, f"kyanite: The account {ServerProcess.account} is read-only.\n")


def test_smb(server: ServerProcess) -> None:
    """A session that was open for writing has ended; a new one reads."""
    share = KyaniteShare(server, "share")
    share.put("file", b"content")
    before = Files(share)
    opened = before.open_file(before.path("file"), mode="r+b", buffering=0)
    switch(server.location, "on")
    try:
        with pytest.raises((SMBException, OSError)):
            opened.write(b"changed")
        files = Files(share)
        with files.open_file(files.path("file"), mode="rb") as file:
            assert file.read() == b"content"
        writes: list[Callable[[], object]] = [
            lambda: files.open_file(files.path("file"), mode="r+b"),
            lambda: files.open_file(files.path("new"), mode="wb"),
            lambda: files.remove(files.path("file")),
            lambda: files.mkdir(files.path("directory")),
        ]
        for write in writes:
            with failing(MEDIA_WRITE_PROTECTED):
                write()
        files.close()
    finally:
        switch(server.location, "off")
    with suppress(SMBException, OSError):
        before.close()
    assert share.content("file") == b"content"
    share.put("new", b"new")
