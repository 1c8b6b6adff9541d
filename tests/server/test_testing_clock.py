"""A server with ``--testing``: its clock can be moved, for all workers at once, and only where that is safe."""

import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccountSasPermissions,
    BlobClient,
    BlobLeaseClient,
    BlobServiceClient,
    ResourceTypes,
    RetentionPolicy,
    generate_account_sas,
)

from kyanite.engine.clock import wall_clock
from kyanite.server.clock import TestingClock
from kyanite.server.management.client import call
from kyanite.values import TICKS_PER_SECOND, later
from tests.server_process import ServerFailed, ServerProcess

WORKERS = 2


def request_clock(server: ServerProcess, body: bytes | None = None) -> tuple[int, dict[str, object]]:
    """GET the clock, or POST to it."""
    address = urlsplit(server.endpoints["admin"]).netloc
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET" if body is None else "POST", "/testing/clock", body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


def advance(server: ServerProcess, seconds: float) -> datetime:
    status, state = request_clock(server, json.dumps({"advance_seconds": seconds}).encode())
    assert status == 200
    return datetime.fromisoformat(str(state["now"])[:19]).replace(tzinfo=UTC)


def blob_client(server: ServerProcess, expires_at: datetime | None = None) -> BlobClient:
    """A client on a connection of its own, with a SAS."""
    sas = generate_account_sas(
        server.account,
        server.account_key,
        resource_types=ResourceTypes(service=True, container=True, object=True),
        permission=AccountSasPermissions(read=True, write=True, delete=True, create=True),
        expiry=expires_at or datetime.now(UTC) + timedelta(days=365),
    )
    return BlobClient(server.endpoints["blob"], "testing", "blob", credential=sas, retry_total=0)


def make_blob(server: ServerProcess) -> None:
    with blob_client(server) as client:
        client._get_container_client().create_container()
        client.upload_blob(b"leased")


def test_a_policy_expires_in_all_workers_when_the_clock_moves() -> None:
    with ServerProcess("--testing", "--workers", str(WORKERS)) as server:
        make_blob(server)
        call(
            server.location,
            "container immutability set",
            account=server.account,
            container="testing",
            days=2,
        )
        for _ in range(2):
            for _ in range(4 * WORKERS):
                with blob_client(server) as client, pytest.raises(HttpResponseError, match="due to a policy"):
                    client.delete_blob()
            advance(server, 86_400)
        advance(server, 1)
        with blob_client(server) as client:
            with pytest.raises(HttpResponseError, match="due to a policy"):
                client.upload_blob(b"new", overwrite=True)
            client.delete_blob()


def test_a_deleted_blob_is_gone_in_all_workers_when_the_clock_moves() -> None:
    with ServerProcess("--testing", "--workers", str(WORKERS)) as server:
        make_blob(server)
        with BlobServiceClient(server.endpoints["blob"], credential=server.account_key) as service:
            policy = RetentionPolicy(enabled=True, days=2)
            service.set_service_properties(delete_retention_policy=policy)
            container = service.get_container_client("testing")
            for days_left in (1, 0):
                with blob_client(server) as client:
                    client.delete_blob()
                advance(server, 86_400 - 60)
                for _ in range(2 * WORKERS):
                    with blob_client(server) as client:
                        client.undelete_blob()
                        client.delete_blob()
                advance(server, 86_400 * (1 - days_left) + 60)
                (item,) = container.list_blobs(include=["deleted"])
                assert (item.deleted, item.remaining_retention_days) == (True, days_left)
                with blob_client(server) as client:
                    client.undelete_blob()
            with blob_client(server) as client:
                client.delete_blob()
            advance(server, 2 * 86_400)
            assert list(container.list_blobs(include=["deleted"])) == []
            for _ in range(2 * WORKERS):
                with blob_client(server) as client, pytest.raises(HttpResponseError, match="does not exist"):
                    client.undelete_blob()


def test_a_lease_expires_in_all_workers_when_the_clock_moves() -> None:
    with ServerProcess("--testing", "--workers", str(WORKERS)) as server:
        make_blob(server)
        with blob_client(server) as client:
            lease = BlobLeaseClient(client)
            lease.acquire(15)
            assert client.get_blob_properties().lease.state == "leased"
        now = advance(server, 16)
        clients = [blob_client(server) for _ in range(4 * WORKERS)]
        for client in clients:
            assert client.get_blob_properties().lease.state == "expired"
        dates = [parsedate_to_datetime(date_of(client)) for client in clients]
        assert all(now <= date < now + timedelta(seconds=60) for date in dates)
        for client in clients:
            client.close()
        with blob_client(server) as client:
            BlobLeaseClient(client).acquire(15)


