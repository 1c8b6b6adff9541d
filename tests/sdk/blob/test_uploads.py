"""Uploads with Put Blob: whatever can be given to ``upload_blob``, and what is stored of it."""

import base64
import hashlib
import io
import random
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobBlock, ContentSettings, StandardBlobTier

from tests.sdk.clients import ASYNC, Sdk, content, done, names, refused

INLINE_MAX = 16 * 1024
MIB = 1024 * 1024


def _bytes(length: int) -> bytes:
    """Bytes without a short period, so that a piece out of place is noticed."""
    return random.Random(length).randbytes(length)


def _pieces() -> Iterator[bytes]:
    yield from (b"one ", b"", b"two ", b"three")


async def _async_pieces() -> AsyncIterator[bytes]:
    for piece in _pieces():
        yield piece


class _NoSeek(io.RawIOBase):
    """A stream like a pipe: it can be read once, forwards."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data.read(min(len(buffer), 1000))
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (b"bytes", b"bytes"),
        (b"", b""),
        ("text with ünïcode ✓", "text with ünïcode ✓".encode()),
        ("", b""),
        (bytearray(b"array"), b"array"),
    ],
    ids=["bytes", "nothing", "text", "no text", "bytearray"],
)
async def test_values(sdk: Sdk, given: Any, stored: bytes) -> None:
    container = await sdk.new_container()
    given = bytes(given) if isinstance(given, bytearray) else given
    blob = await done(container.upload_blob("blob", given))
    assert await content(blob) == stored
    assert (await done(blob.get_blob_properties())).size == len(stored)


async def test_text_in_another_encoding(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", "größe", encoding="utf-16"))
    stream = await done(blob.download_blob(encoding="utf-16"))
    assert await done(stream.readall()) == "größe"


async def test_streams_and_iterables(sdk: Sdk, tmp_path: Path) -> None:
    container = await sdk.new_container()
    data = _bytes(100_000)
    (tmp_path / "file").write_bytes(data)
    for name, stream in (("memory", io.BytesIO(data)), ("pipe", io.BufferedReader(_NoSeek(data)))):
        blob = await done(container.upload_blob(name, stream, length=len(data)))
        assert await content(blob) == data
    with (tmp_path / "file").open("rb") as file:
        blob = await done(container.upload_blob("file", file))
    assert await content(blob) == data
    blob = await done(container.upload_blob("part", io.BytesIO(data), length=1000))
    assert await content(blob) == data[:1000]
    blob = await done(container.upload_blob("generator", _pieces(), length=13))
    assert await content(blob) == b"one two three"
    if sdk.form == ASYNC:
        blob = await done(container.upload_blob("async generator", _async_pieces(), length=13))
        assert await content(blob) == b"one two three"


@pytest.mark.parametrize(
    "length",
    [
        0,
        1,
        *(INLINE_MAX + step for step in (-1, 0, 1)),
        *(64 * 1024 + step for step in (-1, 0, 1)),
        *(MIB + step for step in (-1, 0, 1)),
        *(4 * MIB + step for step in (-1, 0, 1)),
        9 * MIB + 7,
    ],
)
async def test_sizes_around_the_limits_of_storage(sdk: Sdk, length: int) -> None:
    """Inline, packed or in a file of its own: nobody can tell."""
    container = await sdk.new_container()
    data = _bytes(length)
    blob = container.get_blob_client("blob")
    uploaded = await done(blob.upload_blob(data))
    assert uploaded["content_md5"] == hashlib.md5(data).digest()
    properties = await done(blob.get_blob_properties())
    assert properties.size == length
    assert properties.content_settings.content_md5 == hashlib.md5(data).digest()
    assert await content(blob) == data
    if length > 1:
        assert (
            await content(blob, offset=length // 2 - 1, length=2) == data[length // 2 - 1 : length // 2 + 1]
        )
    other = _bytes(length + 1)
    await done(blob.upload_blob(other, overwrite=True))
    assert await content(blob) == other


async def test_everything_that_is_said_of_a_blob_is_kept(sdk: Sdk) -> None:
    container = await sdk.new_container()
    settings = ContentSettings(
        content_type="text/plain; charset=utf-8",
        content_encoding="identity",
        content_language="de-AT",
        content_disposition='attachment; filename="größe.txt"'.encode().decode("latin-1"),
        cache_control="max-age=7, no-transform",
    )
    blob = container.get_blob_client("blob")
    uploaded = await done(
        blob.upload_blob(
            b"data",
            content_settings=settings,
            metadata={"MixedCase": "Value", "other": "two words"},
            standard_blob_tier=StandardBlobTier.COOL,
        )
    )
    found = await done(blob.get_blob_properties())
    for name in (
        "content_type",
        "content_encoding",
        "content_language",
        "content_disposition",
        "cache_control",
    ):
        assert found.content_settings[name] == settings[name]
    assert found.content_settings.content_md5 == hashlib.md5(b"data").digest()
    assert found.metadata == {"MixedCase": "Value", "other": "two words"}
    assert found.blob_tier == "Cool"
    assert (found.name, found.container, found.blob_type) == ("blob", container.container_name, "BlockBlob")
    assert found.etag == uploaded["etag"]
    assert found.last_modified == uploaded["last_modified"] == found.creation_time
    assert abs(datetime.now(UTC) - found.last_modified) < timedelta(minutes=1)
    assert found.server_encrypted is True
    assert (found.lease.status, found.lease.state) == ("unlocked", "available")
    stream = await done(blob.download_blob())
    assert stream.properties.content_settings.content_type == "text/plain; charset=utf-8"
    assert stream.properties.metadata == {"MixedCase": "Value", "other": "two words"}


async def test_the_hash_is_checked_on_the_way_in(sdk: Sdk) -> None:
    container = await sdk.new_container()
    for length in (100, 100_000, 5 * MIB):
        blob = await done(container.upload_blob(f"good {length}", _bytes(length), validate_content=True))
        assert await content(blob, validate_content=True) == _bytes(length)
        wrong = hashlib.md5(b"something else").digest()
        with refused(400, "Md5Mismatch"):
            await done(
                container.upload_blob(
                    f"bad {length}", _bytes(length), headers={"Content-MD5": base64.b64encode(wrong).decode()}
                )
            )
    assert await names(container.list_blobs()) == ["good 100", "good 100000", "good 5242880"]


async def test_a_hash_given_with_the_blob_is_checked_where_it_is_put_whole(sdk: Sdk) -> None:
    container = await sdk.new_container()
    given = bytearray(hashlib.md5(b"data").digest())
    blob = await done(
        container.upload_blob("blob", b"data", content_settings=ContentSettings(content_md5=given))
    )
    assert (await done(blob.get_blob_properties())).content_settings.content_md5 == given
    with refused(400, "Md5Mismatch"):
        await done(
            blob.upload_blob(b"else", overwrite=True, content_settings=ContentSettings(content_md5=given))
        )
    assert await done((await done(blob.download_blob())).readall()) == b"data"


async def test_a_hash_given_with_a_block_list_is_stored_as_it_is(sdk: Sdk) -> None:
    container = await sdk.new_container()
    given = bytearray(hashlib.md5(b"of the client's choice").digest())
    blob = container.get_blob_client("blob")
    await done(blob.stage_block("a", b"data"))
    await done(blob.commit_block_list([BlobBlock("a")], content_settings=ContentSettings(content_md5=given)))
    assert (await done(blob.get_blob_properties())).content_settings.content_md5 == given


async def test_an_existing_blob_is_replaced_only_on_request(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"first", metadata={"version": "1"}))
    first = await done(blob.get_blob_properties())
    with refused(409, "BlobAlreadyExists", ResourceExistsError):
        await done(container.upload_blob("blob", b"second"))
    with refused(409, "BlobAlreadyExists", ResourceExistsError):
        await done(container.upload_blob("blob", bytes(2 * MIB)))
    assert await content(blob) == b"first"
    await done(container.upload_blob("blob", b"third", overwrite=True))
    third = await done(blob.get_blob_properties())
    assert await content(blob) == b"third"
    assert third.metadata == {}
    assert third.etag != first.etag
    assert third.creation_time == first.creation_time
