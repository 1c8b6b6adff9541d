"""``kyanite connection-string`` with the official clients."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from tests.server.terminal.commands import failure, output
from tests.server.terminal.conftest import OTHER_KEY
from tests.server_process import ServerProcess


def test_every_client_takes_it(server: ServerProcess) -> None:
    text = output(server, "connection-string").strip()
    with BlobServiceClient.from_connection_string(text) as blobs:
        assert blobs.get_account_information()["account_kind"] == "StorageV2"
    with QueueServiceClient.from_connection_string(text) as queues:
        assert list(queues.list_queues(name_starts_with="none")) == []
    with ShareServiceClient.from_connection_string(text) as shares:
        assert list(shares.list_shares(name_starts_with="none")) == []
    with TableServiceClient.from_connection_string(text) as tables:
        assert list(tables.query_tables("TableName eq 'none'")) == []


def test_other_accounts_services_and_keys(server: ServerProcess) -> None:
    text = output(server, "connection-string", "other", "--service", "blob")
    assert f"AccountName=other;AccountKey={OTHER_KEY};BlobEndpoint=" in text
    assert "QueueEndpoint" not in text
    assert OTHER_KEY in output(server, "connection-string", "devstoreaccount1", "--key-number", "2")
    assert "AccountKey=a2V5;" in output(server, "connection-string", KYANITE_ACCOUNT_KEY="a2V5")


def test_host_style(server: ServerProcess) -> None:
    text = output(server, "connection-string", "other", "--style", "host", "--host", "store.example.org")
    port = server.endpoints["queue"].split(":")[2].partition("/")[0]
    assert f";QueueEndpoint=http://other.queue.store.example.org:{port};" in text


def test_a_signature_instead_of_a_key(server: ServerProcess) -> None:
    sas = output(server, "sas", "account", "other", "--permissions", "lr", "--services", "b").strip()
    text = output(server, "connection-string", "other", "--sas", f"?{sas}").strip()
    assert "AccountKey" not in text
    with BlobServiceClient.from_connection_string(text, retry_total=0) as blobs:
        assert list(blobs.list_containers()) == []
        with pytest.raises(HttpResponseError) as refused:
            blobs.create_container("new")
    assert "AuthorizationPermissionMismatch" in str(refused.value)


def test_what_is_not_there(server: ServerProcess) -> None:
    says = failure(server, "connection-string", "nowhere", code=2)
    assert says == "The server has no account 'nowhere'. There are devstoreaccount1, other."
    says = failure(server, "connection-string", "--service", "dfs", code=2)
    assert says.startswith("The server does not offer the dfs service. It offers blob,")
    assert "has no key 2" in failure(server, "connection-string", "other", "--key-number", "2", code=2)
    assert "not base64" in failure(server, "connection-string", KYANITE_ACCOUNT_KEY="?", code=2)
    says = failure(server, "connection-string", "--location", "/nowhere")
    assert says == "No server is running on /nowhere, so it can take no command."
