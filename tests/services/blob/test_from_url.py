"""Blobs, blocks, appends and pages whose bytes come from elsewhere on this server instead of from the request."""

import base64
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    BlobSasPermissions,
    ResourceTypes,
    Services,
    generate_account_sas,
    generate_blob_sas,
)

from kyanite.services.blob.service import blob_service
from kyanite.services.files.service import file_service
from kyanite.wire import crc64
from tests.services.harness import ACCOUNT, OTHER, Answer, Harness, md5_text

BLOCK = {"x-ms-blob-type": "BlockBlob"}
HERE = "http://localhost:10000"
KEY = base64.b64encode(ACCOUNT.keys[0]).decode()
MIB = 1024 * 1024


def later(blobs: Harness) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=blobs.clock.now // 10, hours=1)


def signed(
    blobs: Harness, name: str = "src", *, snapshot: str | None = None, permission: str = "r"
) -> dict[str, str]:
    """The header that names a blob of the box as the source, with a signature that opens it."""
    token = generate_blob_sas(
        "acme",
        "box",
        name,
        snapshot=snapshot,
        account_key=KEY,
        permission=BlobSasPermissions.from_string(permission),
        expiry=later(blobs),
    )
    moment = f"snapshot={quote(snapshot)}&" if snapshot else ""
    return {"x-ms-copy-source": f"{HERE}/acme/box/{name}?{moment}{token}"}


async def make(blobs: Harness, data: bytes = b"0123456789") -> str:
    """A source; its ETag is returned."""
    await blobs("PUT", "/box?restype=container")
    described = {"x-ms-meta-a": "1", "x-ms-blob-content-type": "text/plain", "x-ms-blob-cache-control": "c"}
    return (await blobs("PUT", "/box/src", BLOCK | described, data)).headers["etag"]


def some_bytes(length: int) -> bytes:
    return random.Random(length).randbytes(length)


SIZES = [0, 10, 200_000, 3 * MIB]
"""Nothing, inline, packed, streamed."""


# Put Blob From URL


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("is_checked", [False, True])
async def test_a_blob_is_put_with_the_bytes_of_another(blobs: Harness, size: int, is_checked: bool) -> None:
    data = some_bytes(size)
    await make(blobs, data)
    checked = {"x-ms-source-content-md5": md5_text(data)} if is_checked else {}
    answer = await blobs("PUT", "/box/dst", BLOCK | signed(blobs) | checked)
    assert (answer.status, answer.headers.get("content-md5", "")) == (201, md5_text(data) * is_checked)
    await blobs("DELETE", "/box/src")
    got = await blobs("GET", "/box/dst")
    assert (got.body, got.headers["etag"]) == (data, answer.headers["etag"])
    assert (got.headers["content-type"], got.headers["x-ms-meta-a"]) == ("text/plain", "1")
    assert "x-ms-copy-id" not in got.headers


@pytest.mark.parametrize("is_checked", [False, True])
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, ("text/plain", "c", "1", None)),
        ({"x-ms-blob-content-type": "own"}, ("own", "c", "1", None)),
        ({"x-ms-copy-source-blob-properties": "false"}, ("application/octet-stream", None, "1", None)),
        ({"x-ms-meta-b": "2"}, ("text/plain", "c", None, "2")),
    ],
)
async def test_what_a_request_leaves_open_its_source_decides(
    blobs: Harness,
    headers: dict[str, str],
    expected: tuple[str | None, ...],
    is_checked: bool,
) -> None:
    await make(blobs, b"data")
    checked = {"x-ms-source-content-md5": md5_text(b"data")} if is_checked else {}
    await blobs("PUT", "/box/dst", BLOCK | signed(blobs) | headers | checked)
    names = ("content-type", "cache-control", "x-ms-meta-a", "x-ms-meta-b")
    got = (await blobs("HEAD", "/box/dst")).headers
    assert tuple(got.get(name) for name in names) == expected


