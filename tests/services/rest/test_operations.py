"""Finding the row of a request, and what is wrong when there is none."""

import pytest

from kyanite.rules.authorization import Access
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import Op, Router, not_yet, query
from kyanite.wire.malformed import Malformed

KEY_ONLY = Access()
ROUTER = Router(
    (
        Op("List", "GET", Resource.CONTAINER, query("container", "list"), not_yet, KEY_ONLY),
        Op("Copy From", "PUT", Resource.OBJECT, query(), not_yet, KEY_ONLY, when="source & sync: true"),
        Op("Copy", "PUT", Resource.OBJECT, query(), not_yet, KEY_ONLY, when="source"),
        Op("Peek", "GET", Resource.OBJECT, query(), not_yet, KEY_ONLY, when="?peek: true"),
        Op("Get", "GET HEAD", Resource.OBJECT, query(), not_yet, KEY_ONLY),
        Op("Put", "PUT", Resource.OBJECT, query(), not_yet, KEY_ONLY),
        Op("Tier", "PUT", Resource.OBJECT, query(comp="tier"), not_yet, KEY_ONLY),
    )
)
NONE: dict[str, str] = {}


@pytest.mark.parametrize(
    ("method", "resource", "parameters", "headers", "name"),
    [
        ("GET", Resource.OBJECT, NONE, NONE, "Get"),
        ("HEAD", Resource.OBJECT, NONE, NONE, "Get"),
        ("GET", Resource.OBJECT, {"peek": "TRUE"}, NONE, "Peek"),
        ("GET", Resource.OBJECT, {"peek": "false"}, NONE, "Get"),
        ("GET", Resource.OBJECT, NONE, {"peek": "true"}, "Get"),
        ("PUT", Resource.OBJECT, NONE, NONE, "Put"),
        ("PUT", Resource.OBJECT, NONE, {"source": "x"}, "Copy"),
        ("PUT", Resource.OBJECT, NONE, {"source": "x", "sync": "false"}, "Copy"),
        ("PUT", Resource.OBJECT, NONE, {"source": "x", "sync": "True"}, "Copy From"),
        ("PUT", Resource.OBJECT, NONE, {"sync": "true"}, "Put"),
        ("PUT", Resource.OBJECT, {"comp": "TIER"}, {"source": "x"}, "Tier"),
        ("GET", Resource.CONTAINER, {"restype": "Container", "comp": "list"}, NONE, "List"),
    ],
)
def test_the_first_row_that_fits(
    method: str, resource: Resource, parameters: dict[str, str], headers: dict[str, str], name: str
) -> None:
    assert ROUTER.find(resource, method, parameters, headers).name == name


@pytest.mark.parametrize(
    ("method", "resource", "parameters", "code"),
    [
        ("DELETE", Resource.OBJECT, NONE, "UnsupportedHttpVerb"),
        ("GET", Resource.OBJECT, {"comp": "tier"}, "UnsupportedHttpVerb"),
        ("GET", Resource.OBJECT, {"comp": "nothing"}, "InvalidQueryParameterValue"),
        ("GET", Resource.OBJECT, {"restype": "nothing"}, "InvalidQueryParameterValue"),
        ("GET", Resource.CONTAINER, {"comp": "tier"}, "InvalidQueryParameterValue"),
        ("GET", Resource.CONTAINER, NONE, "InvalidUri"),
        ("BREW", Resource.CONTAINER, NONE, "UnsupportedHttpVerb"),
    ],
)
def test_no_row_fits(method: str, resource: Resource, parameters: dict[str, str], code: str) -> None:
    with pytest.raises(Malformed) as caught:
        ROUTER.find(resource, method, parameters, NONE)
    assert caught.value.code == code


async def test_what_is_not_there_yet_says_so(blobs: object) -> None:
    with pytest.raises(Malformed) as caught:
        await not_yet(blobs)  # type: ignore[arg-type]
    assert caught.value.code == "NotImplemented"
