"""Why a request was refused, as a table: every refusal of the tables of the concurrency article and of the article on
file locks, and every field of a shared access signature that can fail. Each request goes through its service, and its
refusal is asked for by the request id of its response."""

from collections.abc import Mapping
from dataclasses import replace
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from kyanite.model import delegation
from kyanite.model.accounts import AccountSettings
from kyanite.model.requests.explanations import explain
from kyanite.model.requests.facts_in_words import FACTS
from kyanite.model.requests.refusals import Explanation
from kyanite.model.requests.rules_in_words import RULES
from kyanite.rules import immutability
from kyanite.rules.refusals import Reason
from kyanite.rules.share_modes import EVERYTHING, Rights
from kyanite.values import Instant, datetime_from_instant, iso_text, later, unix_seconds
from kyanite.wire import sas, shared_key
from tests import signed_tokens
from tests.services.blob import test_immutability
from tests.services.files import test_handles
from tests.services.files.builders import make, open_handle, write
from tests.services.harness import ACCOUNT, START, Answer, Harness
from tests.services.rest import test_user_delegation
from tests.signed_tokens import OID, assigned, claims_at, trusting

A = "aaaaaaaa-0000-4000-8000-00000000000a"
B = "bbbbbbbb-0000-4000-8000-00000000000b"
C = "cccccccc-0000-4000-8000-00000000000c"
BLOCK = {"x-ms-blob-type": "BlockBlob"}
OLD = "0x8D0000000000000"
NOW = unix_seconds(START)


def explanation(harness: Harness, answer: Answer) -> Explanation:
    refusal = harness.environment.refusals.find(answer.headers["x-ms-request-id"])
    assert refusal is not None, f"{answer.status} is not kept"
    found = explain(refusal)
    assert (found.status, found.code) == (answer.status, answer.headers["x-ms-error-code"])
    assert found.account == ACCOUNT.name
    return found


def text_of(found: Explanation) -> str:
    return "\n".join((*found.sentences, found.string_to_sign))


# Leases: the state of the lease A, and what a request with some id is told


async def _acquire(blob: Harness, target: str, lease_id: str = A, seconds: int = 60) -> None:
    acquired = await _lease(blob, target, "acquire", lease_id, seconds=seconds)
    assert acquired.status == 201, acquired.code


async def _lease(
    blob: Harness,
    target: str,
    action: str,
    given: str = "",
    proposed: str = "",
    seconds: int = 60,
    period: int = -1,
) -> Answer:
    headers = {"x-ms-lease-action": action}
    if action == "acquire":
        headers["x-ms-lease-duration"] = str(seconds)
        headers |= {"x-ms-proposed-lease-id": given} if given else {}
    elif given:
        headers["x-ms-lease-id"] = given
    if proposed:
        headers["x-ms-proposed-lease-id"] = proposed
    if period >= 0:
        headers["x-ms-lease-break-period"] = str(period)
    return await blob("PUT", target, headers)


STATES = ("available", "leased", "infinite", "breaking", "broken", "expired")
SAID_OF_STATE = {
    "available": "There is no lease.",
    "leased": "The lease is held until",
    "infinite": "The lease is infinite",
    "breaking": "The lease is breaking: it ends at",
    "broken": "The lease was broken, and ended at",
    "expired": "The lease expired at",
}


async def _bring_into(blob: Harness, target: str, state: str) -> None:
    if state == "available":
        return
    await _acquire(blob, target, seconds=-1 if state == "infinite" else 60)
    if state in ("breaking", "broken"):
        await _lease(blob, target, "break", period=20 if state == "breaking" else 0)
    if state in ("broken", "expired"):
        blob.clock.now = later(blob.clock.now, 61)


# Action, id in the request, and the states in which the action is refused.
LEASE_ACTIONS = [
    ("acquire", "", ("leased", "infinite", "breaking")),
    ("acquire", A, ("breaking",)),
    ("acquire", B, ("leased", "infinite", "breaking")),
    ("renew", A, ("available", "breaking", "broken")),
    ("renew", B, STATES),
    ("change", A, ("available", "breaking", "broken", "expired")),
    ("change", B, STATES),
    ("release", A, ("available",)),
    ("release", B, STATES),
    ("break", "", ("available",)),
]
USES = [
    ("PUT", A, ("available", "broken", "expired")),
    ("PUT", B, STATES),
    ("PUT", "", ("leased", "infinite", "breaking")),
    ("DELETE", B, STATES),
    ("DELETE", "", ("leased", "infinite", "breaking")),
    ("GET", A, ("available", "broken", "expired")),
    ("GET", B, STATES),
]
LEASED = {"blob": "/box/b?comp=lease", "container": "/box?restype=container&comp=lease"}