@pytest.mark.parametrize("size", SIZES)
async def test_a_blob_may_be_its_own_source(blobs: Harness, size: int) -> None:
    data = some_bytes(size)
    await make(blobs, data)
    for _ in range(2):
        own = BLOCK | signed(blobs) | {"x-ms-meta-b": "2"}
        assert (await blobs("PUT", "/box/src", own)).status == 201
        got = await blobs("GET", "/box/src")
        assert (got.body, got.headers["x-ms-meta-b"]) == (data, "2")


async def test_whatever_was_there_becomes_a_block_blob(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box/dst", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"})
    answer = await blobs("PUT", "/box/dst", BLOCK | signed(blobs) | {"x-ms-access-tier": "Cool"})
    assert answer.status == 201
    got = await blobs("HEAD", "/box/dst")
    assert got.headers["x-ms-blob-type"] == "BlockBlob"
    assert got.headers["x-ms-access-tier"] == "Cool"
    assert (await blobs("GET", "/box/dst")).body == b"0123456789"


@pytest.mark.parametrize("kind", ["AppendBlob", "PageBlob"])
async def test_a_blob_of_any_kind_may_be_the_source(blobs: Harness, kind: str) -> None:
    await make(blobs)
    await blobs("PUT", "/box/src", {"x-ms-blob-type": kind, "x-ms-blob-content-length": "1024"})
    data = b"x" * 512
    if kind == "AppendBlob":
        await blobs("PUT", "/box/src?comp=appendblock", {}, data)
    else:
        pages = {"x-ms-page-write": "update", "x-ms-range": "bytes=512-1023"}
        await blobs("PUT", "/box/src?comp=page", pages, data)
    before = (await blobs("GET", "/box/src")).body
    assert (await blobs("PUT", "/box/dst", BLOCK | signed(blobs))).status == 201
    got = await blobs("GET", "/box/dst")
    assert (got.body, got.headers["x-ms-blob-type"]) == (before, "BlockBlob")
    assert (await blobs("GET", "/box/dst?comp=blocklist")).status == 200


async def test_a_source_that_is_too_long_is_not_copied(blobs: Harness) -> None:
    await make(blobs)
    size = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(5001 * MIB)}
    await blobs("PUT", "/box/src", size)
    for checked in ({}, {"x-ms-source-content-md5": md5_text(b"")}):
        answer = await blobs("PUT", "/box/dst", BLOCK | signed(blobs) | checked)
        assert (answer.status, answer.code) == (409, "CannotVerifyCopySource")
    answer = await blobs("PUT", "/box/dst", {"x-ms-requires-sync": "true"} | signed(blobs))
    assert (answer.status, answer.code) == (409, "CannotVerifyCopySource")


# Put Block, Append Block and Put Page From URL


def block_id(name: str) -> str:
    return quote(base64.b64encode(name.encode()).decode())


async def stage(blobs: Harness, name: str, headers: dict[str, str]) -> Answer:
    return await blobs("PUT", f"/box/dst?comp=block&blockid={block_id(name)}", headers)


@pytest.mark.parametrize("size", SIZES[1:])
async def test_blocks_are_ranges_of_a_source(blobs: Harness, size: int) -> None:
    data = some_bytes(size)
    await make(blobs, data)
    middle = size // 3
    parts = {"a": f"bytes=0-{middle - 1}", "b": f"bytes={middle}-", "c": "bytes=1-1"}
    for name, part in parts.items():
        assert (await stage(blobs, name, signed(blobs) | {"x-ms-source-range": part})).status == 201
    names = "".join(f"<Latest>{base64.b64encode(name.encode()).decode()}</Latest>" for name in "abc")
    listed = await blobs("PUT", "/box/dst?comp=blocklist", {}, f"<BlockList>{names}</BlockList>".encode())
    assert listed.status == 201
    assert (await blobs("GET", "/box/dst")).body == data + data[1:2]


