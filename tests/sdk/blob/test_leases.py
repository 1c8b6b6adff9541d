"""Leases as the official client takes them, and the article's three ways of locking with them."""

import asyncio
from typing import Any

from azure.storage.blob import BlobLeaseClient
from azure.storage.blob.aio import BlobLeaseClient as AsyncBlobLeaseClient

from tests.sdk.clients import SYNC, Sdk, content, done, items, refused

OWN_ID = "11111111-2222-3333-4444-555555555555"
OTHER_ID = "99999999-8888-7777-6666-555555555555"


def lease_client(sdk: Sdk, resource: Any, lease_id: str | None = None) -> Any:
    return (BlobLeaseClient if sdk.form == SYNC else AsyncBlobLeaseClient)(resource, lease_id)


async def new_blob(sdk: Sdk) -> Any:
    container = await sdk.new_container()
    return await done(container.upload_blob("blob", b"data"))


async def test_the_five_actions_on_a_blob(sdk: Sdk) -> None:
    blob = await new_blob(sdk)
    etag = (await done(blob.get_blob_properties())).etag
    lease = await done(blob.acquire_lease(15, OWN_ID))
    assert lease.id == OWN_ID
    await done(lease.renew())
    await done(lease.change(OTHER_ID))
    assert lease.id == OTHER_ID
    properties = await done(blob.get_blob_properties())
    assert (properties.lease.state, properties.lease.status, properties.lease.duration) == (
        "leased",
        "locked",
        "fixed",
    )
    assert properties.etag == etag
    await done(lease.release())
    assert (await done(blob.get_blob_properties())).lease.state == "available"
    await done(blob.acquire_lease(-1))
    assert (await done(blob.get_blob_properties())).lease.duration == "infinite"
    assert await done(lease_client(sdk, blob).break_lease(lease_break_period=0)) == 0
    assert (await done(blob.get_blob_properties())).lease.state == "broken"


async def test_the_five_actions_on_a_container(sdk: Sdk) -> None:
    container = await sdk.new_container()
    lease = await done(container.acquire_lease(60))
    assert (await done(container.get_container_properties())).lease.state == "leased"
    with refused(412, "LeaseIdMissing"):
        await done(container.delete_container())
    await done(container.set_container_metadata({"a": "b"}))
    await done(lease.renew())
    await done(lease.change(OTHER_ID))
    assert 0 < await done(lease.break_lease(lease_break_period=30)) <= 30
    assert (await done(container.get_container_properties())).lease.state == "breaking"
    await done(container.delete_container(lease=lease))


async def test_a_breaking_lease_still_locks(sdk: Sdk) -> None:
    blob = await new_blob(sdk)
    lease = await done(blob.acquire_lease(60))
    await done(lease.break_lease(lease_break_period=30))
    with refused(412, "LeaseIdMissing"):
        await done(blob.delete_blob())
    with refused(409, "LeaseAlreadyPresent"):
        await done(blob.acquire_lease(15))
    await done(blob.set_blob_metadata({"a": "b"}, lease=lease))


async def test_an_expired_lease_can_be_renewed_until_the_blob_is_written(sdk: Sdk) -> None:
    kept, written = await new_blob(sdk), await new_blob(sdk)
    leases = [await done(blob.acquire_lease(15)) for blob in (kept, written)]
    for _ in range(200):
        states = [(await done(blob.get_blob_properties())).lease.state for blob in (kept, written)]
        if states == ["expired", "expired"]:
            break
        await asyncio.sleep(0.1)
    await done(leases[0].renew())
    await done(written.set_blob_metadata({"a": "b"}))
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        await done(leases[1].renew())


async def test_exclusive_write_shared_read(sdk: Sdk) -> None:
    """The holder of the lease writes; everybody reads without it."""
    blob = await new_blob(sdk)
    lease = await done(blob.acquire_lease(15))
    await done(blob.upload_blob(b"by the holder", overwrite=True, lease=lease))
    with refused(412, "LeaseIdMissing"):
        await done(blob.upload_blob(b"by another", overwrite=True))
    assert await content(blob) == b"by the holder"


async def test_exclusive_write_exclusive_read(sdk: Sdk) -> None:
    """Readers that give the id are refused once the lease is another's: only one reads and writes at a time."""
    blob = await new_blob(sdk)
    lease = await done(blob.acquire_lease(15))
    assert await content(blob, lease=lease) == b"data"
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        await content(blob, lease=OTHER_ID)
    former_id = lease.id
    await done(lease.release())
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        await content(blob, lease=former_id)


async def test_shared_write_exclusive_read(sdk: Sdk) -> None:
    """Everybody writes; who reads under a lease knows that nobody writes meanwhile."""
    blob = await new_blob(sdk)
    for text in (b"one", b"two"):
        await done(blob.upload_blob(text, overwrite=True))
    lease = await done(blob.acquire_lease(15))
    assert await content(blob, lease=lease) == b"two"
    with refused(412, "LeaseIdMissing"):
        await done(blob.upload_blob(b"three", overwrite=True))
    await done(lease.release())
    await done(blob.upload_blob(b"three", overwrite=True))
    assert await content(blob) == b"three"


async def test_a_lease_is_part_of_listings(sdk: Sdk) -> None:
    blob = await new_blob(sdk)
    await done(blob.acquire_lease(-1))
    container = sdk.service().get_container_client(blob.container_name)
    for item in await items(container.list_blobs()):
        assert (item.lease.state, item.lease.status, item.lease.duration) == ("leased", "locked", "infinite")