def check_lease(found: Explanation, state: str, given: str) -> None:
    text = text_of(found)
    assert SAID_OF_STATE[state] in text
    assert A not in text, "the id of a lease is a secret of its holder"
    if given:
        assert given[:8] in text
        assert ("another one" in text) is (given != A and state != "available")
    ends_at = {"leased": 60, "breaking": 20, "broken": 0, "expired": 60}.get(state)
    if ends_at is not None:
        assert f"{datetime_from_instant(later(START, ends_at)):%Y-%m-%d %H:%M:%S}" in text


@pytest.mark.parametrize("leased", LEASED)
@pytest.mark.parametrize(
    ("action", "given", "state"),
    [(action, given, state) for action, given, states in LEASE_ACTIONS for state in states],
)
async def test_refused_lease_actions(
    blobs: Harness, leased: str, action: str, given: str, state: str
) -> None:
    target = LEASED[leased]
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/b", BLOCK)
    await _bring_into(blobs, target, state)
    answer = await _lease(blobs, target, action, given, proposed=C if action == "change" else "")
    assert answer.status == 409
    found = explanation(blobs, answer)
    check_lease(found, state, given)
    assert found.operation == f"Lease {leased.title()}"


@pytest.mark.parametrize(
    ("method", "given", "state"),
    [(method, given, state) for method, given, states in USES for state in states],
)
async def test_refused_uses_of_a_leased_blob(blobs: Harness, method: str, given: str, state: str) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/b", BLOCK)
    await _bring_into(blobs, LEASED["blob"], state)
    answer = await blobs(method, "/box/b", BLOCK | ({"x-ms-lease-id": given} if given else {}))
    assert answer.status == 412
    check_lease(explanation(blobs, answer), state, given)


