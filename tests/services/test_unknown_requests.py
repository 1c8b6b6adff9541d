"""Requests that no operation of a service answers: an unknown verb, path or parameter."""

from collections.abc import Awaitable, Callable

import pytest

from tests.services.harness import Harness
from tests.services.queue import requests as of_queue
from tests.services.table import requests as of_table

Creation = Callable[[Harness], Awaitable[None]]
CREATIONS: dict[str, tuple[Creation, dict[str, str]]] = {
    "queue": (of_queue.create, {}),
    "table": (of_table.create, of_table.JSON),
}
"""What makes a queue or table to ask for, and the headers of the service's requests."""


@pytest.mark.parametrize(
    ("service", "method", "target", "status", "code"),
    [
        ("queue", "POST", "/work", 405, "UnsupportedHttpVerb"),
        ("queue", "PATCH", "/work/messages", 405, "UnsupportedHttpVerb"),
        ("queue", "PUT", "/work/messages", 405, "UnsupportedHttpVerb"),
        ("queue", "GET", "/work/messages/1", 405, "UnsupportedHttpVerb"),
        ("queue", "POST", "/work/messages/1", 405, "UnsupportedHttpVerb"),
        ("queue", "GET", "/work/others", 400, "InvalidUri"),
        ("queue", "GET", "/work?comp=nonsense", 400, "InvalidQueryParameterValue"),
        ("queue", "PUT", "/work?comp=list", 400, "InvalidQueryParameterValue"),
        ("queue", "POST", "/?restype=service&comp=userdelegationkey", 403, "AuthenticationFailed"),
        ("table", "GET", "/Tables?$top=-1", 400, "OutOfRangeQueryParameterValue"),
        ("table", "GET", "/Tables?$top=1001", 400, "OutOfRangeQueryParameterValue"),
        ("table", "GET", "/Tables?$top=x", 400, "InvalidQueryParameterValue"),
        ("table", "GET", "/Tables?$filter=x%20y", 400, "InvalidInput"),
        ("table", "GET", "/Tables?$orderby=TableName", 501, "NotImplemented"),
        ("table", "GET", "/Tables?NextTableName=oops", 400, "InvalidQueryParameterValue"),
        ("table", "GET", "/Tables('a'b')", 400, "InvalidUri"),
        ("table", "GET", "/Tables(things)", 400, "InvalidUri"),
        ("table", "GET", "/things/more", 400, "InvalidUri"),
        ("table", "GET", "/things/?restype=service&comp=properties", 400, "InvalidQueryParameterValue"),
        ("table", "POST", "/Tables/more", 400, "InvalidUri"),
        ("table", "DELETE", "/things(PartitionKey='p',RowKey='r')/more", 400, "InvalidUri"),
        ("table", "PUT", "/things/more", 400, "InvalidUri"),
        ("table", "PUT", "/Tables", 405, "MethodNotAllowed"),
        ("table", "PATCH", "/Tables('things')", 405, "MethodNotAllowed"),
        ("table", "GET", "/$batch", 405, "MethodNotAllowed"),
        ("table", "POST", "/things?comp=acl", 405, "MethodNotAllowed"),
        ("table", "GET", "/things?comp=nonsense", 400, "InvalidQueryParameterValue"),
    ],
)
async def test_a_request_that_no_row_answers(
    request: pytest.FixtureRequest, service: str, method: str, target: str, status: int, code: str
) -> None:
    harness: Harness = request.getfixturevalue(f"{service}s")
    create, headers = CREATIONS[service]
    await create(harness)
    answer = await harness(method, target, headers)
    assert (answer.status, answer.code) == (status, code)
