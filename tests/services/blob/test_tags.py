"""Tags over REST: setting and getting them, tags in the headers of writes, and conditions on tags."""

import base64
import hashlib
from urllib.parse import quote

import pytest

from kyanite.wire import crc64, tags
from tests.services.harness import Answer, Harness
from tests.services.tokens import blob_token

BLOCK = {"x-ms-blob-type": "BlockBlob"}
LEASE = "11111111-1111-4111-8111-111111111111"
OTHER_LEASE = "22222222-2222-4222-8222-222222222222"
URL = "http://localhost:10000/acme/box/source"
RED = [("colour", "red")]
BOTH = [("colour", "red"), ("size", "10")]
ODD = [("+-./:=_ k", "+-./:=_ v"), ("empty", "")]
FORM = "colour=red&size=10"


async def make(blobs: Harness, form: str = "", name: str = "b") -> Answer:
    await blobs("PUT", "/box?restype=container")
    given = {"x-ms-tags": form} if form else {}
    answer = await blobs("PUT", f"/box/{name}", BLOCK | given, b"data")
    assert answer.status == 201
    return answer


def document(pairs: list[tuple[str, str]]) -> bytes:
    return tags.encode(pairs)


async def set_tags(
    blobs: Harness, pairs: list[tuple[str, str]], target: str = "/box/b?comp=tags", **headers: str
) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await blobs("PUT", target, named, document(pairs))


async def get_tags(blobs: Harness, target: str = "/box/b?comp=tags") -> list[tuple[str, str]]:
    answer = await blobs("GET", target)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/xml")
    assert "etag" not in answer.headers
    return tags.decode(answer.body)


# Setting and getting


@pytest.mark.parametrize("pairs", [BOTH, ODD, []])
async def test_tags_are_set_and_read(blobs: Harness, pairs: list[tuple[str, str]]) -> None:
    put = await make(blobs, "old=1")
    blobs.clock.now = type(blobs.clock.now)(blobs.clock.now + 50_000_000)
    assert (await set_tags(blobs, pairs)).status == 204
    assert await get_tags(blobs) == sorted(pairs)
    head = await blobs("HEAD", "/box/b")
    assert (head.headers["etag"], head.headers["last-modified"]) == (
        put.headers["etag"],
        put.headers["last-modified"],
    )
    assert head.headers.get("x-ms-tag-count") == (str(len(pairs)) if pairs else None)
    got = await blobs("GET", "/box/b")
    assert got.headers.get("x-ms-tag-count") == head.headers.get("x-ms-tag-count")


async def test_the_order_is_that_of_the_keys(blobs: Harness) -> None:
    await make(blobs)
    await set_tags(blobs, [("b", "1"), ("a", "2"), ("B", "3")])
    assert await get_tags(blobs) == [("B", "3"), ("a", "2"), ("b", "1")]


async def test_a_snapshot_keeps_the_tags_of_its_time(blobs: Harness) -> None:
    await make(blobs, FORM)
    at = quote((await blobs("PUT", "/box/b?comp=snapshot")).headers["x-ms-snapshot"])
    await set_tags(blobs, RED)
    assert await get_tags(blobs, f"/box/b?comp=tags&snapshot={at}") == BOTH
    assert (await set_tags(blobs, ODD, f"/box/b?comp=tags&snapshot={at}")).status == 204
    assert await get_tags(blobs, f"/box/b?comp=tags&snapshot={at}") == sorted(ODD)
    assert await get_tags(blobs) == RED


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([(f"k{number}", "v") for number in range(11)], "TagsTooLarge"),
        ([("k" * 129, "v")], "TagsTooLarge"),
        ([("k", "v" * 257)], "TagsTooLarge"),
        ([("", "v")], "EmptyTagName"),
        ([("k", "1"), ("k", "2")], "DuplicateTagNames"),
        ([("k,", "v")], "InvalidTag"),
        ([("k", "\u00e9")], "InvalidTag"),
    ],
)
async def test_tags_that_are_not_allowed(blobs: Harness, pairs: list[tuple[str, str]], code: str) -> None:
    await make(blobs, "old=1")
    answer = await set_tags(blobs, pairs)
    assert (answer.status, answer.code) == (400, code)
    form = "&".join(f"{quote(key)}={quote(value)}" for key, value in pairs)
    answer = await blobs("PUT", "/box/b", BLOCK | {"x-ms-tags": form}, b"")
    assert (answer.status, answer.code) == (400, code)
    assert await get_tags(blobs) == [("old", "1")]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "InvalidXmlDocument"),
        (b"<Tags />", "MissingRequiredXmlNode"),
        (b"<T>" * 99, "InvalidXmlDocument"),
    ],
)
async def test_a_body_that_is_no_document_of_tags(blobs: Harness, body: bytes, code: str) -> None:
    await make(blobs)
    answer = await blobs("PUT", "/box/b?comp=tags", {}, body)
    assert (answer.status, answer.code) == (400, code)
    answer = await blobs("PUT", "/box/b?comp=tags", {}, b"<Tags>" + b" " * 70_000)
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")


