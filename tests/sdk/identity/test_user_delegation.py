"""User delegation by the official clients: a key, tokens of every kind signed with it, and their revocation."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import (
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareSasPermissions,
    ShareServiceClient,
    generate_file_sas,
    generate_share_sas,
)
from azure.storage.fileshare import aio as async_files
from azure.storage.queue import QueueSasPermissions, generate_queue_sas

from tests.sdk.clients import SYNC, Sdk, content, done, fresh_name, items, names, refused
from tests.sdk.identity.clients import StaticCredential, credential_of, share_service, token_of
from tests.server_process import ServerProcess
from tests.signed_tokens import OID, TENANT

ACCOUNT = "devstoreaccount1"


def soon() -> dict[str, Any]:
    now = datetime.now(UTC)
    return {"start": now - timedelta(minutes=5), "expiry": now + timedelta(hours=1)}


async def blob_key(sdk: Sdk, service: Any, **options: Any) -> Any:
    times = soon()
    return await done(service.get_user_delegation_key(times["start"], times["expiry"], **options))


async def test_a_blob_and_a_container(sdk: Sdk) -> None:
    service = sdk.service(credential=credential_of(sdk))
    container = await done(service.create_container(fresh_name()))
    blob = container.get_blob_client("dir/a")
    await done(blob.upload_blob(b"text"))
    key = await blob_key(sdk, service)
    assert (key.signed_oid, key.signed_tid, key.signed_service) == (OID, TENANT, "b")
    name, common = container.container_name, {"user_delegation_key": key, **soon()}
    token = generate_blob_sas(ACCOUNT, name, "dir/a", permission=BlobSasPermissions(read=True), **common)
    reader = sdk.blob_at(blob.url, token)
    assert await content(reader) == b"text"
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(reader.delete_blob())
    permission = ContainerSasPermissions(read=True, list=True, write=True, create=True)
    token = generate_container_sas(ACCOUNT, name, permission=permission, **common)
    shared = sdk.container_at(container.url, token)
    await done(shared.upload_blob("b", b"more"))
    assert await names(shared.list_blobs()) == ["b", "dir/a"]


async def test_options_of_a_token(sdk: Sdk) -> None:
    service = sdk.service(credential=credential_of(sdk))
    container = await done(service.create_container(fresh_name()))
    blob = container.get_blob_client("a")
    await done(blob.upload_blob(b"text"))
    key = await blob_key(sdk, service)
    token = generate_blob_sas(
        ACCOUNT,
        container.container_name,
        "a",
        user_delegation_key=key,
        permission=BlobSasPermissions(read=True),
        correlation_id="11111111-2222-4333-8444-555555555555",
        content_type="text/x",
        request_headers={"x-tier": "gold"},
        **soon(),
    )
    reader = sdk.blob_at(blob.url, token)
    with refused(403, "AuthenticationFailed"):
        await done(reader.get_blob_properties())
    found = await done(reader.get_blob_properties(headers={"x-tier": "gold"}))
    assert found.content_settings.content_type == "text/x"


async def test_a_token_for_one_user(sdk: Sdk) -> None:
    service = sdk.service(credential=credential_of(sdk))
    container = await done(service.create_container(fresh_name()))
    blob = container.get_blob_client("a")
    await done(blob.upload_blob(b"text"))
    user = "11111111-2222-4333-8444-555555555555"
    token = generate_blob_sas(
        ACCOUNT,
        container.container_name,
        "a",
        user_delegation_key=await blob_key(sdk, service),
        permission=BlobSasPermissions(read=True),
        user_delegation_oid=user,
        **soon(),
    )
    with refused(403, "AuthenticationFailed"):
        await content(sdk.blob_at(blob.url, token))
    assert await content(sdk.blob_at(f"{blob.url}?{token}", credential_of(sdk, oid=user))) == b"text"
    with refused(403, "AuthenticationFailed"):
        await content(sdk.blob_at(f"{blob.url}?{token}", credential_of(sdk)))


async def test_a_queue(sdk: Sdk) -> None:
    service = sdk.queue_service(credential=credential_of(sdk))
    queue = await done(service.create_queue(fresh_name()))
    times = soon()
    key = await done(service.get_user_delegation_key(start=times["start"], expiry=times["expiry"]))
    assert key.signed_service == "q"
    token = generate_queue_sas(
        ACCOUNT,
        queue.queue_name,
        user_delegation_key=key,
        permission=QueueSasPermissions(add=True, read=True),
        **soon(),
    )
    shared = sdk.queue(queue.queue_name, credential=token)
    await done(shared.send_message("hello"))
    assert [message.content for message in await done(shared.peek_messages())] == ["hello"]
    with refused(403, "AuthorizationPermissionMismatch"):
        await items(shared.receive_messages())


async def test_a_file_and_a_share(sdk: Sdk) -> None:
    service = share_service(sdk, credential_of(sdk))
    share = await done(service.create_share(fresh_name()))
    file = share.get_file_client("a")
    await done(file.upload_file(b"text"))
    times = soon()
    key = await done(service.get_user_delegation_key(start=times["start"], expiry=times["expiry"]))
    assert key.signed_service == "f"
    common = {"user_delegation_key": key, **soon()}
    token = generate_file_sas(
        ACCOUNT, share.share_name, ["a"], permission=FileSasPermissions(read=True), **common
    )
    reader = with_token(sdk, token).get_share_client(share.share_name).get_file_client("a")
    assert await done((await done(reader.download_file())).readall()) == b"text"
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(reader.delete_file())
    token = generate_share_sas(
        ACCOUNT, share.share_name, permission=ShareSasPermissions(read=True, list=True), **common
    )
    shared = with_token(sdk, token).get_share_client(share.share_name)
    assert await names(shared.list_directories_and_files()) == ["a"]


def with_token(sdk: Sdk, token: str) -> Any:
    kind = ShareServiceClient if sdk.form == SYNC else async_files.ShareServiceClient
    return sdk.open(kind(sdk.server.endpoints["file"], token, **sdk.options()))


async def test_revocation_by_the_command_line(sdk: Sdk) -> None:
    """When the command has returned, no worker accepts a token of before."""
    service = sdk.service(credential=credential_of(sdk))
    container = await done(service.create_container(fresh_name()))
    blob = container.get_blob_client("a")
    await done(blob.upload_blob(b"text"))

    async def token() -> str:
        return generate_blob_sas(
            ACCOUNT,
            container.container_name,
            "a",
            user_delegation_key=await blob_key(sdk, service),
            permission=BlobSasPermissions(read=True),
            **soon(),
        )

    before = await token()
    assert await content(sdk.blob_at(blob.url, before)) == b"text"
    command = [sys.executable, "-m", "kyanite.server.cli", "identity", "revoke-delegation-keys"]
    location = ["--location", str(sdk.server.location)]
    done_by = subprocess.run([*command, ACCOUNT, *location], capture_output=True, text=True, check=False)
    assert (done_by.returncode, done_by.stdout.startswith(f"account: {ACCOUNT}\nrevoked_at: 2")) == (0, True)
    for _ in range(20):  # Each connection may be with another worker.
        with refused(403, "AuthenticationFailed"):
            await content(sdk.blob_at(blob.url, before))
    assert await content(sdk.blob_at(blob.url, await token())) == b"text"
    unknown = subprocess.run([*command, "nobody", *location], capture_output=True, text=True, check=False)
    assert (unknown.returncode, unknown.stderr) == (1, "kyanite: There is no account 'nobody'.\n")


async def test_the_key_of_an_account_gets_no_user_delegation_key(sdk: Sdk) -> None:
    with refused(403, "AuthenticationFailed"):
        await blob_key(sdk, sdk.service())


@pytest.mark.embedded("nodes that share a store derive what they sign with from what it holds")
def test_a_token_outlives_a_restart_but_not_the_file(
    tmp_path: Path, certificate: tuple[str, str], trusted_certificate: None
) -> None:
    """Whoever has a copy of the store without the file beside it can sign nothing."""
    options = ["--workers", "1", "--cert", certificate[0], "--key", certificate[1], "--dev-identity", "any"]
    server = ServerProcess(*options, location=tmp_path)
    try:
        server.start()
        with BlobServiceClient(
            server.endpoints["blob"], StaticCredential(token_of()), retry_total=0
        ) as service:
            service.create_container("box").upload_blob("a", b"text")
            times = soon()
            key = service.get_user_delegation_key(times["start"], times["expiry"])
        token = generate_blob_sas(
            ACCOUNT, "box", "a", user_delegation_key=key, permission=BlobSasPermissions(read=True), **soon()
        )

        def read() -> bytes:
            url = f"{server.endpoints['blob']}/box/a"
            with BlobClient.from_blob_url(url, token, retry_total=0) as blob:
                return bytes(blob.download_blob().readall())

        assert read() == b"text"
        server.stop()
        server.start()
        assert read() == b"text"
        server.stop()
        (tmp_path / "identity" / "delegation.key").unlink()
        server.start()
        with refused(403, "AuthenticationFailed"):
            read()
    finally:
        server.close()
