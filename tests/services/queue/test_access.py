"""Who may do what with a queue: tokens made by the official client, against every operation."""

import base64
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from azure.storage.queue import generate_account_sas, generate_queue_sas

from kyanite.server.config import AccountKeys
from tests.services.harness import ACCOUNT, Answer, Harness
from tests.services.queue.requests import document

KEY = base64.b64encode(ACCOUNT.keys[0]).decode()
EXPIRY = datetime(2030, 1, 1, tzinfo=UTC)
SETTINGS = b"<StorageServiceProperties><Cors /></StorageServiceProperties>"
RECEIPT = "A" * 32


class Operation(NamedTuple):
    name: str
    request: str
    body: bytes
    account: str | None
    """What of an account SAS it needs."""
    own: str | None
    """What of a queue's own SAS it needs."""
    status: int
    """When it is allowed."""


OPERATIONS = [
    Operation("List Queues", "GET /?comp=list", b"", "s l", None, 200),
    Operation("Get Queue Service Properties", "GET /?restype=service&comp=properties", b"", "s r", None, 200),
    Operation(
        "Set Queue Service Properties", "PUT /?restype=service&comp=properties", SETTINGS, "s w", None, 202
    ),
    Operation("Create Queue", "PUT /new", b"", "c c", None, 201),
    Operation("Create Queue", "PUT /new", b"", "c w", None, 201),
    Operation("Get Queue Metadata", "GET /work?comp=metadata", b"", "c r", "r", 200),
    Operation("Set Queue Metadata", "PUT /work?comp=metadata", b"", "c w", None, 204),
    Operation("Get Queue ACL", "GET /work?comp=acl", b"", None, None, 200),
    Operation("Set Queue ACL", "PUT /work?comp=acl", b"", None, None, 204),
    Operation("Peek Messages", "GET /work/messages?peekonly=true", b"", "o r", "r", 200),
    Operation("Get Messages", "GET /work/messages", b"", "o p", "p", 200),
    Operation("Put Message", "POST /work/messages", document("a"), "o a", "a", 201),
    Operation("Clear Messages", "DELETE /work/messages", b"", "o d", None, 204),
    Operation(
        "Update Message",
        f"PUT /work/messages/1?visibilitytimeout=0&popreceipt={RECEIPT}",
        b"",
        "o u",
        "u",
        404,
    ),
    Operation("Delete Message", f"DELETE /work/messages/1?popreceipt={RECEIPT}", b"", "o p", "p", 404),
    Operation("Delete Queue", "DELETE /work", b"", "c d", None, 204),
]
READS = {"List Queues", "Get Queue Service Properties", "Get Queue Metadata", "Peek Messages"}
ACCOUNT_LETTERS, QUEUE_LETTERS = "rwdlacup", "raup"


async def send(queues: Harness, request: str, body: bytes, token: str) -> Answer:
    method, target = request.split(" ")
    joint = "&" if "?" in target else "?"
    return await queues(method, f"{target}{joint}{token}", body=body, sign=False)


def account_sas(types: str, letters: str, services: str = "q") -> str:
    return generate_account_sas(ACCOUNT.name, KEY, types, letters, EXPIRY, services=services)


def queue_sas(letters: str, queue: str = "work") -> str:
    return generate_queue_sas(ACCOUNT.name, queue, KEY, permission=letters, expiry=EXPIRY)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_account_sas_allows_what_it_says(queues: Harness, operation: Operation) -> None:
    name, request, body, account, _, status = operation
    await queues("PUT", "/work")
    if account is None:
        answer = await send(queues, request, body, account_sas("sco", ACCOUNT_LETTERS))
        assert (answer.status, answer.code) == (403, "AuthorizationFailure"), name
        return
    kind, letter = account.split(" ")
    either = {"c", "w"} if name == "Create Queue" else {letter}
    for types, letters, services, code in (
        ("sco".replace(kind, ""), ACCOUNT_LETTERS, "q", "AuthorizationResourceTypeMismatch"),
        (kind, "".join(set(ACCOUNT_LETTERS) - either), "q", "AuthorizationPermissionMismatch"),
        (kind, letter, "b", "AuthorizationServiceMismatch"),
    ):
        refused = await send(queues, request, body, account_sas(types, letters, services))
        assert (refused.status, refused.code) == (403, code), name
    allowed = await send(queues, request, body, account_sas(kind, letter))
    assert allowed.status == status, (name, allowed)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_queue_sas_allows_what_it_says(queues: Harness, operation: Operation) -> None:
    name, request, body, _, own, status = operation
    await queues("PUT", "/work")
    if own is None:
        answer = await send(queues, request, body, queue_sas(QUEUE_LETTERS))
        assert answer.status == 403, name
        assert answer.code in {"AuthorizationFailure", "AuthenticationFailed"}
        return
    refused = await send(queues, request, body, queue_sas(QUEUE_LETTERS.replace(own, "")))
    assert (refused.status, refused.code) == (403, "AuthorizationPermissionMismatch"), name
    elsewhere = await send(queues, request, body, queue_sas(QUEUE_LETTERS, "other"))
    assert (elsewhere.status, elsewhere.code) == (403, "AuthenticationFailed"), name
    assert (await send(queues, request, body, queue_sas(own))).status == status, name


async def test_a_policy_can_be_removed(queues: Harness) -> None:
    await queues("PUT", "/work")
    token = generate_queue_sas(ACCOUNT.name, "work", KEY, policy_id="adders")
    put = ("POST /work/messages", document("a"), token)
    assert (await send(queues, *put)).code == "AuthenticationFailed"
    policies = (
        b"<SignedIdentifiers><SignedIdentifier><Id>adders</Id><AccessPolicy>"
        b"<Expiry>2030-01-01T00:00:00Z</Expiry><Permission>a</Permission>"
        b"</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    assert (await queues("PUT", "/work?comp=acl", body=policies)).status == 204
    assert (await send(queues, *put)).status == 201
    assert (await send(queues, "GET /work/messages", b"", token)).code == "AuthorizationPermissionMismatch"
    assert (await queues("PUT", "/work?comp=acl")).status == 204
    assert (await send(queues, *put)).code == "AuthenticationFailed"


@pytest.mark.parametrize(
    ("version", "status", "code"),
    [("2019-12-12", 401, "NoAuthenticationInformation"), ("2019-07-07", 404, "ResourceNotFound")],
)
async def test_nothing_is_public(queues: Harness, version: str, status: int, code: str) -> None:
    await queues("PUT", "/work")
    for name, request, body, *_ in OPERATIONS:
        method, target = request.split(" ")
        answer = await queues(method, target, {"x-ms-version": version}, body, sign=False)
        assert (answer.status, answer.code) == (status, code), name


async def test_the_secondary_is_for_reading(queues: Harness) -> None:
    await queues("PUT", "/work")
    secondary = AccountKeys("acme-secondary", ACCOUNT.keys)
    for name, request, body, account, *_ in OPERATIONS:
        if account is None:
            continue
        method, target = request.split(" ")
        target += ("&" if "?" in target else "?") + account_sas("sco", ACCOUNT_LETTERS)
        answer = await queues(method, target, body=body, sign=False, account=secondary)
        if name in READS:
            assert answer.status == 200, (name, answer)
        else:
            assert (answer.status, answer.code) == (403, "InsufficientAccountPermissions"), name
    target = f"/?restype=service&comp=stats&{account_sas('s', 'r')}"
    stats = await queues("GET", target, sign=False, account=secondary)
    assert (stats.status, stats.xml.findtext("GeoReplication/Status")) == (200, "live")
