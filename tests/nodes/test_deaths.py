"""A node is killed, or paused until it is declared dead: the other serves on, and what the first held is free."""

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareClient
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.open import Open, SMB2WriteRequest

from tests.nodes.cluster import PATIENCE_SECONDS, TIMEOUT_SECONDS, new_prefix, pause, running_nodes, wake
from tests.nodes.shares import NodeShare, share_of
from tests.nodes.test_smb import SHARING_VIOLATION, lock
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess, eventually
from tests.smb.messages import CREATE, GENERIC_ALL, OPEN, Client, connected

DRIVE = 4
"""Clients that write all the time."""


@contextmanager
def load_on(node: ServerProcess) -> Iterator[list[int]]:
    """Clients that put blobs until the end of the block. None of them may fail; yields their counts."""
    service = BlobServiceClient(node.endpoints["blob"], credential=node.account_key, retry_total=0)
    container = service.get_container_client("load")
    if not container.exists():
        container.create_container()
    counts, failures, ended = [0] * DRIVE, list[Exception](), Event()

    def put(number: int) -> None:
        with BlobServiceClient(node.endpoints["blob"], credential=node.account_key, retry_total=0) as own:
            while not ended.is_set() and not failures:
                try:
                    blob = own.get_blob_client("load", f"{number} {counts[number]}")
                    blob.upload_blob(b"%d" % counts[number])
                except Exception as error:
                    failures.append(error)
                else:
                    counts[number] += 1

    threads = [Thread(target=put, args=(number,)) for number in range(DRIVE)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        service.close()
    assert not failures


def open_alone(client: Client) -> Open | None:
    """Open the file for one client only; None while another one has it."""
    try:
        return client.create("held", disposition=OPEN, sharing=0, access=GENERIC_ALL)
    except SMBResponseException as refusal:
        if refusal.status != SHARING_VIOLATION:
            raise
        return None


@contextmanager
def holding(share: NodeShare) -> Iterator[tuple[Client, Open]]:
    """A client that has the file open for itself, with a lock. Its connection is lost before the end."""
    connecting = connected(share.login, share.name)
    client = connecting.__enter__()
    try:
        held = client.create("held", disposition=CREATE, sharing=0, access=GENERIC_ALL)
        client.write(held, b"1234")
        lock(held)
        yield client, held
    finally:
        with suppress(SMBException, OSError):
            connecting.__exit__(None, None, None)


@pytest.fixture
def schema(postgres_server: PostgresServer) -> str:
    """Of the store."""
    return postgres_server.new_schema_url().rpartition("=")[2]


@pytest.fixture
def two_nodes(
    postgres_server: PostgresServer, seaweed: SeaweedServer, schema: str
) -> Iterator[list[ServerProcess]]:
    with running_nodes(postgres_server.url(schema=schema), seaweed.url(new_prefix())) as nodes:
        yield nodes


def test_a_killed_node(two_nodes: list[ServerProcess], postgres_server: PostgresServer, schema: str) -> None:
    killed, other = two_nodes
    shares = share_of(two_nodes)
    with holding(shares[0]), load_on(other) as counts, connected(shares[1].login, shares[1].name) as client:
        assert open_alone(client) is None
        killed.kill9()
        began, before = time.monotonic(), sum(counts)
        eventually(lambda: open_alone(client) is not None, PATIENCE_SECONDS)
        assert time.monotonic() - began >= TIMEOUT_SECONDS / 2
        assert sum(counts) > before
    # What it left is cleaned up, and it is forgotten.
    dead = f"SELECT count(*) FROM {schema}.kv WHERE key >= '\\x4202' AND key < '\\x4203'"
    eventually(lambda: postgres_server.sql(dead) == "0", PATIENCE_SECONDS)
    # It joins again.
    killed.start()
    assert open_of(killed, shares[0].name) == b"1234"


def open_of(node: ServerProcess, share: str) -> bytes:
    rest = ShareClient(node.endpoints["file"], share, credential=node.account_key)
    with rest:
        data: bytes = rest.get_file_client("held").download_file().readall()
        return data


def test_a_paused_node_cannot_write_with_what_it_held(two_nodes: list[ServerProcess]) -> None:
    paused, other = two_nodes
    shares = share_of(two_nodes)
    with (
        holding(shares[0]) as (sleeper, held),
        load_on(other) as counts,
        connected(shares[1].login, shares[1].name) as client,
    ):
        connection = http.client.HTTPConnection(
            urlsplit(paused.endpoints["blob"]).hostname or "", urlsplit(paused.endpoints["blob"]).port
        )
        connection.connect()
        pids = pause(paused)
        try:
            # These wait in the sockets of the paused node.
            write = SMB2WriteRequest()
            write["offset"], write["file_id"], write["buffer"] = 0, held.file_id, b"late"
            sent = sleeper.send(write)
            connection.request("GET", "/devstoreaccount1/load/0")
            before = sum(counts)
            found: list[Open] = []

            def is_free() -> bool:
                opened = open_alone(client)
                found.extend(() if opened is None else (opened,))
                return opened is not None

            eventually(is_free, PATIENCE_SECONDS)
            client.write(found[0], b"mine")
            assert sum(counts) > before
        finally:
            wake(pids)
        with pytest.raises((SMBException, OSError)):
            sleeper.received(sent)
        with suppress(OSError, http.client.HTTPException):
            assert connection.getresponse().status >= 400
        connection.close()
        assert client.read(found[0], 0, 4) == b"mine"
        client.close(found[0])
    # Its workers have noticed and were started again.
    eventually(
        lambda: any(str(line["message"]).startswith("declared dead") for line in paused.log), PATIENCE_SECONDS
    )
    eventually(lambda: serves(paused), PATIENCE_SECONDS)
    assert open_of(paused, shares[0].name) == b"mine"


def serves(node: ServerProcess) -> bool:
    parts = urlsplit(node.endpoints["admin"])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
