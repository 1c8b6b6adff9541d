"""The life of a request: what is refused in which order, and the headers that every response has."""

from urllib.parse import quote

import pytest

from kyanite.rules.authorization import AnonymousPrincipal
from kyanite.server.config import AccountKeys
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.wire import shared_key
from kyanite.wire.http import Request
from kyanite.wire.uri import decode_target
from tests.services.harness import ACCOUNT, OTHER, VERSION, BytesBody, Harness
from tests.services.tokens import blob_token

ABSENT = {"x-ms-version": "(absent)"}
STRANGER = AccountKeys("stranger", OTHER.keys)


@pytest.mark.parametrize(
    ("target", "headers", "version"),
    [
        ("/box?restype=container", {}, VERSION),
        ("/box/blob?api-version=2020-02-10", ABSENT, "2020-02-10"),
        ("/box/blob?sv=2021-08-06", ABSENT, "2021-08-06"),
        ("/box/blob", ABSENT, None),
        ("/BOX/blob?sv=2021-08-06", ABSENT, "2021-08-06"),
        ("/box/blob?comp=nothing&sv=2021-08-06", ABSENT, "2021-08-06"),
        ("/box/blob?sv=2021-08-06&a=%zz", ABSENT, None),
        ("/box/blob", {"x-ms-version": "tomorrow"}, "tomorrow"),
    ],
)
async def test_responses_repeat_the_version_as_far_as_it_is_known(
    blobs: Harness, target: str, headers: dict[str, str], version: str | None
) -> None:
    answer = await blobs("GET", target, headers, sign=False)
    assert answer.headers.get("x-ms-version") == version


@pytest.mark.parametrize(
    ("sent", "repeated"),
    [("mine", "mine"), ("x" * 1024, "x" * 1024), ("x" * 1025, None), ("a\tb", None), ("é", None)],
)
async def test_responses_repeat_the_client_request_id(
    blobs: Harness, sent: str, repeated: str | None
) -> None:
    answer = await blobs("GET", "/?comp=list", {"x-ms-client-request-id": sent})
    assert answer.headers.get("x-ms-client-request-id") == repeated


async def test_every_request_has_an_id_of_its_own(blobs: Harness) -> None:
    answers = [await blobs("GET", "/?comp=list") for _ in range(3)]
    assert len({answer.headers["x-ms-request-id"] for answer in answers}) == 3


@pytest.mark.parametrize(
    ("method", "target", "status", "code"),
    [
        ("GET", "/BOX?restype=container", 400, "InvalidResourceName"),
        ("PATCH", "/box?restype=container", 405, "UnsupportedHttpVerb"),
        ("GET", "/box?restype=container&timeout=soon", 400, "InvalidQueryParameterValue"),
        ("GET", "/box?restype=container", 401, "NoAuthenticationInformation"),
    ],
)
async def test_a_request_that_cannot_be_read_is_refused_before_its_caller(
    blobs: Harness, method: str, target: str, status: int, code: str
) -> None:
    answer = await blobs(method, target, sign=False)
    assert (answer.status, answer.code) == (status, code)


async def test_an_unknown_account_is_refused_like_a_wrong_key(blobs: Harness) -> None:
    unknown = await blobs("GET", "/BOX?restype=container", account=STRANGER)
    assert (unknown.status, unknown.code) == (403, "AuthenticationFailed")


async def test_a_token_does_not_write_to_the_secondary(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    token = blob_token(blobs, "blob", permission="rw")
    secondary = AccountKeys("acme-secondary", ())
    headers = {"x-ms-blob-type": "BlockBlob"}
    for account, status in ((secondary, 403), (AccountKeys("acme", ()), 201)):
        answer = await blobs("PUT", f"/box/blob?{token}", headers, b"data", sign=False, account=account)
        assert answer.status == status
    answer = await blobs("GET", f"/box/blob?{token}", sign=False, account=secondary)
    assert (answer.status, answer.body) == (200, b"data")


def test_a_context_is_anonymous_at_first(blobs: Harness) -> None:
    request = Request("GET", "/acme/box", "", {}, (), BytesBody(b""), "127.0.0.1", False, 10000)
    context = RequestContext(
        blobs.environment,
        request,
        decode_target("", "/acme/box", "blob"),
        blobs.environment.accounts["acme"],
        {},
        VERSION,
        Location(Resource.CONTAINER, "box"),
    )
    assert context.principal == AnonymousPrincipal("")
    assert (context.container, context.object_name, context.keys) == ("box", "", ("", ""))


@pytest.mark.parametrize("junk", ["!", " ", "%0A", "AAAA", "="])
async def test_nothing_in_or_behind_a_signature_is_ignored(blobs: Harness, junk: str) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/blob", {"x-ms-blob-type": "BlockBlob"}, b"data")
    token = blob_token(blobs, "blob")
    assert (await blobs("GET", f"/box/blob?{token}", sign=False)).status == 200
    for changed in (token.replace("sig=", f"sig={junk}"), token + junk):
        answer = await blobs("GET", f"/box/blob?{changed}", sign=False)
        assert (answer.status, answer.code) == (403, "AuthenticationFailed"), changed


async def test_unsigned_overrides_are_ignored(blobs: Harness) -> None:
    """A token without ``sv`` signs five fields; whoever passes its URL on can add others."""
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/blob", {"x-ms-blob-type": "BlockBlob"}, b"data")
    for version in ("", "2012-02-12"):
        lines = ["r", "", "2100-01-01", "/acme/box/blob", ""] + [version] * bool(version)
        signature = quote(shared_key.sign(ACCOUNT.keys[0], "\n".join(lines)), safe="")
        token = f"sr=b&sp=r&se=2100-01-01&sig={signature}" + f"&sv={version}" * bool(version)
        answer = await blobs("GET", f"/box/blob?{token}&rsct=text/html&rscd=inline", ABSENT, sign=False)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
        assert "content-disposition" not in answer.headers
