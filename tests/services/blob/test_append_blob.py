"""Append blobs: order, offsets, conditions, and downloads of very many blocks."""

import pytest

from tests.services.harness import Answer, Harness

APPEND = {"x-ms-blob-type": "AppendBlob"}


async def make(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    assert (await blobs("PUT", "/box/log", APPEND)).status == 201


async def append(blobs: Harness, data: bytes, headers: dict[str, str] | None = None) -> Answer:
    return await blobs("PUT", "/box/log?comp=appendblock", headers, data)


async def test_blocks_go_one_after_the_other(blobs: Harness) -> None:
    await make(blobs)
    written, etags = b"", set()
    for number, size in enumerate((5, 20_000, 1, 70_000)):
        data = bytes([65 + number]) * size
        answer = await append(blobs, data)
        assert answer.status == 201
        assert answer.headers["x-ms-blob-append-offset"] == str(len(written))
        assert answer.headers["x-ms-blob-committed-block-count"] == str(number + 1)
        etags.add(answer.headers["etag"])
        written += data
    assert len(etags) == 4
    got = await blobs("GET", "/box/log")
    assert (got.body, got.headers["x-ms-blob-committed-block-count"]) == (written, "4")
    assert got.headers["x-ms-blob-type"] == "AppendBlob"


async def test_thousands_of_blocks_are_read_whole_while_more_are_appended(blobs: Harness) -> None:
    await make(blobs)
    for number in range(4500):
        await append(blobs, b"%05d" % number)
    whole = await blobs("GET", "/box/log")
    assert whole.body == b"".join(b"%05d" % number for number in range(4500))
    part = await blobs("GET", "/box/log", {"Range": "bytes=10000-10009"})
    assert part.body == b"0200002001"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-ms-blob-condition-appendpos": "5"}, ""),
        ({"x-ms-blob-condition-appendpos": "4"}, "AppendPositionConditionNotMet"),
        ({"x-ms-blob-condition-maxsize": "8"}, ""),
        ({"x-ms-blob-condition-maxsize": "7"}, "MaxBlobSizeConditionNotMet"),
        ({"x-ms-blob-condition-appendpos": "-1"}, "InvalidHeaderValue"),
        ({"If-Match": '"0x1"'}, "ConditionNotMet"),
        ({"x-ms-lease-id": "1" * 32}, "LeaseNotPresentWithBlobOperation"),
    ],
)
async def test_conditions_of_an_append(blobs: Harness, headers: dict[str, str], code: str) -> None:
    await make(blobs)
    await append(blobs, b"12345")
    answer = await append(blobs, b"678", headers)
    assert answer.code == code
    assert (await blobs("GET", "/box/log")).body == (b"12345678" if not code else b"12345")


async def test_what_is_no_append_blob_takes_no_blocks(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box/log", {"x-ms-blob-type": "BlockBlob"}, b"x")
    assert (await append(blobs, b"y")).code == "InvalidBlobType"
    assert (await blobs("PUT", "/box/none?comp=appendblock", {}, b"y")).code == "BlobNotFound"
    assert (await append(blobs, b"")).code == "InvalidHeaderValue"
    assert (await blobs("PUT", "/box/log", APPEND, b"body")).code == "InvalidHeaderValue"


async def test_a_snapshot_does_not_grow(blobs: Harness) -> None:
    await make(blobs)
    await append(blobs, b"before")
    at = (await blobs("PUT", "/box/log?comp=snapshot")).headers["x-ms-snapshot"]
    await append(blobs, b" after")
    assert (await blobs("GET", f"/box/log?snapshot={at}")).body == b"before"
    assert (await blobs("GET", "/box/log")).body == b"before after"