async def test_the_hashes_of_the_body_are_checked(blobs: Harness) -> None:
    await make(blobs)
    body = document(RED)
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    wrong_md5 = base64.b64encode(hashlib.md5(b"").digest()).decode()
    for headers, expected in (
        ({"Content-MD5": wrong_md5}, (400, "Md5Mismatch")),
        ({"Content-MD5": "x"}, (400, "InvalidMd5")),
        ({"x-ms-content-crc64": crc64.encode(5)}, (400, "Crc64Mismatch")),
        ({"Content-MD5": md5}, (204, "")),
        ({"x-ms-content-crc64": crc64.encode(crc64.compute(body))}, (204, "")),
    ):
        answer = await blobs("PUT", "/box/b?comp=tags", headers, body)
        assert (answer.status, answer.headers.get("x-ms-error-code", "")) == expected


async def test_what_does_not_exist(blobs: Harness) -> None:
    assert (await set_tags(blobs, RED)).code == "ContainerNotFound"
    await blobs("PUT", "/box?restype=container")
    assert (await set_tags(blobs, RED)).code == "BlobNotFound"
    assert (await blobs("GET", "/box/b?comp=tags")).code == "BlobNotFound"


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_old_versions_know_no_tags(blobs: Harness, method: str) -> None:
    await make(blobs)
    answer = await blobs(method, "/box/b?comp=tags", {"x-ms-version": "2019-10-10"}, b"")
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert b"<QueryParameterName>comp</QueryParameterName>" in answer.body


async def test_a_lease_is_needed_to_set_and_not_to_get(blobs: Harness) -> None:
    await make(blobs)
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE}
    await blobs("PUT", "/box/b?comp=lease", lease)
    assert (await set_tags(blobs, RED)).code == "LeaseIdMissing"
    assert (await set_tags(blobs, RED, x_ms_lease_id=OTHER_LEASE)).code == "LeaseIdMismatchWithBlobOperation"
    assert (await set_tags(blobs, RED, x_ms_lease_id=LEASE)).status == 204
    assert await get_tags(blobs) == RED
    answer = await blobs("GET", "/box/b?comp=tags", {"x-ms-lease-id": OTHER_LEASE})
    assert answer.code == "LeaseIdMismatchWithBlobOperation"


