"""The official clients of all four services with a token credential, over TLS."""

import http.client
import ssl
from urllib.parse import urlsplit

import pytest
from azure.data.tables import TableTransactionError

from tests.sdk.clients import Sdk, done, fresh_name, items, names, refused
from tests.sdk.identity.clients import credential_of, share_service, token_of


async def test_blobs(sdk: Sdk) -> None:
    service = sdk.service(credential=credential_of(sdk))
    container = await done(service.create_container(fresh_name()))
    await done(container.upload_blob("a", b"text", metadata={"k": "v"}))
    assert await done((await done(container.download_blob("a"))).readall()) == b"text"
    assert await names(container.list_blobs()) == ["a"]
    copy = container.get_blob_client("b")
    await done(copy.start_copy_from_url(container.get_blob_client("a").url))
    parts = await items(await done(container.delete_blobs("a", "b")))
    assert [part.status_code for part in parts] == [202, 202]
    await done(container.delete_container())


async def test_a_copy_from_a_url_with_a_token_for_the_source(sdk: Sdk) -> None:
    container = await done(sdk.service(credential=credential_of(sdk)).create_container(fresh_name()))
    await done(container.upload_blob("a", b"text"))
    target, url = container.get_blob_client("b"), container.get_blob_client("a").url
    with refused(401, "CannotVerifyCopySource"):
        await done(target.upload_blob_from_url(url))
    await done(target.upload_blob_from_url(url, source_authorization=f"Bearer {token_of()}"))
    assert await done((await done(target.download_blob())).readall()) == b"text"


async def test_queues(sdk: Sdk) -> None:
    service = sdk.queue_service(credential=credential_of(sdk))
    queue = await done(service.create_queue(fresh_name()))
    await done(queue.send_message("hello"))
    messages = await items(queue.receive_messages())
    assert [message.content for message in messages] == ["hello"]
    await done(queue.delete_message(messages[0]))
    await done(queue.delete_queue())


async def test_tables(sdk: Sdk) -> None:
    service = sdk.table_service(credential=credential_of(sdk))
    table = await done(service.create_table(fresh_name()))
    await done(table.create_entity({"PartitionKey": "p", "RowKey": "1", "n": 1}))
    await done(
        table.submit_transaction(
            [("upsert", {"PartitionKey": "p", "RowKey": row, "n": 2}) for row in ("1", "2", "3")]
        )
    )
    found = await items(table.query_entities("PartitionKey eq 'p'"))
    assert [entity["n"] for entity in found] == [2, 2, 2]
    with pytest.raises(TableTransactionError, match="EntityAlreadyExists"):
        await done(table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "1"})]))
    await done(table.delete_table())


async def test_files(sdk: Sdk) -> None:
    service = share_service(sdk, credential_of(sdk))
    share = await done(service.create_share(fresh_name()))
    directory = await done(share.create_directory("d"))
    file = directory.get_file_client("a")
    await done(file.upload_file(b"text"))
    assert await done((await done(file.download_file())).readall()) == b"text"
    assert await names(directory.list_directories_and_files()) == ["a"]
    renamed = await done(file.rename_file("d/b"))
    await done(renamed.delete_file())
    await done(share.delete_share())


async def test_a_token_that_is_not_valid(sdk: Sdk) -> None:
    for claims, code in (
        ({"exp": 1}, "InvalidAuthenticationInfo"),
        ({"aud": "https://graph.microsoft.com"}, "InvalidAuthenticationInfo"),
    ):
        with refused(401, code):
            await done(sdk.service(credential=credential_of(sdk, **claims)).create_container(fresh_name()))


def test_clients_request_a_token_for_storage(sdk: Sdk) -> None:
    """The challenge names an audience that the server accepts, which the client turns into a scope."""
    if sdk.form != "sync":
        return
    credential = credential_of(sdk, exp=1)
    with refused(401, "InvalidAuthenticationInfo"):
        sdk.service(credential=credential).create_container(fresh_name())
    assert credential.scopes == ["https://storage.azure.com/.default"] * 2


def test_a_stranger_gets_the_challenge(sdk: Sdk) -> None:
    url = urlsplit(sdk.url)
    connection = http.client.HTTPSConnection(
        url.hostname or "", url.port, context=ssl.create_default_context()
    )
    connection.request("GET", f"{url.path}/box/a", headers={"x-ms-version": "2025-07-05"})
    response = connection.getresponse()
    assert response.status == 401
    assert (response.headers["WWW-Authenticate"] or "").startswith("Bearer authorization_uri=https://")
    response.read()
    connection.close()
