"""Cross-origin requests: preflights that lack a header, and the headers on errors."""

import pytest

from tests.services.harness import Harness

ORIGIN = {"Origin": "http://www.contoso.com"}
RULES = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://*.contoso.com</AllowedOrigins>"
    b"<AllowedMethods>GET,HEAD,PUT</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>x-ms-*"
    b"</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>"
)


async def allow(blobs: Harness) -> None:
    assert (await blobs("PUT", "/?restype=service&comp=properties", body=RULES)).status == 202


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        (ORIGIN, "Access-Control-Request-Method"),
        (ORIGIN | {"Access-Control-Request-Method": ""}, "Access-Control-Request-Method"),
        ({"Access-Control-Request-Method": "GET"}, "Origin"),
    ],
)
async def test_a_preflight_needs_its_headers(blobs: Harness, headers: dict[str, str], name: str) -> None:
    answer = await blobs("OPTIONS", "/box", headers, sign=False)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert answer.xml.findtext("HeaderName") == name


async def test_a_preflight_from_a_subdomain(blobs: Harness) -> None:
    await allow(blobs)
    answer = await blobs("OPTIONS", "/box", ORIGIN | {"Access-Control-Request-Method": "GET"}, sign=False)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, ORIGIN["Origin"])


@pytest.mark.parametrize(
    ("method", "target", "is_signed", "status"),
    [
        ("GET", "/box/missing", True, 404),
        ("HEAD", "/box/missing", True, 404),
        ("PUT", "/box/missing?comp=metadata", True, 404),
        ("GET", "/Not--a-name/b", True, 400),
        ("GET", "/box?restype=container&comp=nonsense", True, 400),
        ("GET", "/box/missing?sv=2020-02-10&sig=x", False, 403),
    ],
)
async def test_errors_have_the_headers_too(
    blobs: Harness, method: str, target: str, is_signed: bool, status: int
) -> None:
    await allow(blobs)
    answer = await blobs(method, target, ORIGIN, sign=is_signed)
    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == ORIGIN["Origin"]
    assert answer.headers["access-control-expose-headers"] == "x-ms-*"
    stranger = await blobs(method, target, {"Origin": "http://fabrikam.com"}, sign=is_signed)
    assert "access-control-allow-origin" not in stranger.headers
    if method != "PUT":
        assert answer.headers["vary"] == stranger.headers["vary"] == "Origin"


async def test_an_error_of_an_account_that_does_not_exist_has_none(blobs: Harness) -> None:
    answer = await blobs("GET", "/../nobody/box", ORIGIN | {"Host": "nobody.blob.localhost"}, sign=False)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