async def test_an_archived_blob_can_be_tagged(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Archive"})
    assert (await set_tags(blobs, RED)).status == 204
    assert await get_tags(blobs) == RED


# Conditions of tag operations


async def test_conditions_about_the_blob_have_names_of_their_own(blobs: Harness) -> None:
    etag = (await make(blobs, FORM)).headers["etag"]
    now, past = "Mon, 01 Jan 2125 00:00:00 GMT", "Mon, 01 Jan 2001 00:00:00 GMT"
    for met, unmet in (
        ({"x-ms-blob-if-match": etag}, {"x-ms-blob-if-match": '"0x1"'}),
        ({"x-ms-blob-if-none-match": '"0x1"'}, {"x-ms-blob-if-none-match": etag}),
        ({"x-ms-blob-if-modified-since": past}, {"x-ms-blob-if-modified-since": now}),
        ({"x-ms-blob-if-unmodified-since": now}, {"x-ms-blob-if-unmodified-since": past}),
        ({"x-ms-if-tags": "colour='red'"}, {"x-ms-if-tags": "colour='blue'"}),
    ):
        for method, body, success in (("GET", b"", 200), ("PUT", document(BOTH), 204)):
            assert (await blobs(method, "/box/b?comp=tags", met, body)).status == success
            answer = await blobs(method, "/box/b?comp=tags", unmet, body)
            assert (answer.status, answer.code) == (412, "ConditionNotMet"), (method, unmet)
    plain = {"If-Match": '"0x1"', "If-None-Match": etag}
    assert (await blobs("GET", "/box/b?comp=tags", plain)).status == 200


# Tags in the headers of writes


@pytest.mark.parametrize("kind", ["BlockBlob", "AppendBlob", "PageBlob"])
async def test_put_blob_with_tags(blobs: Harness, kind: str) -> None:
    await blobs("PUT", "/box?restype=container")
    headers = {
        "x-ms-blob-type": kind,
        "x-ms-tags": "a+b=c%20d&%2B-.%2F:=%2B-.%2F%3A%3D_",
        "x-ms-blob-content-length": "512",
    }
    assert (await blobs("PUT", "/box/b", headers)).status == 201
    assert await get_tags(blobs) == [("+-./:", "+-./:=_"), ("a b", "c d")]


async def test_put_block_list_with_tags(blobs: Harness) -> None:
    await make(blobs, "old=1")
    await blobs("PUT", "/box/b?comp=block&blockid=YQ==", {}, b"block")
    body = b"<BlockList><Latest>YQ==</Latest></BlockList>"
    assert (await blobs("PUT", "/box/b?comp=blocklist", {"x-ms-tags": FORM}, body)).status == 201
    assert await get_tags(blobs) == BOTH
    assert (await blobs("PUT", "/box/b?comp=blocklist", {}, body)).status == 201
    assert await get_tags(blobs) == []


@pytest.mark.parametrize("form", ["a", "a=1&", "a=%FF"])
async def test_a_header_that_is_no_form(blobs: Harness, form: str) -> None:
    await make(blobs, "old=1")
    answer = await blobs("PUT", "/box/b", BLOCK | {"x-ms-tags": form}, b"")
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert await get_tags(blobs) == [("old", "1")]


# Copies


def source(blobs: Harness, permission: str = "r") -> str:
    return f"{URL}?{blob_token(blobs, 'source', permission=permission)}"


COPIES = {
    "Copy Blob": {},
    "Copy Blob From URL": {"x-ms-requires-sync": "true"},
    "Put Blob From URL": BLOCK,
    "Put Blob From URL with a hash": BLOCK
    | {"x-ms-source-content-md5": base64.b64encode(hashlib.md5(b"data").digest()).decode()},
}


@pytest.mark.parametrize("operation", COPIES)
async def test_a_copy_has_the_tags_of_the_request(blobs: Harness, operation: str) -> None:
    await make(blobs, FORM, "source")
    headers = COPIES[operation] | {"x-ms-copy-source": source(blobs)}
    assert (await blobs("PUT", "/box/b", headers)).status in (201, 202)
    assert await get_tags(blobs) == []
    headers |= {"x-ms-tags": "own=1", "x-ms-copy-source-tag-option": "REPLACE"}
    assert (await blobs("PUT", "/box/b", headers)).status in (201, 202)
    assert await get_tags(blobs) == [("own", "1")]
    assert await get_tags(blobs, "/box/source?comp=tags") == BOTH


@pytest.mark.parametrize("operation", list(COPIES)[1:])
async def test_a_synchronous_copy_can_take_the_tags_of_the_source(blobs: Harness, operation: str) -> None:
    await make(blobs, FORM, "source")
    headers = COPIES[operation] | {"x-ms-copy-source-tag-option": "copy"}
    answer = await blobs("PUT", "/box/b", headers | {"x-ms-copy-source": source(blobs)})
    assert (answer.status, answer.code) == (403, "CannotVerifyCopySource")
    headers |= {"x-ms-copy-source": source(blobs, "rt")}
    assert (await blobs("PUT", "/box/b", headers)).status in (201, 202)
    assert await get_tags(blobs) == BOTH
    answer = await blobs("PUT", "/box/b", headers | {"x-ms-tags": "own=1"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    answer = await blobs("PUT", "/box/b", headers | {"x-ms-copy-source-tag-option": "MERGE"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


async def test_an_asynchronous_copy_cannot(blobs: Harness) -> None:
    await make(blobs, FORM, "source")
    answer = await blobs("PUT", "/box/b", {"x-ms-copy-source": URL, "x-ms-copy-source-tag-option": "COPY"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert (await blobs("HEAD", "/box/b")).status == 404


@pytest.mark.parametrize("operation", COPIES)
async def test_conditions_on_the_tags_of_the_source(blobs: Harness, operation: str) -> None:
    await make(blobs, FORM, "source")
    headers = COPIES[operation] | {"x-ms-copy-source": source(blobs, "rt")}
    answer = await blobs("PUT", "/box/b", headers | {"x-ms-source-if-tags": "colour='blue' OR size<'1'"})
    assert answer.status == 412
    assert answer.code == ("ConditionNotMet" if operation == "Copy Blob" else "CannotVerifyCopySource")
    assert (await blobs("HEAD", "/box/b")).status == 404
    met = headers | {"x-ms-source-if-tags": "colour='red' AND size>='10'"}
    assert (await blobs("PUT", "/box/b", met)).status in (201, 202)
    answer = await blobs("PUT", "/box/b", met | {"x-ms-copy-source": source(blobs)})
    assert (answer.status, answer.code) == (403, "CannotVerifyCopySource")
    answer = await blobs("PUT", "/box/b", headers | {"x-ms-source-if-tags": "colour"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


async def test_a_range_of_a_source_that_has_other_tags_is_not_written(blobs: Harness) -> None:
    await make(blobs, FORM, "source")
    headers = {"x-ms-copy-source": source(blobs, "rt"), "x-ms-source-if-tags": "colour='blue'"}
    assert (await blobs("PUT", "/box/b?comp=block&blockid=YQ==", headers)).status == 412
    headers["x-ms-source-if-tags"] = "colour='red'"
    assert (await blobs("PUT", "/box/b?comp=block&blockid=YQ==", headers)).status == 201


# Conditions on tags

CONDITIONAL: list[tuple[str, str, dict[str, str], bytes]] = [
    ("GET", "/box/b", {}, b""),
    ("HEAD", "/box/b", {}, b""),
    ("GET", "/box/b?comp=metadata", {}, b""),
    ("GET", "/box/b?comp=blocklist", {}, b""),
    ("GET", "/box/b?comp=tags", {}, b""),
    ("PUT", "/box/b?comp=tags", {}, tags.encode(BOTH)),
    ("PUT", "/box/b?comp=metadata", {}, b""),
    ("PUT", "/box/b?comp=properties", {}, b""),
    ("PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Cool"}, b""),
    ("PUT", "/box/b?comp=snapshot", {}, b""),
    ("PUT", "/box/b?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}, b""),
    ("PUT", "/box/b?comp=lease", {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}, b""),
    ("PUT", "/box/b?comp=blocklist", {}, b"<BlockList />"),
    ("PUT", "/box/b", {"x-ms-copy-source": URL}, b""),
    ("PUT", "/box/b", BLOCK, b"new"),
    ("PUT", "/box/b", BLOCK | {"If-None-Match": '"0x1"'}, b"new"),
    ("DELETE", "/box/b", {"x-ms-delete-snapshots": "include", "If-None-Match": "*"}, b""),
    ("DELETE", "/box/b", {"x-ms-delete-snapshots": "include"}, b""),
]  # fmt: skip


@pytest.mark.parametrize(("method", "target", "headers", "body"), CONDITIONAL)
async def test_every_operation_with_conditions_has_that_on_tags(
    blobs: Harness, method: str, target: str, headers: dict[str, str], body: bytes
) -> None:
    await make(blobs, FORM, "source")
    await make(blobs, FORM)
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    if headers.get("x-ms-lease-action") == "break":
        await blobs("PUT", "/box/b?comp=lease", lease)
    for text, code in (("colour='blue'", "ConditionNotMet"), ("missing<>'1'", "ConditionNotMet")):
        answer = await blobs(method, target, headers | {"x-ms-if-tags": text}, body)
        assert (answer.status, answer.headers["x-ms-error-code"]) == (412, code)
    answer = await blobs(method, target, headers | {"x-ms-if-tags": "colour='red"}, body)
    assert (answer.status, answer.headers["x-ms-error-code"]) == (400, "InvalidHeaderValue")
    answer = await blobs(method, target, headers | {"x-ms-if-tags": "colour='red' AND size>'1'"}, body)
    assert answer.status < 300


@pytest.mark.parametrize(
    ("kind", "method", "target", "headers", "body"),
    [
        ("AppendBlob", "PUT", "/box/b?comp=appendblock", {}, b"x"),
        ("AppendBlob", "PUT", "/box/b?comp=seal", {}, b""),
        (
            "PageBlob",
            "PUT",
            "/box/b?comp=page",
            {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"},
            b"",
        ),
        ("PageBlob", "PUT", "/box/b?comp=properties", {"x-ms-blob-content-length": "1024"}, b""),
        ("PageBlob", "GET", "/box/b?comp=pagelist", {}, b""),
    ],
)
async def test_append_and_page_blobs_too(
    blobs: Harness, kind: str, method: str, target: str, headers: dict[str, str], body: bytes
) -> None:
    await blobs("PUT", "/box?restype=container")
    created = {"x-ms-blob-type": kind, "x-ms-blob-content-length": "512", "x-ms-tags": FORM}
    await blobs("PUT", "/box/b", created)
    answer = await blobs(method, target, headers | {"x-ms-if-tags": "colour='blue'"}, body)
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    answer = await blobs(method, target, headers | {"x-ms-if-tags": "colour='red'"}, body)
    assert answer.status < 300


async def test_a_blob_that_does_not_exist_meets_no_condition_on_tags(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    condition = {"x-ms-if-tags": "a<>'1'"}
    assert (await blobs("PUT", "/box/b", BLOCK | condition, b"")).code == "ConditionNotMet"
    assert (await blobs("PUT", "/box/b", BLOCK | condition | {"If-None-Match": "*"}, b"")).status == 412
    assert (await blobs("GET", "/box/b", condition)).code == "BlobNotFound"


async def test_an_unmet_condition_on_tags_is_stronger_than_not_modified(blobs: Harness) -> None:
    etag = (await make(blobs, FORM)).headers["etag"]
    both = {"If-None-Match": etag, "x-ms-if-tags": "colour='blue'"}
    assert (await blobs("GET", "/box/b", both)).status == 412
    assert (await blobs("GET", "/box/b", both | {"x-ms-if-tags": "colour='red'"})).status == 304


# Permissions


async def test_tags_need_their_own_permission(blobs: Harness) -> None:
    await make(blobs, FORM)

    async def sent(permission: str, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        sign = "&" if "?" in target else "?"
        token = blob_token(blobs, "b", permission=permission)
        return await blobs(method, f"{target}{sign}{token}", headers, body, sign=False)

    for without, allowed, request in (
        ("racwd", "t", ("GET", "/box/b?comp=tags", {}, b"")),
        ("racwd", "t", ("PUT", "/box/b?comp=tags", {}, document(BOTH))),
        ("cw", "wt", ("PUT", "/box/b", BLOCK | {"x-ms-tags": FORM}, b"")),
        ("t", "wt", ("PUT", "/box/b", BLOCK | {"x-ms-tags": FORM}, b"")),
        ("r", "rt", ("GET", "/box/b", {"x-ms-if-tags": "colour='red'"}, b"")),
        ("w", "wt", ("PUT", "/box/b?comp=metadata", {"x-ms-if-tags": "colour='red'"}, b"")),
        ("d", "dt", ("DELETE", "/box/b", {"x-ms-if-tags": "colour='red'"}, b"")),
    ):
        answer = await sent(without, *request)
        assert (answer.status, answer.code) == (403, "AuthorizationPermissionMismatch"), request
        assert (await sent(allowed, *request)).status < 300, request


async def test_public_access_does_not_extend_to_tags(blobs: Harness) -> None:
    await make(blobs, FORM)
    await blobs("PUT", "/box?restype=container&comp=acl", {"x-ms-blob-public-access": "container"})
    assert (await blobs("GET", "/box/b", sign=False)).status == 200
    assert (await blobs("GET", "/box/b", {"x-ms-if-tags": "colour='red'"}, sign=False)).status == 401
    assert (await blobs("GET", "/box/b?comp=tags", sign=False)).status == 401
    assert (await blobs("GET", "/box?restype=container&comp=list", sign=False)).status == 200
    assert (await blobs("GET", "/box?restype=container&comp=list&include=tags", sign=False)).status == 401


# Lists


async def test_lists(blobs: Harness) -> None:
    await make(blobs, FORM)
    await make(blobs, "", "plain")
    listed = (await blobs("GET", "/box?restype=container&comp=list")).body.decode()
    assert listed.count("<TagCount>2</TagCount></Properties>") == 1
    assert listed.count("TagCount") == 2
    assert "<Tags>" not in listed
    for more in ("", ",snapshots", ",metadata", ",uncommittedblobs,copy"):
        answer = await blobs("GET", f"/box?restype=container&comp=list&include=tags{more}")
        listed = answer.body.decode()
        assert listed.count(tags.element(BOTH)) == 1
        assert listed.count("<Tags>") == 1
    await set_tags(blobs, RED)
    listed = (await blobs("GET", "/box?restype=container&comp=list&include=tags")).body.decode()
    assert listed.count(tags.element(RED)) == 1
    assert "<TagCount>1</TagCount>" in listed
