"""An error to HEAD has a status and a code and no more, as in recorded exchanges with Azure."""

import http.client
from urllib.parse import urlsplit

import pytest

from tests.sdk.raw_http import Answer, fetch, signed_lite
from tests.server_process import ServerProcess

MISSING = [
    ("blob", "/missing?restype=container", 404, "ContainerNotFound"),
    ("blob", "/missing/blob", 404, "ContainerNotFound"),
    ("blob", "/Not--a-name?restype=container", 400, "InvalidResourceName"),
    ("file", "/missing/directory/file", 404, "ShareNotFound"),
    ("queue", "/missing?comp=metadata", 404, "QueueNotFound"),
]


def headers_for(server: ServerProcess, url: str) -> dict[str, str]:
    return signed_lite(url, "HEAD", {}, account=server.account, key=server.account_key)


def check_bare(answer: Answer) -> None:
    assert answer.body == b""
    assert "Content-Type" not in answer.headers
    assert "Content-Length" not in answer.headers
    assert answer.headers["Transfer-Encoding"] == "chunked"


@pytest.mark.parametrize(("service", "path", "status", "code"), MISSING)
def test_neither_a_type_nor_a_length_is_named(
    server: ServerProcess, service: str, path: str, status: int, code: str
) -> None:
    url = server.endpoints[service] + path
    answer = fetch(url, "HEAD", headers_for(server, url))
    assert (answer.status, answer.code) == (status, code)
    check_bare(answer)


def test_nor_to_a_caller_without_permission(server: ServerProcess) -> None:
    answer = fetch(f"{server.endpoints['blob']}/missing/blob", "HEAD", {"Authorization": "SharedKey a:b"})
    assert answer.status in {400, 403}
    check_bare(answer)


def test_nor_by_a_host_of_a_service_that_is_not_offered(server: ServerProcess) -> None:
    answer = fetch(f"{server.endpoints['blob']}/box/blob", "HEAD", {"Host": "account.dfs.localhost"})
    assert answer.status == 404
    check_bare(answer)


def test_the_connection_goes_on(server: ServerProcess) -> None:
    """What follows is not taken for chunks of the body that is not there."""
    url = f"{server.endpoints['blob']}/missing/blob"
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        for method in ("HEAD", "HEAD", "GET"):
            signed = signed_lite(url, method, {}, account=server.account, key=server.account_key)
            connection.request(method, parts.path, headers=signed)
            response = connection.getresponse()
            assert (response.status, response.headers["x-ms-error-code"]) == (404, "ContainerNotFound")
            assert bool(response.read()) == (method == "GET")
            assert connection.sock is not None
    finally:
        connection.close()
