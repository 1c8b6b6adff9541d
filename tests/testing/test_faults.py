"""Faults on a running server: each effect, over all workers."""

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ServiceResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from kyanite.server.management.client import call
from kyanite.testing import Account, Clock, Faults, KitError, Requests, Server

BIG = bytes(range(256)) * 400


@pytest.fixture
def container(kyanite_blob_service: BlobServiceClient) -> ContainerClient:
    return kyanite_blob_service.create_container("box", public_access="container")


def test_retries_outlive_two_refusals(
    container: ContainerClient, kyanite_faults: Faults, kyanite_requests: Requests
) -> None:
    fault = kyanite_faults.add(operation="Put Blob", times=2, status=503)
    container.upload_blob("blob", b"bytes")
    assert (fault.matched, fault.fired) == (3, 2)
    assert [each.status for each in kyanite_requests.all(operation="Put Blob")] == [503, 503, 201]
    assert [each.fault for each in kyanite_requests.all(operation="Put Blob")] == [fault.id, fault.id, None]


def error_of(error: HttpResponseError) -> tuple[int | None, str]:
    return error.status_code, getattr(error, "error_code", "")


def test_an_error_looks_like_that_of_the_service(
    container: ContainerClient, kyanite_account: Account, kyanite_faults: Faults
) -> None:
    kyanite_faults.add(service="blob", status=503, retry_after_seconds=7)
    kyanite_faults.add(service="table", status=500, code="OperationTimedOut")
    kyanite_faults.add(service="queue", status=429, code="MadeUp")
    with kyanite_account.blob_service(retry_total=0) as blobs, pytest.raises(HttpResponseError) as busy:
        blobs.get_blob_client("box", "blob").upload_blob(b"bytes")
    assert error_of(busy.value) == (503, "ServerBusy")
    assert "The server is busy.\nRequestId:" in str(busy.value)
    headers = getattr(busy.value.response, "headers", {})
    assert headers["Retry-After"] == "7"
    assert headers["x-ms-version"]
    assert headers["x-ms-request-id"]
    with kyanite_account.table_service(retry_total=0) as tables, pytest.raises(HttpResponseError) as late:
        tables.create_table("table")
    assert error_of(late.value) == (500, "OperationTimedOut")
    with kyanite_account.queue_service(retry_total=0) as queues, pytest.raises(HttpResponseError) as odd:
        queues.create_queue("queue")
    assert error_of(odd.value) == (429, "MadeUp")


def test_a_fault_of_every_service(
    kyanite_faults: Faults,
    kyanite_blob_service: BlobServiceClient,
    kyanite_queue_service: QueueServiceClient,
    kyanite_table_service: TableServiceClient,
    kyanite_share_service: ShareServiceClient,
) -> None:
    """Clients retry each of them, so what they do succeeds."""
    faults = [
        kyanite_faults.add(operation=operation, times=1, **effect)
        for operation, effect in (
            ("Create Container", {"status": 503}),
            ("Create Queue", {"drop": True}),
            ("Create Table", {"status": 500}),
            ("Create Share", {"drop": True}),
        )
    ]
    kyanite_blob_service.create_container("box")
    kyanite_queue_service.create_queue("queue")
    kyanite_table_service.create_table("table")
    kyanite_share_service.create_share("share")
    assert [fault.fired for fault in faults] == [1, 1, 1, 1]


def test_a_lost_answer_meets_its_own_write(container: ContainerClient, kyanite_faults: Faults) -> None:
    kyanite_faults.add(operation="Put Blob", times=1, drop=True, after_commit=True)
    with pytest.raises(ResourceExistsError):  # The retry finds what the first attempt has written.
        container.upload_blob("blob", b"bytes")
    assert container.download_blob("blob").readall() == b"bytes"


def test_an_error_after_the_commit(
    container: ContainerClient, kyanite_account: Account, kyanite_faults: Faults
) -> None:
    kyanite_faults.add(operation="Put Blob", times=1, status=500, after_commit=True)
    with kyanite_account.blob_service(retry_total=0) as blobs, pytest.raises(HttpResponseError):
        blobs.get_blob_client("box", "blob").upload_blob(b"bytes")
    assert container.download_blob("blob").readall() == b"bytes"


def test_a_dropped_request_is_not_served(
    container: ContainerClient, kyanite_account: Account, kyanite_faults: Faults, kyanite_requests: Requests
) -> None:
    kyanite_faults.add(operation="Put Blob", times=1, drop=True)
    with kyanite_account.blob_service(retry_total=0) as blobs, pytest.raises(ServiceResponseError):
        blobs.get_blob_client("box", "blob").upload_blob(b"bytes")
    assert not container.get_blob_client("blob").exists()
    dropped = kyanite_requests.last(operation="Put Blob")
    assert (dropped.status, dropped.done) == (None, True)


def until_reset(connection: socket.socket) -> bytes:
    received = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return received
        assert piece, "the connection was closed in order"
        received += piece


