"""Removing an account ends what its clients have in progress, and all of its data goes, also across a crash."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from kyanite.server.failures import Failure
from kyanite.server.management.client import call
from kyanite.wire.smb2.status import Status
from tests.server.accounts.running import blob_service, opens
from tests.server.accounts.test_account_commands import KEY, OTHER
from tests.server.accounts.test_races import token
from tests.server.store.test_verify import verify
from tests.server_process import ServerProcess, eventually
from tests.smb.messages import OPEN_IF, connected, refused
from tests.smb.programs import Login
from tests.smb.torture.targets import login_of


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", location=tmp_path / "store") as started:
        call(started.location, "account add", name="alpha", keys=[KEY])
        call(started.location, "account add", name="other", keys=[OTHER])
        yield started


def endpoint(server: ServerProcess, service: str) -> str:
    return f"{server.endpoints[service].rpartition('/')[0]}/alpha"


def fill(server: ServerProcess) -> None:
    """Something in every service."""
    blobs = BlobServiceClient(endpoint(server, "blob"), credential=KEY)
    box = blobs.create_container("box")
    for size in (10, 100_000):
        box.upload_blob(str(size), bytes(size))
        box.get_blob_client(str(size)).create_snapshot()
    queue = QueueServiceClient(endpoint(server, "queue"), credential=KEY).create_queue("queue")
    queue.send_message("text")
    connection = f"AccountName=alpha;AccountKey={KEY};TableEndpoint={endpoint(server, 'table')}"
    table = TableServiceClient.from_connection_string(connection).create_table("table")
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    shares = ShareServiceClient(endpoint(server, "file"), credential=KEY)
    share = shares.create_share("share")
    share.get_file_client("file").upload_file(bytes(50_000))
    share.create_snapshot()


def shows_nothing(server: ServerProcess) -> None:
    assert list(BlobServiceClient(endpoint(server, "blob"), credential=KEY).list_containers()) == []
    assert list(QueueServiceClient(endpoint(server, "queue"), credential=KEY).list_queues()) == []
    connection = f"AccountName=alpha;AccountKey={KEY};TableEndpoint={endpoint(server, 'table')}"
    assert list(TableServiceClient.from_connection_string(connection).list_tables()) == []
    shares = ShareServiceClient(endpoint(server, "file"), credential=KEY)
    assert list(shares.list_shares(include_snapshots=True, include_deleted=True)) == []


def login(server: ServerProcess, key: str = KEY) -> Login:
    return Login(login_of(server).port, "alpha", key)


def test_everything_goes(server: ServerProcess) -> None:
    at = server.location
    fill(server)
    call(at, "account set", name="alpha", settings={"versioning": True, "sku": "Standard_LRS"})
    assert call(at, "account remove", name="alpha", with_data=True) == "Account alpha is removed."
    call(at, "account add", name="alpha", keys=[KEY])
    shows_nothing(server)
    settings = next(each["settings"] for each in call(at, "account list") if each["name"] == "alpha")
    assert (settings["versioning"], settings["sku"]) == (False, "Standard_RAGRS")
    assert opens(server, "other", OTHER)
    server.stop()
    assert verify(at)[0] == 0


def test_a_crash_in_the_middle(server: ServerProcess) -> None:
    """Whichever moment: the account is closed from the first on, and gone in the end."""
    at = server.location
    for attempt in range(4):
        fill(server)
        # The command waits for the end of a removal, and does not get an answer.
        pid = os.fork()
        if not pid:
            with suppress(Failure):
                call(at, "account remove", name="alpha", with_data=True)
            os._exit(0)
        time.sleep(0.05 * attempt)
        if attempt % 2:
            server.kill9()
            os.waitpid(pid, 0)
            server.start()
        else:
            for worker in server.worker_pids():
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            os.waitpid(pid, 0)
        eventually(lambda: _is_new(at), 60)
        shows_nothing(server)
    server.stop()
    assert verify(at)[0] == 0


def _is_new(at: Path) -> bool:
    """Whether the account is gone and could be made again. A removal that was not begun is begun now."""
    try:
        call(at, "account remove", name="alpha", with_data=True)
    except Failure as failure:
        if "There is no account" not in failure.sentence:
            return False
    try:
        call(at, "account add", name="alpha", keys=[KEY])
    except Failure as failure:
        if not any(text in failure.sentence for text in ("still being deleted", "No server", "ended")):
            raise
        return False
    return True


def test_a_request_in_progress_is_ended(server: ServerProcess) -> None:
    """Else it could change the account that is made again: it is authenticated already."""
    at = server.location
    body = (
        b"<StorageServiceProperties><DefaultServiceVersion>2020-02-10</DefaultServiceVersion>"
        b"</StorageServiceProperties>"
    )
    url = urlsplit(server.endpoints["blob"])
    assert url.port is not None
    with socket.create_connection(("127.0.0.1", url.port), 30) as slow:
        query = f"restype=service&comp=properties&{token('alpha', KEY)}"
        head = f"PUT /alpha?{query} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
        slow.sendall(head.encode() + body[:10])
        time.sleep(0.3)
        call(at, "account remove", name="alpha")
        call(at, "account add", name="alpha", keys=[KEY])
        with suppress(OSError):
            slow.sendall(body[10:])
            assert slow.recv(1000) == b""
    with blob_service(server, "alpha", KEY) as client:
        assert client.get_service_properties()["target_version"] is None


def test_smb_sessions_outlive_a_key_but_not_the_account(server: ServerProcess) -> None:
    at = server.location
    ShareServiceClient(endpoint(server, "file"), credential=KEY).create_share("share")
    # At the end the client logs off.
    with refused(Status.USER_SESSION_DELETED), connected(login(server), "share") as client:
        opened = client.create("file", disposition=OPEN_IF)
        client.write(opened, b"before")
        call(at, "account rotate-key", name="alpha", number=1, key=OTHER)
        client.write(opened, b"after!")
        assert client.read(opened, 0, 6) == b"after!"
        with refused(Status.LOGON_FAILURE), connected(login(server), "share"):
            pass
        with connected(login(server, OTHER), "share") as second:
            assert second.read(second.create("file"), 0, 6) == b"after!"
        call(at, "account remove", name="alpha", with_data=True)
        with refused(Status.USER_SESSION_DELETED):
            client.read(opened, 0, 6)
        with refused(Status.LOGON_FAILURE), connected(login(server, OTHER), "share"):
            pass
    server.stop()
    assert verify(at)[0] == 0


def test_a_protected_container_keeps_its_account(server: ServerProcess) -> None:
    at = server.location
    fill(server)
    call(at, "container legal-hold set", account="alpha", container="box", tags=["case"])
    with pytest.raises(Failure) as failed:
        call(at, "account remove", name="alpha", with_data=True)
    assert failed.value.sentence == (
        "Account alpha cannot be removed: its container box has an immutability policy, legal holds or version-level "
        "immutability."
    )
    assert opens(server, "alpha", KEY)
    call(at, "container legal-hold clear", account="alpha", container="box", tags=["case"])
    assert call(at, "account remove", name="alpha", with_data=True) == "Account alpha is removed."
