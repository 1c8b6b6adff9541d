"""Deleted containers and renamed ones, with the official client."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import StorageErrorCode

from kyanite.service_properties import Retention, ServiceProperties
from tests.sdk.clients import ASYNC, Sdk, done, fresh_name, items, names, refused
from tests.sdk.operator import set_blob_settings


@asynccontextmanager
async def keeping(sdk: Sdk, days: int = 7) -> AsyncIterator[None]:
    """Deleted containers are kept. The client cannot set this: elsewhere it belongs to the management of accounts."""
    await set_blob_settings(sdk.server, ServiceProperties(container_retention=Retention(days)))
    try:
        yield
    finally:
        await set_blob_settings(sdk.server, ServiceProperties(container_retention=Retention()))


async def listed(sdk: Sdk, name: str, **options: Any) -> list[Any]:
    return await items(sdk.service().list_containers(name, include_deleted=True, **options))


async def test_a_deleted_container_is_restored(sdk: Sdk) -> None:
    service = sdk.service()
    container = await sdk.new_container(metadata={"color": "blue"})
    name = container.container_name
    await done(container.upload_blob("blob", b"12345"))
    async with keeping(sdk):
        await done(container.delete_container())
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(container.get_container_properties())
    assert await names(service.list_containers(name)) == []
    (item,) = await listed(sdk, name, include_metadata=True)
    assert (item.name, item.deleted, item.metadata) == (name, True, {"color": "blue"})
    assert item.version
    restored = await done(service.undelete_container(name, item.version))
    assert await names(restored.list_blobs()) == ["blob"]
    assert (await done(restored.get_container_properties())).metadata == {"color": "blue"}
    assert [each.deleted for each in await listed(sdk, name)] == [None]
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(service.undelete_container(name, item.version))
    await done(restored.delete_container())
    assert await listed(sdk, name) == []


async def test_a_name_in_use_is_not_replaced(sdk: Sdk) -> None:
    service = sdk.service()
    async with keeping(sdk):
        container = await sdk.new_container()
        await done(container.upload_blob("old", b""))
        await done(container.delete_container())
        await done(container.create_container())
        await done(container.upload_blob("new", b""))
        first = [each for each in await listed(sdk, container.container_name) if each.deleted]
        with refused(409, "ContainerAlreadyExists", ResourceExistsError):
            await done(service.undelete_container(container.container_name, first[0].version))
        await done(container.delete_container())
    both = await listed(sdk, container.container_name, results_per_page=1)
    assert (both[0].version, len(both)) == (first[0].version, 2)
    await done(service.undelete_container(container.container_name, first[0].version))
    assert await names(container.list_blobs()) == ["old"]


async def test_a_leased_container_comes_back_without_its_lease(sdk: Sdk) -> None:
    container = await sdk.new_container()
    lease = await done(container.acquire_lease())
    async with keeping(sdk):
        with refused(412, "LeaseIdMissing"):
            await done(container.delete_container())
        await done(container.delete_container(lease=lease))
    (item,) = await listed(sdk, container.container_name)
    await done(sdk.service().undelete_container(container.container_name, item.version))
    properties = await done(container.get_container_properties())
    assert (properties.lease.state, properties.lease.status) == ("available", "unlocked")


async def test_restores_beside_creates(sdk: Sdk) -> None:
    """One wins, and the others are told why not."""
    if sdk.form != ASYNC:
        pytest.skip("The plain client does one thing at a time.")
    async with keeping(sdk):
        for _ in range(5):
            container = await sdk.new_container()
            name = container.container_name
            await container.delete_container()
            version = (await listed(sdk, name))[0].version
            acts = [sdk.service().undelete_container(name, version) for _ in range(4)]
            acts += [sdk.service().create_container(name) for _ in range(4)]
            found = Counter([_code(each) for each in await asyncio.gather(*acts, return_exceptions=True)])
            is_restored = not [each for each in await listed(sdk, name) if each.deleted]
            restored = {"ok": 1, "ContainerNotFound": 3, "ContainerAlreadyExists": 4}
            assert found == (restored if is_restored else {"ok": 1, "ContainerAlreadyExists": 7})


def _code(result: object) -> str:
    if isinstance(result, HttpResponseError):
        return StorageErrorCode(getattr(result, "error_code", "")).value
    assert not isinstance(result, BaseException), result
    return "ok"


# Renaming. The client has the operation, but does not offer it yet.


async def test_a_container_is_renamed(sdk: Sdk) -> None:
    service = sdk.service()
    first, second = await sdk.new_container(), await sdk.new_container()
    await done(first.upload_blob("blob", b"12345"))
    new_name = fresh_name()
    renamed = await done(service._rename_container(first.container_name, new_name))
    assert (await done(renamed.get_container_properties())).name == new_name
    assert await names(renamed.list_blobs()) == ["blob"]
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(first.get_container_properties())
    with refused(409, "ContainerAlreadyExists", ResourceExistsError):
        await done(service._rename_container(second.container_name, new_name))
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(service._rename_container("no-such-container", fresh_name()))


async def test_a_leased_container_is_renamed_by_its_holder(sdk: Sdk) -> None:
    service = sdk.service()
    container = await sdk.new_container()
    lease = await done(container.acquire_lease())
    new_name = fresh_name()
    with refused(412, "LeaseIdMissing"):
        await done(service._rename_container(container.container_name, new_name))
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        other = "22222222-2222-2222-2222-222222222222"
        await done(service._rename_container(container.container_name, new_name, lease=other))
    renamed = await done(service._rename_container(container.container_name, new_name, lease=lease.id))
    assert (await done(renamed.get_container_properties())).lease.state == "leased"
    await done(renamed.delete_container(lease=lease.id))
