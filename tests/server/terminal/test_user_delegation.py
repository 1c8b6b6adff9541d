"""``kyanite sas user-delegation`` with tokens of the built-in issuer, over TLS."""

import ssl
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient

from tests.server.terminal.commands import failure, output
from tests.server.terminal.test_sas import ACCOUNT, refused
from tests.server_process import ServerProcess

OID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    options = ("--dev-identity", "builtin", "--workers", "1", "--services", "blob,queue,file")
    with ServerProcess(*options, location=tmp_path_factory.mktemp("issuing")) as started:
        yield started


@pytest.fixture(autouse=True)
def _trusted(issuing: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", issuing.endpoints["identity_ca"])


@pytest.fixture
def token(issuing: ServerProcess) -> str:
    return output(issuing, "token").strip()


def connection_string(issuing: ServerProcess) -> str:
    return output(issuing, "connection-string").strip()


def test_a_blob_and_its_container(issuing: ServerProcess, token: str) -> None:
    with BlobServiceClient.from_connection_string(connection_string(issuing)) as service:
        service.create_container("photos").upload_blob("cat", b"cat")
    words = ("sas", "user-delegation", f"blob://{ACCOUNT}/photos", "--permissions", "lr", "--expires", "2h")
    sas = output(issuing, *words, KYANITE_TOKEN=token).strip()
    with ContainerClient(issuing.endpoints["blob"], "photos", credential=sas, retry_total=0) as container:
        assert list(container.list_blob_names()) == ["cat"]
        with refused("AuthorizationPermissionMismatch"):
            container.upload_blob("dog", b"dog")


def test_headers_and_parameters_of_requests(issuing: ServerProcess, token: str) -> None:
    with BlobServiceClient.from_connection_string(connection_string(issuing)) as service:
        service.create_container("gold").upload_blob("cat", b"cat")
    words = ("sas", "user-delegation", f"blob://{ACCOUNT}/gold/cat", "--permissions", "r", "--url")
    more = ("--header", "x-tier: gold", "--correlation-id", OID, "--content-type", "text/x")
    url = output(issuing, *words, *more, KYANITE_TOKEN=token).strip()
    with BlobClient.from_blob_url(url, retry_total=0) as blob:
        found = blob.get_blob_properties(headers={"x-tier": "gold"})
        assert found.content_settings.content_type == "text/x"
        with refused("AuthenticationFailed"):
            blob.get_blob_properties(headers={"x-tier": "silver"})
    url = output(issuing, *words, "--parameter", "mark=a b", KYANITE_TOKEN=token).strip()
    trust = ssl.create_default_context(cafile=issuing.endpoints["identity_ca"])
    with urlopen(f"{url}&mark=a%20b", context=trust) as response:
        assert response.read() == b"cat"
    with pytest.raises(HTTPError) as error:
        urlopen(f"{url}&mark=c", context=trust)
    assert error.value.code == 403
    error.value.close()


def test_a_share_and_a_queue(issuing: ServerProcess, token: str) -> None:
    text = connection_string(issuing)
    with ShareServiceClient.from_connection_string(text) as service:
        share = service.create_share("papers")
        share.get_file_client("a").upload_file(b"text")
    words = ("sas", "user-delegation", f"file://{ACCOUNT}/papers/a", "--permissions", "r")
    sas = output(issuing, *words, KYANITE_TOKEN=token).strip()
    url = issuing.endpoints["file"]
    with ShareServiceClient(url, credential=sas, retry_total=0) as shared:
        file = shared.get_share_client("papers").get_file_client("a")
        assert file.download_file().readall() == b"text"
    with QueueServiceClient.from_connection_string(text) as queues:
        queues.create_queue("jobs")
    words = ("sas", "user-delegation", f"queue://{ACCOUNT}/jobs", "--permissions", "a")
    sas = output(issuing, *words, KYANITE_TOKEN=token).strip()
    with QueueClient(issuing.endpoints["queue"], "jobs", credential=sas, retry_total=0) as queue:
        queue.send_message("hello")
        with refused("AuthorizationPermissionMismatch"):
            queue.peek_messages()


def test_one_user_only(issuing: ServerProcess, token: str) -> None:
    words = ("sas", "user-delegation", f"blob://{ACCOUNT}/photos/cat", "--permissions", "r", "--url")
    url = output(issuing, *words, "--user-object-id", OID, KYANITE_TOKEN=token).strip()
    assert f"sduoid={OID}" in url
    with BlobClient.from_blob_url(url, retry_total=0) as blob, refused("AuthenticationFailed"):
        blob.get_blob_properties()


def test_no_key(issuing: ServerProcess, token: str) -> None:
    words = ("sas", "user-delegation", f"blob://{ACCOUNT}/photos", "--permissions", "r")
    assert "InvalidAuthenticationInfo" in failure(issuing, *words, KYANITE_TOKEN="nonsense")
    assert "Missing option '--token'" in failure(issuing, *words, code=2)
    says = failure(issuing, *words[:2], f"table://{ACCOUNT}/t", *words[3:], code=2, KYANITE_TOKEN=token)
    assert "cannot be used here" in says
    says = failure(issuing, *words, "--expires", "9d", KYANITE_TOKEN=token)
    assert "InvalidXmlNodeValue" in says or "Authenti" in says or "OutOfRange" in says
