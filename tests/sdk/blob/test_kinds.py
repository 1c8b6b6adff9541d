"""Blocks, appends, pages, snapshots and copies as the official client makes them."""

import base64
import os
from typing import Any

import pytest
from azure.storage.blob import BlobBlock, BlobType

from tests.sdk.clients import Sdk, content, done, fresh_name, items, refused


def block_id(number: int) -> str:
    return base64.b64encode(b"%06d" % number).decode()


async def test_a_large_upload_goes_in_blocks_and_comes_back_in_ranges(sdk: Sdk) -> None:
    service = sdk.service(
        max_single_put_size=64 * 1024,
        max_block_size=100_000,
        min_large_block_upload_threshold=1,
        max_single_get_size=50_000,
        max_chunk_get_size=70_000,
    )
    container = await done(service.create_container(fresh_name()))
    data = os.urandom(1_234_567)
    blob = await done(container.upload_blob("large", data, max_concurrency=4))
    assert await content(blob, max_concurrency=3) == data
    committed, uncommitted = await done(blob.get_block_list("all"))
    assert [block.size for block in committed] == [100_000] * 12 + [34_567]
    assert uncommitted == []


async def test_blocks_are_staged_listed_and_committed(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = container.get_blob_client("blocks")
    for number in range(3):
        await done(blob.stage_block(block_id(number), b"<%d>" % number))
    assert [block.id for block in (await done(blob.get_block_list("uncommitted")))[1]]
    names = [item.name for item in await items(container.list_blobs(include=["uncommittedblobs"]))]
    assert names == ["blocks"]
    await done(blob.commit_block_list([BlobBlock(block_id(n)) for n in (2, 0)], metadata={"a": "b"}))
    assert await content(blob) == b"<2><0>"
    with refused(400, "InvalidBlockList"):
        await done(blob.commit_block_list([BlobBlock(block_id(1))]))


async def test_appends_with_conditions(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = container.get_blob_client("log")
    await done(blob.create_append_blob())
    first = await done(blob.append_block(b"one;"))
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    await done(blob.append_block(b"two;", appendpos_condition=4))
    with refused(412, "AppendPositionConditionNotMet"):
        await done(blob.append_block(b"three;", appendpos_condition=4))
    with refused(412, "MaxBlobSizeConditionNotMet"):
        await done(blob.append_block(b"three;", maxsize_condition=10))
    assert await content(blob) == b"one;two;"
    await done(blob.upload_blob(b"four;", blob_type=BlobType.APPENDBLOB))
    assert await content(blob) == b"one;two;four;"
    properties = await done(blob.get_blob_properties())
    assert (properties.blob_type, properties.append_blob_committed_block_count) == (BlobType.APPENDBLOB, 3)


async def test_pages(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = container.get_blob_client("disk")
    await done(blob.create_page_blob(8192, sequence_number=5))
    await done(blob.upload_page(b"a" * 1024, 1024, 1024))
    await done(blob.upload_page(b"b" * 512, 4096, 512, if_sequence_number_eq=5))
    with refused(412, "SequenceNumberConditionNotMet"):
        await done(blob.upload_page(b"c" * 512, 0, 512, if_sequence_number_lt=5))
    await done(blob.clear_page(1024, 512))
    ranges = [(item.start, item.end) for item in await items(blob.list_page_ranges())]
    assert ranges == [(1536, 2047), (4096, 4607)]
    await done(blob.resize_blob(4096))
    image = bytes(1536) + b"a" * 512 + bytes(2048)
    assert await content(blob) == image
    await done(blob.set_sequence_number("increment"))
    assert (await done(blob.get_blob_properties())).page_blob_sequence_number == 6


@pytest.mark.parametrize("kind", [BlobType.BLOCKBLOB, BlobType.PAGEBLOB, BlobType.APPENDBLOB])
async def test_snapshots_of_every_kind(sdk: Sdk, kind: BlobType) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("it", b"o" * 512, blob_type=kind))
    made = await done(blob.create_snapshot())
    await done(blob.upload_blob(b"n" * 512, blob_type=kind, overwrite=True))
    kept = container.get_blob_client("it", snapshot=made["snapshot"])
    assert (await content(kept), await content(blob)) == (b"o" * 512, b"n" * 512)
    listed = [item.snapshot for item in await items(container.list_blobs(include=["snapshots"]))]
    assert listed == [made["snapshot"], None]
    with refused(409, "SnapshotsPresent"):
        await done(blob.delete_blob())
    await done(blob.delete_blob(delete_snapshots="include"))
    assert not await done(kept.exists())


async def test_copies(sdk: Sdk) -> None:
    container = await sdk.new_container()
    source = await done(container.upload_blob("source", os.urandom(200_000), metadata={"a": "b"}))
    target = container.get_blob_client("target")
    started = await done(target.start_copy_from_url(source.url))
    assert started["copy_status"] == "success"
    assert await content(target) == await content(source)
    properties: Any = await done(target.get_blob_properties())
    assert properties.metadata == {"a": "b"}
    assert (properties.copy.status, properties.copy.id) == ("success", started["copy_id"])
    with refused(409, "NoPendingCopyOperation"):
        await done(target.abort_copy(started["copy_id"]))
    with refused(404, "CannotVerifyCopySource"):
        await done(target.start_copy_from_url(source.url + "-not-there"))


async def test_a_sealed_append_blob_takes_no_more(sdk: Sdk) -> None:
    container = await sdk.new_container()
    log = container.get_blob_client("log")
    await done(log.create_append_blob())
    await done(log.append_block(b"one"))
    assert (await done(log.seal_append_blob(appendpos_condition=3)))["blob_sealed"] is True
    with refused(409, "BlobIsSealed"):
        await done(log.append_block(b"two"))
    assert (await done(log.get_blob_properties())).is_append_blob_sealed is True
    assert [blob.is_append_blob_sealed for blob in await items(container.list_blobs())] == [True]
    copy = container.get_blob_client("copy")
    await done(copy.start_copy_from_url(log.url, seal_destination_blob=False))
    await done(copy.append_block(b"two"))
    assert await content(copy) == b"onetwo"
