"""A refusal of one node is explained by every node, and requests of all nodes are seen from one."""

import http.client
from urllib.parse import urlsplit

import pytest

from kyanite.server.failures import Failure
from kyanite.server.management.client import call
from tests.server_process import ServerProcess


def refuse(node: ServerProcess) -> str:
    connection = http.client.HTTPConnection(urlsplit(node.endpoints["blob"]).netloc, timeout=30)
    connection.request("GET", f"/{node.account}/box/b", headers={"x-ms-version": "2025-05-05"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 401
    return answer.headers["x-ms-request-id"]


def test_every_node_explains_the_refusals_of_all(nodes: list[ServerProcess]) -> None:
    for node in nodes:
        request_id = refuse(node)
        for other in nodes:
            found = call(other.location, "explain", request_id=request_id)
            assert (found["request_id"], found["code"]) == (request_id, "NoAuthenticationInformation")
    with pytest.raises(Failure):
        call(nodes[0].location, "explain", request_id="00000000-0000-0000-0000-000000000000")
