"""``kyanite sas …``: every kind of token, used by the official clients, and what each does not allow."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import (
    AccessPolicy,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
)
from azure.storage.fileshare import ShareClient, ShareFileClient, ShareServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient

from tests.server.terminal.commands import failure, output
from tests.server_process import ServerProcess

ACCOUNT = "devstoreaccount1"


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(HttpResponseError) as error:
        yield
    assert error.value.status_code == 403
    assert str(getattr(error.value, "error_code", None)).endswith(code) or code in str(error.value)


@pytest.fixture(scope="module")
def blobs(server: ServerProcess) -> Iterator[BlobServiceClient]:
    with BlobServiceClient.from_connection_string(server.connection_string) as client:
        photos = client.create_container("photos")
        photos.upload_blob("dir/cat ü.png", b"cat")
        photos.upload_blob("dog.png", b"dog")
        yield client


def blob_at(url: str) -> BlobClient:
    return BlobClient.from_blob_url(url, retry_total=0)


def test_a_blob(server: ServerProcess, blobs: BlobServiceClient) -> None:
    options = ("--permissions", "dr", "--content-type", "text/x", "--cache-control", "no-store", "--url")
    url = output(server, "sas", "blob", f"{ACCOUNT}/photos/dir/cat ü.png", *options).strip()
    with blob_at(url) as blob:
        assert blob.download_blob().readall() == b"cat"
        assert blob.get_blob_properties().content_settings.content_type == "text/x"
        with refused("AuthorizationPermissionMismatch"):
            blob.set_blob_metadata({"a": "b"})
    with blob_at(url.replace("dir/cat%20%C3%BC", "dog")) as other, refused("AuthenticationFailed"):
        other.download_blob()


def test_a_snapshot_and_a_version_of_a_blob(server: ServerProcess, blobs: BlobServiceClient) -> None:
    blob = blobs.get_blob_client("photos", "dog.png")
    snapshot = str(blob.create_snapshot()["snapshot"])
    words = ("sas", "service", f"blob://{ACCOUNT}/photos/dog.png", "--permissions", "r", "--url")
    url = output(server, *words, "--snapshot", snapshot).strip()
    with blob_at(url) as at_snapshot:
        assert at_snapshot.download_blob().readall() == b"dog"
    without = url.replace(f"snapshot={snapshot.replace(':', '%3A')}&", "")
    with blob_at(without) as base, refused("AuthenticationFailed"):
        base.download_blob()
    assert "&sr=bv&" in output(server, *words, "--version-id", snapshot)


def test_a_container(server: ServerProcess, blobs: BlobServiceClient) -> None:
    token = output(server, "sas", "container", f"{ACCOUNT}/photos", "--permissions", "lr").strip()
    with ContainerClient(blobs.url, "photos", credential=token, retry_total=0) as container:
        assert "dog.png" in list(container.list_blob_names())
        with refused("AuthorizationPermissionMismatch"):
            container.upload_blob("new", b"")


def test_a_stored_policy(server: ServerProcess, blobs: BlobServiceClient) -> None:
    end = datetime.now(UTC) + timedelta(hours=1)
    policy = AccessPolicy(ContainerSasPermissions(read=True), expiry=end)
    blobs.get_container_client("photos").set_container_access_policy({"readers": policy})
    token = output(server, "sas", "container", f"{ACCOUNT}/photos", "--policy", "readers").strip()
    assert "se=" not in token
    with ContainerClient(blobs.url, "photos", credential=token, retry_total=0) as container:
        assert container.download_blob("dog.png").readall() == b"dog"
        with refused("AuthorizationPermissionMismatch"):
            list(container.list_blob_names())


def test_times_addresses_and_protocols(server: ServerProcess, blobs: BlobServiceClient) -> None:
    words = ("sas", "blob", f"{ACCOUNT}/photos/dog.png", "--permissions", "r", "--url")
    cases = {
        ("--start", "1h", "--expires", "2h"): "AuthenticationFailed",
        ("--expires", "2020-01-01T00:00Z"): "AuthenticationFailed",
        ("--ip", "192.0.2.1-192.0.2.9"): "AuthorizationSourceIPMismatch",
        ("--https-only",): "AuthorizationProtocolMismatch",
    }
    for options, code in cases.items():
        with blob_at(output(server, *words, *options).strip()) as blob, refused(code):
            blob.get_blob_properties()
    good = ("--start", "2020-01-01", "--ip", "127.0.0.1", "--key-number", "2", "--sas-version", "2019-12-12")
    with blob_at(output(server, *words, *good).strip()) as blob:
        assert blob.download_blob().readall() == b"dog"


def test_an_account(server: ServerProcess, blobs: BlobServiceClient) -> None:
    words = ("sas", "account", ACCOUNT, "--services", "b", "--types", "sc", "--permissions", "rl")
    token = output(server, *words).strip()
    with BlobServiceClient(blobs.url, credential=token, retry_total=0) as service:
        assert "photos" in [each.name for each in service.list_containers()]
        with refused("AuthorizationResourceTypeMismatch"):
            service.get_blob_client("photos", "dog.png").download_blob()
    queues = QueueServiceClient(server.endpoints["queue"], credential=token, retry_total=0)
    with queues, refused("AuthorizationServiceMismatch"):
        list(queues.list_queues())


def test_a_share_and_a_file(server: ServerProcess) -> None:
    with ShareServiceClient.from_connection_string(server.connection_string) as service:
        share = service.create_share("papers")
        share.create_directory("dir")
        share.get_file_client("dir/a b").upload_file(b"text")
    token = output(server, "sas", "share", f"{ACCOUNT}/papers", "--permissions", "lr").strip()
    with ShareClient(server.endpoints["file"], "papers", credential=token, retry_total=0) as shared:
        assert [each["name"] for each in shared.list_directories_and_files()] == ["dir"]
        with refused("AuthorizationPermissionMismatch"):
            shared.create_directory("new")
    words = ("sas", "file", f"{ACCOUNT}/papers/dir/a b", "--permissions", "r", "--content-language", "fr")
    url = server.endpoints["file"]
    token = output(server, *words).strip()
    with ShareFileClient(url, "papers", "dir/a b", credential=token, retry_total=0) as file:
        assert file.download_file().readall() == b"text"
        with refused("AuthorizationPermissionMismatch"):
            file.delete_file()


def test_a_queue(server: ServerProcess) -> None:
    with QueueServiceClient.from_connection_string(server.connection_string) as service:
        service.create_queue("jobs")
    token = output(server, "sas", "queue", f"{ACCOUNT}/jobs", "--permissions", "ra").strip()
    with QueueClient(server.endpoints["queue"], "jobs", credential=token, retry_total=0) as queue:
        queue.send_message("hello")
        assert [message.content for message in queue.peek_messages()] == ["hello"]
        with refused("AuthorizationPermissionMismatch"):
            queue.receive_message()


def test_a_table(server: ServerProcess) -> None:
    with TableServiceClient.from_connection_string(server.connection_string) as service:
        people = service.create_table("People")
        for name in ("Ada", "Bob", "Zoe"):
            people.create_entity({"PartitionKey": name, "RowKey": "1"})
    keys = ("--start-partition", "B", "--start-row", "0", "--end-partition", "C", "--end-row", "9")
    token = output(server, "sas", "table", f"{ACCOUNT}/People", "--permissions", "ra", *keys).strip()
    credential = AzureSasCredential(token)
    with TableClient(server.endpoints["table"], "People", credential=credential, retry_total=0) as table:
        assert [each["PartitionKey"] for each in table.list_entities()] == ["Bob"]
        with refused("Authorization"):
            table.create_entity({"PartitionKey": "Zed", "RowKey": "1"})
        with refused("AuthorizationPermissionMismatch"):
            table.delete_entity("Bob", "1")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["blob", f"{ACCOUNT}/c", "--permissions", "r"], "A blob is named ACCOUNT/CONTAINER/BLOB"),
        (["container", f"{ACCOUNT}/c/b", "--permissions", "r"], "A container is named ACCOUNT/CONTAINER"),
        (["queue", f"blob://{ACCOUNT}/q", "--permissions", "r"], "cannot be used here"),
        (["queue", f"{ACCOUNT}/q", "--permissions", "z"], "no letter 'z' here: there are raup."),
        (["blob", f"{ACCOUNT}/c/b"], "needs --permissions, or a --policy"),
        (["blob", f"{ACCOUNT}/c/b", "--permissions", "r", "--expires", "soon"], "--expires is a span"),
        (["blob", f"{ACCOUNT}/c/b", "--permissions", "r", "--ip", "localhost"], "do not make a token"),
        (["account", ACCOUNT, "--permissions", "r", "--services", "x"], "do not make a token"),
        (["service", f"queue://{ACCOUNT}/q", "--permissions", "r", "--content-type", "a"], "--content-type has no"),
        (["service", f"{ACCOUNT}/q", "--permissions", "r"], "names nothing that is stored"),
        (["blob", f"{ACCOUNT}/c/b", "--permissions", "r", "--snapshot", "a", "--version-id", "b"], "not for both"),
    ],
)  # fmt: skip
def test_what_makes_no_token(server: ServerProcess, words: list[str], says: str) -> None:
    assert says in failure(server, "sas", *words, code=2, KYANITE_ACCOUNT_KEY="a2V5")


def test_an_unknown_account(server: ServerProcess) -> None:
    assert (
        failure(server, "sas", "account", "nowhere", "--permissions", "r") == "There is no account 'nowhere'."
    )
