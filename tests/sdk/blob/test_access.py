"""Who gets in, and by which address: keys, nobody at all, host style, the secondary, connection strings."""

import base64
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob._shared import parser

from tests.sdk.accounts import OTHER_ACCOUNT, OTHER_KEY, SECOND_KEY
from tests.sdk.clients import Sdk, content, done, fresh_name, names, refused
from tests.sdk.raw_http import fetch, signed_lite

ACCOUNT = "devstoreaccount1"
WRONG_KEY = base64.b64encode(b"a key that opens nothing").decode()


async def test_either_key_opens_the_account(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    for credential in (
        sdk.key,
        SECOND_KEY,
        {"account_name": ACCOUNT, "account_key": SECOND_KEY},
        AzureNamedKeyCredential(ACCOUNT, sdk.key),
    ):
        assert await content(sdk.blob_at(f"{container.url}/blob", credential)) == b"data"


@pytest.mark.parametrize("key", [WRONG_KEY, OTHER_KEY], ids=["of nobody", "of another account"])
async def test_a_wrong_key_opens_nothing(sdk: Sdk, key: str) -> None:
    container = await sdk.new_container()
    service = sdk.service(credential=key)
    attempts: tuple[Any, ...] = (
        service.get_service_properties,
        lambda: service.create_container(fresh_name()),
        lambda: service.get_container_client(container.container_name).upload_blob("blob", b"data"),
        lambda: service.get_container_client(container.container_name).delete_container(),
    )
    for attempt in attempts:
        with refused(403, "AuthenticationFailed", ClientAuthenticationError):
            await done(attempt())
    assert await names(container.list_blobs()) == []


async def test_accounts_are_strangers_to_each_other(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"mine"))
    other = sdk.service(f"http://{sdk.host}/{OTHER_ACCOUNT}", credential=OTHER_KEY)
    twin = await done(other.create_container(container.container_name))
    assert await names(twin.list_blobs()) == []
    await done(twin.upload_blob("blob", b"theirs"))
    assert await content(container.get_blob_client("blob")) == b"mine"
    await done(twin.delete_container())
    assert await content(container.get_blob_client("blob")) == b"mine"


async def test_an_account_that_does_not_exist_is_answered_like_a_wrong_key(sdk: Sdk) -> None:
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        await done(sdk.service(f"http://{sdk.host}/nosuchaccount").create_container(fresh_name()))