async def test_the_hash_of_what_was_read_is_returned(blobs: Harness) -> None:
    await make(blobs)
    ranged = signed(blobs) | {"x-ms-source-range": "bytes=2-4"}
    plain = await stage(blobs, "a", ranged)
    assert plain.headers["x-ms-content-crc64"] == crc64.encode(crc64.compute(b"234"))
    hashed = await stage(blobs, "a", ranged | {"x-ms-source-content-md5": md5_text(b"234")})
    assert (hashed.status, hashed.headers["content-md5"]) == (201, md5_text(b"234"))
    assert hashed.headers["x-ms-content-crc64"] == plain.headers["x-ms-content-crc64"]


@pytest.mark.parametrize("size", SIZES[1:])
async def test_appended_blocks_are_ranges_of_a_source(blobs: Harness, size: int) -> None:
    data = some_bytes(size)
    await make(blobs, data)
    await blobs("PUT", "/box/dst", {"x-ms-blob-type": "AppendBlob"})
    whole = await blobs("PUT", "/box/dst?comp=appendblock", signed(blobs))
    assert (whole.status, whole.headers["x-ms-blob-append-offset"]) == (201, "0")
    tail = signed(blobs) | {"x-ms-source-range": f"bytes={size - 3}-"}
    late = await blobs("PUT", "/box/dst?comp=appendblock", tail | {"x-ms-blob-condition-appendpos": "1"})
    assert (late.status, late.code) == (412, "AppendPositionConditionNotMet")
    answer = await blobs("PUT", "/box/dst?comp=appendblock", tail)
    assert answer.headers["x-ms-blob-append-offset"] == str(size)
    assert answer.headers["x-ms-blob-committed-block-count"] == "2"
    got = await blobs("GET", "/box/dst")
    assert (got.body, got.headers["etag"]) == (data + data[-3:], answer.headers["etag"])


async def put_page(blobs: Harness, target: str, source: str, **more: str) -> Answer:
    sent = {"x-ms-page-write": "update", "x-ms-range": target, "x-ms-source-range": source}
    return await blobs("PUT", "/box/dst?comp=page", signed(blobs) | sent | more)


async def test_pages_are_ranges_of_a_source(blobs: Harness) -> None:
    data = some_bytes(100_000)
    await make(blobs, data)
    empty = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(8 * MIB)}
    await blobs("PUT", "/box/dst", empty)
    assert (await put_page(blobs, "bytes=512-1023", "bytes=7-518")).status == 201
    answer = await put_page(blobs, "bytes=65536-131071", "bytes=0-65535")
    assert (answer.status, answer.headers["x-ms-blob-sequence-number"]) == (201, "0")
    got = (await blobs("GET", "/box/dst", {"x-ms-range": "bytes=0-131071"})).body
    assert got == bytes(512) + data[7:519] + bytes(65536 - 1024) + data[:65536]
    for target, source, status, code in (
        ("bytes=0-511", "bytes=0-1023", 400, "InvalidHeaderValue"),
        ("bytes=0-511", "(absent)", 400, "MissingRequiredHeader"),
        ("bytes=0-510", "bytes=0-510", 416, "InvalidPageRange"),
        ("bytes=0-511", "bytes=99900-100411", 416, "InvalidPageRange"),
        ("bytes=0-4194815", "bytes=0-4194815", 413, "RequestBodyTooLarge"),
    ):
        refused = await put_page(blobs, target, source)
        assert (refused.status, refused.code) == (status, code)
    late = await put_page(blobs, "bytes=0-511", "bytes=0-511", **{"x-ms-if-sequence-number-lt": "0"})
    assert (late.status, late.code) == (412, "SequenceNumberConditionNotMet")


