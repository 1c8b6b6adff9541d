"""Damaged content: an error that says so, or a response that is cut off; never a wrong byte, nor a copy of one."""

import base64
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import generate_blob_sas

from kyanite.model import damage
from kyanite.model.damage import DamageReports
from kyanite.services.blob.service import blob_service
from kyanite.wire.http import Request, Response, Unfinished
from kyanite.wire.structured_message import FORM
from tests.damaged import flip
from tests.services.harness import ACCOUNT, VERSION, Answer, BytesBody, Harness, bytes_of

KIB = 1024
MIB = 1024 * KIB
BLOCK_BYTES = 256 * KIB
BLOCK = {"x-ms-blob-type": "BlockBlob"}
HERE = "http://localhost:10000/acme"
PUBLIC = {"x-ms-blob-public-access": "blob"}


def noise(length: int) -> bytes:
    return random.Random(length).randbytes(length)


async def put(blobs: Harness, data: bytes) -> None:
    await blobs("PUT", "/box?restype=container", PUBLIC)
    assert (await blobs("PUT", "/box/b", BLOCK, data)).status == 201


def is_damage(answer: Answer) -> bool:
    return (answer.status, answer.code) == (500, "InternalError") and b"damaged" in answer.body


async def begin(blobs: Harness, name: str = "b", **headers: str) -> Response:
    """Begin to download a blob that anyone may read."""
    sent = {"host": "localhost:10000", "x-ms-version": VERSION, **headers}
    path = f"/acme/box/{name}"
    return await blobs.service(Request("GET", path, "", sent, [], BytesBody(b""), "::1", False, 10000))


async def cut_off(response: Response) -> bytes:
    """What comes of a response that does not come to its end."""
    assert not isinstance(response.body, bytes)
    received = b""
    try:
        async for piece in response.body:
            received += bytes_of(piece)
    except Unfinished:
        return received
    finally:
        assert response.release is not None
        response.release()
    raise AssertionError("It came to its end.")


@pytest.mark.parametrize("size", [64 * KIB, 200 * KIB, MIB, 9 * MIB + 3])
async def test_a_damaged_first_block_is_an_error(blobs: Harness, tmp_path: Path, size: int) -> None:
    data = noise(size)
    await put(blobs, data)
    flip(tmp_path, data[1000:1064])
    for headers in ({}, {"Range": "bytes=0-9"}, {"Range": f"bytes=1000-{size - 1}"}):
        assert is_damage(await blobs("GET", "/box/b", headers))
    assert (await blobs("HEAD", "/box/b")).status == 200


@pytest.mark.parametrize("at", [4 * BLOCK_BYTES, 5 * MIB, 9 * MIB - 100], ids=["second", "middle", "last"])
async def test_a_response_that_has_begun_is_cut_off_before_the_damage(
    blobs: Harness, tmp_path: Path, at: int
) -> None:
    data = noise(9 * MIB)
    await put(blobs, data)
    flip(tmp_path, data[at : at + 64])
    response = await begin(blobs)
    assert (response.status, response.length) == (200, len(data))
    received = await cut_off(response)
    assert received == data[: len(received)]
    assert len(received) <= at // BLOCK_BYTES * BLOCK_BYTES


async def test_ranges_beside_the_damage_are_served(blobs: Harness, tmp_path: Path) -> None:
    data = noise(3 * MIB)
    await put(blobs, data)
    at = MIB + 5
    flip(tmp_path, data[at : at + 64])
    start = at // BLOCK_BYTES * BLOCK_BYTES
    for first, last in [(0, start - 1), (start + BLOCK_BYTES, len(data) - 1), (start - 1, start - 1)]:
        answer = await blobs("GET", "/box/b", {"Range": f"bytes={first}-{last}"})
        assert (answer.status, answer.body) == (206, data[first : last + 1])
    for first, last in [(start, start), (start + BLOCK_BYTES - 1, start + BLOCK_BYTES + 5)]:
        assert is_damage(await blobs("GET", "/box/b", {"Range": f"bytes={first}-{last}"}))


@pytest.mark.parametrize("hash_header", ["x-ms-range-get-content-md5", "x-ms-range-get-content-crc64"])
async def test_a_damaged_range_gets_no_hash(blobs: Harness, tmp_path: Path, hash_header: str) -> None:
    data = noise(3 * MIB)
    await put(blobs, data)
    flip(tmp_path, data[MIB : MIB + 64])
    wanted = {"Range": f"bytes=0-{2 * MIB}", hash_header: "true"}
    assert is_damage(await blobs("GET", "/box/b", wanted))


async def test_a_structured_body_is_an_error_or_cut_off(blobs: Harness, tmp_path: Path) -> None:
    data = noise(6 * MIB)
    await put(blobs, data)
    flip(tmp_path, data[5 * MIB : 5 * MIB + 64])
    assert len(await cut_off(await begin(blobs, **{"x-ms-structured-body": FORM}))) < 5 * MIB
    flip(tmp_path, data[:64])
    # The first block was checked a short time ago, so only another process finds that.
    blobs.use_store(blob_service)
    assert is_damage(await blobs("GET", "/box/b", {"x-ms-structured-body": FORM}))


