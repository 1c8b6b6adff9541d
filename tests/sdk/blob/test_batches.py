"""Blob Batch as the official client sends it."""

import pytest
from azure.storage.blob import PartialBatchErrorException, StandardBlobTier

from tests.sdk.clients import Sdk, done, items


async def test_many_blobs_are_deleted_by_one_request(sdk: Sdk) -> None:
    container = await sdk.new_container()
    wanted = [f"folder/{number} ä" for number in range(20)]
    for name in [*wanted, "kept"]:
        await done(container.upload_blob(name, b"data"))
    answers = await items(await done(container.delete_blobs(*wanted)))
    assert [answer.status_code for answer in answers] == [202] * 20
    assert [blob.name for blob in await items(container.list_blobs())] == ["kept"]


async def test_a_part_that_fails_has_its_own_answer(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("there", b"data"))
    with pytest.raises(PartialBatchErrorException) as caught:
        await done(container.delete_blobs("there", "not there"))
    assert [answer.status_code for answer in caught.value.parts] == [202, 404]
    assert await items(container.list_blobs()) == []


async def test_tiers_and_snapshots(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blobs = [await done(container.upload_blob(name, b"data")) for name in ("a", "b")]
    answers = await items(await done(container.set_standard_blob_tier_blobs(StandardBlobTier.COOL, "a", "b")))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [(await done(blob.get_blob_properties())).blob_tier for blob in blobs] == ["Cool", "Cool"]
    await done(blobs[0].create_snapshot())
    await done(container.delete_blobs("a", "b", delete_snapshots="include"))
    assert await items(container.list_blobs(include=["snapshots"])) == []
