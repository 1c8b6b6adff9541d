"""A server that trusts an issuer on this machine: roles by the official clients, and an issuer that dies."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobServiceClient,
    ContainerSasPermissions,
    generate_container_sas,
)

from tests.loopback_issuer import LoopbackIssuer
from tests.sdk.clients import Sdk, content, done, fresh_name, items, names, refused
from tests.sdk.identity.clients import StaticCredential, credential_of, share_service
from tests.server_process import DEVELOPMENT_KEY, ServerProcess
from tests.signed_tokens import ISSUER, TENANT, claims_at, jwk, key_set, rsa_key, signed

READER, WRITER, UPLOADER, STRANGER, OWNER = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "12345")


def configuration(issuer: LoopbackIssuer, folder: Path) -> Path:
    path = folder / "kyanite.toml"
    path.write_text(
        f"""
[identity]
[[identity.issuers]]
name = "test"
issuer = "{ISSUER}"
jwks_url = "{issuer.url}/keys"
tenant = "{TENANT}"

[[identity.roles]]
principal = "{READER}"
role = "Storage Blob Data Reader"
[[identity.roles]]
principal = "writers"
role = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
[[identity.roles]]
principal = "writers"
role = "Storage Queue Data Contributor"
[[identity.roles]]
principal = "writers"
role = "Storage Table Data Contributor"
[[identity.roles]]
principal = "writers"
role = "Storage File Data Privileged Contributor"
[[identity.roles]]
principal = "{OWNER}"
role = "Storage Blob Data Owner"
[[identity.roles]]
principal = "roles=Uploader"
role = "Storage Blob Data Contributor"
scope = "devstoreaccount1/uploads"
"""
    )
    return path


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoopbackIssuer]:
    running = LoopbackIssuer()
    running.documents["/keys"] = key_set(jwk(rsa_key())).encode()
    yield running
    running.die()


@pytest.fixture(scope="module")
def server(
    issuer: LoopbackIssuer, tmp_path_factory: pytest.TempPathFactory, certificate: tuple[str, str]
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("trusted")
    options = ["--workers", "2", "--cert", certificate[0], "--key", certificate[1]]
    config = ["--config", str(configuration(issuer, folder))]
    with ServerProcess(*options, *config, location=folder / "store") as started:
        yield started
        assert not [line for line in started.log if line.get("level") in {"error", "critical"}]


def reader(sdk: Sdk) -> Any:
    return sdk.service(credential=credential_of(sdk, oid=READER))


def writer_credential(sdk: Sdk) -> Any:
    return credential_of(sdk, oid=WRITER, groups=["others", "writers"])


async def test_a_reader_and_a_writer(sdk: Sdk) -> None:
    service = sdk.service(credential=writer_credential(sdk))
    container = await done(service.create_container(fresh_name()))
    await done(container.upload_blob("a", b"text"))
    theirs = reader(sdk).get_container_client(container.container_name)
    assert await content(theirs.get_blob_client("a")) == b"text"
    assert await names(theirs.list_blobs()) == ["a"]
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(theirs.upload_blob("b", b"text"))
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(theirs.delete_blob("a"))
    for denied in (service.get_service_properties, container.get_blob_client("a").get_blob_tags):
        with refused(403, "AuthorizationPermissionMismatch"):
            await done(denied())
    stranger = sdk.service(credential=credential_of(sdk, oid=STRANGER))
    with refused(403, "AuthorizationPermissionMismatch"):
        await items(stranger.list_containers())


async def test_tags_are_for_owners(sdk: Sdk) -> None:
    """Who may write blobs may neither tag them, nor learn about tags by a condition, a list or a search."""
    owner = sdk.service(credential=credential_of(sdk, oid=OWNER))
    container = await done(owner.create_container(fresh_name()))
    blob = await done(container.upload_blob("a", b"text", tags={"colour": "red"}))
    await done(blob.set_blob_metadata({}, if_tags_match_condition="colour = 'red'"))
    assert await done(blob.get_blob_tags()) == {"colour": "red"}
    assert [each.tags for each in await items(container.list_blobs(include=["tags"]))] == [{"colour": "red"}]
    assert await names(container.find_blobs_by_tags("colour = 'red'")) == ["a"]
    theirs = sdk.service(credential=writer_credential(sdk)).get_container_client(container.container_name)
    await done(theirs.upload_blob("b", b"text"))
    their_blob = theirs.get_blob_client("a")
    for denied in (
        lambda: theirs.upload_blob("c", b"text", tags={"colour": "red"}),
        lambda: their_blob.get_blob_properties(if_tags_match_condition="colour = 'red'"),
        lambda: their_blob.set_blob_tags({}),
        lambda: items(theirs.list_blobs(include=["tags"])),
        lambda: items(theirs.find_blobs_by_tags("colour = 'red'")),
    ):
        with refused(403, "AuthorizationPermissionMismatch"):
            await done(denied())


async def test_a_role_in_one_container(sdk: Sdk) -> None:
    by_key = sdk.service()
    for name in ("uploads", "archive"):
        if not await done(by_key.get_container_client(name).exists()):
            await done(by_key.create_container(name))
    service = sdk.service(credential=credential_of(sdk, oid=UPLOADER, roles=["Uploader"]))
    await done(service.get_container_client("uploads").upload_blob("a", b"text", overwrite=True))
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(service.get_container_client("archive").upload_blob("a", b"text"))
    with refused(403, "AuthorizationPermissionMismatch"):
        await items(service.list_containers())


async def test_other_services(sdk: Sdk) -> None:
    credential = writer_credential(sdk)
    queue = await done(sdk.queue_service(credential=credential).create_queue(fresh_name()))
    await done(queue.send_message("hello"))
    table = await done(sdk.table_service(credential=credential).create_table(fresh_name()))
    await done(table.create_entity({"PartitionKey": "p", "RowKey": "r"}))
    share_name = fresh_name()
    with refused(403, "AuthorizationPermissionMismatch"):  # No data role has shares.
        await done(share_service(sdk, credential).create_share(share_name))
    from tests.sdk.files.clients import share_service as share_service_by_key

    await done(share_service_by_key(sdk).create_share(share_name))
    file = share_service(sdk, credential).get_share_client(share_name).get_file_client("a")
    await done(file.upload_file(b"text"))
    no_sender = sdk.queue_service(credential=credential_of(sdk, oid=READER))
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(no_sender.get_queue_client(queue.queue_name).send_message("hello"))


async def test_a_delegator_gives_no_more_than_it_has(sdk: Sdk) -> None:
    container = await done(sdk.service().create_container(fresh_name()))
    await done(container.upload_blob("a", b"text"))
    from tests.sdk.identity.test_user_delegation import ACCOUNT, blob_key, soon

    token = generate_container_sas(
        ACCOUNT,
        container.container_name,
        user_delegation_key=await blob_key(sdk, reader(sdk)),
        permission=ContainerSasPermissions(read=True, write=True, delete=True, list=True),
        **soon(),
    )
    shared = sdk.container_at(container.url, token)
    assert await content(shared.get_blob_client("a")) == b"text"
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(shared.delete_blob("a"))


def test_an_issuer_that_dies_stops_nothing_else(
    tmp_path: Path, certificate: tuple[str, str], trusted_certificate: None
) -> None:
    """It is dead when the server starts, comes to life, and dies again: keys and signatures work all the time."""
    issuer = LoopbackIssuer()
    options = ["--workers", "1", "--cert", certificate[0], "--key", certificate[1]]
    config = ["--config", str(configuration(issuer, tmp_path))]
    begun = time.monotonic()
    with ServerProcess(*options, *config, location=tmp_path / "store") as server:
        assert time.monotonic() - begun < 15
        url = server.endpoints["blob"]
        by_key = BlobServiceClient(url, DEVELOPMENT_KEY, retry_total=0)
        by_token = BlobServiceClient(
            url, StaticCredential(signed(claims_at(time.time(), oid=READER))), retry_total=0
        )
        by_key.create_container("box")
        with pytest.raises(HttpResponseError) as caught:
            list(by_token.list_containers())
        assert caught.value.status_code == 401
        issuer.documents["/keys"] = key_set(jwk(rsa_key())).encode()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                assert [each.name for each in by_token.list_containers()] == ["box"]
                break
            except HttpResponseError:
                time.sleep(0.5)
        else:
            pytest.fail("the issuer is not asked again")
        issuer.die()
        other = BlobServiceClient(
            url, StaticCredential(signed(claims_at(time.time(), oid=READER, jti="x"))), retry_total=0
        )
        assert [each.name for each in other.list_containers()] == ["box"]
        unknown = StaticCredential(signed(claims_at(time.time(), oid=READER), key_id="unknown"))
        with pytest.raises(HttpResponseError):
            list(BlobServiceClient(url, unknown, retry_total=0).list_containers())
        by_key.create_container("box2")
        for client in (by_key, by_token, other):
            client.close()