COPIES = {
    "Put Blob From URL, with a hash": (
        "/box/copy",
        BLOCK | {"x-ms-source-content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="},
    ),
    "Put Block From URL": ("/box/copy?comp=block&blockid=YQ==", {}),
    "Append Block From URL": ("/box/log?comp=appendblock", {}),
    "Put Page From URL": (
        "/box/disk?comp=page",
        {
            "x-ms-page-write": "update",
            "x-ms-range": f"bytes=0-{3 * MIB - 1}",
            "x-ms-source-range": f"bytes=0-{3 * MIB - 1}",
        },
    ),
    "Copy Blob From URL, with a hash": (
        "/box/copy",
        {"x-ms-requires-sync": "true", "x-ms-source-content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="},
    ),
}


@pytest.mark.parametrize("name", COPIES)
async def test_damage_is_not_copied_through_memory(blobs: Harness, tmp_path: Path, name: str) -> None:
    data = noise(3 * MIB)
    await put(blobs, data)
    await blobs("PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
    await blobs("PUT", "/box/disk", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(4 * MIB)})
    flip(tmp_path, data[2 * MIB : 2 * MIB + 64])
    target, headers = COPIES[name]
    answer = await blobs("PUT", target, {"x-ms-copy-source": f"{HERE}/box/b"} | headers)
    assert is_damage(answer)
    assert (await blobs("GET", "/box/copy")).status == 404
    assert (await blobs("GET", "/box/log")).body == b""
    assert (await blobs("GET", "/box/disk")).body == bytes(4 * MIB)


async def test_a_copy_by_reference_is_as_damaged_as_its_source(blobs: Harness, tmp_path: Path) -> None:
    data = noise(MIB)
    await put(blobs, data)
    source = {"x-ms-copy-source": f"{HERE}/box/b"}
    assert (await blobs("PUT", "/box/copy", source)).status == 202
    assert (await blobs("PUT", "/box/put", source | BLOCK)).status == 201
    flip(tmp_path, data[:64])
    for name in ("b", "copy", "put"):
        assert is_damage(await blobs("GET", f"/box/{name}"))


async def test_files_are_checked_too(files: Harness, tmp_path: Path) -> None:
    data = noise(MIB)
    await files("PUT", "/box?restype=share")
    await files("PUT", "/box/f", {"x-ms-type": "file", "x-ms-content-length": str(MIB)})
    write = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{MIB - 1}"}
    assert (await files("PUT", "/box/f?comp=range", write, data)).status == 201
    assert (await files("PUT", "/box/copy", {"x-ms-copy-source": f"{HERE}/box/f"})).status == 202
    flip(tmp_path, data[:64])
    for name in ("f", "copy"):
        assert is_damage(await files("GET", f"/box/{name}"))
        assert is_damage(await files("GET", f"/box/{name}", {"x-ms-range": "bytes=5-9"}))
        later = {"x-ms-range": f"bytes={BLOCK_BYTES}-{MIB - 1}"}
        assert (await files("GET", f"/box/{name}", later)).body == data[BLOCK_BYTES:]


async def test_a_range_from_a_url_of_a_damaged_blob_is_refused(files: Harness, tmp_path: Path) -> None:
    data = noise(MIB)
    blobs = files.beside(blob_service, "blob")
    await put(blobs, data)
    await files("PUT", "/share?restype=share")
    await files("PUT", "/share/f", {"x-ms-type": "file", "x-ms-content-length": str(MIB)})
    flip(tmp_path, data[BLOCK_BYTES : BLOCK_BYTES + 64])
    key = base64.b64encode(ACCOUNT.keys[0]).decode()
    later = datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=files.clock.now // 10, hours=1)
    token = generate_blob_sas("acme", "box", "b", account_key=key, permission="r", expiry=later)
    headers = {
        "x-ms-write": "update",
        "x-ms-range": f"bytes=0-{MIB - 1}",
        "x-ms-source-range": f"bytes=0-{MIB - 1}",
        "x-ms-copy-source": f"http://acme.blob.localhost:10000/box/b?{token}",
    }
    answer = await files("PUT", "/share/f?comp=range", headers)
    assert is_damage(answer), answer.body
    assert (await files("GET", "/share/f")).body == bytes(MIB)


async def test_damage_is_counted_and_logged_with_the_request(
    blobs: Harness, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = DamageReports()
    monkeypatch.setattr(damage, "reports", own)
    data = noise(6 * MIB)
    await put(blobs, data)
    flip(tmp_path, data[5 * MIB : 5 * MIB + 64])
    for _ in range(3):
        assert is_damage(await blobs("GET", "/box/b", {"Range": f"bytes={5 * MIB}-{5 * MIB + 9}"}))
    assert own.reads == 3
    (line,) = caplog.records
    fields = vars(line)
    assert line.getMessage() == "damaged"
    assert "block 20 of extent" in fields["damage"]
    assert (fields["operation"], fields["path"], fields["account"]) == (
        "Get Blob",
        "/acme/box/b",
        ACCOUNT.name,
    )
    assert fields["request_id"]
    await cut_off(await begin(blobs))
    assert own.reads == 4, "Also when the response has begun."
