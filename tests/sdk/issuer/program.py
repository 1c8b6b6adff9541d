"""A program as users write it: official clients and credentials, which know of the server by their environment only.

    python -m tests.sdk.issuer.program sync|async NAME…

Each name is a way to get a credential. With each the program uses all four services, and prints what happened as JSON.
It is a process of its own, because the libraries read some of their environment when they are imported.
"""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import azure.data.tables
import azure.data.tables.aio
import azure.identity
import azure.identity.aio
import azure.storage.blob
import azure.storage.blob.aio
import azure.storage.fileshare
import azure.storage.fileshare.aio
import azure.storage.queue
import azure.storage.queue.aio

FORMS: dict[str, dict[str, Any]] = {
    "sync": {
        "identity": azure.identity,
        "blob": azure.storage.blob,
        "queue": azure.storage.queue,
        "table": azure.data.tables,
        "file": azure.storage.fileshare,
    },
    "async": {
        "identity": azure.identity.aio,
        "blob": azure.storage.blob.aio,
        "queue": azure.storage.queue.aio,
        "table": azure.data.tables.aio,
        "file": azure.storage.fileshare.aio,
    },
}
# Without it the libraries ask Microsoft's cloud whether it knows the authority.
OFFLINE = {"disable_instance_discovery": True}
SECRET = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_AUTHORITY_HOST")
WORKLOAD = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST")
CERTIFICATE = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_AUTHORITY_HOST")
APP_SERVICE = ("IDENTITY_ENDPOINT", "IDENTITY_HEADER")
IMDS = ("AZURE_POD_IDENTITY_AUTHORITY_HOST",)

WAYS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "client secret": (
        SECRET,
        lambda identity: identity.ClientSecretCredential(
            os.environ["AZURE_TENANT_ID"],
            os.environ["AZURE_CLIENT_ID"],
            os.environ["AZURE_CLIENT_SECRET"],
            **OFFLINE,
        ),
    ),
    "wrong secret": (
        SECRET,
        lambda identity: identity.ClientSecretCredential(
            os.environ["AZURE_TENANT_ID"], os.environ["AZURE_CLIENT_ID"], "wrong", **OFFLINE
        ),
    ),
    "other tenant": (
        SECRET,
        lambda identity: identity.ClientSecretCredential(
            os.environ["OTHER_TENANT"],
            os.environ["AZURE_CLIENT_ID"],
            os.environ["AZURE_CLIENT_SECRET"],
            additionally_allowed_tenants=["*"],
            **OFFLINE,
        ),
    ),
    "certificate": (
        CERTIFICATE,
        lambda identity: identity.CertificateCredential(
            os.environ["AZURE_TENANT_ID"],
            os.environ["AZURE_CLIENT_ID"],
            os.environ["AZURE_CLIENT_CERTIFICATE_PATH"],
            **OFFLINE,
        ),
    ),
    "environment": (SECRET, lambda identity: identity.EnvironmentCredential(**OFFLINE)),
    "default, with a secret": (SECRET, lambda identity: identity.DefaultAzureCredential(**OFFLINE)),
    "default, with a managed identity": (
        APP_SERVICE,
        lambda identity: identity.DefaultAzureCredential(),
    ),
    "workload": (WORKLOAD, lambda identity: identity.WorkloadIdentityCredential(**OFFLINE)),
    "managed identity of a virtual machine": (IMDS, lambda identity: identity.ManagedIdentityCredential()),
    "managed identity of App Service": (APP_SERVICE, lambda identity: identity.ManagedIdentityCredential()),
    "managed identity by client id": (
        (*IMDS, "AZURE_CLIENT_ID"),
        lambda identity: identity.ManagedIdentityCredential(client_id=os.environ["AZURE_CLIENT_ID"]),
    ),
    "managed identity that is unknown": (
        IMDS,
        lambda identity: identity.ManagedIdentityCredential(client_id=str(uuid4())),
    ),
}
VARIABLES = {*SECRET, *WORKLOAD, *CERTIFICATE, *APP_SERVICE, *IMDS}


async def done(outcome: Any) -> Any:
    return await outcome if inspect.isawaitable(outcome) else outcome


async def use_blob(module: Any, credential: Any) -> None:
    service = module.BlobServiceClient(os.environ["BLOB_URL"], credential, retry_total=0)
    container = await done(service.create_container(f"c{uuid4().hex}"))
    await done(container.upload_blob("a", b"content"))
    downloaded = await done(container.download_blob("a"))
    assert await done(downloaded.readall()) == b"content"
    await done(container.delete_container())
    await done(service.close())


async def use_queue(module: Any, credential: Any) -> None:
    service = module.QueueServiceClient(os.environ["QUEUE_URL"], credential, retry_total=0)
    queue = await done(service.create_queue(f"q{uuid4().hex}"))
    await done(queue.send_message("content"))
    message = await done(queue.receive_message())
    assert message.content == "content"
    await done(queue.delete_message(message))
    await done(queue.delete_queue())
    await done(service.close())


async def use_table(module: Any, credential: Any) -> None:
    # Older versions of the service answer a token of another tenant with 403 and no challenge.
    service = module.TableServiceClient(
        os.environ["TABLE_URL"], credential=credential, api_version="2020-12-06", retry_total=0
    )
    table = await done(service.create_table(f"t{uuid4().hex}"))
    await done(table.create_entity({"PartitionKey": "p", "RowKey": "r", "Value": 1}))
    assert (await done(table.get_entity("p", "r")))["Value"] == 1
    await done(table.delete_table())
    await done(service.close())


async def use_file(module: Any, credential: Any) -> None:
    service = module.ShareServiceClient(
        os.environ["FILE_URL"], credential, token_intent="backup", retry_total=0
    )
    share = await done(service.create_share(f"s{uuid4().hex}"))
    file = share.get_file_client("a")
    await done(file.upload_file(b"content"))
    downloaded = await done(file.download_file())
    assert await done(downloaded.readall()) == b"content"
    await done(share.delete_share())
    await done(service.close())


async def use_token(_module: Any, credential: Any) -> None:
    token = await done(credential.get_token("https://storage.azure.com/.default"))
    assert token.token.count(".") == 2


USES = {"token": use_token, "blob": use_blob, "queue": use_queue, "table": use_table, "file": use_file}


@contextmanager
def only(names: tuple[str, ...]) -> Any:
    """Of the variables for credentials, those of one way."""
    hidden = {name: os.environ.pop(name) for name in VARIABLES.difference(names) if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


async def outcomes(form: str, name: str) -> dict[str, str]:
    modules = FORMS[form]
    variables, make = WAYS[name]
    found = {}
    with only(variables):
        credential = make(modules["identity"])
        for service, use in USES.items():
            try:
                await use(modules.get(service), credential)
                found[service] = "ok"
            except Exception as error:
                found[service] = f"{type(error).__name__}: {error}"
        await done(credential.close())
    return found


async def main(form: str, *names: str) -> None:
    print(json.dumps({name: await outcomes(form, name) for name in names}))
    await asyncio.sleep(0.1)  # The transports close on the next turns of the loop.


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