async def test_a_request_without_a_credential_is_refused(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    stranger = sdk.container_at(container.url)
    attempts: tuple[Any, ...] = (
        lambda: stranger.get_blob_client("blob").download_blob(),
        lambda: stranger.get_blob_client("none").download_blob(),
        lambda: stranger.upload_blob("new", b""),
        stranger.get_container_properties,
        stranger.delete_container,
        lambda: sdk.container_at(f"{sdk.url}/{fresh_name()}").get_container_properties(),
    )
    for attempt in attempts:
        with refused(401, "NoAuthenticationInformation", ClientAuthenticationError):
            await done(attempt())


@pytest.mark.parametrize("level", ["blob", "container", "off"])
async def test_public_levels(sdk: Sdk, level: str) -> None:
    container = await sdk.new_container(public_access=None if level == "off" else level)
    await done(container.upload_blob("blob", b"data", metadata={"Name": "value"}))
    stranger = sdk.container_at(container.url)
    blob = stranger.get_blob_client("blob")
    reads: list[Any] = [blob.download_blob, blob.get_blob_properties]
    lists: list[Any] = [stranger.get_container_properties, lambda: names(stranger.list_blobs())]
    writes: list[Any] = [
        lambda: blob.upload_blob(b"new", overwrite=True),
        lambda: stranger.upload_blob("new", b"new"),
        lambda: blob.set_blob_metadata({"a": "b"}),
        blob.delete_blob,
        stranger.get_container_access_policy,
        stranger.delete_container,
    ]
    allowed = {"off": [], "blob": reads, "container": reads + lists}[level]
    for attempt in reads + lists + writes:
        if attempt in allowed:
            await done(attempt())
            continue
        with pytest.raises(HttpResponseError) as caught:
            await done(attempt())
        assert caught.value.status_code == 401
    if level != "off":
        assert await content(blob) == b"data"
        assert fetch(f"{container.url}/blob").body == b"data"


async def test_a_public_level_applies_from_when_it_is_set_until_it_is_removed(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    stranger = sdk.blob_at(f"{container.url}/blob")
    for _ in range(3):
        await done(container.set_container_access_policy({}, public_access="blob"))
        assert await content(stranger) == b"data"
        await done(container.set_container_access_policy({}))
        with refused(401, "NoAuthenticationInformation", ClientAuthenticationError):
            await content(stranger)


def test_old_versions_hide_what_is_not_public(server: Any) -> None:
    answer = fetch(f"{server.endpoints['blob']}/some-container/blob", headers={"x-ms-version": "2018-03-28"})
    assert (answer.status, answer.code) == (404, "ResourceNotFound")


async def test_shared_key_lite(sdk: Sdk) -> None:
    container = await sdk.new_container()
    url = f"{container.url}/a%20blob"
    put = {"x-ms-blob-type": "BlockBlob", "Content-Type": "text/plain", "x-ms-meta-Some": "thing"}
    headers = signed_lite(url, "PUT", put, account=ACCOUNT, key=sdk.key)
    assert fetch(url, "PUT", headers, b"signed lightly").status == 201
    assert await content(container.get_blob_client("a blob")) == b"signed lightly"
    listing = f"{container.url}?restype=container&comp=list&prefix=a"
    answer = fetch(listing, headers=signed_lite(listing, "GET", {}, account=ACCOUNT, key=SECOND_KEY))
    assert answer.status == 200
    assert [name.text for name in answer.xml.iter("Name")] == ["a blob"]
    denied = fetch(url, headers=signed_lite(url, "GET", {}, account=ACCOUNT, key=WRONG_KEY))
    assert (denied.status, denied.code) == (403, "AuthenticationFailed")
    tampered = {**headers, "x-ms-meta-Some": "other"}
    assert fetch(url, "PUT", tampered, b"changed").code == "AuthenticationFailed"
    assert await content(container.get_blob_client("a blob")) == b"signed lightly"


async def test_connection_strings(sdk: Sdk, monkeypatch: pytest.MonkeyPatch) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    endpoint = f"BlobEndpoint={sdk.url};"
    monkeypatch.setitem(parser.DEVSTORE_PORTS, "blob", int(sdk.host.split(":")[1]))
    for text in (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={sdk.key};{endpoint}",
        f"AccountName={ACCOUNT};AccountKey={SECOND_KEY};{endpoint}",
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={sdk.key};"
        f"EndpointSuffix=core.localhost:{sdk.host.split(':')[1]}",
        "UseDevelopmentStorage=true",
    ):
        service = sdk.connected(text)
        assert await content(service.get_blob_client(container.container_name, "blob")) == b"data"


async def test_host_style_addresses_name_the_account_in_the_host(sdk: Sdk) -> None:
    service = sdk.service(sdk.host_style_url)
    name = fresh_name()
    container = await done(service.create_container(name, public_access="blob"))
    await done(container.upload_blob("a/b c", b"data", metadata={"Some": "thing"}))
    assert await content(sdk.service().get_blob_client(name, "a/b c")) == b"data"
    assert await names(container.list_blobs()) == ["a/b c"]
    assert name in await names(service.list_containers(name_starts_with=name))
    stats = await done(service.get_service_stats())
    assert stats["geo_replication"]["status"] == "live"
    for host in ("devstoreaccount1.blob.localhost", "DevStoreAccount1.Blob.example.org"):
        answer = fetch(f"http://{sdk.host}/{name}/a/b%20c", headers={"Host": host})
        assert (answer.status, answer.body) == (200, b"data")
    elsewhere = fetch(
        f"http://{sdk.host}/{name}/a/b%20c", headers={"Host": f"{OTHER_ACCOUNT}.blob.localhost"}
    )
    assert elsewhere.status == 404


@pytest.mark.parametrize("style", ["path", "host"])
async def test_the_secondary_is_there_to_be_read(sdk: Sdk, style: str) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    url = (
        f"{sdk.url}-secondary"
        if style == "path"
        else sdk.host_style_url.replace(ACCOUNT, f"{ACCOUNT}-secondary")
    )
    service = sdk.service(url, credential={"account_name": ACCOUNT, "account_key": sdk.key})
    shadow = service.get_container_client(container.container_name)
    blob = shadow.get_blob_client("blob")
    assert await content(blob) == b"data"
    assert await names(shadow.list_blobs()) == ["blob"]
    await done(shadow.get_container_properties())
    for attempt in (
        lambda: service.create_container(fresh_name()),
        lambda: shadow.upload_blob("new", b"new"),
        lambda: blob.upload_blob(b"new", overwrite=True),
        lambda: blob.set_blob_metadata({"a": "b"}),
        blob.delete_blob,
        lambda: shadow.set_container_metadata({"a": "b"}),
        shadow.delete_container,
    ):
        with refused(403, "InsufficientAccountPermissions"):
            await done(attempt())
    assert await names(container.list_blobs()) == ["blob"]
    assert await content(container.get_blob_client("blob")) == b"data"


async def test_a_client_falls_back_to_the_secondary(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("blob", b"data"))
    service = sdk.service(sdk.host_style_url)
    service.location_mode = "secondary"
    blob = service.get_blob_client(container.container_name, "blob")
    assert "-secondary." in blob.url
    assert await content(blob) == b"data"


async def test_every_answer_says_which_request_it_answers(sdk: Sdk) -> None:
    container = await sdk.new_container()
    returned: list[Any] = []
    await done(container.get_container_properties(raw_response_hook=returned.append))
    sent = returned[0].http_request.headers["x-ms-client-request-id"]
    headers = returned[0].http_response.headers
    assert headers["x-ms-client-request-id"] == sent
    assert headers["x-ms-version"] == returned[0].http_request.headers["x-ms-version"]
    assert headers["Server"].startswith("Windows-Azure-Blob/1.0")
    assert len(headers["x-ms-request-id"]) == 36
    assert headers["Date"].endswith("GMT")
