"""Access tiers as the official client sets and sees them."""

from azure.storage.blob import RehydratePriority, StandardBlobTier

from tests.sdk.clients import Sdk, done, items, refused


async def test_a_blob_is_archived_and_rehydrated(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data"))
    found = await done(blob.get_blob_properties())
    assert (found.blob_tier, found.blob_tier_inferred) == ("Hot", True)
    await done(blob.set_standard_blob_tier(StandardBlobTier.ARCHIVE))
    with refused(409, "BlobArchived"):
        await done(blob.download_blob())
    await done(blob.set_standard_blob_tier(StandardBlobTier.COOL, rehydrate_priority=RehydratePriority.high))
    found = await done(blob.get_blob_properties())
    assert (found.blob_tier, found.archive_status) == ("Archive", "rehydrate-pending-to-cool")
    assert (found.rehydrate_priority, found.blob_tier_inferred) == ("High", None)
    (listed,) = await items(container.list_blobs())
    assert (listed.blob_tier, listed.archive_status) == ("Archive", "rehydrate-pending-to-cool")
    assert listed.blob_tier_change_time == found.blob_tier_change_time is not None


async def test_a_copy_goes_to_the_tier_that_is_named(sdk: Sdk) -> None:
    container = await sdk.new_container()
    source = await done(container.upload_blob("source", b"data", standard_blob_tier=StandardBlobTier.COLD))
    copy = container.get_blob_client("copy")
    await done(copy.start_copy_from_url(source.url, standard_blob_tier=StandardBlobTier.COOL))
    assert (await done(source.get_blob_properties())).blob_tier == "Cold"
    assert (await done(copy.get_blob_properties())).blob_tier == "Cool"
