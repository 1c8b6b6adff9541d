"""Who watches sees what a server completes; nobody pays for it before and after."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.membership.api import OWNER_BYTES
from kyanite.model.requests.tail import Wanted, watch
from kyanite.server.dispatch import Dispatcher
from kyanite.server.http.limits import Limits
from kyanite.server.http.server import HttpServer
from kyanite.server.observability.requests_of_worker import RequestsOfWorker
from kyanite.services.smb.environment import CompletedRequest, SmbEnvironment
from kyanite.values import Instant
from kyanite.wire.http import Request, Response
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.harness import START


async def _handler(request: Request) -> Response:
    request.account, request.operation, request.request_id = "acme", "Get Blob", "the id"
    request.error_code = "BlobNotFound"
    return Response(404)


async def _get(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET /acme/c/b?sig=SECRET HTTP/1.1\r\nHost: a\r\nUser-Agent: me\r\nConnection: close\r\n\r\n"
    )
    await reader.read()
    writer.close()


def is_observed(server: HttpServer) -> bool:
    return server.on_completed is not None


def _requests(engine: MemoryEngine) -> RequestsOfWorker:
    store = SimpleNamespace(engine=engine, membership=SimpleNamespace(id=b"o" * OWNER_BYTES), node=None)
    return RequestsOfWorker.begin(cast(Any, store), {}, lambda: START)


async def test_requests_of_http_during_a_watch() -> None:
    engine = MemoryEngine()
    requests = _requests(engine)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    dispatcher = Dispatcher({"blob": _handler}, {port: "blob"})
    server = HttpServer(dispatcher, limits=Limits())
    await server.accept_on(listener)
    requests.show(server, dispatcher)
    tasks = requests.tasks()
    await asyncio.sleep(0)
    await _get(port)
    assert not is_observed(server)
    watching = watch(engine, Wanted(account="acme", status="404"))
    await anext(watching)
    while not is_observed(server):
        await asyncio.sleep(0.001)
    await _get(port)
    lines = []
    async for completed in watching:
        lines += completed.lines
        if lines:
            break
    (line,) = lines
    assert (line.service, line.account, line.operation, line.method) == ("blob", "acme", "Get Blob", "GET")
    assert (line.path, line.status, line.error_code) == ("/acme/c/b", 404, "BlobNotFound")
    assert (line.request_id, line.client, line.user_agent) == ("the id", "127.0.0.1", "me")
    assert 0 < line.seconds < 60
    assert line.sent_bytes > 0
    assert "SECRET" not in str(line)
    await watching.aclose()
    while is_observed(server):
        await asyncio.sleep(0.001)
    for task in tasks:
        task.cancel()
    await server.stop(1)


def test_requests_of_smb_during_a_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = _requests(cast(Any, None))
    always: list[CompletedRequest] = []
    environment = SmbEnvironment({}, lambda: Instant(0), bytes(16), on_completed=always.append)
    requests.show_smb(environment)
    added: list[Any] = []
    monkeypatch.setattr(requests.collector, "add", added.append)
    request = CompletedRequest(
        Command.CREATE, Status.SHARING_VIOLATION, "acme", "::1", 0.1, 9, "an id", "box"
    )
    for is_watched in (True, False):
        for switch in requests.collector.on_watched:
            switch(is_watched)
        assert environment.on_completed is not None
        environment.on_completed(request)
    assert always == [request, request]
    (line,) = added
    assert (line.service, line.operation, line.path) == ("smb", "CREATE", "/box")
    assert (line.status, line.error_code, line.request_id) == (
        "SHARING_VIOLATION",
        "SHARING_VIOLATION",
        "an id",
    )