@pytest.mark.parametrize("content", [BIG, BIG[:5000]], ids=["from a file", "from memory"])
def test_a_truncated_answer(
    content: bytes, container: ContainerClient, kyanite_account: Account, kyanite_faults: Faults
) -> None:
    container.upload_blob("blob", content)
    kyanite_faults.add(operation="Get Blob", times=1, truncate_bytes=1000)
    url = urlsplit(f"{kyanite_account.endpoints['blob']}/box/blob")
    with socket.create_connection((str(url.hostname), url.port or 0), timeout=60) as connection:
        connection.sendall(f"GET {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        received = until_reset(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(content)}\r\n".encode() in head + b"\r\n"
    assert body == content[:1000]
    assert container.download_blob("blob").readall() == content


def test_an_answer_that_is_short_enough_is_whole(container: ContainerClient, kyanite_faults: Faults) -> None:
    container.upload_blob("blob", b"bytes")
    fault = kyanite_faults.add(operation="Get Blob", truncate_bytes=5)
    assert container.download_blob("blob").readall() == b"bytes"
    assert fault.fired == 1


def test_a_delay_outlasts_the_patience_of_a_client(
    container: ContainerClient, kyanite_account: Account, kyanite_faults: Faults
) -> None:
    container.upload_blob("blob", b"bytes")
    kyanite_faults.add(operation="Get Blob Properties", delay_seconds=600, times=1)
    impatient = kyanite_account.blob_service(retry_total=0, read_timeout=0.2)
    with impatient as blobs, pytest.raises(ServiceResponseError):
        blobs.get_blob_client("box", "blob").get_blob_properties()
    assert container.get_blob_client("blob").get_blob_properties().size == 5


def test_throttling_ends_with_the_second(
    container: ContainerClient, kyanite_account: Account, kyanite_clock: Clock, kyanite_faults: Faults
) -> None:
    """A second of the server's clock, so the test need not wait for it."""
    kyanite_faults.add(operation="Put Blob", beyond_per_second=0, status=503, retry_after_seconds=1)
    with kyanite_account.blob_service(retry_total=0) as blobs:
        box = blobs.get_container_client("box")
        with pytest.raises(HttpResponseError, match="busy"):
            box.upload_blob("blob", b"bytes")
        kyanite_faults.clear()
        limited = kyanite_faults.add(operation="Put Blob", beyond_per_second=1, status=503)
        for number in range(3):
            box.upload_blob(f"blob {number}", b"bytes")
            kyanite_clock.advance(1)
        assert (limited.matched, limited.fired) == (3, 0)


def test_faults_are_for_the_account_of_the_test(
    kyanite_server: Server, container: ContainerClient, kyanite_faults: Faults
) -> None:
    kyanite_faults.add(status=403)
    other = kyanite_server.fresh_account()
    with other.blob_service() as blobs:
        blobs.create_container("box")
    with pytest.raises(HttpResponseError):
        container.get_container_properties()


def test_faults_by_path_and_method(container: ContainerClient, kyanite_faults: Faults) -> None:
    kyanite_faults.add(path="box/lost/*", method="PUT", status=404)
    container.upload_blob("kept", b"bytes")
    with pytest.raises(HttpResponseError):
        container.upload_blob("lost/blob", b"bytes")
    assert not container.get_blob_client("lost/blob").exists()


def test_faults_are_listed_and_removed(kyanite_server: Server, kyanite_faults: Faults) -> None:
    everywhere = kyanite_server.faults.add(operation="Get Account Information", status=503)
    first, second = kyanite_faults.add(drop=True), kyanite_faults.add(drop=True)
    assert kyanite_faults.all() == [first, second]
    first.remove()
    kyanite_faults.remove(first)
    assert kyanite_faults.all() == [second]
    kyanite_faults.clear()
    assert kyanite_faults.all() == []
    assert everywhere in kyanite_server.faults.all()
    everywhere.remove()
    with pytest.raises(KitError, match="There is no fault"):
        assert everywhere.fired


# Several workers


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def workers(store: Path) -> Iterator[Server]:
    with Server("--workers", "2", location=store) as server:
        yield server


def open_connections(server: Server, count: int) -> list[http.client.HTTPConnection]:
    """As many on each worker, since these accept fairly."""
    address = urlsplit(server.endpoints["blob"]).netloc
    connections = [http.client.HTTPConnection(address, timeout=60) for _ in range(count)]
    for connection in connections:
        connection.connect()
    return connections


def statuses(connections: list[http.client.HTTPConnection], path: str) -> list[int]:
    found = []
    for connection in connections:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        found.append(answer.status)
    return found


def test_times_are_exact_over_all_workers(workers: Server) -> None:
    path = f"{urlsplit(workers.endpoints['blob']).path}/box/blob"
    connections = open_connections(workers, 24)
    try:
        assert set(statuses(connections, path)) == {404}
        fault = workers.faults.add(operation="Get Blob", times=7, skip=3, status=503)
        found = statuses(connections, path)
        assert found == [404] * 3 + [503] * 7 + [404] * 14
        assert (fault.matched, fault.fired) == (24, 7)
        fault.remove()
        workers.faults.add(operation="Get Blob", status=503)
        assert set(statuses(connections, path)) == {503}
        workers.faults.clear()
        assert set(statuses(connections, path)) == {404}
        recorded = workers.requests.all(operation="Get Blob")
        assert [each.number for each in recorded] == list(range(1, 4 * 24 + 1))
        assert [each.status for each in recorded[24:48]] == found
    finally:
        for connection in connections:
            connection.close()


def test_a_fault_is_explained(workers: Server, store: Path) -> None:
    fault = workers.faults.add(operation="Get Blob", times=1, status=503)
    (connection,) = open_connections(workers, 1)
    assert statuses([connection], f"{urlsplit(workers.endpoints['blob']).path}/box/blob") == [503]
    connection.close()
    refused = workers.requests.last(status=503)
    explained = call(store, "explain", request_id=refused.request_id)
    assert (explained["code"], explained["operation"]) == ("ServerBusy", "Get Blob")
    assert f"it is fault {fault.id} of /testing/faults" in explained["sentences"][-1]
