"""Block blobs through the service: writing, reading, ranges, hashes, conditions, and what is refused."""

import base64
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import generate_blob_sas

from kyanite.values import later
from kyanite.wire import crc64
from tests.services.harness import Harness, md5_text
from tests.services.tokens import KEY, blob_token, in_an_hour

BLOCK = {"x-ms-blob-type": "BlockBlob"}
LEASE = "11111111-1111-1111-1111-111111111111"


@pytest.fixture
def box(blobs: Harness) -> Harness:
    return blobs


async def put(box: Harness, data: bytes = b"hello world", headers: dict[str, str] | None = None) -> str:
    await box("PUT", "/box?restype=container")
    answer = await box("PUT", "/box/b", BLOCK | (headers or {}), data)
    assert answer.status == 201, answer
    return answer.headers["etag"]


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 300_000, 5_000_000])
async def test_what_was_put_is_got(box: Harness, size: int) -> None:
    data = bytes(i * 31 % 251 for i in range(size))
    await put(box, data)
    whole = await box("GET", "/box/b")
    assert (whole.status, whole.body) == (200, data)
    assert whole.headers["content-md5"] == md5_text(data)
    head = await box("HEAD", "/box/b")
    assert head.headers["x-ms-blob-type"] == "BlockBlob"
    assert head.headers["content-type"] == "application/octet-stream"
    if size > 10:
        part = await box("GET", "/box/b", {"Range": f"bytes=5-{size - 3}"})
        assert (part.status, part.body) == (206, data[5 : size - 2])
        assert part.headers["content-range"] == f"bytes 5-{size - 3}/{size}"
        assert "content-md5" not in part.headers
        assert part.headers["x-ms-blob-content-md5"] == md5_text(data)


@pytest.mark.parametrize(
    ("range_header", "status", "body", "content_range"),
    [
        ("bytes=0-", 206, b"hello world", "bytes 0-10/11"),
        ("bytes=6-8", 206, b"wor", "bytes 6-8/11"),
        ("bytes=6-999", 206, b"world", "bytes 6-10/11"),
        ("bytes=11-12", 416, None, "bytes */11"),
        ("bytes=-5", 200, b"hello world", None),
        ("bytes=5-2", 200, b"hello world", None),
        ("bytes=0-1,3-4", 200, b"hello world", None),
        ("lines=1-2", 200, b"hello world", None),
    ],
)
async def test_ranges(
    box: Harness, range_header: str, status: int, body: bytes | None, content_range: str | None
) -> None:
    await put(box)
    answer = await box("GET", "/box/b", {"x-ms-range": range_header, "Range": "bytes=0-0"})
    assert (answer.status, answer.headers.get("content-range")) == (status, content_range)
    if body is not None:
        assert answer.body == body


async def test_the_headers_of_a_blob_that_is_read_repeatedly_are_those_of_now(box: Harness) -> None:
    """They are remembered, but a lease, tags, a range, a snapshot or a token make others of them."""
    etag = await put(box, headers={"x-ms-meta-Name": "value"})
    for method in ("GET", "HEAD", "GET", "GET"):
        whole = await box(method, "/box/b")
        assert (whole.status, whole.headers["etag"]) == (200, etag)
        assert (whole.headers["x-ms-lease-state"], whole.headers["x-ms-meta-name"]) == ("available", "value")
        assert whole.headers["content-md5"] == md5_text(b"hello world")
    names = [name.lower() for name, _ in whole.raw_headers]
    assert len(names) == len(set(names))
    for _ in range(3):
        part = await box("GET", "/box/b", {"Range": "bytes=0-3", "Origin": "http://example.org"})
        assert (part.status, part.headers["content-range"]) == (206, "bytes 0-3/11")
        assert part.headers["x-ms-blob-content-md5"] == md5_text(b"hello world")
        assert "content-md5" not in part.headers
    token = generate_blob_sas(
        "acme", "box", "b", account_key=KEY, permission="r", expiry=in_an_hour(box), content_type="text/own"
    )
    assert (await box("GET", f"/box/b?{token}", sign=False)).headers["content-type"] == "text/own"
    made = await box("PUT", "/box/b?comp=snapshot")
    snapshot = await box("GET", f"/box/b?snapshot={made.headers['x-ms-snapshot']}")
    assert "x-ms-lease-state" not in snapshot.headers
    await box("PUT", "/box/b?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"})
    for _ in range(3):
        leased = await box("GET", "/box/b")
        assert (leased.headers["etag"], leased.headers["x-ms-lease-state"]) == (etag, "leased")
    box.clock.now = later(box.clock.now, 16)
    assert (await box("GET", "/box/b")).headers["x-ms-lease-state"] == "expired"


