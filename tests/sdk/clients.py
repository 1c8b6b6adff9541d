"""The official client in both its forms behind one face, so that one test runs through both.

Tests are coroutines. What the asynchronous client returns is awaited, what the plain one returns is there already:
``await done(container.upload_blob(…))`` is right for either.
"""

import asyncio
import inspect
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import AioHttpTransport
from azure.data.tables import TableServiceClient
from azure.data.tables import aio as async_tables
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.blob import aio as async_forms
from azure.storage.queue import QueueClient, QueueServiceClient
from azure.storage.queue import aio as async_queues

from tests.server_process import ServerProcess

SYNC, ASYNC = "sync", "async"

_CLASSES: dict[tuple[str, str], Any] = {
    (SYNC, "service"): BlobServiceClient,
    (SYNC, "container"): ContainerClient,
    (SYNC, "blob"): BlobClient,
    (ASYNC, "service"): async_forms.BlobServiceClient,
    (ASYNC, "container"): async_forms.ContainerClient,
    (ASYNC, "blob"): async_forms.BlobClient,
    (SYNC, "queue service"): QueueServiceClient,
    (SYNC, "queue"): QueueClient,
    (ASYNC, "queue service"): async_queues.QueueServiceClient,
    (ASYNC, "queue"): async_queues.QueueClient,
    (SYNC, "table service"): TableServiceClient,
    (ASYNC, "table service"): async_tables.TableServiceClient,
}


class Sdk:
    """Makes clients of one form for one server, and closes them when the test is over.

    They do not retry: an error that a retry would hide is what the tests are looking for.
    """

    def __init__(self, form: str, server: ServerProcess) -> None:
        self.form = form
        self.server = server
        self.url = server.endpoints["blob"]
        self.host = self.url.split("/")[2]
        """Address and port of the service."""
        self.host_style_url = f"http://{server.account}.blob.core.localhost:{self.host.split(':')[1]}"
        self.key = server.account_key
        self._opened: list[Any] = []

    def service(self, url: str | None = None, *, credential: Any = "the key", **options: Any) -> Any:
        credential = self.key if credential == "the key" else credential
        return self.open(_CLASSES[self.form, "service"](url or self.url, credential, **self._with(options)))

    def container_at(self, url: str, credential: Any = None, **options: Any) -> Any:
        kind = _CLASSES[self.form, "container"]
        return self.open(kind.from_container_url(url, credential, **self._with(options)))

    def blob_at(self, url: str, credential: Any = None, **options: Any) -> Any:
        return self.open(_CLASSES[self.form, "blob"].from_blob_url(url, credential, **self._with(options)))

    def connected(self, connection_string: str, **options: Any) -> Any:
        kind = _CLASSES[self.form, "service"]
        return self.open(kind.from_connection_string(connection_string, **self._with(options)))

    async def new_container(self, **options: Any) -> Any:
        """A container of the test's own."""
        return await done(self.service().create_container(fresh_name(), **options))

    def queue_service(self, *, url: str | None = None, credential: Any = "the key", **options: Any) -> Any:
        url = url or self.server.endpoints["queue"]
        credential = self.key if credential == "the key" else credential
        return self.open(_CLASSES[self.form, "queue service"](url, credential, **self._with(options)))

    def queue(self, name: str, *, credential: Any = "the key", **options: Any) -> Any:
        url = f"{self.server.endpoints['queue']}/{name}"
        credential = self.key if credential == "the key" else credential
        kind = _CLASSES[self.form, "queue"]
        return self.open(kind.from_queue_url(url, credential, **self._with(options)))

    async def new_queue(self, *, metadata: dict[str, str] | None = None, **options: Any) -> Any:
        """A queue of the test's own."""
        queue = self.queue(fresh_name(), **options)
        await done(queue.create_queue(metadata=metadata))
        return queue

    def table_service(self, *, url: str | None = None, credential: Any = "the key", **options: Any) -> Any:
        if credential == "the key":
            credential = AzureNamedKeyCredential(self.server.account, self.key)
        kind = _CLASSES[self.form, "table service"]
        url = url or self.server.endpoints["table"]
        return self.open(kind(url, credential=credential, **self._with(options)))

    async def new_table(self, **options: Any) -> Any:
        """A table of the test's own."""
        return await done(self.table_service(**options).create_table(fresh_name()))

    async def close(self) -> None:
        for client in self._opened:
            await done(client.close())
        if self.form == ASYNC:
            # The transports close on the next turns of the loop.
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    def open(self, client: Any) -> Any:
        """Close this client when the test is over."""
        self._opened.append(client)
        return client

    def options(self, **options: Any) -> dict[str, Any]:
        """What every client is made with, beside these."""
        return self._with(options)

    def _with(self, options: dict[str, Any]) -> dict[str, Any]:
        if self.form == ASYNC and "transport" not in options:
            options = {"transport": AioHttpTransport(session=_session(), session_owner=True), **options}
        return {"retry_total": 0, **options}


def _session() -> aiohttp.ClientSession:
    """As the client makes one itself, but names below ``localhost`` are this machine (RFC 6761, section 6.3).

    A certificate that the environment names is trusted, as the plain client does; aiohttp would look only once.
    """
    trusted = ssl.create_default_context() if "SSL_CERT_FILE" in os.environ else True
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=_Localhost(), ssl=trusted),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def resolve_localhost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the plain client, which asks the system."""
    resolve_by_system = socket.getaddrinfo

    def getaddrinfo(host: Any, *more: Any, **options: Any) -> Any:
        is_ours = isinstance(host, str) and host.endswith(".localhost")
        return resolve_by_system("127.0.0.1" if is_ours else host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


class _Localhost(AbstractResolver):
    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        assert host == "localhost" or host.endswith(".localhost")
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        """There is nothing to close."""


async def done(outcome: Any) -> Any:
    return await outcome if inspect.isawaitable(outcome) else outcome


async def called(sdk: Sdk, call: Callable[[], Any]) -> Any:
    """The outcome of a call that must not hold up others: the plain client gets a thread for it."""
    return await asyncio.to_thread(call) if sdk.form == SYNC else await done(call())


async def at_once(sdk: Sdk, *calls: Callable[[], Any]) -> list[Any]:
    """The outcomes of calls that are made together, exceptions among them."""
    return await asyncio.gather(*(called(sdk, call) for call in calls), return_exceptions=True)


async def items(several: Any) -> list[Any]:
    """All of a list, or of the chunks of a download."""
    return [item async for item in several] if isinstance(several, AsyncIterator) else list(several)


async def pages(listing: Any, continuation_token: str | None = None) -> list[list[Any]]:
    """A list page by page."""
    by_page = listing.by_page(continuation_token)
    return [await items(page) for page in await items(by_page)]


async def names(listing: Any) -> list[str]:
    return [item.name for item in await items(listing)]


async def content(blob: Any, **options: Any) -> bytes:
    downloaded = await done((await done(blob.download_blob(**options))).readall())
    assert isinstance(downloaded, bytes)
    return downloaded


@contextmanager
def refused(
    status: int, code: str, kind: type[HttpResponseError] = HttpResponseError
) -> Iterator[pytest.ExceptionInfo[HttpResponseError]]:
    """The client raises this kind of error, and it says this status and this code."""
    with pytest.raises(kind) as caught:
        yield caught
    # The client for tables raises some errors without having looked into them.
    response: Any = caught.value.response
    header = response.headers.get("x-ms-error-code") if response else None
    said = caught.value.status_code, getattr(caught.value, "error_code", header)
    assert said == (status, code), caught.value.message


def fresh_name() -> str:
    return f"c{uuid4().hex}"
