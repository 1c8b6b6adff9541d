"""Settings of an account, as clients meet them: each test has an account of its own on the shared server."""

import base64
import itertools
import os
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareServiceClient
from azure.storage.fileshare import aio as async_files

from kyanite.server.management.client import call
from kyanite.wire.smb2.status import Status
from tests.sdk.clients import ASYNC, Sdk, done
from tests.server_process import ServerProcess
from tests.smb.messages import connected, refused
from tests.smb.programs import Login
from tests.smb.torture.targets import login_of

KEY = base64.b64encode(b"the key of an account of a test").decode()
_numbers = itertools.count()


def new_account(server: ServerProcess, **settings: Any) -> str:
    name = f"t{os.getpid()}x{next(_numbers)}"
    call(server.location, "account add", name=name, keys=[KEY], settings=settings)
    return name


def change(server: ServerProcess, name: str, **settings: Any) -> None:
    call(server.location, "account set", name=name, settings=settings)


def endpoint(server: ServerProcess, service: str, account: str) -> str:
    return f"{server.endpoints[service].rpartition('/')[0]}/{account}"


def blobs(sdk: Sdk, account: str) -> Any:
    return sdk.service(endpoint(sdk.server, "blob", account), credential=KEY)


async def refusal(outcome: Any) -> tuple[int | None, str | None]:
    """Status and code of an error."""
    with pytest.raises(HttpResponseError) as failed:
        await done(outcome() if callable(outcome) else outcome)
    code = getattr(failed.value, "error_code", None)
    return failed.value.status_code, None if code is None else str(getattr(code, "value", code))


async def test_shared_key_off(sdk: Sdk) -> None:
    """In all services, at once, and back."""
    server = sdk.server
    name = new_account(server)
    key = AzureNamedKeyCredential(name, KEY)
    service = blobs(sdk, name)
    await done(service.create_container("box"))
    queues = sdk.queue_service(url=endpoint(server, "queue", name), credential=KEY)
    tables = sdk.table_service(url=endpoint(server, "table", name), credential=key)
    kind = async_files.ShareServiceClient if sdk.form == ASYNC else ShareServiceClient
    shares = sdk.open(kind(endpoint(server, "file", name), KEY, **sdk.options()))
    change(server, name, shared_key_access=False)
    for attempt in (
        service.get_service_properties,
        queues.get_service_properties,
        tables.get_service_properties,
        shares.get_service_properties,
    ):
        status, code = await refusal(attempt)
        assert (status, code) == (403, "KeyBasedAuthenticationNotPermitted")
    change(server, name, shared_key_access=True)
    assert await done(service.get_service_properties())


async def test_public_access_off(sdk: Sdk) -> None:
    name = new_account(sdk.server)
    service = blobs(sdk, name)
    box = await done(service.create_container("box", public_access="blob"))
    await done(box.upload_blob("name", b"data"))
    reader = sdk.blob_at(f"{endpoint(sdk.server, 'blob', name)}/box/name")
    assert await done((await done(reader.download_blob())).readall()) == b"data"
    change(sdk.server, name, public_access=False)
    assert await refusal(reader.download_blob) == (401, "NoAuthenticationInformation")
    other = service.get_container_client("other")
    assert await refusal(lambda: other.create_container(public_access="container")) == (
        409,
        "PublicAccessNotPermitted",
    )
    assert await refusal(lambda: box.set_container_access_policy({}, public_access="blob")) == (
        409,
        "PublicAccessNotPermitted",
    )


async def test_https_only(sdk: Sdk) -> None:
    name = new_account(sdk.server, require_https=True)
    assert await refusal(lambda: blobs(sdk, name).get_service_properties()) == (400, "AccountRequiresHttps")
    change(sdk.server, name, require_https=False)
    assert await done(blobs(sdk, name).get_service_properties())


async def test_kind_and_sku(sdk: Sdk) -> None:
    name = new_account(sdk.server, sku="Standard_ZRS")
    found = await done(blobs(sdk, name).get_account_information())
    assert (found["sku_name"], found["account_kind"], found["is_hns_enabled"]) == (
        "Standard_ZRS",
        "StorageV2",
        False,
    )
    url = f"http://{name}.blob.core.localhost:{sdk.host.split(':')[1]}"
    service = sdk.service(url, credential=KEY)  # It reads the statistics from the secondary.
    assert (await refusal(service.get_service_stats))[0] == 403
    change(sdk.server, name, sku="Standard_RAGZRS")
    assert (await done(service.get_service_stats()))["geo_replication"]["status"] == "live"


async def test_soft_delete_that_an_operator_sets_is_what_clients_read(sdk: Sdk) -> None:
    name = new_account(sdk.server, blob_soft_delete_days=9)
    properties = await done(blobs(sdk, name).get_service_properties())
    assert (properties["delete_retention_policy"].enabled, properties["delete_retention_policy"].days) == (
        True,
        9,
    )


def test_smb_without_keys(server: ServerProcess) -> None:
    """Who is logged on stays so. With secure transfer required, sessions are encrypted."""
    name = new_account(server)
    ShareServiceClient(endpoint(server, "file", name), credential=KEY).create_share("share")
    login = Login(login_of(server).port, name, KEY)
    with connected(login, "share") as before:
        change(server, name, shared_key_access=False)
        with refused(Status.LOGON_FAILURE), connected(login, "share"):
            pass
        before.create("")
        change(server, name, shared_key_access=True, require_https=True)
        with connected(login, "share") as after:
            assert after.session.encrypt_data
        with refused(Status.ACCESS_DENIED), connected(login, "share", dialect="2.1"):
            pass
        assert not before.session.encrypt_data
