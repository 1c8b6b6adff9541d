"""Requests with bearer tokens: the challenge, the refusals by version, roles and their scopes, and both resources."""

import pytest

from kyanite.server.identity.config import Development, IdentityConfig
from kyanite.services.rest.error_responses import CHALLENGE
from kyanite.values import unix_seconds
from tests.services.harness import START, Answer, Harness
from tests.signed_tokens import ABSENT, TENANT, assigned, claims_at, rsa_key, signed, trusting

NOW = unix_seconds(START)
NEW = "2025-07-05"
BLOB_OWNER = assigned("Storage Blob Data Owner")
TEST_CHALLENGE = (
    f"Bearer authorization_uri=https://login.microsoftonline.com/{TENANT}/oauth2/authorize "
    "resource_id=https://storage.azure.com"
)
BACKUP = {"x-ms-file-request-intent": "backup"}


def bearer(*, version: str = NEW, **claims: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {signed(claims_at(NOW, **claims))}", "x-ms-version": version}


async def send(
    harness: Harness, method: str, target: str, headers: dict[str, str], body: bytes = b""
) -> Answer:
    return await harness(method, target, headers, body, sign=False)


async def test_an_owner_writes_and_reads(blobs: Harness) -> None:
    blobs.trust(trusting(BLOB_OWNER))
    assert (await send(blobs, "PUT", "/box?restype=container", bearer())).status == 201
    put = await send(blobs, "PUT", "/box/a", {**bearer(), "x-ms-blob-type": "BlockBlob"}, b"text")
    assert put.status == 201
    assert (await send(blobs, "GET", "/box/a", bearer())).body == b"text"
    assert (await send(blobs, "GET", "/?comp=list", bearer())).status == 200


@pytest.mark.parametrize(
    ("service", "version", "status", "code"),
    [
        ("blob", "2019-12-12", 401, "InvalidAuthenticationInfo"),
        ("blob", "2019-07-07", 403, "AuthenticationFailed"),
        ("queue", "2019-12-12", 401, "InvalidAuthenticationInfo"),
        ("queue", "2019-07-07", 403, "AuthenticationFailed"),
        ("table", "2020-12-06", 401, "InvalidAuthenticationInfo"),
        ("table", "2019-02-02", 403, "AuthenticationFailed"),
        ("file", "2022-11-02", 401, "InvalidAuthenticationInfo"),
    ],
)
async def test_a_bad_token_by_version(
    request: pytest.FixtureRequest, service: str, version: str, status: int, code: str
) -> None:
    harness: Harness = request.getfixturevalue({"blob": "blobs"}.get(service, f"{service}s"))
    harness.trust(trusting(BLOB_OWNER))
    target = "/Tables" if service == "table" else "/?comp=list"
    answer = await send(harness, "GET", target, bearer(version=version, aud="https://vault.azure.net"))
    assert (answer.status, answer.code) == (status, code)
    assert b"Audience validation failed. Audience did not match." in answer.body
    assert answer.headers.get("www-authenticate") == (TEST_CHALLENGE if status == 401 else None)


async def test_the_message_of_a_bad_token(blobs: Harness) -> None:
    blobs.trust(trusting(BLOB_OWNER))
    answer = await send(blobs, "GET", "/?comp=list", bearer(exp=NOW - 1000))
    assert (
        b"<Code>InvalidAuthenticationInfo</Code><Message>Server failed to authenticate the request. Please refer to"
        in answer.body
    )
    assert (
        b"<AuthenticationErrorDetail>Lifetime validation failed. The token is expired.</AuthenticationErrorDetail>"
        in answer.body
    )


@pytest.mark.parametrize(
    ("service", "version", "accepted"),
    [
        ("blob", "2017-11-09", True),
        ("blob", "2017-07-29", False),
        ("blob", "(absent)", False),
        ("queue", "2017-11-09", True),
        ("queue", "2017-07-29", False),
        ("table", "2019-02-02", True),
        ("file", "2022-11-02", True),
        ("file", "2021-12-02", False),
    ],
)
async def test_versions_that_accept_tokens(
    request: pytest.FixtureRequest, service: str, version: str, accepted: bool
) -> None:
    harness: Harness = request.getfixturevalue(f"{service}s")
    harness.trust(trusting())
    target = {"blob": "/box/a", "queue": "/box/messages", "table": "/box()", "file": "/box/a"}[service]
    answer = await send(harness, "GET", target, {**bearer(version=version), **BACKUP})
    assert answer.status == 403
    assert answer.code == ("AuthorizationPermissionMismatch" if accepted else "AuthenticationFailed")


async def test_without_issuers_a_token_is_refused_and_the_challenge_is_that_of_old(blobs: Harness) -> None:
    answer = await send(blobs, "GET", "/?comp=list", bearer())
    assert (answer.status, answer.code) == (401, "InvalidAuthenticationInfo")
    assert answer.headers["www-authenticate"] == CHALLENGE
    anonymous = await send(blobs, "GET", "/?comp=list", {})
    assert (anonymous.status, anonymous.code, anonymous.headers["www-authenticate"]) == (
        401,
        "NoAuthenticationInformation",
        CHALLENGE,
    )


async def test_a_request_without_credentials_is_challenged(blobs: Harness) -> None:
    blobs.trust(trusting(BLOB_OWNER))
    answer = await send(blobs, "GET", "/?comp=list", {})
    assert (answer.status, answer.code) == (401, "NoAuthenticationInformation")
    assert answer.headers["www-authenticate"] == TEST_CHALLENGE
    old = await send(blobs, "GET", "/?comp=list", {"x-ms-version": "2019-07-07"})
    assert (old.status, "www-authenticate" in old.headers) == (404, False)


async def test_keys_and_signatures_go_on_beside_issuers(blobs: Harness) -> None:
    blobs.trust(trusting(BLOB_OWNER))
    assert (await blobs("PUT", "/box?restype=container")).status == 201


async def test_a_bad_token_is_refused_where_anyone_may_read(blobs: Harness) -> None:
    blobs.trust(trusting())
    await blobs("PUT", "/box?restype=container", {"x-ms-blob-public-access": "container"})
    await blobs("PUT", "/box/a", {"x-ms-blob-type": "BlockBlob"}, b"text")
    assert (await send(blobs, "GET", "/box/a", {})).status == 200
    assert (await send(blobs, "GET", "/box/a", bearer(exp=NOW - 1000))).status == 401
    # A good token without a role is no anonymous request either.
    assert (await send(blobs, "GET", "/box/a", bearer())).code == "AuthorizationPermissionMismatch"


@pytest.mark.parametrize(
    ("peer", "secure", "allowed"),
    [
        ("127.0.0.1", False, True),
        ("::1", False, True),
        ("::ffff:127.0.0.1", False, True),
        ("10.0.0.7", True, True),
        ("10.0.0.7", False, False),
        ("::ffff:10.0.0.7", False, False),
        ("", False, False),
    ],
)
async def test_plain_http_only_on_loopback(blobs: Harness, peer: str, secure: bool, allowed: bool) -> None:
    blobs.trust(trusting(BLOB_OWNER))
    answer = await blobs("GET", "/?comp=list", bearer(), sign=False, peer=peer, secure=secure)
    assert answer.status == (200 if allowed else 403)
    if not allowed:
        assert b"Bearer is not allowed with HTTP" in answer.body


async def test_a_token_and_a_signature_together_are_refused(blobs: Harness) -> None:
    blobs.trust(trusting(BLOB_OWNER))
    answer = await send(
        blobs, "GET", "/?comp=list&sv=2020-12-06&sig=x&ss=b&srt=s&sp=l&se=2099-01-01", bearer()
    )
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_roles_are_limited_to_their_scope(blobs: Harness) -> None:
    blobs.trust(
        trusting(
            assigned("Storage Blob Data Contributor", account="acme", container="box"),
            assigned("Storage Blob Data Reader", "*", account="acme", container="attic"),
        )
    )
    for name in ("box", "attic", "cellar"):
        await blobs("PUT", f"/{name}?restype=container")
    blob = {"x-ms-blob-type": "BlockBlob"}
    assert (await send(blobs, "PUT", "/box/a", {**bearer(), **blob})).status == 201
    assert (await send(blobs, "PUT", "/attic/a", {**bearer(), **blob})).status == 403
    assert (await send(blobs, "GET", "/attic?restype=container&comp=list", bearer())).status == 200
    assert (await send(blobs, "GET", "/cellar?restype=container&comp=list", bearer())).status == 403
    assert (await send(blobs, "GET", "/?comp=list", bearer())).code == "AuthorizationPermissionMismatch"
    stranger = bearer(oid=TENANT, sub=TENANT)
    assert (await send(blobs, "PUT", "/box/a", {**stranger, **blob})).status == 403
    assert (await send(blobs, "GET", "/attic?restype=container&comp=list", stranger)).status == 200


async def test_acls_by_token_in_newer_versions_only(blobs: Harness) -> None:
    blobs.trust(trusting(BLOB_OWNER))
    await blobs("PUT", "/box?restype=container")
    target = "/box?restype=container&comp=acl"
    assert (await send(blobs, "GET", target, bearer())).status == 200
    assert (await send(blobs, "PUT", target, bearer())).status == 200
    old = await send(blobs, "GET", target, bearer(version="2025-05-05"))
    assert (old.status, old.code) == (403, "AuthorizationFailure")


async def test_files_need_the_intent(files: Harness) -> None:
    files.trust(
        trusting(
            assigned("Storage File Data Privileged Contributor"), assigned("Storage Account Contributor")
        )
    )
    await files("PUT", "/share?restype=share")
    create = {**bearer(), "x-ms-type": "file", "x-ms-content-length": "0"}
    missing = await send(files, "PUT", "/share/a", create)
    assert (missing.status, missing.code) == (400, "MissingRequiredHeader")
    assert b"<HeaderName>x-ms-file-request-intent</HeaderName>" in missing.body
    wrong = await send(files, "PUT", "/share/a", {**create, "x-ms-file-request-intent": "restore"})
    assert (wrong.status, wrong.code) == (400, "InvalidHeaderValue")
    assert (await send(files, "PUT", "/share/a", {**create, **BACKUP})).status == 201
    assert (await send(files, "GET", "/?comp=list", {**bearer(), **BACKUP})).status == 200
    old = await send(files, "GET", "/?comp=list", {**bearer(version="2024-08-04"), **BACKUP})
    assert (old.status, old.code) == (403, "AuthorizationFailure")


async def test_smb_roles_are_of_no_use_over_rest(files: Harness) -> None:
    files.trust(trusting(assigned("Storage File Data SMB Share Elevated Contributor")))
    await files("PUT", "/share?restype=share")
    answer = await send(files, "GET", "/share?restype=directory&comp=list", {**bearer(), **BACKUP})
    assert (answer.status, answer.code) == (403, "AuthorizationPermissionMismatch")


async def test_queue_roles(queues: Harness) -> None:
    await queues("PUT", "/jobs")
    message = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
    for role, put, get, peek in (
        ("Storage Queue Data Contributor", 201, 200, 200),
        ("Storage Queue Data Message Sender", 201, 403, 403),
        ("Storage Queue Data Message Processor", 403, 200, 200),
        ("Storage Queue Data Reader", 403, 403, 200),
    ):
        queues.trust(trusting(assigned(role)))
        assert (await send(queues, "POST", "/jobs/messages", bearer(), message)).status == put
        assert (await send(queues, "GET", "/jobs/messages", bearer())).status == get
        assert (await send(queues, "GET", "/jobs/messages?peekonly=true", bearer())).status == peek


BATCH = (
    b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n"
    b"POST http://localhost/acme/people HTTP/1.1\r\nContent-Type: application/json\r\n\r\n"
    b'{"PartitionKey": "p", "RowKey": "r"}\r\n--c--\r\n--b--\r\n'
)
MULTIPART = {"Content-Type": "multipart/mixed; boundary=b"}


async def test_a_table_batch_needs_the_role_in_its_table(tables: Harness) -> None:
    json = {"Content-Type": "application/json", "Accept": "application/json"}
    assert (await tables("POST", "/Tables", json, b'{"TableName": "people"}')).status == 201
    tables.trust(trusting(assigned("Storage Table Data Contributor", account="acme", container="People")))
    answer = await send(tables, "POST", "/$batch", {**bearer(), **MULTIPART}, BATCH)
    assert answer.status == 202
    assert b"HTTP/1.1 201" in answer.body
    for role, container in (
        ("Storage Table Data Contributor", "others"),
        ("Storage Table Data Reader", "people"),
    ):
        tables.trust(trusting(assigned(role, account="acme", container=container)))
        answer = await send(tables, "POST", "/$batch", {**bearer(), **MULTIPART}, BATCH)
        assert (answer.status, answer.code) == (403, "AuthorizationPermissionMismatch")
    tables.trust(trusting())
    assert (await send(tables, "POST", "/$batch", {**bearer(), **MULTIPART}, BATCH)).status == 403


async def test_parts_of_a_blob_batch_have_tokens_of_their_own(blobs: Harness) -> None:
    blobs.trust(trusting(BLOB_OWNER, assigned("Storage Blob Data Reader", TENANT)))
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/a", {"x-ms-blob-type": "BlockBlob"})
    owner, reader = bearer()["Authorization"], bearer(oid=TENANT)["Authorization"]

    async def batch(outer: str, *inner: str) -> Answer:
        parts = "".join(
            f"--b\r\nContent-Type: application/http\r\n\r\nDELETE /acme/box/a HTTP/1.1\r\n"
            f"{f'Authorization: {each}{chr(13)}{chr(10)}' if each else ''}Content-Length: 0\r\n\r\n\r\n"
            for each in inner
        )
        headers = {"Authorization": outer, "x-ms-version": NEW, **MULTIPART}
        return await send(blobs, "POST", "/?comp=batch", headers, f"{parts}--b--\r\n".encode())

    answer = await batch(owner, reader, "", "Bearer x.y.z", owner)
    assert answer.status == 202
    statuses = [line.split(b" ")[1] for line in answer.body.split(b"\r\n") if line.startswith(b"HTTP/1.1")]
    assert statuses == [b"403", b"401", b"401", b"202"]
    assert (await batch("Bearer x.y.z", owner)).status == 401


async def test_a_copy_reads_its_source_as_the_caller(blobs: Harness) -> None:
    for name in ("from", "dest"):
        await blobs("PUT", f"/{name}?restype=container")
    await blobs("PUT", "/from/a", {"x-ms-blob-type": "BlockBlob"}, b"text")
    source = {"x-ms-copy-source": "http://localhost:10000/acme/from/a"}
    writer = assigned("Storage Blob Data Contributor", account="acme", container="dest")
    blobs.trust(trusting(writer))
    refused = await send(blobs, "PUT", "/dest/b", {**bearer(), **source})
    assert (refused.status, refused.code) == (403, "CannotVerifyCopySource")
    blobs.trust(trusting(writer, assigned("Storage Blob Data Reader", account="acme", container="from")))
    assert (await send(blobs, "PUT", "/dest/b", {**bearer(), **source})).status == 202


async def test_a_source_with_a_token_of_its_own(blobs: Harness) -> None:
    for name in ("from", "dest"):
        await blobs("PUT", f"/{name}?restype=container")
    await blobs("PUT", "/from/a", {"x-ms-blob-type": "BlockBlob"}, b"text")
    blobs.trust(trusting(assigned("Storage Blob Data Reader", TENANT, account="acme", container="from")))
    head = {
        "x-ms-copy-source": "http://localhost:10000/acme/from/a",
        "x-ms-blob-type": "BlockBlob",
        "x-ms-version": NEW,
    }
    reader = bearer(oid=TENANT)["Authorization"]
    for token, status in (
        (None, 401),
        (reader, 201),
        (bearer()["Authorization"], 403),
        (bearer(exp=NOW - 1000)["Authorization"], 401),
        ("SharedKey acme:x", 400),
        ("Basic x", 400),
        ("Bearer x", 401),
    ):
        headers = {**head, **({} if token is None else {"x-ms-copy-source-authorization": token})}
        answer = await blobs("PUT", "/dest/b", headers)
        assert answer.status == status, token
        assert status in {201, 400} or answer.code == "CannotVerifyCopySource"
        if token is not None:
            assert token.split(" ")[1].encode() not in answer.body or len(token) < 20


async def test_any_caller_is_an_owner_in_development(blobs: Harness) -> None:
    blobs.trust(IdentityConfig(development=Development.ANY))
    forged = {"Authorization": f"Bearer {signed(claims_at(NOW), rsa_key('other'))}", "x-ms-version": NEW}
    assert (await send(blobs, "PUT", "/box?restype=container", forged)).status == 201
    assert (await send(blobs, "GET", "/?restype=service&comp=properties", forged)).status == 200
    assert (
        await send(blobs, "GET", "/?comp=list", {"Authorization": "Bearer x", "x-ms-version": NEW})
    ).status == 401


async def test_a_caller_with_nothing_but_a_subject(blobs: Harness) -> None:
    blobs.trust(trusting(assigned("Storage Blob Data Owner", "me")))
    await blobs("PUT", "/box?restype=container")
    answer = await send(blobs, "GET", "/box?restype=container", bearer(oid=ABSENT, tid=ABSENT, sub="me"))
    assert answer.status == 200