async def test_any_range_of_an_empty_blob_is_beyond_its_end(box: Harness) -> None:
    await put(box, b"")
    answer = await box("GET", "/box/b", {"Range": "bytes=0-10"})
    assert (answer.status, answer.code, answer.headers["content-range"]) == (416, "InvalidRange", "bytes */0")


@pytest.mark.parametrize("size", [11, 400_000])
async def test_a_range_comes_with_the_requested_hash(box: Harness, size: int) -> None:
    data = bytes(i * 7 % 256 for i in range(size))
    await put(box, data)
    part = data[3:size]
    range_header = {"Range": f"bytes=3-{size - 1}"}
    md5 = await box("GET", "/box/b", range_header | {"x-ms-range-get-content-md5": "true"})
    assert (md5.body, md5.headers["content-md5"]) == (part, md5_text(part))
    crc = await box("GET", "/box/b", range_header | {"x-ms-range-get-content-crc64": "true"})
    assert crc.headers["x-ms-content-crc64"] == crc64.encode(crc64.compute(part))


async def test_hashes_are_checked_on_the_way_in(box: Harness) -> None:
    data = b"some bytes"
    good_crc = crc64.encode(crc64.compute(data))
    await put(box, data, {"Content-MD5": md5_text(data)})
    await put(box, data, {"x-ms-content-crc64": good_crc})
    for headers, code in (
        ({"Content-MD5": md5_text(b"other")}, "Md5Mismatch"),
        ({"Content-MD5": "short"}, "InvalidMd5"),
        ({"x-ms-content-crc64": crc64.encode(1)}, "Crc64Mismatch"),
        ({"x-ms-content-crc64": "AAAA"}, "InvalidHeaderValue"),
        ({"x-ms-content-crc64": good_crc, "Content-MD5": md5_text(data)}, "BothCrc64AndMd5HeaderPresent"),
    ):
        answer = await box("PUT", "/box/other", BLOCK | headers, data)
        assert (answer.status, answer.code) == (400, code)
        assert (await box("GET", "/box/other")).code == "BlobNotFound"


@pytest.mark.parametrize("size", [6_000_000])
async def test_a_body_that_is_refused_leaves_no_bytes_behind(box: Harness, tmp_path: Path, size: int) -> None:
    data = bytes(size)
    await put(box, data)
    again = await box("PUT", "/box/b", BLOCK | {"If-None-Match": "*"}, data)
    assert (again.status, again.code) == (409, "BlobAlreadyExists")
    wrong = await box("PUT", "/box/c", BLOCK | {"Content-MD5": md5_text(b"other")}, data)
    assert wrong.code == "Md5Mismatch"
    kept = sum(file.stat().st_blocks * 512 for file in tmp_path.glob("segments/*/*"))
    assert kept < size + 128 * 1024


async def test_content_headers_are_stored_and_cleared(box: Harness) -> None:
    given = {
        "x-ms-blob-content-type": "text/plain",
        "x-ms-blob-content-encoding": "gzip",
        "x-ms-blob-content-language": "de",
        "x-ms-blob-cache-control": "no-store",
        "x-ms-blob-content-disposition": "inline",
    }
    before = await put(box, headers=given)
    found = await box("HEAD", "/box/b")
    assert all(found.headers[name.removeprefix("x-ms-blob-")] == value for name, value in given.items())
    changed = await box("PUT", "/box/b?comp=properties", {"x-ms-blob-content-type": "image/png"})
    assert changed.headers["etag"] != before
    after = await box("HEAD", "/box/b")
    assert after.headers["content-type"] == "image/png"
    assert not {"content-encoding", "cache-control", "content-md5"} & set(after.headers)