def date_of(client: BlobClient) -> str:
    headers: list[str] = []
    client.get_blob_properties(
        raw_response_hook=lambda answer: headers.append(answer.http_response.headers["Date"])
    )
    return headers[0]


def test_a_sas_expires_when_the_clock_moves() -> None:
    with ServerProcess("--testing", "--workers", "1") as server:
        make_blob(server)
        with blob_client(server, datetime.now(UTC) + timedelta(hours=1)) as client:
            client.get_blob_properties()
            advance(server, 3600)
            with pytest.raises(HttpResponseError) as refused:
                client.download_blob()
            assert refused.value.status_code == 403


def test_an_account_key_is_good_however_far_the_clock_moves() -> None:
    with ServerProcess("--testing", "--workers", "1") as server:
        make_blob(server)
        advance(server, 365 * 24 * 3600)
        with BlobClient(
            server.endpoints["blob"], "testing", "blob", credential=server.account_key, retry_total=0
        ) as client:
            assert client.download_blob().readall() == b"leased"


def test_the_clock_goes_forward_only() -> None:
    with ServerProcess("--testing", "--in-memory") as server:
        status, state = request_clock(server)
        assert status == 200
        assert state["offset_seconds"] == 0
        assert request_clock(server, b'{"now": "2999-12-31T23:59:59Z"}')[0] == 200
        assert request_clock(server, b'{"now": "2999-12-31T23:59:58Z"}')[0] == 409
        assert request_clock(server, b'{"advance_seconds": -1}')[0] == 409
        _, state = request_clock(server)
        assert str(state["now"]).startswith(("2999-12-31T23:59:59", "3000-01-01T00:00"))
        with blob_client(server, datetime(3001, 1, 1, tzinfo=UTC)) as client:
            client._get_container_client().create_container()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"nonsense",
        b'{"advance_seconds": "1"}',
        b'{"advance_seconds": true}',
        b'{"advance_seconds": 1e999}',
        b'{"advance_seconds": 1e12}',
        b'{"advance_seconds": 1, "now": "2030-01-01T00:00:00Z"}',
        b'{"now": "tomorrow"}',
        b'{"now": "3000-01-02T00:00:00Z"}',
    ],
)
def test_requests_that_move_nothing(body: bytes, testing_server: ServerProcess) -> None:
    status, answer = request_clock(testing_server, body)
    assert (status, str(answer["error"])[:5]) == (400, "Give ")
    _, state = request_clock(testing_server)
    assert state["offset_seconds"] == 0


@pytest.fixture(scope="module")
def testing_server() -> Iterator[ServerProcess]:
    with ServerProcess("--testing", "--in-memory") as server:
        yield server


def test_no_clock_without_testing() -> None:
    with ServerProcess("--in-memory", "--admin-port", "0") as server:
        assert request_clock(server, b'{"advance_seconds": 1}')[0] == 404


def test_a_store_stays_what_it_was_made_for(tmp_path: Path) -> None:
    for options, others, word in ((["--testing"], [], "with"), ([], ["--testing"], "without")):
        location = tmp_path / word
        for _ in range(2):
            with ServerProcess("--workers", "1", *options, location=location) as server:
                assert server.stop() == 0
        with pytest.raises(ServerFailed) as refused:
            ServerProcess("--workers", "1", *others, location=location).start()
        assert refused.value.code == 1
        other_word = {"with": "without", "without": "with"}[word]
        assert refused.value.errors == (
            f"kyanite: The store {location} was made {word} --testing, so it cannot be served {other_word} it.\n"
        )


def test_time_goes_on_from_where_a_store_was(tmp_path: Path) -> None:
    """A server that starts again has a clock that is not behind what the store has seen."""
    with ServerProcess("--testing", "--workers", "1", location=tmp_path) as server:
        advanced_to = advance(server, 100_000)
        make_blob(server)
        assert server.stop() == 0
        server.start()
        assert advance(server, 0) >= advanced_to


def test_the_offset_is_shared_and_only_grows() -> None:
    clock = TestingClock()
    assert abs(clock() - wall_clock()) < TICKS_PER_SECOND
    assert clock.advance_to(later(clock(), 10))
    assert 9 < clock.offset_seconds <= 10
    assert clock.advance(0)
    assert not clock.advance(-1)
    assert not clock.advance_to(later(clock(), -1))
    assert 9 < clock.offset_seconds <= 10