async def test_a_copy_onto_a_finite_lease(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/b", BLOCK)
    await _acquire(blobs, LEASED["blob"])
    headers = {"x-ms-copy-source": "http://localhost:10000/acme/box/b", "x-ms-lease-id": A}
    found = explanation(blobs, await blobs("PUT", "/box/b", headers))
    assert found.code == "InfiniteLeaseDurationRequired"
    assert "The lease is held until" in text_of(found)


# Conditions


def _http_date(instant: Instant) -> str:
    return format_datetime(datetime_from_instant(instant), usegmt=True)


BEFORE, AFTER = _http_date(later(START, -100)), _http_date(later(START, 100))
TAGS = {"x-ms-tags": "colour=red&size=5"}
CONDITIONS: list[tuple[str, Mapping[str, str], int, tuple[str, ...]]] = [
    ("GET", {"If-Match": OLD}, 412, (f"If-Match asks for the ETag {OLD}", "its ETag is {etag}")),
    ("GET", {"If-None-Match": "{etag}"}, 304, ("another ETag than {etag}", "its ETag is {etag}")),
    (
        "GET",
        {"If-Modified-Since": AFTER},
        304,
        ("If-Modified-Since asks for a change after", "it was last modified at"),
    ),
    (
        "GET",
        {"If-Unmodified-Since": BEFORE},
        412,
        ("If-Unmodified-Since asks for no change", "it was last modified at"),
    ),
    ("GET", {"If-None-Match": "*"}, 400, ("any (*)", "its ETag is {etag}")),
    ("GET", {"x-ms-if-tags": "colour='blue'"}, 412, ("\"colour\" = 'blue'", "colour=red, size=5")),
    ("PUT", {"If-Match": OLD}, 412, (f"If-Match asks for the ETag {OLD}", "its ETag is {etag}")),
    ("PUT", {"If-None-Match": "{etag}"}, 412, ("another ETag than {etag}", "its ETag is {etag}")),
    ("PUT", {"If-None-Match": "*"}, 409, ("any (*)", "its ETag is {etag}")),
    ("PUT", {"If-Modified-Since": AFTER}, 412, ("If-Modified-Since asks for a change after",)),
    ("PUT", {"If-Unmodified-Since": BEFORE}, 412, ("If-Unmodified-Since asks for no change after",)),
    ("PUT", {"If-Match": OLD, "If-None-Match": "*"}, 400, ("If-Match asks", "If-None-Match asks")),
    ("DELETE", {"If-Match": OLD}, 412, (f"If-Match asks for the ETag {OLD}", "its ETag is {etag}")),
]


@pytest.mark.parametrize(("method", "headers", "status", "said"), CONDITIONS)
async def test_refused_conditions(
    blobs: Harness, method: str, headers: Mapping[str, str], status: int, said: tuple[str, ...]
) -> None:
    await blobs("PUT", "/box?restype=container")
    etag = (await blobs("PUT", "/box/b", BLOCK | TAGS)).headers["etag"].strip('"')
    sent = {name: value.replace("{etag}", etag) for name, value in headers.items()}
    answer = await blobs(method, "/box/b", BLOCK | sent)
    assert answer.status == status, answer.code
    text = text_of(explanation(blobs, answer))
    for each in said:
        assert each.replace("{etag}", etag) in text


async def test_a_condition_on_what_does_not_exist(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    found = explanation(blobs, await blobs("PUT", "/box/b", BLOCK | {"If-Match": "*"}))
    assert "the resource does not exist" in text_of(found)


async def test_a_time_condition_on_a_container(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    answer = await blobs("DELETE", "/box?restype=container", {"If-Unmodified-Since": BEFORE})
    assert "it was last modified at" in text_of(explanation(blobs, answer))


async def test_refused_appends(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/a", {"x-ms-blob-type": "AppendBlob"})
    await blobs("PUT", "/box/a?comp=appendblock", {}, b"12345")
    position = await blobs("PUT", "/box/a?comp=appendblock", {"x-ms-blob-condition-appendpos": "0"}, b"678")
    said = text_of(explanation(blobs, position))
    assert "The blob has 5 bytes, and the request appends 3." in said
    assert "The request expects 0 bytes" in said
    size = await blobs("PUT", "/box/a?comp=appendblock", {"x-ms-blob-condition-maxsize": "7"}, b"678")
    assert "The request allows 7 bytes at most" in text_of(explanation(blobs, size))


async def test_refused_sequence_numbers(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    page = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512", "x-ms-blob-sequence-number": "7"}
    await blobs("PUT", "/box/p", page)
    for name, word in (("le", "<= 5"), ("lt", "< 5"), ("eq", "= 5")):
        headers = {
            "x-ms-page-write": "clear",
            "x-ms-range": "bytes=0-511",
            f"x-ms-if-sequence-number-{name}": "5",
        }
        said = text_of(explanation(blobs, await blobs("PUT", "/box/p?comp=page", headers)))
        assert f"The sequence number of the blob is 7; the request asks for one {word}." in said


# Tables and queues


async def _table(table: Harness) -> str:
    json = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}
    await table("POST", "/Tables", json, b'{"TableName":"people"}')
    made = await table("POST", "/people", json, b'{"PartitionKey":"p","RowKey":"r"}')
    assert made.status == 201, made.body
    return made.headers["etag"]


async def test_refused_entities(tables: Harness) -> None:
    etag = await _table(tables)
    json = {"Content-Type": "application/json"}
    old = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
    target = "/people(PartitionKey='p',RowKey='r')"
    changed = explanation(tables, await tables("PUT", target, json | {"If-Match": old}, b"{}"))
    assert changed.code == "UpdateConditionNotSatisfied"
    assert "datetime'2020-01-01T00%3A00%3A00.0000000Z'" in text_of(changed)
    assert etag.removeprefix('W/"').removesuffix('"') in text_of(changed)
    again = explanation(tables, await tables("POST", "/people", json, b'{"PartitionKey":"p","RowKey":"r"}'))
    assert again.code == "EntityAlreadyExists"
    assert "The ETag of the entity is" in text_of(again)
    missing = explanation(tables, await tables("GET", "/people(PartitionKey='p',RowKey='no')"))
    assert missing.code == "ResourceNotFound"


async def test_a_refused_entity_group_transaction(tables: Harness) -> None:
    await _table(tables)
    part = (
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n"
        "Content-Transfer-Encoding: binary\r\n\r\nPOST http://localhost:10000/acme/people HTTP/1.1\r\n"
        'Content-Type: application/json\r\n\r\n{"PartitionKey":"p","RowKey":"r"}\r\n--c--\r\n--b--\r\n'
    )
    answer = await tables("POST", "/$batch", {"Content-Type": "multipart/mixed; boundary=b"}, part.encode())
    assert answer.status == 202
    refusal = tables.environment.refusals.find(answer.headers["x-ms-request-id"])
    assert refusal is not None
    found = explain(refusal)
    assert (found.status, found.code, found.reason) == (409, "EntityAlreadyExists", "ENTITY_ALREADY_EXISTS")


async def test_a_message_that_another_client_has_received(queues: Harness) -> None:
    await queues("PUT", "/work")
    await queues("POST", "/work/messages", {}, b"<QueueMessage><MessageText>x</MessageText></QueueMessage>")
    first = (await queues("GET", "/work/messages?visibilitytimeout=1")).xml
    queues.clock.now = later(queues.clock.now, 2)
    await queues("GET", "/work/messages")
    message_id = first.findtext("QueueMessage/MessageId") or ""
    receipt = quote(first.findtext("QueueMessage/PopReceipt") or "")
    answer = await queues("DELETE", f"/work/messages/{message_id}?popreceipt={receipt}")
    found = explanation(queues, answer)
    assert found.status in (400, 404)
    assert "pop receipt is not the latest" in text_of(found)
    assert "No message is stored where the pop receipt leads" in text_of(found)


# Files


async def test_a_share_mode(files: Harness) -> None:
    await make(files, data=b"abc")
    await open_handle(files, access=Rights.READ, shared=Rights.READ)
    found = explanation(files, await write(files, "f", b"xyz"))
    text = text_of(found)
    assert found.code == "SharingViolation"
    assert "A handle of the client 192.0.2.1, opened at 2026-09-21" in text
    assert "has the file open for reading and lets others open it for reading." in text
    assert "The request needs writing" in text


async def test_a_lock(files: Harness) -> None:
    await make(files, data=b"abc")
    await open_handle(files, locks=((1, 1, True),))
    text = text_of(explanation(files, await write(files, "f", b"xyz")))
    assert (
        "for 3 bytes from 0 on; an exclusive lock of the client 192.0.2.1 covers 1 bytes from 1 on." in text
    )


async def test_a_pending_delete(files: Harness) -> None:
    await make(files, data=b"abc")
    await open_handle(files, access=Rights.DELETE, is_delete_pending=True)
    for answer in (
        await files("GET", "/box/f"),
        await files("HEAD", "/box/f"),
        await files("DELETE", "/box/f"),
    ):
        found = explanation(files, answer)
        assert found.code == "SMBDeletePending"
        assert "1 handle is open on f." in text_of(found)


@pytest.mark.parametrize("mode", test_handles.MODES)
async def test_the_table_of_share_modes(files: Harness, mode: Rights) -> None:
    """Whatever the article on locks has refused is explained by the handle that refuses it."""
    await make(files, data=b"abc")
    await open_handle(files, access=EVERYTHING, shared=mode)
    explained = 0
    for name, operation in test_handles.OPERATIONS.items():
        answer = await operation(files)
        if answer.headers.get("x-ms-error-code") == "SharingViolation":
            text = text_of(explanation(files, answer))
            by_mode = (
                "A handle of the client 192.0.2.1" in text
                and f"lets others open it for {WORDS[mode]}." in text
            )
            assert by_mode or (name == "delete" and "1 handle is open on f." in text)
            explained += 1
    assert explained >= 1


WORDS = {
    mode: ", ".join(
        word
        for right, word in ((Rights.READ, "reading"), (Rights.WRITE, "writing"), (Rights.DELETE, "deleting"))
        if right in mode
    )
    or "nothing of that"
    for mode in test_handles.MODES
}


FILE_LEASES = [
    ("acquire", B, "leased"),
    ("change", B, "leased"),
    ("change", A, "available"),
    ("release", B, "leased"),
    ("release", A, "available"),
    ("break", "", "available"),
    ("acquire", B, "infinite"),
]


@pytest.mark.parametrize(("action", "given", "state"), FILE_LEASES)
@pytest.mark.parametrize("target", ["/box/f?comp=lease", "/box?restype=share&comp=lease"])
async def test_refused_leases_of_files_and_shares(
    files: Harness, target: str, action: str, given: str, state: str
) -> None:
    await make(files)
    if state != "available":
        await _acquire(files, target, seconds=-1)
    answer = await _lease(files, target, action, given, proposed=C if action == "change" else "", seconds=-1)
    assert answer.status == 409, answer.code
    check_lease(explanation(files, answer), "infinite" if state == "leased" else state, given)


async def test_a_leased_file_needs_its_id(files: Harness) -> None:
    await make(files, data=b"abc")
    await _acquire(files, "/box/f?comp=lease", seconds=-1)
    for given, code in (("", "LeaseIdMissing"), (B, "LeaseIdMismatchWithFileOperation")):
        answer = await write(files, "f", b"xyz", headers={"x-ms-lease-id": given} if given else {})
        found = explanation(files, answer)
        assert found.code == code
        check_lease(found, "infinite", given)


async def test_a_file_that_is_open_cannot_be_deleted(files: Harness) -> None:
    await make(files, data=b"abc")
    await open_handle(files, shared=EVERYTHING)
    text = text_of(explanation(files, await files("DELETE", "/box/f")))
    assert "SMB client has the file open" in text


async def test_a_quota(files: Harness) -> None:
    await make(files)
    await files("PUT", "/box?restype=share&comp=properties", {"x-ms-share-quota": "1"})
    answer = await files("PUT", "/box/large", {"x-ms-type": "file", "x-ms-content-length": str(2 << 30)})
    found = explanation(files, answer)
    assert f"have 0 bytes, the request adds {2 << 30}, and the quota is 1 GiB." in text_of(found)


async def test_a_directory_on_the_way_that_does_not_exist(files: Harness) -> None:
    await make(files)
    answer = await files("PUT", "/box/no/such/f", {"x-ms-type": "file", "x-ms-content-length": "0"})
    found = explanation(files, answer)
    assert found.code == "ParentNotFound"
    assert "The name of the directory is 'no'." in text_of(found)


# Shared Key and SAS


async def test_a_wrong_key_is_explained_by_the_string_to_sign(blobs: Harness) -> None:
    wrong = msgspec.structs.replace(ACCOUNT, keys=(b"not the key",))
    answer = await blobs("GET", "/box/b?sig=SECRET", {"x-ms-meta-a": "b"}, account=wrong)
    found = explanation(blobs, answer)
    assert "(Shared Key)" in text_of(found)
    assert found.string_to_sign.startswith("GET\n")
    assert "x-ms-meta-a:b\n" in found.string_to_sign
    assert "SECRET" not in text_of(found)
    assert "/acme/acme/box/b" in found.string_to_sign


async def test_a_date_that_is_too_far_away(blobs: Harness) -> None:
    answer = await blobs("GET", "/box/b", {"x-ms-date": _http_date(later(START, -3600))})
    assert "by the clock of the server it is 2026-09-21" in text_of(explanation(blobs, answer))


TERMS = {
    "sv": "2025-05-05",
    "st": iso_text(later(START, -60))[:19] + "Z",
    "se": iso_text(later(START, 60))[:19] + "Z",
}
ACCOUNT_SAS = TERMS | {"ss": "bqtf", "srt": "sco", "sp": "rwdlacup"}
SERVICE_SAS = TERMS | {"sr": "b", "sp": "rw"}


def signed(fields: Mapping[str, str], container: str = "box", name: str = "b") -> str:
    """The query of a SAS with these fields, signed with the account's key."""
    from kyanite.wire.uri import decode_query

    query = urlencode({**fields, "sig": "unsigned"})
    token = sas.decode(decode_query(query), "blob")
    assert token is not None
    text = (
        token.string_to_sign(ACCOUNT.name)
        if isinstance(token, sas.AccountSas)
        else token.string_to_sign(ACCOUNT.name, container, name, "")  # type: ignore[call-arg]
    )
    return urlencode({**fields, "sig": shared_key.sign(ACCOUNT.keys[0], text)})


PAST = {"st": "2020-01-01T00:00:00Z", "se": "2020-01-02T00:00:00Z"}
FUTURE = {"st": "2030-01-01T00:00:00Z", "se": "2030-01-02T00:00:00Z"}
FAILED = "AuthenticationFailed"
BY_POLICY = {"sv": "2025-05-05", "sr": "b"}
SAS_FIELDS: list[tuple[str, Mapping[str, str], str, str, tuple[str, ...]]] = [
    ("se", ACCOUNT_SAS | PAST, FAILED, "GET", ("not valid any more since 2020-01-02", "(its expiry, se)")),
    ("st", ACCOUNT_SAS | FUTURE, FAILED, "GET", ("not valid before 2030-01-01", "(its start, st)")),
    (
        "sip",
        ACCOUNT_SAS | {"sip": "10.0.0.1-10.0.0.9"},
        "AuthorizationSourceIPMismatch",
        "GET",
        ("10.0.0.1 to 10.0.0.9 (sip)", "The request came from 127.0.0.1."),
    ),
    (
        "spr",
        ACCOUNT_SAS | {"spr": "https"},
        "AuthorizationProtocolMismatch",
        "GET",
        ("spr=https", "plain HTTP"),
    ),
    (
        "ss",
        ACCOUNT_SAS | {"ss": "qt"},
        "AuthorizationServiceMismatch",
        "GET",
        ("The services of the account SAS (ss) are qt; the operation needs b.",),
    ),
    (
        "srt",
        ACCOUNT_SAS | {"srt": "s"},
        "AuthorizationResourceTypeMismatch",
        "GET",
        ("The resource types of the account SAS (srt) are s; the operation needs o.",),
    ),
    (
        "sp of an account SAS",
        ACCOUNT_SAS | {"sp": "r"},
        "AuthorizationPermissionMismatch",
        "PUT",
        ("The permissions of the account SAS (sp) are r; the operation needs c or w.",),
    ),
    (
        "sp of a service SAS",
        SERVICE_SAS | {"sp": "r"},
        "AuthorizationPermissionMismatch",
        "PUT",
        ("The permissions of the service SAS (sp) are r; the operation needs c or w.",),
    ),
    ("se of a service SAS", SERVICE_SAS | PAST, FAILED, "GET", ("not valid any more since 2020-01-02",)),
    (
        "si unknown",
        BY_POLICY | {"si": "none"},
        FAILED,
        "GET",
        ("stored access policy that the signature names (si)",),
    ),
    (
        "si and sp",
        SERVICE_SAS | {"si": "policy"},
        FAILED,
        "GET",
        ("both have: permissions (sp), expiry (se).",),
    ),
    (
        "si without se",
        BY_POLICY | {"si": "empty", "sp": "r"},
        FAILED,
        "GET",
        ("Neither the signature nor its stored access policy has: expiry (se).",),
    ),
]


@pytest.mark.parametrize(
    ("fields", "code", "method", "said"), [row[1:] for row in SAS_FIELDS], ids=[row[0] for row in SAS_FIELDS]
)
async def test_each_field_of_a_sas_that_fails(
    blobs: Harness, fields: Mapping[str, str], code: str, method: str, said: tuple[str, ...]
) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/b", BLOCK)
    policies = (
        "<SignedIdentifiers><SignedIdentifier><Id>policy</Id><AccessPolicy><Expiry>2030-01-01T00:00:00Z</Expiry>"
        "<Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>empty</Id></SignedIdentifier>"
        "</SignedIdentifiers>"
    )
    set_acl = await blobs("PUT", "/box?restype=container&comp=acl", {}, policies.encode())
    assert set_acl.status == 200, set_acl.body
    query = signed(fields)
    answer = await blobs(method, f"/box/b?{query}", BLOCK, sign=False)
    found = explanation(blobs, answer)
    assert found.code == code
    for each in said:
        assert each in text_of(found)
    signature = query.rpartition("sig=")[2]
    assert signature not in str(found)
    assert found.url.endswith("sig=...")


MALFORMED_FIELDS: list[tuple[Mapping[str, str], str]] = [
    (ACCOUNT_SAS | {"sv": "latest"}, "The field sv is"),
    (ACCOUNT_SAS | {"sv": "2012-02-12"}, "The field sv is"),
    (ACCOUNT_SAS | {"ss": "x"}, "The field ss is"),
    (ACCOUNT_SAS | {"srt": ""}, "The field srt is"),
    (ACCOUNT_SAS | {"sp": "?"}, "The field sp is"),
    (ACCOUNT_SAS | {"si": "policy"}, "The field si is"),
    (ACCOUNT_SAS | {"spr": "http"}, "The field spr is"),
    (ACCOUNT_SAS | {"sip": "here"}, "The field sip is"),
    (ACCOUNT_SAS | {"se": "tomorrow"}, "is 'tomorrow', which is none."),
    (SERVICE_SAS | {"sr": "x"}, "The field sr is"),
    (SERVICE_SAS | {"sp": "wr"}, "The permissions (sp) are 'wr'; they are letters of r"),
    ({"sv": "2025-05-05", "sr": "b", "sp": "r"}, "The field se is"),
    (SERVICE_SAS | {"sr": "d", "sdd": "x"}, "The field sdd is"),
    (SERVICE_SAS | {"skoid": "me"}, "The field sk"),
]


@pytest.mark.parametrize(("fields", "said"), MALFORMED_FIELDS)
async def test_which_field_of_a_sas_is_not_well_formed(
    blobs: Harness, fields: Mapping[str, str], said: str
) -> None:
    query = urlencode({**fields, "sig": "SECRET"})
    found = explanation(blobs, await blobs("GET", f"/box/b?{query}", sign=False))
    assert (found.status, found.code) == (403, FAILED)
    assert said in text_of(found)
    assert "SECRET" not in str(found)


@pytest.mark.parametrize("fields", [ACCOUNT_SAS, SERVICE_SAS], ids=["account SAS", "service SAS"])
async def test_a_wrong_signature_of_a_sas(blobs: Harness, fields: Mapping[str, str]) -> None:
    query = urlencode({**fields, "sig": "d3JvbmcgYnV0IHNlY3JldA=="})
    found = explanation(blobs, await blobs("GET", f"/box/b?{query}", sign=False))
    assert "it has another key" in text_of(found)
    assert fields["sp"] in found.string_to_sign.splitlines()
    assert "d3Jvbmcg" not in str(found)


async def test_the_resource_of_a_service_sas(blobs: Harness) -> None:
    """A token for one blob does not open another one: its signature is over another text."""
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/other", BLOCK)
    found = explanation(blobs, await blobs("GET", f"/box/other?{signed(SERVICE_SAS)}", sign=False))
    assert "/blob/acme/box/other" in found.string_to_sign
    listed = explanation(
        blobs,
        await blobs(
            "GET",
            f"/box?restype=container&comp=list&{signed(SERVICE_SAS | {'sr': 'c', 'sp': 'r'}, name='')}",
            sign=False,
        ),
    )
    assert "The permissions of the service SAS (sp) are r; the operation needs l." in text_of(listed)


async def test_no_credentials(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    found = explanation(blobs, await blobs("GET", "/box/b", sign=False))
    assert "The public access of the container is none; the operation needs blob." in text_of(found)
    always = explanation(blobs, await blobs("GET", "/box?restype=container&comp=acl", sign=False))
    assert "always needs credentials" in text_of(always)


# Bearer tokens, roles and user delegation


def bearer(**claims: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {signed_tokens.signed(claims_at(NOW, **claims))}"}


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (
            {"iss": "https://sts.windows.net/another/"},
            "The claim iss of the token is 'https://sts.windows.net/another/'.",
        ),
        ({"aud": "https://example.org"}, "The claim aud of the token is 'https://example.org'."),
        ({"exp": NOW - 3600}, f"The claim exp of the token is '{NOW - 3600}'; the request came at {NOW}."),
        ({"nbf": NOW + 3600}, f"The claim nbf of the token is '{NOW + 3600}'; the request came at {NOW}."),
        ({"exp": signed_tokens.ABSENT}, "The token has no expiration time."),
    ],
)
async def test_claims_of_tokens(blobs: Harness, claims: dict[str, object], said: str) -> None:
    blobs.trust(trusting(assigned("Storage Blob Data Owner")))
    headers = bearer(**claims)
    found = explanation(blobs, await blobs("GET", "/box/b", headers, sign=False))
    assert said in text_of(found)
    assert headers["Authorization"].partition(" ")[2] not in str(found)


async def test_which_role_lacks_which_action(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    blobs.trust(trusting(assigned("Storage Blob Data Reader")))
    found = explanation(blobs, await blobs("PUT", "/box/b", BLOCK | bearer(), sign=False))
    assert found.code == "AuthorizationPermissionMismatch"
    assert f"The caller is {OID}. The operation needs the action blobs/write or blobs/add" in text_of(found)
    assert "The caller has the role Storage Blob Data Reader, with these actions: blobServices/" in text_of(
        found
    )


async def test_a_user_delegation_key_that_was_revoked(blobs: Harness) -> None:
    await test_user_delegation.filled(blobs)
    key = await test_user_delegation.key_of(blobs)
    query = test_user_delegation.token(key, "/blob/acme/box/a", sr="b")
    assert (await test_user_delegation.get(blobs, "/box/a", query)).status == 200
    await delegation.revoke(blobs.engine, "acme", b"n" * 32)
    found = explanation(blobs, await test_user_delegation.get(blobs, "/box/a", query))
    assert "(user delegation SAS)" in text_of(found)
    assert "revoked" in text_of(found)
    assert found.string_to_sign


async def test_the_fields_of_a_user_delegation_sas(blobs: Harness) -> None:
    await test_user_delegation.filled(blobs)
    key = await test_user_delegation.key_of(blobs)
    resource = "/blob/acme/box/a"
    rows: tuple[tuple[dict[str, Any], str], ...] = (
        ({"se": "2020-01-01T00:00:00Z"}, "The signature is not valid any more since 2020-01-01"),
        ({"sip": "10.0.0.1"}, "The signature allows 10.0.0.1 (sip)."),
        ({"spr": "https"}, "spr=https"),
        ({"suoid": OID}, "suoid needs an account with a hierarchical namespace."),
        ({"sduoid": OID}, "The signature is for one user, whose bearer token is missing."),
        ({"ses": "scope"}, "This server has no encryption scopes."),
    )
    for fields, said in rows:
        query = test_user_delegation.token(key, resource, sr="b", **fields)
        found = explanation(blobs, await test_user_delegation.get(blobs, "/box/a", query))
        assert said in text_of(found), fields
    query = test_user_delegation.token(key, resource, sr="b", se="2030-01-01T00:00:00Z")
    blobs.clock.now = later(blobs.clock.now, 25 * 3600)
    expired = explanation(blobs, await test_user_delegation.get(blobs, "/box/a", query))
    assert "The user delegation key is not valid any more since" in text_of(expired)
    assert "(its expiry, ske)" in text_of(expired)


# Immutability


async def test_until_when_and_by_which_hold(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/b", BLOCK)
    await test_immutability.change(blobs, lambda old: immutability.set_container_policy(old, 5))
    policy = explanation(blobs, await blobs("DELETE", "/box/b"))
    until = f"{datetime_from_instant(later(START, 5 * 24 * 3600)):%Y-%m-%d %H:%M:%S}"
    assert f"The policy of the container protects it until {until}" in text_of(policy)
    await test_immutability.change(blobs, lambda old: immutability.set_legal_holds(old, ("case1", "case2")))
    held = explanation(blobs, await blobs("DELETE", "/box/b"))
    assert "The legal holds of the container have the tags: case1, case2." in text_of(held)


# What cannot be read, settings, names


async def test_what_cannot_be_read_is_named_with_its_value(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    bad = explanation(blobs, await blobs("PUT", "/box/b", {"x-ms-blob-type": "Brick"}))
    assert "The header x-ms-blob-type is 'Brick'." in text_of(bad)
    assert bad.reason == ""
    parameter = explanation(blobs, await blobs("GET", "/box?restype=container&comp=list&maxresults=many"))
    assert "The query parameter maxresults is 'many'." in text_of(parameter)
    name = explanation(blobs, await blobs("PUT", "/Box?restype=container"))
    assert "The name of the container is 'Box'." in text_of(name)


async def test_which_part_of_the_path_does_not_exist(blobs: Harness) -> None:
    assert "The container that the path names does not exist" in text_of(
        explanation(blobs, await blobs("GET", "/nobox/b"))
    )
    await blobs("PUT", "/box?restype=container")
    assert "The container exists" in text_of(explanation(blobs, await blobs("GET", "/box/b")))


async def test_settings_of_the_account(blobs: Harness) -> None:
    accounts = blobs.environment.accounts
    assert isinstance(accounts, dict)
    accounts["acme"] = replace(
        accounts["acme"], settings=AccountSettings(require_https=True, shared_key_access=False)
    )
    assert "require_https" in text_of(explanation(blobs, await blobs("GET", "/box/b")))
    assert "shared_key_access" in text_of(explanation(blobs, await blobs("GET", "/box/b", secure=True)))


# Tables of this test


def test_every_reason_has_a_sentence() -> None:
    assert RULES.keys() == set(Reason)
    assert all(text.endswith(".") for text in RULES.values())


def test_every_kind_of_facts_has_words() -> None:
    """Facts are defined beside the rules, so they are found by their names."""
    import pkgutil
    from importlib import import_module

    import kyanite.rules

    defined: set[type[Any]] = set()
    for module in pkgutil.iter_modules(kyanite.rules.__path__, "kyanite.rules."):
        values = vars(import_module(module.name)).values()
        defined |= {each for each in values if isinstance(each, type) and each.__name__.endswith("Facts")}
    assert defined <= FACTS.keys()
