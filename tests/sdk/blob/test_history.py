"""Versions and soft delete, with the official client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import (
    BlobSasPermissions,
    RetentionPolicy,
    StandardBlobTier,
    generate_blob_sas,
)

from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from tests.sdk.clients import Sdk, done, items, names, refused
from tests.sdk.operator import set_blob_settings


@asynccontextmanager
async def keeping(sdk: Sdk, *, versioning: bool = False, days: int | None = None) -> AsyncIterator[None]:
    """Versions are kept, or what is deleted. The client can set the second only."""
    retention = DeleteRetention(Retention(days), allow_permanent_delete=True)
    await set_blob_settings(sdk.server, ServiceProperties(versioning=versioning, delete_retention=retention))
    try:
        yield
    finally:
        nothing = ServiceProperties(versioning=False, delete_retention=DeleteRetention())
        await set_blob_settings(sdk.server, nothing)


async def upload(container: Any, data: bytes, name: str = "b", **options: Any) -> str:
    client = container.get_blob_client(name)
    return str((await done(client.upload_blob(data, overwrite=True, **options))).get("version_id") or "")


async def read(client: Any, **options: Any) -> bytes:
    stream = await done(client.download_blob(**options))
    return bytes(await done(stream.readall()))


async def test_every_write_is_a_version(sdk: Sdk) -> None:
    async with keeping(sdk, versioning=True):
        container = await sdk.new_container()
        client = container.get_blob_client("b")
        first = await upload(container, b"first", metadata={"a": "1"})
        second = await upload(container, b"second")
        third = (await done(client.set_blob_metadata({"b": "2"})))["version_id"]
        assert first < second < third
        assert await read(client, version_id=first) == b"first"
        properties = await done(client.get_blob_properties(version_id=first))
        assert (properties.version_id, properties.is_current_version) == (first, None)
        assert properties.metadata == {"a": "1"}
        assert properties.lease.state is None
        current = await done(client.get_blob_properties())
        assert (current.version_id, current.is_current_version) == (third, True)
        found = await items(container.list_blobs(include=["versions"]))
        assert [each.version_id for each in found] == [first, second, third]
        assert [each.is_current_version for each in found] == [None, None, True]
        pages = await items(container.list_blobs(include=["versions"], results_per_page=1))
        assert [each.version_id for each in pages] == [first, second, third]
        assert [each.version_id for each in await items(container.list_blobs())] == [None]


async def test_versions_are_deleted_and_promoted(sdk: Sdk) -> None:
    async with keeping(sdk, versioning=True):
        container = await sdk.new_container()
        client = container.get_blob_client("b")
        first, second = await upload(container, b"first"), await upload(container, b"second")
        with refused(403, "OperationNotAllowedOnRootBlob", HttpResponseError):
            await done(client.delete_blob(version_id=second))
        await done(client.delete_blob())
        with refused(404, "BlobNotFound", ResourceNotFoundError):
            await done(client.get_blob_properties())
        (only,) = await items(container.list_blobs(include=["deletedwithversions"]))
        assert (only.name, only.has_versions_only, only.version_id) == ("b", True, None)
        source = f"{client.url}?versionid={first}"
        copied = await done(client.start_copy_from_url(source))
        assert copied["copy_status"] == "success"
        assert await read(client) == b"first"
        await done(client.delete_blob(version_id=first))
        with refused(404, "BlobNotFound", ResourceNotFoundError):
            await done(client.get_blob_properties(version_id=first))
        assert await read(client, version_id=second) == b"second"


async def test_a_version_has_its_own_tier_and_tags(sdk: Sdk) -> None:
    async with keeping(sdk, versioning=True):
        container = await sdk.new_container()
        client = container.get_blob_client("b")
        first = await upload(container, b"first", tags={"a": "1"})
        await upload(container, b"second")
        await done(client.set_standard_blob_tier(StandardBlobTier.COOL, version_id=first))
        assert (await done(client.get_blob_properties(version_id=first))).blob_tier == "Cool"
        assert (await done(client.get_blob_properties())).blob_tier == "Hot"
        assert await done(client.get_blob_tags(version_id=first)) == {"a": "1"}
        assert await done(client.get_blob_tags()) == {}
        await done(client.set_blob_tags({"b": "2"}, version_id=first))
        assert await done(client.get_blob_tags(version_id=first)) == {"b": "2"}


async def test_another_type_is_refused_beside_versions(sdk: Sdk) -> None:
    async with keeping(sdk, versioning=True):
        container = await sdk.new_container()
        await upload(container, b"first")
        with refused(409, "InvalidBlobType", ResourceExistsError):
            await done(container.get_blob_client("b").create_append_blob())


async def test_tokens_for_versions(sdk: Sdk) -> None:
    async with keeping(sdk, versioning=True):
        container = await sdk.new_container()
        first, second = await upload(container, b"first"), await upload(container, b"second")

        def client_of(permission: str, version: str | None) -> Any:
            token = generate_blob_sas(
                sdk.server.account,
                container.container_name,
                "b",
                account_key=sdk.key,
                permission=BlobSasPermissions.from_string(permission),
                expiry=datetime.now(UTC) + timedelta(hours=1),
                version_id=version,
            )
            return sdk.blob_at(f"{sdk.url}/{container.container_name}/b?{token}")

        assert await read(client_of("r", first), version_id=first) == b"first"
        with refused(403, "AuthenticationFailed", HttpResponseError):
            await read(client_of("r", first), version_id=second)
        with refused(403, "AuthorizationPermissionMismatch", HttpResponseError):
            await done(client_of("rd", first).delete_blob(version_id=first))
        await done(client_of("rx", first).delete_blob(version_id=first))


async def test_batches_delete_versions(sdk: Sdk) -> None:
    async with keeping(sdk, versioning=True):
        container = await sdk.new_container()
        first, second = await upload(container, b"first"), await upload(container, b"second")
        await upload(container, b"third")
        parts = [{"name": "b", "version_id": each} for each in (first, second)]
        answers = await items(await done(container.delete_blobs(*parts)))
        assert [each.status_code for each in answers] == [202, 202]
        assert len(await items(container.list_blobs(include=["versions"]))) == 1


async def test_soft_delete_by_the_client_alone(sdk: Sdk) -> None:
    service = sdk.service()
    await done(service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=2)))
    try:
        found = await done(service.get_service_properties())
        assert (found["delete_retention_policy"].enabled, found["delete_retention_policy"].days) == (True, 2)
        container = await sdk.new_container()
        client = container.get_blob_client("b")
        await upload(container, b"first", metadata={"a": "1"})
        await upload(container, b"second", metadata={"a": "2"})
        etag = (await done(client.get_blob_properties())).etag
        await done(client.delete_blob())
        with refused(404, "BlobNotFound", ResourceNotFoundError):
            await read(client)
        assert await names(container.list_blobs()) == []
        (item,) = await items(container.list_blobs(include=["deleted", "metadata"]))
        assert (item.deleted, item.remaining_retention_days, item.metadata) == (True, 1, {"a": "2"})
        assert item.deleted_time is not None
        await done(client.undelete_blob())
        restored = await done(client.get_blob_properties())
        assert (restored.etag, restored.metadata) == (etag, {"a": "2"})
        snapshots = [
            each for each in await items(container.list_blobs(include=["snapshots"])) if each.snapshot
        ]
        assert len(snapshots) == 1
        old = container.get_blob_client("b", snapshot=snapshots[0].snapshot)
        assert await read(old) == b"first"
    finally:
        off = RetentionPolicy(enabled=False)
        await done(service.set_service_properties(delete_retention_policy=off))


async def test_deleted_snapshots_are_restored_with_their_blob(sdk: Sdk) -> None:
    async with keeping(sdk, days=7):
        container = await sdk.new_container()
        client = container.get_blob_client("b")
        await upload(container, b"data")
        snapshot = (await done(client.create_snapshot()))["snapshot"]
        await done(client.delete_blob(delete_snapshots="include"))
        found = await items(container.list_blobs(include=["snapshots", "deleted"]))
        assert [(each.snapshot, each.deleted) for each in found] == [(snapshot, True), (None, True)]
        await done(client.undelete_blob())
        assert await read(container.get_blob_client("b", snapshot=snapshot)) == b"data"
        assert await read(client) == b"data"


async def test_undelete_restores_versions_but_not_the_blob(sdk: Sdk) -> None:
    async with keeping(sdk, versioning=True, days=7):
        container = await sdk.new_container()
        client = container.get_blob_client("b")
        first = await upload(container, b"first")
        await upload(container, b"second")
        await done(client.delete_blob(version_id=first))
        found = await items(container.list_blobs(include=["versions", "deleted"]))
        assert [each.deleted for each in found] == [True, None]
        await done(client.delete_blob())
        await done(client.undelete_blob())
        assert await read(client, version_id=first) == b"first"
        with refused(404, "BlobNotFound", ResourceNotFoundError):
            await read(client)
