"""``/testing`` on the admin port, as tests in any language use it."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from kyanite.testing import Account, Server
from tests.server_process import ServerProcess


def call(
    url: str, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        text = body if isinstance(body, str | bytes | None) else json.dumps(body)
        connection.request(method, path, text, headers or {})
        answer = connection.getresponse()
        received = answer.read()
        return answer.status, json.loads(received) if received else None
    finally:
        connection.close()


def anonymous(url: str, headers: dict[str, str] | None = None) -> int:
    """The status of a request without a key."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}", headers=headers or {})
        return connection.getresponse().status
    finally:
        connection.close()


def test_all_of_it(kyanite_server: Server) -> None:
    url = kyanite_server.admin_url
    status, account = call(url, "POST", "/testing/accounts")
    assert status == 201
    assert set(account) == {"name", "key", "connection_string", "endpoints", "requests_before"}
    name = account["name"]
    blobs = account["endpoints"]["blob"]
    status, fault = call(
        url, "POST", "/testing/faults", {"account": name, "operation": "Get Blob", "times": 1, "status": 503}
    )
    assert status == 201
    assert fault == {
        "id": fault["id"],
        "account": name,
        "operation": "Get Blob",
        "times": 1,
        "status": 503,
        "matched": 0,
        "fired": 0,
    }
    for expected in (503, 400):
        assert anonymous(f"{blobs}/box/blob?sig=secret&sv=x") == expected
    fault = {**fault, "matched": 2, "fired": 1}
    assert call(url, "GET", f"/testing/faults/{fault['id']}") == (200, fault)
    status, answer = call(url, "GET", f"/testing/requests?account={name}&operation=Get%20Blob")
    assert status == 200
    assert [each["status"] for each in answer["requests"]] == [503, 400]
    assert answer["requests"][0] | {"time": "", "headers": {}, "request_id": ""} == {
        "number": answer["requests"][0]["number"],
        "time": "",
        "service": "blob",
        "operation": "Get Blob",
        "account": name,
        "method": "GET",
        "path": "box/blob",
        "query": "sig=...&sv=x",
        "headers": {},
        "client_request_id": "",
        "request_id": "",
        "status": 503,
        "code": "ServerBusy",
        "fault": fault["id"],
        "done": True,
    }
    assert answer["last"] >= answer["requests"][1]["number"]
    assert answer["forgotten"] == 0
    after = call(url, "GET", f"/testing/requests?account={name}&after={answer['requests'][0]['number']}")[1]
    assert after["requests"] == answer["requests"][1:]
    assert call(url, "DELETE", f"/testing/faults?account={name}") == (204, None)
    assert call(url, "DELETE", "/testing/faults/999999")[0] == 404
    assert call(url, "DELETE", f"/testing/accounts/{name}") == (204, None)


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ("", 3),
        ("service=blob", 3),
        ("service=queue", 0),
        ("method=put", 1),
        ("path=box/*", 1),
        ("path=/box*", 3),
        ("status=404", 1),
        ("code=BlobNotFound", 1),
        ("client_request_id=mine", 1),
        ("request_id=none", 0),
        ("operation=Create+Container&method=PUT", 1),
    ],
)
def test_filters(kyanite_server: Server, recorded_account: Account, filters: str, count: int) -> None:
    path = f"/testing/requests?account={recorded_account.name}&{filters}"
    assert len(call(kyanite_server.admin_url, "GET", path)[1]["requests"]) == count


@pytest.fixture(scope="module")
def recorded_account(kyanite_server: Server) -> Account:
    account = kyanite_server.fresh_account()
    with account.blob_service() as blobs:
        container = blobs.create_container("box", public_access="blob")
        anonymous(f"{account.endpoints['blob']}/box/blob", {"x-ms-client-request-id": "mine"})
        assert list(container.list_blobs()) == []
    return account


ERRORS = [
    ("GET", "/testing", None, 404, "There is /testing/clock"),
    ("GET", "/testing/nonsense", None, 404, "There is /testing/clock"),
    ("GET", "/testing/clock/more", None, 404, "There is /testing/clock"),
    ("PUT", "/testing/clock", None, 405, "The methods are GET, POST."),
    ("GET", "/testing/accounts", None, 405, "The methods are POST."),
    ("POST", "/testing/requests", None, 405, "The methods are GET, DELETE."),
    ("POST", "/testing/clock", "x" * 70_000, 413, "longer than"),
    ("POST", "/testing/faults", "", 400, "The fault cannot be read"),
    ("POST", "/testing/faults", "[]", 400, "The fault cannot be read"),
    ("POST", "/testing/faults", {"stattus": 503}, 400, "stattus"),
    ("POST", "/testing/faults", {"status": "503"}, 400, "status"),
    ("POST", "/testing/faults", {"status": 200}, 400, "status"),
    ("POST", "/testing/faults", {"status": 503, "code": "A B"}, 400, "code"),
    ("POST", "/testing/faults", {"status": 503, "times": 0}, 400, "times"),
    ("POST", "/testing/faults", {"status": 503, "operation": "Put Blop"}, 400, "Did you mean 'Put Blob'?"),
    ("POST", "/testing/faults", {"operation": "Put Blob"}, 400, "Say what happens"),
    ("GET", "/testing/faults/none", None, 404, "There is no fault none."),
    ("DELETE", "/testing/faults?acount=a", None, 400, "There is no filter 'acount'. There is account."),
    ("GET", "/testing/requests?opertion=x", None, 400, "There is no filter 'opertion'."),
    ("GET", "/testing/requests?after=x", None, 400, "after is to be the number"),
    ("POST", "/testing/accounts", {"nam": "x"}, 400, 'Give {"name": "myaccount"}'),
    ("POST", "/testing/accounts", {"name": "X"}, 409, "lower-case letters"),
    ("DELETE", "/testing/accounts/missing", None, 409, "missing"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "words"), ERRORS)
def test_errors_are_sentences(
    kyanite_server: Server, method: str, path: str, body: object, status: int, words: str
) -> None:
    found, answer = call(kyanite_server.admin_url, method, path, body)
    assert (found, set(answer)) == (status, {"error"})
    assert words in answer["error"]


def test_pages_of_browsers_are_refused(kyanite_server: Server) -> None:
    url = kyanite_server.admin_url
    for headers in (
        {"Host": "attacker.example"},
        {"Host": "attacker.example:10009"},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
    ):
        assert call(url, "POST", "/testing/clock", {"advance_seconds": 1}, headers)[0] == 403
    for host in ("localhost:1", "127.0.0.1", "[::1]:1"):
        assert call(url, "GET", "/testing/clock", None, {"Host": host})[0] == 200


def test_a_server_without_testing_refuses_all_of_it() -> None:
    with ServerProcess("--in-memory", "--admin-port", "0") as server:
        for method, path in (
            ("GET", "/testing"),
            ("GET", "/testing/clock"),
            ("POST", "/testing/faults"),
            ("GET", "/testing/requests"),
            ("POST", "/testing/accounts"),
        ):
            status, answer = call(server.endpoints["admin"], method, path)
            assert (status, answer["error"]) == (
                404,
                "This server was not started with --testing, so there is nothing at /testing.",
            )
