"""Blob Batch: parts that are requests of their own, and what is refused as a whole."""

import base64
from datetime import UTC, datetime, timedelta
from email.parser import BytesParser

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, Services, generate_account_sas

from tests.services.harness import ACCOUNT, Answer, Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}
LEASE = "11111111-1111-4111-8111-111111111111"
ACCOUNT_SCOPE = "/?comp=batch"
BOX_SCOPE = "/box?restype=container&comp=batch"
MULTIPART = "multipart/mixed; boundary=batch_b"


_WORDS = {"r": "read", "w": "write", "d": "delete", "l": "list"}


def token(blobs: Harness, permission: str = "wd") -> str:
    return generate_account_sas(
        "acme",
        base64.b64encode(ACCOUNT.keys[0]).decode(),
        ResourceTypes(object=True),
        AccountSasPermissions(**{_WORDS[letter]: True for letter in permission}),
        datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=blobs.clock.now // 10, hours=1),
        services=Services(blob=True),
    )


def part(method: str, target: str, number: int, headers: dict[str, str] | None = None) -> str:
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    return (
        "--batch_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
        f"Content-ID: {number}\r\n\r\n{method} {target} HTTP/1.1\r\n{lines}Content-Length: 0\r\n\r\n\r\n"
    )


def batch(*parts: str) -> bytes:
    return ("".join(parts) + "--batch_b--\r\n").encode()


async def send(blobs: Harness, scope: str, body: bytes) -> Answer:
    return await blobs("POST", scope, {"Content-Type": MULTIPART}, body)


def parts_of(answer: Answer) -> list[tuple[str, int, str]]:
    """Of each part its Content-ID, its status and its error code."""
    head = f"Content-Type: {answer.headers['content-type']}\r\n\r\n".encode()
    found = []
    for each in BytesParser().parsebytes(head + answer.body).walk():
        if each.is_multipart():
            continue
        status_line, _, rest = str(each.get_payload()).partition("\n")
        headers = dict(line.split(": ", 1) for line in rest.splitlines() if ": " in line)
        assert headers["x-ms-request-id"]
        found.append(
            (str(each["Content-ID"]), int(status_line.split()[1]), headers.get("x-ms-error-code", ""))
        )
    return found


async def make(blobs: Harness, *names: str) -> None:
    await blobs("PUT", "/box?restype=container")
    for name in names:
        assert (await blobs("PUT", f"/box/{name}", BLOCK, b"data")).status == 201


@pytest.mark.parametrize("scope", [ACCOUNT_SCOPE, "?restype=container&comp=batch", BOX_SCOPE])
@pytest.mark.parametrize("root", ["", "/acme", "http://localhost:10000/acme"])
async def test_blobs_are_deleted(blobs: Harness, scope: str, root: str) -> None:
    await make(blobs, "a", "b/c", "kept")
    sas = token(blobs)
    answer = await send(
        blobs,
        scope,
        batch(
            part("DELETE", f"{root}/box/a?{sas}", 0),
            part("DELETE", f"{root}/box/none?{sas}", 1),
            part("DELETE", f"{root}/box/b%2Fc?{sas}", 2),
        ),
    )
    assert answer.status == 202
    assert parts_of(answer) == [("0", 202, ""), ("1", 404, "BlobNotFound"), ("2", 202, "")]
    listing = (await blobs("GET", "/box?restype=container&comp=list")).body
    assert listing.count(b"<Blob>") == 1


async def test_tiers_are_set(blobs: Harness) -> None:
    await make(blobs, "a", "b")
    sas = token(blobs)
    cool = {"x-ms-access-tier": "Cool"}
    answer = await send(
        blobs,
        BOX_SCOPE,
        batch(
            part("PUT", f"/box/a?comp=tier&{sas}", 0, cool),
            part("PUT", f"/box/b?comp=tier&{sas}", 1, {"x-ms-access-tier": "Lukewarm"}),
        ),
    )
    assert parts_of(answer) == [("0", 200, ""), ("1", 400, "InvalidHeaderValue")]
    assert (await blobs("HEAD", "/box/a")).headers["x-ms-access-tier"] == "Cool"


async def test_each_part_has_a_grant_and_conditions_of_its_own(blobs: Harness) -> None:
    await make(blobs, "a", "b", "c", "d")
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE}
    await blobs("PUT", "/box/d?comp=lease", acquire)
    sas = token(blobs)
    answer = await send(
        blobs,
        BOX_SCOPE,
        batch(
            part("DELETE", "/box/a", 0),
            part("DELETE", f"/box/a?{token(blobs, 'w')}", 1),
            part("DELETE", f"/box/b?{sas}", 2, {"If-Match": '"0x1"'}),
            part("DELETE", f"/box/d?{sas}", 3),
            part("DELETE", f"/box/d?{sas}", 4, {"x-ms-lease-id": LEASE}),
        ),
    )
    assert [row[1:] for row in parts_of(answer)][:4] == [
        (401, "NoAuthenticationInformation"),
        (403, "AuthorizationPermissionMismatch"),
        (412, "ConditionNotMet"),
        (412, "LeaseIdMissing"),
    ]
    assert parts_of(answer)[4][1] == 202