async def test_metadata_keeps_its_case_and_is_replaced_whole(box: Harness) -> None:
    await put(box, headers={"x-ms-meta-Mood": "calm", "x-ms-meta-old": "1"})
    assert ("x-ms-meta-Mood", "calm") in (await box("GET", "/box/b")).raw_headers
    await box("PUT", "/box/b?comp=metadata", {"x-ms-meta-New": "2"})
    found = await box("GET", "/box/b?comp=metadata")
    assert [pair for pair in found.raw_headers if pair[0].startswith("x-ms-meta")] == [("x-ms-meta-New", "2")]
    assert found.body == b""


async def test_delete(box: Harness) -> None:
    await put(box)
    assert (await box("DELETE", "/box/b")).status == 202
    for method in ("GET", "HEAD", "DELETE"):
        answer = await box(method, "/box/b")
        assert (answer.status, answer.code) == (404, "BlobNotFound")


@pytest.mark.parametrize(
    ("method", "target", "headers", "status", "code"),
    [
        ("GET", "/box/b", {"If-None-Match": "CURRENT"}, 304, "ConditionNotMet"),
        ("GET", "/box/b", {"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ("GET", "/box/b", {"If-Match": "CURRENT"}, 200, ""),
        ("GET", "/box/b", {"If-None-Match": "*"}, 400, "UnsatisfiableCondition"),
        ("GET", "/box/b", {"If-Unmodified-Since": ""}, 200, ""),
        ("HEAD", "/box/b", {"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ("PUT", "/box/b", {"If-None-Match": "*"}, 409, "BlobAlreadyExists"),
        ("PUT", "/box/b", {"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ("PUT", "/box/b", {"If-Match": "CURRENT"}, 201, ""),
        ("PUT", "/box/new", {"If-Match": "*"}, 412, "ConditionNotMet"),
        ("PUT", "/box/new", {"If-None-Match": "*"}, 201, ""),
        (
            "PUT",
            "/box/b",
            {"If-Match": '"0x1"', "If-None-Match": '"0x1"'},
            400,
            "MultipleConditionHeadersNotSupported",
        ),
        ("PUT", "/box/b?comp=metadata", {"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ("PUT", "/box/b?comp=properties", {"If-None-Match": "CURRENT"}, 412, "ConditionNotMet"),
        ("DELETE", "/box/b", {"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ("PUT", "/box/b", {"x-ms-lease-id": LEASE}, 412, "LeaseNotPresentWithBlobOperation"),
        ("GET", "/box/b", {"x-ms-lease-id": LEASE}, 412, "LeaseNotPresentWithBlobOperation"),
    ],
)
async def test_conditions(
    box: Harness, method: str, target: str, headers: dict[str, str], status: int, code: str
) -> None:
    current = await put(box)
    sent = {name: current if value == "CURRENT" else value for name, value in headers.items()}
    answer = await box(method, target, (BLOCK if method == "PUT" else {}) | sent)
    assert (answer.status, answer.code) == (status, code)
    if status == 304:
        assert (answer.headers["etag"], answer.body) == (current, b"")


@pytest.mark.parametrize(
    ("method", "target", "headers", "status", "code"),
    [
        ("PUT", "/box/b", {"x-ms-blob-type": "(absent)"}, 400, "MissingRequiredHeader"),
        ("PUT", "/box/b", {"x-ms-blob-type": "Blob"}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/b", {"x-ms-access-tier": "Lukewarm"}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/b", {"x-ms-blob-content-md5": "x"}, 400, "InvalidMd5"),
        ("PUT", "/none/b", {}, 404, "ContainerNotFound"),
        ("PUT", "/box/" + "x" * 1025, {}, 400, "OutOfRangeInput"),
        ("PUT", "/box/a%00b", {}, 400, "InvalidResourceName"),
        ("PUT", "/box/" + "/".join("x" * 255), {}, 400, "InvalidResourceName"),
        ("PUT", "/box/b?comp=nonsense", {}, 400, "InvalidQueryParameterValue"),
        ("PATCH", "/box/b", {}, 405, "UnsupportedHttpVerb"),
        ("GET", "/box/b", {"x-ms-range-get-content-md5": "true"}, 400, "MissingRequiredHeader"),
        (
            "GET",
            "/box/b",
            {"Range": "bytes=0-", "x-ms-range-get-content-md5": "true"},
            400,
            "InvalidHeaderValue",
        ),
        (
            "GET",
            "/box/b",
            {"Range": "bytes=0-4194304", "x-ms-range-get-content-md5": "true"},
            400,
            "InvalidHeaderValue",
        ),
        ("GET", "/box/b", {"x-ms-range-get-content-md5": "maybe"}, 400, "InvalidHeaderValue"),
        ("GET", "/box/b", {"x-ms-lease-id": "zzz"}, 400, "InvalidHeaderValue"),
        ("GET", "/none/b", {}, 404, "ContainerNotFound"),
    ],
)
async def test_what_cannot_be_done_is_refused_and_stores_nothing(
    box: Harness, method: str, target: str, headers: dict[str, str], status: int, code: str
) -> None:
    before = await put(box)
    answer = await box(method, target, BLOCK | headers, b"body" if method == "PUT" else b"")
    assert (answer.status, answer.code) == (status, code)
    assert (await box("GET", "/box/b")).headers["etag"] == before


@pytest.mark.parametrize("name", ["a%zz", "%ff", "%e4"])
async def test_a_path_that_is_no_text_is_refused(box: Harness, name: str) -> None:
    answer = await box("PUT", f"/box/{name}", BLOCK, b"body", sign=False)
    assert (answer.status, answer.code) == (400, "InvalidUri")


async def test_put_blob_needs_a_length_within_the_limit_of_its_version(box: Harness) -> None:
    await put(box)
    chunked = await box("PUT", "/box/c", BLOCK, b"data", chunked=True)
    assert (chunked.status, chunked.code) == (411, "MissingContentLengthHeader")


async def test_etags_grow_even_when_the_clock_stands_still(box: Harness) -> None:
    first = await put(box)
    second = await put(box)
    assert int(second.strip('"'), 16) > int(first.strip('"'), 16)


async def test_overwriting_keeps_the_creation_time(box: Harness) -> None:
    await put(box)
    created = (await box("HEAD", "/box/b")).headers["x-ms-creation-time"]
    box.clock.now = type(box.clock.now)(box.clock.now + 50_000_000)
    await put(box)
    found = await box("HEAD", "/box/b")
    assert found.headers["x-ms-creation-time"] == created != found.headers["last-modified"]


async def test_a_blob_of_the_root_container_needs_no_container_in_its_path(box: Harness) -> None:
    assert (await box("PUT", "/$root?restype=container")).status == 201
    assert (await box("PUT", "/note.txt", BLOCK, b"root")).status == 201
    assert (await box("GET", "/note.txt")).body == b"root"
    assert (await box("GET", "/$root/note.txt")).body == b"root"


@pytest.mark.parametrize("size", [3, 16])
async def test_a_hash_that_is_only_stored_is_not_checked(box: Harness, size: int) -> None:
    await put(box)
    digest = base64.b64encode(bytes(range(size))).decode()
    returned = await box("PUT", "/box/b?comp=properties", {"x-ms-blob-content-md5": digest})
    assert returned.status == 200
    assert (await box("HEAD", "/box/b")).headers["content-md5"] == digest


@pytest.mark.parametrize("data", [b"hello", bytes(100_000), bytes(3_000_000)])
async def test_the_hash_of_a_blob_that_is_put_whole_must_be_right(box: Harness, data: bytes) -> None:
    await put(box)
    right, wrong = md5_text(data), md5_text(b"other")
    assert (await box("PUT", "/box/c", BLOCK | {"x-ms-blob-content-md5": right}, data)).status == 201
    kept = await box("HEAD", "/box/c")
    assert kept.headers["content-md5"] == right
    for headers in (
        {"x-ms-blob-content-md5": wrong},
        {"x-ms-blob-content-md5": wrong, "Content-MD5": right},
    ):
        answer = await box("PUT", "/box/c", BLOCK | headers, data)
        assert (answer.status, answer.code) == (400, "Md5Mismatch")
    assert (await box("HEAD", "/box/c")).headers["etag"] == kept.headers["etag"]
    # The hash of the blob takes precedence over that of the body.
    both = BLOCK | {"x-ms-blob-content-md5": right, "Content-MD5": wrong}
    assert (await box("PUT", "/box/c", both, data)).status == 201
    assert (await box("HEAD", "/box/c")).headers["content-md5"] == right


@pytest.mark.parametrize("text", ["short", "AAAA", "@@@@"])
async def test_a_malformed_hash_of_a_blob(box: Harness, text: str) -> None:
    await put(box)
    malformed = {"x-ms-blob-content-md5": text}
    answer = await box("PUT", "/box/b", BLOCK | malformed, b"data")
    assert (answer.status, answer.code) == (400, "InvalidMd5")
    if text != "AAAA":  # A hash that is only stored may have any length.
        answer = await box("PUT", "/box/b?comp=properties", malformed)
        assert (answer.status, answer.code) == (400, "InvalidMd5")


async def test_a_blob_is_deleted_if_none_matches(box: Harness) -> None:
    etag = await put(box)
    refused = await box("DELETE", "/box/b", {"If-None-Match": etag})
    assert (refused.status, refused.code) == (412, "ConditionNotMet")
    assert (await box("DELETE", "/box/b", {"If-None-Match": "*"})).status == 202
    assert (await box("DELETE", "/box/b", {"If-None-Match": "*"})).status == 404


@pytest.mark.parametrize(("text", "status"), [("30", 200), ("0", 200), ("-1", 400), ("soon", 400), ("", 400)])
async def test_a_time_limit_is_a_number_of_seconds(blobs: Harness, text: str, status: int) -> None:
    await blobs("PUT", "/box?restype=container")
    answer = await blobs("GET", f"/box?restype=container&timeout={text}")
    assert (answer.status, answer.code) == (status, "" if status == 200 else "InvalidQueryParameterValue")


@pytest.mark.parametrize("value", ["文.txt", "a\rb", "a\0b", "€"])
@pytest.mark.parametrize("option", ["cache_control", "content_disposition", "content_type"])
async def test_a_token_cannot_replace_a_header_with_what_no_header_can_have(
    box: Harness, option: str, value: str
) -> None:
    await put(box)
    override: dict[str, Any] = {option: value}
    token = generate_blob_sas(
        "acme", "box", "b", account_key=KEY, permission="r", expiry=in_an_hour(box), **override
    )
    answer = await box("GET", f"/box/b?{token}", sign=False)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


async def test_a_token_may_replace_a_header_with_any_character_of_latin_1(box: Harness) -> None:
    await put(box)
    token = generate_blob_sas(
        "acme", "box", "b", account_key=KEY, permission="r", expiry=in_an_hour(box), content_language="é\tè"
    )
    answer = await box("GET", f"/box/b?{token}", sign=False)
    assert (answer.status, answer.headers["content-language"]) == (200, "é\tè")


async def test_a_backslash_in_a_path_is_a_slash(box: Harness) -> None:
    await put(box)
    assert (await box("PUT", "/box/x%5Cy\\z", BLOCK, b"data")).status == 201
    assert (await box("GET", "/box/x/y/z")).body == b"data"
    listed = await box("GET", "/box?restype=container&comp=list&prefix=x")
    assert [name.text for name in listed.xml.iter("Name")] == ["x/y/z"]
    source = {"x-ms-copy-source": "http://localhost:10000/acme/box/x%5Cy%5Cz"}
    assert (await box("PUT", "/box/a%5Cb", source)).status == 202
    assert (await box("GET", "/box/a/b")).body == b"data"
    signed = blob_token(box, "a/b")
    assert (await box("GET", f"/box/a%5Cb?{signed}", sign=False)).body == b"data"
    await box("PUT", "/$root?restype=container")
    assert (await box("PUT", "/$root/a%5Cb", BLOCK, b"data")).code == "InvalidResourceName"
