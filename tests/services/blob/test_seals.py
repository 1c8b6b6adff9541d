"""Append Blob Seal: nothing more is appended, and copies take the seal along or not."""

import pytest

from tests.services.harness import Answer, Harness

APPEND = {"x-ms-blob-type": "AppendBlob"}
BLOCK = {"x-ms-blob-type": "BlockBlob"}
LEASE = "11111111-1111-4111-8111-111111111111"
SOURCE = {"x-ms-copy-source": "http://localhost:10000/acme/box/log"}


async def make(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/log", APPEND)
    assert (await append(blobs)).status == 201


async def append(blobs: Harness, name: str = "log") -> Answer:
    return await blobs("PUT", f"/box/{name}?comp=appendblock", {}, b"12345")


async def seal(blobs: Harness, headers: dict[str, str] | None = None) -> Answer:
    return await blobs("PUT", "/box/log?comp=seal", headers)


async def is_sealed(blobs: Harness, name: str = "log") -> bool:
    """What properties, bytes and listing say alike."""
    values = {
        (await blobs(method, f"/box/{name}")).headers.get("x-ms-blob-sealed") for method in ("HEAD", "GET")
    }
    listing = (await blobs("GET", f"/box?restype=container&comp=list&prefix={name}")).body
    assert values == ({"true"} if b"<Sealed>true</Sealed>" in listing else {None})
    return values == {"true"}


async def test_nothing_is_appended_to_a_sealed_blob(blobs: Harness) -> None:
    await make(blobs)
    before = await blobs("HEAD", "/box/log")
    assert not await is_sealed(blobs)
    answer = await seal(blobs)
    assert (answer.status, answer.headers["x-ms-blob-sealed"]) == (200, "true")
    assert answer.headers["etag"] != before.headers["etag"]
    refused = await append(blobs)
    assert (refused.status, refused.code) == (409, "BlobIsSealed")
    assert await is_sealed(blobs)
    assert (await blobs("GET", "/box/log")).body == b"12345"
    assert (await seal(blobs)).headers["etag"] == answer.headers["etag"]


async def test_what_is_said_about_a_sealed_blob_can_change(blobs: Harness) -> None:
    await make(blobs)
    await seal(blobs)
    assert (await blobs("PUT", "/box/log?comp=metadata", {"x-ms-meta-a": "1"})).status == 200
    assert (
        await blobs("PUT", "/box/log?comp=properties", {"x-ms-blob-content-type": "text/plain"})
    ).status == 200
    assert await is_sealed(blobs)
    assert (await blobs("PUT", "/box/log?comp=snapshot")).status == 201
    assert (await blobs("PUT", "/box/log", APPEND)).status == 201
    assert not await is_sealed(blobs)
    assert (await append(blobs)).status == 201


@pytest.mark.parametrize(
    ("was_sealed", "headers", "becomes_sealed"),
    [
        (True, {}, True),
        (False, {}, False),
        (False, {"x-ms-seal-blob": "true"}, True),
        (True, {"x-ms-seal-blob": "false"}, False),
    ],
)
async def test_a_copy_keeps_the_seal_unless_the_request_says_otherwise(
    blobs: Harness, was_sealed: bool, headers: dict[str, str], becomes_sealed: bool
) -> None:
    await make(blobs)
    if was_sealed:
        await seal(blobs)
    assert (await blobs("PUT", "/box/copy", SOURCE | headers)).status == 202
    assert await is_sealed(blobs, "copy") == becomes_sealed
    assert (await append(blobs, "copy")).status == (409 if becomes_sealed else 201)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"x-ms-blob-condition-appendpos": "4"}, 412, "AppendPositionConditionNotMet"),
        ({"x-ms-blob-condition-appendpos": "5"}, 200, ""),
        ({"x-ms-blob-condition-appendpos": "x"}, 400, "InvalidHeaderValue"),
        ({"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ({"If-None-Match": '"0x1"'}, 200, ""),
        ({"x-ms-lease-id": LEASE}, 412, "LeaseNotPresentWithBlobOperation"),
    ],
)
async def test_a_seal_takes_conditions(
    blobs: Harness, headers: dict[str, str], status: int, code: str
) -> None:
    await make(blobs)
    answer = await seal(blobs, headers)
    assert (answer.status, answer.code) == (status, code)
    assert await is_sealed(blobs) == (status == 200)


async def test_a_leased_blob_is_sealed_with_its_lease_id(blobs: Harness) -> None:
    await make(blobs)
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE}
    await blobs("PUT", "/box/log?comp=lease", acquire)
    assert (await seal(blobs)).code == "LeaseIdMissing"
    assert (await seal(blobs, {"x-ms-lease-id": LEASE})).status == 200


async def test_only_append_blobs_are_sealed(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box/b", BLOCK, b"data")
    assert (await blobs("PUT", "/box/b?comp=seal")).code == "InvalidBlobType"
    assert (await blobs("PUT", "/box/none?comp=seal")).code == "BlobNotFound"
    source = {"x-ms-copy-source": "http://localhost:10000/acme/box/b", "x-ms-seal-blob": "true"}
    assert (await blobs("PUT", "/box/copy", source)).code == "InvalidBlobType"
    assert (await blobs("PUT", "/box/copy", source | {"x-ms-seal-blob": "no"})).code == "InvalidHeaderValue"
    assert (await blobs("HEAD", "/box/copy")).status == 404
