"""Which service a request is for."""

import asyncio

import pytest

from kyanite.server.dispatch import Dispatcher
from kyanite.server.http.request_body import NO_BODY
from kyanite.wire.http import Handler, Request, Response


def service(name: str) -> Handler:
    async def handle(_: Request) -> Response:
        return Response(200, body=name.encode())

    return handle


DISPATCHER = Dispatcher({name: service(name) for name in ("blob", "table")}, {10000: "blob", 10002: "table"})


def request(host: str, port: int) -> Request:
    headers = {"host": host} if host else {}
    return Request("GET", "/", "", headers, [], NO_BODY, "127.0.0.1", False, port)


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("127.0.0.1:10000", 10000, "blob"),
        ("127.0.0.1:10002", 10002, "table"),
        ("", 10002, "table"),
        ("alpha.table.localhost:10000", 10000, "table"),
        ("alpha.blob.core.windows.net", 10002, "blob"),
        ("alpha-secondary.blob.localhost", 10002, "blob"),
        ("table.localhost", 10000, "blob"),
    ],
)
def test_service_by_host_and_port(host: str, port: int, expected: str) -> None:
    for _ in range(2):
        response = asyncio.run(_answer(DISPATCHER, request(host, port)))
        assert (response.status, response.body) == (200, expected.encode())
        assert DISPATCHER.find(request(host, port))[0] == expected


def test_a_service_that_is_not_offered() -> None:
    response = asyncio.run(_answer(DISPATCHER, request("alpha.queue.localhost", 10000)))
    assert response.status == 404


def test_hosts_are_remembered_up_to_a_bound() -> None:
    dispatcher = Dispatcher({"blob": service("blob")}, {1: "blob"})
    for number in range(5000):
        assert dispatcher.find(request(f"host{number}", 1))[0] == "blob"
    assert len(dispatcher._known[1]) == 1024


async def _answer(dispatcher: Dispatcher, request_: Request) -> Response:
    return await dispatcher(request_)
