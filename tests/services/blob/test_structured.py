"""Bodies of blobs with checksums inside: taken in by every write, given out by Get Blob."""

import base64

import pytest

from kyanite.wire import structured_message
from kyanite.wire.structured_message import FORM
from tests.services.harness import Harness, md5_text
from tests.wire.structured_messages import read, written

BLOCK = {"x-ms-blob-type": "BlockBlob"}
BLOCK_ID = base64.b64encode(b"a").decode()
LIST = f"<BlockList><Latest>{BLOCK_ID}</Latest></BlockList>".encode()
SIZES = [512, 100 * 512, 6000 * 512]


def structured(length: int) -> dict[str, str]:
    return {"x-ms-structured-body": FORM, "x-ms-structured-content-length": str(length)}


def some_bytes(length: int) -> bytes:
    return bytes(i * 7 % 253 for i in range(length))


async def box(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
    await blobs("PUT", "/box/disk", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "4194304"})


def pages(length: int) -> dict[str, str]:
    return {"x-ms-page-write": "update", "x-ms-range": f"bytes=0-{length - 1}"}


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_message, "SEGMENT_BYTES", 1000)


@pytest.mark.parametrize("size", [0, 1, *SIZES])
async def test_a_blob_is_put_and_got(blobs: Harness, size: int) -> None:
    await box(blobs)
    data = some_bytes(size)
    message = await written(data, 10_000)
    put = await blobs("PUT", "/box/b", BLOCK | structured(size), message)
    assert (put.status, put.headers["x-ms-structured-body"]) == (201, FORM)
    assert put.headers["content-md5"] == md5_text(data)
    assert (await blobs("GET", "/box/b")).body == data
    got = await blobs("GET", "/box/b", {"x-ms-structured-body": FORM})
    assert (got.status, got.headers["x-ms-structured-body"]) == (200, FORM)
    assert got.headers["x-ms-structured-content-length"] == str(size)
    assert await read(got.body, size, 10_000) == data


async def test_a_range_is_got(blobs: Harness) -> None:
    await box(blobs)
    data = some_bytes(5000)
    await blobs("PUT", "/box/b", BLOCK, data)
    got = await blobs("GET", "/box/b", {"x-ms-structured-body": FORM, "x-ms-range": "bytes=10-3009"})
    assert (got.status, got.headers["content-range"]) == (206, "bytes 10-3009/5000")
    assert await read(got.body, 3000) == data[10:3010]


@pytest.mark.parametrize("size", SIZES)
async def test_blocks_appends_and_pages(blobs: Harness, size: int) -> None:
    await box(blobs)
    data = some_bytes(size)
    message = await written(data, 10_000)
    for target, headers in (
        (f"/box/b?comp=block&blockid={BLOCK_ID}", {}),
        ("/box/log?comp=appendblock", {}),
        ("/box/disk?comp=page", pages(size)),
    ):
        answer = await blobs("PUT", target, headers | structured(size), message)
        assert (answer.status, answer.headers["x-ms-structured-body"]) == (201, FORM)
    await blobs("PUT", "/box/b?comp=blocklist", {}, LIST)
    assert (await blobs("GET", "/box/b")).body == data
    assert (await blobs("GET", "/box/log")).body == data
    assert (await blobs("GET", "/box/disk", {"x-ms-range": f"bytes=0-{size - 1}"})).body == data


@pytest.mark.parametrize("size", SIZES)
async def test_a_spoiled_body_stores_nothing(blobs: Harness, size: int) -> None:
    await box(blobs)
    kept = await blobs("PUT", "/box/b", BLOCK, b"kept")
    message = await written(some_bytes(size), 10_000)
    spoiled = message[:-20] + bytes([message[-20] ^ 1]) + message[-19:]
    answers = [
        (structured(size), spoiled, "Crc64Mismatch"),
        (structured(size), message[:-1], "InvalidInput"),
        (structured(size), message + b"x", "InvalidInput"),
        (structured(size + 1), message, "InvalidInput"),
        (structured(size - 1), message, "InvalidInput"),
        ({"x-ms-structured-body": FORM}, message, "MissingRequiredHeader"),
        (structured(size) | {"x-ms-structured-body": "XSM/9"}, message, "InvalidHeaderValue"),
        (structured(size) | {"Content-MD5": md5_text(message)}, message, "InvalidHeaderValue"),
        (structured(size) | {"x-ms-blob-content-md5": md5_text(b"else")}, message, "Md5Mismatch"),
    ]
    for headers, body, code in answers:
        answer = await blobs("PUT", "/box/b", BLOCK | headers, body)
        assert (answer.status, answer.code) == (400, code)
    assert (await blobs("GET", "/box/b")).headers["etag"] == kept.headers["etag"]