TARGETS: dict[str, tuple[str, dict[str, str]]] = {
    "blob": ("/box/dst", BLOCK),
    "block": (f"/box/dst?comp=block&blockid={block_id('a')}", {}),
    "append": ("/box/log?comp=appendblock", {}),
    "page": (
        "/box/disk?comp=page",
        {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"},
    ),
}


async def make_targets(blobs: Harness) -> str:
    etag = await make(blobs, b"x" * 600)
    await blobs("PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
    await blobs("PUT", "/box/disk", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"})
    return etag


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 201, ""),
        ({"x-ms-source-if-match": "ETAG"}, 201, ""),
        ({"x-ms-source-if-match": '"0x1"'}, 412, "CannotVerifyCopySource"),
        ({"x-ms-source-if-none-match": "ETAG"}, 304, "CannotVerifyCopySource"),
        ({"x-ms-source-if-unmodified-since": "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "CannotVerifyCopySource"),
        ({"x-ms-source-content-md5": md5_text(b"else")}, 400, "Md5Mismatch"),
        ({"x-ms-source-content-crc64": crc64.encode(1)}, 400, "Crc64Mismatch"),
        (
            {"x-ms-source-content-crc64": crc64.encode(1), "x-ms-source-content-md5": md5_text(b"")},
            400,
            "BothCrc64AndMd5HeaderPresent",
        ),
        ({"x-ms-source-content-md5": "???"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source": f"{HERE}/acme/box/src"}, 401, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "http://elsewhere.example/box/src"}, 404, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "nonsense"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source": "http://[half/box/src"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source": f"{HERE}/acme/box/src%zz"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source": f"{HERE}/acme/box/src?sig=%zz"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source": f"{HERE}/acme/box/src?{'x' * 2048}"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source": f"{HERE}/acme/box?restype=container"}, 400, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "SIGNED FOR none"}, 404, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "SIGNED TO WRITE"}, 403, "CannotVerifyCopySource"),
        ({"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ({"x-ms-lease-id": "11111111-1111-4111-8111-111111111111"}, 412, "LeaseNotPresentWithBlobOperation"),
    ],
)
async def test_what_is_demanded_of_both_sides(
    blobs: Harness, target: str, headers: dict[str, str], status: int, code: str
) -> None:
    if target == "block" and "If-Match" in headers:
        status, code = 201, ""  # A staged block is not the blob, so there is nothing to match.
    etag = await make_targets(blobs)
    stand_ins = {
        "ETAG": etag,
        "SIGNED FOR none": signed(blobs, "none")["x-ms-copy-source"],
        "SIGNED TO WRITE": signed(blobs, permission="w")["x-ms-copy-source"],
    }
    headers = {name: stand_ins.get(value, value) for name, value in headers.items()}
    path, own = TARGETS[target]
    answer = await blobs("PUT", path, own | signed(blobs) | headers)
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize("target", TARGETS)
async def test_a_request_that_names_a_source_has_no_body(blobs: Harness, target: str) -> None:
    await make_targets(blobs)
    path, own = TARGETS[target]
    answer = await blobs("PUT", path, own | signed(blobs), b"body")
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("target", ["block", "append"])
@pytest.mark.parametrize(
    ("part", "status", "code"),
    [
        ("bytes=600-", 416, "CannotVerifyCopySource"),
        ("bytes=-5", 400, "InvalidHeaderValue"),
        ("bytes=5-1", 400, "InvalidHeaderValue"),
        ("bytes=590-10000", 201, ""),
    ],
)
async def test_a_range_must_be_of_the_source(
    blobs: Harness, target: str, part: str, status: int, code: str
) -> None:
    await make_targets(blobs)
    path, own = TARGETS[target]
    answer = await blobs("PUT", path, own | signed(blobs) | {"x-ms-source-range": part})
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize(
    ("target", "version", "size", "status"),
    [
        ("append", "2021-12-02", 5 * MIB, 409),
        ("append", "2022-11-02", 5 * MIB, 201),
        ("block", "2015-02-21", 5 * MIB, 409),
        ("block", "2016-05-31", 5 * MIB, 201),
    ],
)
async def test_a_range_is_no_longer_than_a_body_may_be(
    blobs: Harness, target: str, version: str, size: int, status: int
) -> None:
    await make_targets(blobs)
    await blobs("PUT", "/box/src", BLOCK, bytes(size))
    path, own = TARGETS[target]
    answer = await blobs("PUT", path, own | signed(blobs) | {"x-ms-version": version})
    assert (answer.status, answer.code) == (status, "" if status == 201 else "CannotVerifyCopySource")


@pytest.mark.parametrize("target", ["block", "append"])
async def test_nothing_cannot_be_a_block(blobs: Harness, target: str) -> None:
    await make_targets(blobs)
    await blobs("PUT", "/box/src", BLOCK, b"")
    path, own = TARGETS[target]
    assert (await blobs("PUT", path, own | signed(blobs))).code == "InvalidInput"


async def test_a_leased_target_is_written_with_its_lease_id(blobs: Harness) -> None:
    await make_targets(blobs)
    await blobs("PUT", "/box/dst", BLOCK, b"old")
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    lease_id = (await blobs("PUT", "/box/dst?comp=lease", lease)).headers["x-ms-lease-id"]
    for target in ("block", "blob"):
        path, own = TARGETS[target]
        assert (await blobs("PUT", path, own | signed(blobs))).code == "LeaseIdMissing"
        with_lease = own | signed(blobs) | {"x-ms-lease-id": lease_id}
        assert (await blobs("PUT", path, with_lease)).status == 201


async def test_a_snapshot_may_be_the_source(blobs: Harness) -> None:
    await make(blobs, b"before")
    at = (await blobs("PUT", "/box/src?comp=snapshot")).headers["x-ms-snapshot"]
    await blobs("PUT", "/box/src", BLOCK, b"afterwards")
    source = signed(blobs, snapshot=at)
    await blobs("PUT", "/box/dst", BLOCK | source)
    assert (await blobs("GET", "/box/dst")).body == b"before"
    await blobs("PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
    await blobs("PUT", "/box/log?comp=appendblock", source)
    assert (await blobs("GET", "/box/log")).body == b"before"


async def test_a_blob_of_another_account_may_be_the_source(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box?restype=container", account=OTHER)
    assert (await blobs("PUT", "/box/dst", BLOCK | signed(blobs), account=OTHER)).status == 201
    await blobs("PUT", "/box?restype=container&comp=acl", {"x-ms-blob-public-access": "blob"})
    public = {"x-ms-copy-source": f"{HERE}/acme/box/src"}
    assert (await blobs("PUT", "/box/dst", BLOCK | public, account=OTHER)).status == 201


# Files as sources


@pytest.fixture
def both(tmp_path: Path) -> tuple[Harness, Harness]:
    """Blobs and files of one store."""
    blobs = Harness(tmp_path)
    blobs.environment = replace(blobs.environment, services_by_port={10000: "blob", 10003: "file"})
    blobs.service = blob_service(blobs.environment)
    return blobs, blobs.beside(file_service, "file")


async def make_file(blobs: Harness, files: Harness, data: bytes) -> None:
    await blobs("PUT", "/box?restype=container")
    await files("PUT", "/docs?restype=share")
    described = {"x-ms-type": "file", "x-ms-content-length": str(len(data)), "x-ms-meta-a": "1"}
    made = await files("PUT", "/docs/letter", described | {"x-ms-content-type": "text/plain"})
    assert made.status == 201, made
    if data:
        written = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(data) - 1}"}
        assert (await files("PUT", "/docs/letter?comp=range", written, data)).status == 201


def file_url(blobs: Harness, endpoint: str = "http://localhost:10003/acme", name: str = "letter") -> str:
    token = generate_account_sas(
        "acme",
        KEY,
        ResourceTypes(object=True),
        AccountSasPermissions(read=True),
        later(blobs),
        services=Services(fileshare=True),
    )
    return f"{endpoint}/docs/{name}?{token}"


@pytest.mark.parametrize("endpoint", ["http://localhost:10003/acme", "http://acme.file.localhost:10003"])
async def test_a_file_may_be_the_source(both: tuple[Harness, Harness], endpoint: str) -> None:
    blobs, files = both
    data = some_bytes(100_000)
    await make_file(blobs, files, data)
    source = {"x-ms-copy-source": file_url(blobs, endpoint)}
    assert (await blobs("PUT", "/box/put", BLOCK | source)).status == 201
    assert (await blobs("PUT", "/box/copied", source)).status == 202
    for name in ("put", "copied"):
        got = await blobs("GET", f"/box/{name}")
        assert (got.body, got.headers["x-ms-meta-a"]) == (data, "1")
        assert (got.headers["content-type"], got.headers["x-ms-blob-type"]) == ("text/plain", "BlockBlob")
    await blobs("PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
    appended = await blobs("PUT", "/box/log?comp=appendblock", source | {"x-ms-source-range": "bytes=7-8"})
    assert appended.status == 201
    assert (await blobs("GET", "/box/log")).body == data[7:9]


async def test_a_file_needs_a_signature_of_its_own(both: tuple[Harness, Harness]) -> None:
    blobs, files = both
    await make_file(blobs, files, b"data")
    for url, status in (
        ("http://localhost:10003/acme/docs/letter", 401),
        (file_url(blobs, name="none"), 404),
        (file_url(blobs, name="none/below"), 404),
        (file_url(blobs, name="bad%3Aname"), 404),
    ):
        for kind in ({}, BLOCK):
            answer = await blobs("PUT", "/box/dst", kind | {"x-ms-copy-source": url})
            assert (answer.status, answer.code) == (status, "CannotVerifyCopySource"), (url, answer)


# Copy Blob From URL

SYNCHRONOUS = {"x-ms-requires-sync": "true"}


@pytest.mark.parametrize("size", SIZES)
async def test_a_copy_returns_the_hash_that_its_source_must_have(blobs: Harness, size: int) -> None:
    data = some_bytes(size)
    await make(blobs, data)
    plain = await blobs("PUT", "/box/plain", SYNCHRONOUS | signed(blobs))
    assert plain.status == 202
    assert not {"content-md5", "x-ms-content-crc64"} & set(plain.headers)
    for name, value, returned in (
        ("x-ms-source-content-md5", md5_text(data), "content-md5"),
        ("x-ms-source-content-crc64", crc64.encode(crc64.compute(data)), "x-ms-content-crc64"),
    ):
        answer = await blobs("PUT", "/box/dst", SYNCHRONOUS | signed(blobs) | {name: value})
        assert (answer.status, answer.headers[returned]) == (202, value)
    got = await blobs("GET", "/box/dst")
    assert (got.body, got.headers["x-ms-copy-status"]) == (data, "success")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"x-ms-source-content-md5": md5_text(b"else")}, 400, "Md5Mismatch"),
        ({"x-ms-source-content-crc64": crc64.encode(1)}, 400, "Crc64Mismatch"),
        (
            {"x-ms-source-content-md5": md5_text(b"0123456789"), "x-ms-source-if-match": "x"},
            412,
            "CannotVerifyCopySource",
        ),
        (
            {"x-ms-source-content-md5": md5_text(b"0123456789"), "If-None-Match": "*"},
            409,
            "BlobAlreadyExists",
        ),
    ],
)
async def test_a_copy_whose_source_has_another_hash(
    blobs: Harness, headers: dict[str, str], status: int, code: str
) -> None:
    await make(blobs)
    await blobs("PUT", "/box/dst", BLOCK, b"before")
    answer = await blobs("PUT", "/box/dst", SYNCHRONOUS | signed(blobs) | headers)
    assert (answer.status, answer.code) == (status, code)
    assert (await blobs("GET", "/box/dst")).body == b"before"
