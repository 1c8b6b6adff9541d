"""The pytest plugin: fixtures for servers, accounts, clients, the clock, faults and recorded requests.

All names begin with ``kyanite_``. Nothing is imported, and no server started, before a fixture is used.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient
    from azure.storage.blob import BlobServiceClient
    from azure.storage.fileshare import ShareServiceClient
    from azure.storage.queue import QueueServiceClient

    from kyanite.testing import Account, Clock, Faults, Requests, Server


@pytest.fixture(scope="session")
def kyanite_options() -> tuple[str, ...]:
    """More options of ``kyanite serve`` for the servers of the other fixtures. Override it to give some."""
    return ()


@pytest.fixture(scope="session")
def kyanite_server(kyanite_options: tuple[str, ...]) -> "Iterator[Server]":
    """A server in memory for the whole session. Its clock goes on from test to test."""
    from kyanite.testing import Server

    with Server(*kyanite_options) as server:
        yield server


@pytest.fixture
def kyanite_fresh_server(kyanite_options: tuple[str, ...]) -> "Iterator[Server]":
    """A server in memory for this test alone."""
    from kyanite.testing import Server

    with Server(*kyanite_options) as server:
        yield server


@pytest.fixture
def kyanite_account(kyanite_server: "Server") -> "Account":
    """A fresh account of the session's server for this test alone."""
    return kyanite_server.fresh_account()


@pytest.fixture
def kyanite_connection_string(kyanite_account: "Account") -> str:
    """Of the test's account."""
    return kyanite_account.connection_string


@pytest.fixture
def kyanite_blob_service(kyanite_account: "Account") -> "Iterator[BlobServiceClient]":
    """A client for the blobs of the test's account."""
    yield from _closed(kyanite_account.blob_service())


@pytest.fixture
def kyanite_queue_service(kyanite_account: "Account") -> "Iterator[QueueServiceClient]":
    """A client for the queues of the test's account."""
    yield from _closed(kyanite_account.queue_service())


@pytest.fixture
def kyanite_table_service(kyanite_account: "Account") -> "Iterator[TableServiceClient]":
    """A client for the tables of the test's account."""
    yield from _closed(kyanite_account.table_service())


@pytest.fixture
def kyanite_share_service(kyanite_account: "Account") -> "Iterator[ShareServiceClient]":
    """A client for the file shares of the test's account."""
    yield from _closed(kyanite_account.share_service())


@pytest.fixture
def kyanite_clock(kyanite_server: "Server") -> "Clock":
    """The clock of the session's server, which all its accounts share."""
    return kyanite_server.clock


@pytest.fixture
def kyanite_faults(kyanite_server: "Server", kyanite_account: "Account") -> "Iterator[Faults]":
    """Faults for requests of the test's account. They end with the test."""
    faults = kyanite_server.faults_of(kyanite_account)
    yield faults
    faults.clear()


@pytest.fixture
def kyanite_requests(kyanite_server: "Server", kyanite_account: "Account") -> "Requests":
    """The requests of the test's account."""
    return kyanite_server.requests_of(kyanite_account)


def _closed(client: Any) -> Iterator[Any]:
    with closing(client):
        yield client