async def test_a_part_may_request_nothing_else(blobs: Harness) -> None:
    await make(blobs, "a")
    sas = token(blobs, "rwdl")
    for method, target in (
        ("PUT", f"/box/a?comp=metadata&{sas}"),
        ("DELETE", f"/box?restype=container&{sas}"),
        ("GET", f"/box/a?{sas}"),
        ("HEAD", f"/box/a?{sas}"),
        ("POST", f"/box?restype=container&comp=batch&{sas}"),
    ):
        ((_, status, _),) = parts_of(await send(blobs, BOX_SCOPE, batch(part(method, target, 0))))
        assert status in {400, 405}
    assert (await blobs("HEAD", "/box/a")).status == 200


def many(count: int, sas: str) -> bytes:
    return batch(*(part("DELETE", f"/box/{number}?{sas}", number) for number in range(count)))


async def test_so_many_parts_are_allowed_and_no_more(blobs: Harness) -> None:
    await make(blobs, "0", "255")
    sas = token(blobs)
    refused = await send(blobs, BOX_SCOPE, many(257, sas))
    assert (refused.status, refused.code) == (400, "InvalidInput")
    answer = await send(blobs, BOX_SCOPE, many(256, sas))
    assert [number for number, status, _ in parts_of(answer) if status == 202] == ["0", "255"]
    assert len(parts_of(answer)) == 256


@pytest.mark.parametrize(
    ("scope", "content_type", "body", "status", "code"),
    [
        (BOX_SCOPE, MULTIPART, b"--batch_b--\r\n", 400, "InvalidInput"),
        (BOX_SCOPE, MULTIPART, b"--batch_b\r\n\r\nDELETE /box/a\r\n--batch_b--\r\n", 400, "InvalidInput"),
        (BOX_SCOPE, MULTIPART, b"x" * (4 * 1024 * 1024 + 1), 413, "RequestBodyTooLarge"),
        (BOX_SCOPE, MULTIPART, "DELETE /box/%zz", 400, "InvalidUri"),
        (ACCOUNT_SCOPE, MULTIPART, "mixed", 400, "InvalidInput"),
    ],
)
async def test_what_is_wrong_with_the_whole_does_nothing(
    blobs: Harness, scope: str, content_type: str, body: bytes | str, status: int, code: str
) -> None:
    await make(blobs, "a")
    sas = token(blobs)
    good = part("DELETE", f"/box/a?{sas}", 0)
    if body == "mixed":
        body = batch(good, part("PUT", f"/box/a?comp=tier&{sas}", 1, {"x-ms-access-tier": "Cool"}))
    elif isinstance(body, str):
        method, _, target = body.partition(" ")
        body = batch(good, part(method, target, 1))
    answer = await blobs("POST", scope, {"Content-Type": content_type}, body)
    assert (answer.status, answer.code) == (status, code)
    assert (await blobs("HEAD", "/box/a")).status == 200


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (MULTIPART, b""),
        (MULTIPART, b"nonsense"),
        ("multipart/mixed; boundary=other", None),
        ("multipart/mixed", None),
        ("multipart/mixed; boundary=", None),
        ("application/json", b"{}"),
        ("(absent)", None),
    ],
)
async def test_a_batch_without_a_usable_boundary_is_one_failing_part(
    blobs: Harness, content_type: str, body: bytes | None
) -> None:
    await make(blobs, "a")
    if body is None:
        body = batch(part("DELETE", f"/box/a?{token(blobs)}", 0))
    answer = await blobs("POST", BOX_SCOPE, {"Content-Type": content_type}, body)
    assert answer.status == 202
    assert parts_of(answer) == [("None", 400, "InvalidInput")]
    assert (await blobs("HEAD", "/box/a")).status == 200


async def test_a_part_for_another_container_fails_alone(blobs: Harness) -> None:
    await make(blobs, "a")
    await blobs("PUT", "/other?restype=container")
    await blobs("PUT", "/other/a", BLOCK, b"data")
    sas = token(blobs)
    body = batch(part("DELETE", f"/other/a?{sas}", 0), part("DELETE", f"/acme/box/a?{sas}", 1))
    answer = await send(blobs, BOX_SCOPE, body)
    assert parts_of(answer) == [("0", 400, "InvalidInput"), ("1", 202, "")]
    assert (await blobs("HEAD", "/box/a")).status == 404
    assert (await blobs("HEAD", "/other/a")).status == 200


async def test_a_batch_without_a_key_or_a_token_is_refused(blobs: Harness) -> None:
    await make(blobs, "a")
    body = batch(part("DELETE", f"/box/a?{token(blobs)}", 0))
    answer = await blobs("POST", BOX_SCOPE, {"Content-Type": MULTIPART}, body, sign=False)
    assert (answer.status, answer.code) == (401, "NoAuthenticationInformation")
    assert (await blobs("HEAD", "/box/a")).status == 200
