"""The request log: a line for every request, also for those that fail, and also for what is no request."""

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from kyanite.server.management.client import call
from tests.server_process import ServerProcess, eventually

AGENT = "my-program/1.0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    location = tmp_path_factory.mktemp("log")
    with ServerProcess(
        "--log-requests", "--workers", "1", "--services", "blob", "--log-format", "json", location=location
    ) as started:
        yield started


def logged(server: ServerProcess, name: str, value: object) -> dict[str, object]:
    """The line of a request, by the value of one field."""
    found: list[dict[str, object]] = []

    def is_there() -> bool:
        found[:] = [line for line in server.log if line["message"] == "request" and line.get(name) == value]
        return bool(found)

    eventually(is_there)
    return found[0]


def get(server: ServerProcess, path: str, client_request_id: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(server.endpoints["blob"]).netloc, timeout=30)
    headers = {"User-Agent": AGENT, "x-ms-client-request-id": client_request_id}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_a_request_that_succeeds_and_one_that_is_refused(server: ServerProcess) -> None:
    client = BlobServiceClient(server.endpoints["blob"], credential=server.account_key, retry_total=0)
    client.create_container("box", client_request_id="made")
    with pytest.raises(HttpResponseError):
        client.create_container("box", client_request_id="again")
    made, again = (logged(server, "client_request_id", each) for each in ("made", "again"))
    for line, status, code in ((made, 201, ""), (again, 409, "ContainerAlreadyExists")):
        assert (line["status"], line["error_code"]) == (status, code)
        assert (line["account"], line["operation"]) == (server.account, "Create Container")
        assert str(line["user_agent"]).startswith("azsdk-python-storage-blob/")
    found = call(server.location, "explain", request_id=str(again["request_id"]))
    assert found["code"] == "ContainerAlreadyExists"


def test_requests_that_are_refused_before_their_operation_is_known(server: ServerProcess) -> None:
    unknown = get(server, "/nobody/box/b?sig=SECRET", "unknown account")
    line = logged(server, "client_request_id", "unknown account")
    assert (line["account"], line["operation"], line["query"]) == ("nobody", "", "sig=...")
    assert (line["status"], line["error_code"], line["user_agent"]) == (403, "AuthenticationFailed", AGENT)
    assert line["request_id"] == unknown.headers["x-ms-request-id"]
    get(server, f"/{server.account}/box?restype=container&comp=nonsense", "unknown operation")
    line = logged(server, "client_request_id", "unknown operation")
    assert (line["account"], line["status"]) == (server.account, 400)
    assert line["error_code"]


def test_what_is_no_request(server: ServerProcess) -> None:
    address = urlsplit(server.endpoints["blob"])
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 400"
    eventually(lambda: any("why" in line for line in server.log))
    (line,) = [line for line in server.log if "why" in line]
    assert (line["service"], line["status"], line["peer"]) == ("blob", 400, "127.0.0.1")
    assert line["why"]
