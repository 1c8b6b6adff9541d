"""Downloads: the whole, parts, chunks and files, checked on the way when asked."""

import hashlib
import io
import random
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

from tests.sdk.clients import Sdk, content, done, items, refused

MIB = 1024 * 1024
LARGE = random.Random(7).randbytes(9 * MIB + 1234)
SMALL_CHUNKS = {"max_single_get_size": MIB, "max_chunk_get_size": MIB}


async def _uploaded(sdk: Sdk, data: bytes, **options: Any) -> Any:
    container = await sdk.new_container()
    service = sdk.service(**options)
    blob = service.get_blob_client(container.container_name, "blob")
    await done(blob.upload_blob(data))
    return blob


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_in_chunks_of_which_some_come_at_the_same_time(sdk: Sdk, concurrency: int) -> None:
    blob = await _uploaded(sdk, LARGE, **SMALL_CHUNKS)
    assert await content(blob, max_concurrency=concurrency) == LARGE


async def test_into_a_file(sdk: Sdk, tmp_path: Path) -> None:
    blob = await _uploaded(sdk, LARGE, **SMALL_CHUNKS)
    stream = await done(blob.download_blob(max_concurrency=3))
    with (tmp_path / "file").open("wb") as file:
        assert await done(stream.readinto(file)) == len(LARGE)
    assert (tmp_path / "file").read_bytes() == LARGE


async def test_chunk_by_chunk(sdk: Sdk) -> None:
    blob = await _uploaded(sdk, LARGE, **SMALL_CHUNKS)
    stream = await done(blob.download_blob())
    chunks = await items(stream.chunks())
    assert [len(chunk) for chunk in chunks] == [MIB] * 9 + [1234]
    assert b"".join(chunks) == LARGE


async def test_piece_by_piece_as_the_reader_requests(sdk: Sdk) -> None:
    blob = await _uploaded(sdk, LARGE, **SMALL_CHUNKS)
    stream = await done(blob.download_blob(offset=100, length=3 * MIB))
    first, second = await done(stream.read(1000)), await done(stream.read(2 * MIB))
    rest = await done(stream.read())
    assert first + second + rest == LARGE[100 : 100 + 3 * MIB]


@pytest.mark.parametrize("size", [100, 50_000, 3 * MIB])
@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 1), (0, 100), (10, 20), (99, 1), (50, None), (50, 1000), (0, 10 * MIB), (99, 10 * MIB)],
)
async def test_ranges(sdk: Sdk, size: int, offset: int, length: int | None) -> None:
    data = LARGE[:size]
    blob = await _uploaded(sdk, data)
    end = size if length is None else offset + length
    returned: list[str] = []
    stream = await done(
        blob.download_blob(
            offset=offset,
            length=length,
            raw_response_hook=lambda response: returned.append(
                response.http_response.headers["Content-Range"]
            ),
        )
    )
    assert await done(stream.readall()) == data[offset:end]
    assert stream.size == len(data[offset:end])
    assert returned == [f"bytes {offset}-{min(end, size) - 1}/{size}"]


async def test_a_range_behind_the_end_is_refused(sdk: Sdk) -> None:
    blob = await _uploaded(sdk, b"0123456789")
    with refused(416, "InvalidRange"):
        await content(blob, offset=10, length=1)
    with refused(416, "InvalidRange"):
        await content(blob, offset=1000)
    assert await content(blob, offset=9, length=5) == b"9"


async def test_nothing_at_all(sdk: Sdk, tmp_path: Path) -> None:
    blob = await _uploaded(sdk, b"")
    assert await content(blob) == b""
    stream = await done(blob.download_blob())
    assert (stream.size, await done(stream.readinto(io.BytesIO()))) == (0, 0)


async def test_hashes_of_ranges_are_checked(sdk: Sdk) -> None:
    """The client asks for the MD5 of each range of up to 4 MiB, and holds what it got against it."""
    blob = await _uploaded(sdk, LARGE)
    assert await content(blob, validate_content=True, max_concurrency=2) == LARGE
    assert await content(blob, validate_content=True, offset=3, length=5) == LARGE[3:8]
    hashes: list[bytes | None] = []
    stream = await done(
        blob.download_blob(
            offset=1000,
            length=4 * MIB,
            validate_content=True,
            raw_response_hook=lambda response: hashes.append(
                response.http_response.headers.get("Content-MD5")
            ),
        )
    )
    piece = await done(stream.readall())
    assert piece == LARGE[1000 : 1000 + 4 * MIB]
    assert stream.properties.content_settings.content_md5 == hashlib.md5(LARGE).digest()
    assert len(hashes) == 1
    assert hashes[0] is not None


async def test_a_blob_that_changes_between_two_chunks_is_noticed(sdk: Sdk) -> None:
    """The client asks for later chunks with the ETag of the first, so it never mixes two versions."""
    blob = await _uploaded(sdk, LARGE, **SMALL_CHUNKS)
    stream = await done(blob.download_blob())
    await done(blob.upload_blob(LARGE[::-1], overwrite=True))
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        await done(stream.readall())


async def test_progress_is_reported_to_the_end(sdk: Sdk) -> None:
    blob = await _uploaded(sdk, LARGE, **SMALL_CHUNKS)
    returned: list[tuple[int, int | None]] = []

    def plain(current: int, total: int | None) -> None:
        returned.append((current, total))

    async def awaited(current: int, total: int | None) -> None:
        returned.append((current, total))

    hook = plain if sdk.form == "sync" else awaited
    assert await content(blob, progress_hook=hook) == LARGE
    assert returned[-1] == (len(LARGE), len(LARGE))


async def test_what_is_not_there_cannot_be_downloaded(sdk: Sdk) -> None:
    container = await sdk.new_container()
    with refused(404, "BlobNotFound", ResourceNotFoundError) as caught:
        await content(container.get_blob_client("nothing"))
    response: Any = caught.value.response
    assert response.headers["x-ms-request-id"] in caught.value.message
