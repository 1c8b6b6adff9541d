"""Blobs, blocks, appends and pages from URLs, and changes since a snapshot, as the official client asks for them."""

import base64
import hashlib
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ClientAuthenticationError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobSasPermissions, ContentSettings, generate_blob_sas

from tests.sdk.clients import Sdk, content, done, items, refused

DATA = os.urandom(100_000)


def signed(blob: Any, sdk: Sdk, snapshot: str | None = None) -> str:
    token = generate_blob_sas(
        blob.account_name,
        blob.container_name,
        blob.blob_name,
        snapshot=snapshot,
        account_key=sdk.key,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    return f"{blob.url}{'&' if '?' in blob.url else '?'}{token}"


async def source(sdk: Sdk) -> tuple[Any, Any, str]:
    """A container, a blob in it, and a URL that opens the blob."""
    container = await sdk.new_container()
    settings = ContentSettings(content_type="text/plain")
    blob = await done(container.upload_blob("a source", DATA, metadata={"A": "1"}, content_settings=settings))
    return container, blob, signed(blob, sdk)


async def test_a_blob_from_a_url(sdk: Sdk) -> None:
    container, blob, url = await source(sdk)
    target = container.get_blob_client("target")
    md5 = hashlib.md5(DATA).digest()
    made = await done(target.upload_blob_from_url(url))
    found = await done(target.get_blob_properties())
    assert (found.etag, found.metadata, found.size) == (made["etag"], {"A": "1"}, len(DATA))
    assert found.content_settings.content_type == "text/plain"
    assert await content(target) == DATA
    await done(
        target.upload_blob_from_url(
            url,
            overwrite=True,
            source_content_md5=bytearray(md5),
            include_source_blob_properties=False,
            metadata={"B": "2"},
            source_etag=(await done(blob.get_blob_properties())).etag,
            source_match_condition=MatchConditions.IfNotModified,
        )
    )
    found = await done(target.get_blob_properties())
    assert (found.metadata, found.content_settings.content_type) == ({"B": "2"}, "application/octet-stream")
    with refused(409, "BlobAlreadyExists"):
        await done(target.upload_blob_from_url(url, overwrite=False))
    with refused(412, "CannotVerifyCopySource", ResourceNotFoundError):
        await done(
            target.upload_blob_from_url(
                url, source_etag='"0x1"', source_match_condition=MatchConditions.IfNotModified
            )
        )
    with refused(401, "CannotVerifyCopySource", ClientAuthenticationError):
        await done(target.upload_blob_from_url(blob.url))


async def test_blocks_from_a_url(sdk: Sdk) -> None:
    container, _, url = await source(sdk)
    target = container.get_blob_client("target")
    names = [base64.b64encode(b"%d" % number).decode() for number in range(2)]
    await done(target.stage_block_from_url(names[0], url, source_offset=50_000, source_length=50_000))
    await done(
        target.stage_block_from_url(
            names[1],
            url,
            source_offset=0,
            source_length=50_000,
            source_content_md5=bytearray(hashlib.md5(DATA[:50_000]).digest()),
        )
    )
    await done(target.commit_block_list([BlobBlock(name) for name in names]))
    assert await content(target) == DATA[50_000:] + DATA[:50_000]


async def test_appends_from_a_url(sdk: Sdk) -> None:
    container, _, url = await source(sdk)
    target = container.get_blob_client("target")
    await done(target.create_append_blob())
    await done(target.append_block_from_url(url, source_offset=0, source_length=len(DATA)))
    appended = await done(target.append_block_from_url(url, source_offset=7, source_length=3))
    assert (appended["blob_append_offset"], appended["blob_committed_block_count"]) == (str(len(DATA)), 2)
    assert await content(target) == DATA + DATA[7:10]
    with refused(412, "AppendPositionConditionNotMet"):
        await done(target.append_block_from_url(url, source_offset=0, source_length=1, appendpos_condition=0))


async def test_pages_from_a_url(sdk: Sdk) -> None:
    container, _, url = await source(sdk)
    target = container.get_blob_client("target")
    await done(target.create_page_blob(4096))
    await done(target.upload_pages_from_url(url, offset=512, length=1024, source_offset=100))
    assert await content(target) == bytes(512) + DATA[100:1124] + bytes(4096 - 1536)


async def test_a_snapshot_as_source(sdk: Sdk) -> None:
    container, blob, _ = await source(sdk)
    at = (await done(blob.create_snapshot()))["snapshot"]
    await done(blob.upload_blob(b"later", overwrite=True))
    past = container.get_blob_client("a source", snapshot=at)
    target = container.get_blob_client("target")
    await done(target.upload_blob_from_url(signed(past, sdk, at)))
    assert await content(target) == DATA


@pytest.mark.filterwarnings("ignore:get_page_ranges is deprecated:DeprecationWarning")
async def test_what_changed_since_a_snapshot(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = container.get_blob_client("disk")
    await done(blob.create_page_blob(4096))
    await done(blob.upload_page(b"a" * 2048, 0, 2048))
    first = await done(blob.create_snapshot())
    await done(blob.upload_page(b"b" * 512, 512, 512))
    await done(blob.clear_page(1024, 512))
    written, cleared = await done(blob.get_page_ranges(previous_snapshot_diff=first["snapshot"]))
    assert written == [{"start": 512, "end": 1023}]
    assert cleared == [{"start": 1024, "end": 1535}]
    listed = await items(blob.list_page_ranges(previous_snapshot=first["snapshot"], results_per_page=1))
    assert [(each.start, each.end, each.cleared) for each in listed] == [
        (512, 1023, False),
        (1024, 1535, True),
    ]
    earlier = f"{blob.url}?snapshot={first['snapshot']}"
    assert await done(blob.get_page_range_diff_for_managed_disk(earlier)) == (written, cleared)
