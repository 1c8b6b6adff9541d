"""A server on a store of which some bytes have changed: it serves the rest, or says why it cannot."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from tests.server_process import ServerFailed, ServerProcess

PAGE = 8192
INLINE = b"inline-body" + bytes(1000)
MESSAGE = "text-of-a-message"
ENTITY = {"PartitionKey": "p", "RowKey": "r", "Value": "value-of-an-entity"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with ServerProcess("--workers", "1", location=tmp_path) as server:
        with clients(server) as (blobs, queues, tables):
            container = blobs.create_container("container")
            container.upload_blob("damaged", INLINE, metadata={"mark": "metadata-of-a-blob"})
            container.upload_blob("sound", b"sound")
            for number in range(30):  # In other pages, on both sides.
                container.upload_blob(f"a{number}", bytes(10), metadata={"long": "a" * 1000})
                container.upload_blob(f"z{number}", bytes(10), metadata={"long": "z" * 1000})
            queues.create_queue("queue").send_message(MESSAGE)
            tables.create_table("table").create_entity(ENTITY)
        assert server.stop() == 0
    connection = sqlite3.connect(database_of(tmp_path))
    connection.execute("VACUUM")  # So that the bytes of a row are in one page only.
    connection.close()
    return tmp_path


@contextmanager
def clients(
    server: ServerProcess,
) -> Iterator[tuple[BlobServiceClient, QueueServiceClient, TableServiceClient]]:
    text = server.connection_string
    with (
        BlobServiceClient.from_connection_string(text, retry_total=0) as blobs,
        QueueServiceClient.from_connection_string(text, retry_total=0) as queues,
        TableServiceClient.from_connection_string(text, retry_total=0) as tables,
    ):
        yield blobs, queues, tables


def database_of(store: Path) -> Path:
    return store / "engine" / "store.sqlite3"


def flip(store: Path, stored: bytes) -> None:
    path = database_of(store)
    content = bytearray(path.read_bytes())
    assert content.count(stored) == 1
    content[content.index(stored)] ^= 0x40
    path.write_bytes(content)


def status_of(call: Callable[[], object]) -> int:
    try:
        call()
    except HttpResponseError as error:
        return error.status_code or 0
    return 200


def test_damaged_rows_are_500_and_the_others_are_served(store: Path) -> None:
    for stored in (b"inline-body", b"text-of-a-message", b"value-of-an-entity"):
        flip(store, stored)
    with (
        ServerProcess("--workers", "1", location=store) as server,
        clients(server) as (blobs, queues, tables),
    ):
        pids = server.worker_pids()
        container = blobs.get_container_client("container")
        assert status_of(lambda: container.download_blob("damaged").readall()) == 500
        assert status_of(lambda: list(queues.get_queue_client("queue").peek_messages())) == 500
        assert status_of(lambda: tables.get_table_client("table").get_entity("p", "r")) == 500
        assert status_of(lambda: list(tables.get_table_client("table").list_entities())) == 500
        assert container.download_blob("sound").readall() == b"sound"
        assert len(list(container.list_blobs())) == 62
        container.upload_blob("damaged", b"repaired", overwrite=True)
        assert container.download_blob("damaged").readall() == b"repaired"
        assert server.worker_pids() == pids


def test_a_damaged_record_is_500(store: Path) -> None:
    flip(store, b"metadata-of-a-blob")
    with ServerProcess("--workers", "1", location=store) as server, clients(server) as (blobs, _, _):
        container = blobs.get_container_client("container")
        assert status_of(container.get_blob_client("damaged").get_blob_properties) == 500
        assert status_of(lambda: list(container.list_blobs())) == 500
        assert container.download_blob("sound").readall() == b"sound"


def test_a_damaged_page_is_500_and_the_others_are_served(store: Path) -> None:
    path = database_of(store)
    content = bytearray(path.read_bytes())
    content[content.index(b"metadata-of-a-blob") // PAGE * PAGE] ^= 0x40
    path.write_bytes(content)
    with ServerProcess("--workers", "1", location=store) as server, clients(server) as (blobs, _, _):
        pids = server.worker_pids()
        container = blobs.get_container_client("container")
        assert status_of(container.get_blob_client("damaged").get_blob_properties) == 500
        assert status_of(lambda: container.upload_blob("damaged", b"new", overwrite=True)) == 500
        assert container.get_blob_client("z20").get_blob_properties().size == 10
        assert server.worker_pids() == pids


@pytest.mark.parametrize("kept_bytes", [100, PAGE, PAGE * 5])
def test_a_store_that_is_cut_off_is_refused_in_one_sentence(store: Path, kept_bytes: int) -> None:
    path = database_of(store)
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(ServerFailed) as failed:
        ServerProcess("--workers", "1", location=store).start()
    check_says_why(failed.value, store)


def test_a_store_of_random_bytes_is_refused_in_one_sentence(store: Path) -> None:
    path = database_of(store)
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))
    with pytest.raises(ServerFailed) as failed:
        ServerProcess("--workers", "1", location=store).start()
    check_says_why(failed.value, store)


def test_a_store_whose_format_is_damaged_is_refused_in_one_sentence(store: Path) -> None:

    with sqlite3.connect(database_of(store)) as connection:
        connection.execute("UPDATE kv SET value = value || x'00' WHERE key = CAST('f' AS BLOB)")
        assert connection.total_changes == 1
    connection.close()
    with pytest.raises(ServerFailed) as failed:
        ServerProcess("--workers", "1", location=store).start()
    check_says_why(failed.value, store)


def check_says_why(failed: ServerFailed, store: Path) -> None:
    assert failed.code == 1
    assert failed.errors.startswith(f"kyanite: The store {store} cannot be opened. ")
    assert failed.errors.count("\n") == 1
