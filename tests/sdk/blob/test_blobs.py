"""What is said of a blob, changing it, and deleting it."""

import asyncio
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContentSettings

from tests.sdk.clients import Sdk, content, done, names, refused


async def _blob(sdk: Sdk, data: bytes = b"data", **options: Any) -> Any:
    container = await sdk.new_container()
    return await done(container.upload_blob("blob", data, **options))


async def test_metadata_keeps_case_and_replaces_what_was_there(sdk: Sdk) -> None:
    blob = await _blob(sdk, metadata={"Old": "1", "other": "2"})
    before = await done(blob.get_blob_properties())
    changed = await done(blob.set_blob_metadata({"NewName": "Some Value", "x9": "a=b; c"}))
    after = await done(blob.get_blob_properties())
    assert after.metadata == {"NewName": "Some Value", "x9": "a=b; c"}
    assert after.etag == changed["etag"] != before.etag
    assert after.creation_time == before.creation_time
    assert await content(blob) == b"data"
    await done(blob.set_blob_metadata())
    assert (await done(blob.get_blob_properties())).metadata == {}


async def test_content_headers_are_replaced_as_a_whole(sdk: Sdk) -> None:
    first = ContentSettings(content_type="text/plain", content_language="en", cache_control="no-store")
    blob = await _blob(sdk, content_settings=first, metadata={"kept": "yes"})
    before = await done(blob.get_blob_properties())
    second = ContentSettings(content_type="image/png", content_disposition="inline", content_encoding="br")
    changed = await done(blob.set_http_headers(second))
    after = await done(blob.get_blob_properties())
    found = after.content_settings
    assert (found.content_type, found.content_disposition, found.content_encoding) == (
        "image/png",
        "inline",
        "br",
    )
    assert (found.content_language, found.cache_control, found.content_md5) == (None, None, None)
    assert after.etag == changed["etag"] != before.etag
    assert after.metadata == {"kept": "yes"}
    await done(blob.set_http_headers())
    assert (await done(blob.get_blob_properties())).content_settings.content_encoding is None


async def test_a_blob_without_a_type_is_a_stream_of_octets(sdk: Sdk) -> None:
    blob = await _blob(sdk)
    assert (
        await done(blob.get_blob_properties())
    ).content_settings.content_type == "application/octet-stream"


async def test_existence(sdk: Sdk) -> None:
    blob = await _blob(sdk)
    assert await done(blob.exists()) is True
    await done(blob.delete_blob())
    assert await done(blob.exists()) is False


@pytest.mark.parametrize(
    "data", [b"small", bytes(100_000), bytes(5_000_000)], ids=["small", "middling", "large"]
)
async def test_what_is_deleted_is_gone(sdk: Sdk, data: bytes) -> None:
    blob = await _blob(sdk, data)
    await done(blob.delete_blob())
    for attempt in (blob.delete_blob, blob.get_blob_properties, blob.download_blob, blob.set_blob_metadata):
        with refused(404, "BlobNotFound", ResourceNotFoundError):
            await done(attempt())
    await done(blob.upload_blob(b"again"))
    assert await content(blob) == b"again"


async def test_etags_never_come_back(sdk: Sdk) -> None:
    blob = await _blob(sdk)
    etags = [(await done(blob.get_blob_properties())).etag]
    for _ in range(5):
        await done(blob.delete_blob())
        etags.append((await done(blob.upload_blob(b"data")))["etag"])
        etags.append((await done(blob.set_blob_metadata({"a": "b"})))["etag"])
    values = [int(etag.strip('"'), 16) for etag in etags]
    assert values == sorted(set(values))


async def test_of_many_writers_one_wins_and_its_bytes_are_whole(sdk: Sdk) -> None:
    """Last writer wins: what is there afterwards is all of one upload, headers and bytes."""
    container = await sdk.new_container()
    blob = container.get_blob_client("contested")

    def upload(number: int) -> Any:
        data = bytes([number]) * (100 + number * 10_000)
        return blob.upload_blob(data, overwrite=True, metadata={"number": str(number)})

    if sdk.form == "sync":
        await asyncio.gather(*(asyncio.to_thread(upload, number) for number in range(12)))
    else:
        await asyncio.gather(*(upload(number) for number in range(12)))
    stream = await done(blob.download_blob())
    number = int(stream.properties.metadata["number"])
    assert await done(stream.readall()) == bytes([number]) * (100 + number * 10_000)


async def test_of_many_creators_one_succeeds(sdk: Sdk) -> None:
    container = await sdk.new_container()

    def create(number: int) -> Any:
        return container.upload_blob("contested", str(number).encode())

    if sdk.form == "sync":
        attempts = [asyncio.to_thread(create, number) for number in range(12)]
    else:
        attempts = [create(number) for number in range(12)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    won = [number for number, outcome in enumerate(outcomes) if not isinstance(outcome, BaseException)]
    assert len(won) == 1
    lost = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert {getattr(error, "error_code", error) for error in lost} == {"BlobAlreadyExists"}
    assert await content(container.get_blob_client("contested")) == str(won[0]).encode()
    assert await names(container.list_blobs()) == ["contested"]
