"""Immutability policies and legal holds as the official client sets and sees them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import (
    BlobImmutabilityPolicyMode,
    BlobSasPermissions,
    ImmutabilityPolicy,
    generate_blob_sas,
)

from kyanite.server.management.client import call
from tests.sdk.clients import Sdk, done, fresh_name, items, refused
from tests.server_process import ServerProcess

ACCOUNT = "kept"
KEY = "a2VwdCBpbW11dGFibGU="
SETTINGS = {"versioning": True, "version_level_immutability": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """With an account whose new containers have version-level immutability."""
    with ServerProcess("--workers", "2", location=tmp_path_factory.mktemp("store")) as started:
        call(started.location, "account add", name=ACCOUNT, keys=[KEY], settings=SETTINGS)
        call(started.location, "account add", name=ServerProcess.account, keys=[started.account_key])
        yield started
        assert started.is_running(), started.errors
        assert not [line for line in started.log if line.get("level") in {"error", "critical"}]


def operator(sdk: Sdk, command: str, container: Any, **arguments: object) -> Any:
    return call(
        sdk.server.location,
        f"container {command}",
        account=container.account_name,
        container=container.container_name,
        **arguments,
    )


async def new_versions(sdk: Sdk) -> Any:
    """A new container with version-level immutability."""
    url = sdk.url.replace(ServerProcess.account, ACCOUNT)
    service = sdk.service(url, credential={"account_name": ACCOUNT, "account_key": KEY})
    return await done(service.create_container(fresh_name()))


def policy(
    seconds: float = 3600, mode: BlobImmutabilityPolicyMode = BlobImmutabilityPolicyMode.UNLOCKED
) -> ImmutabilityPolicy:
    until = (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)
    return ImmutabilityPolicy(expiry_time=until, policy_mode=mode)


async def test_a_policy_of_a_container(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("old", b"old"))
    operator(sdk, "immutability set", container, days=1)
    assert (await done(container.get_container_properties())).has_immutability_policy is True
    (listed,) = await items(sdk.service().list_containers(container.container_name))
    assert (listed.has_immutability_policy, listed.has_legal_hold) == (True, False)
    for act in (
        blob.delete_blob,
        lambda: blob.upload_blob(b"new", overwrite=True),
        lambda: blob.set_blob_metadata({"a": "1"}),
        blob.create_snapshot,
    ):
        with refused(409, "BlobImmutableDueToPolicy"):
            await done(act())
    await done(container.upload_blob("new", b"new"))
    with refused(409, "ContainerProtectedFromDeletion"):
        await done(container.delete_container())
    operator(sdk, "immutability lock", container)
    with refused(409, "ContainerImmutabilityPolicyLocked"):
        await done(container.delete_container())
    assert await done((await done(blob.download_blob())).readall()) == b"old"


async def test_legal_holds_of_a_container(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data"))
    operator(sdk, "legal-hold set", container, tags=["case1"])
    assert (await done(container.get_container_properties())).has_legal_hold is True
    with refused(409, "BlobImmutableDueToLegalHold"):
        await done(blob.delete_blob())
    with refused(409, "ContainerHasLegalHold"):
        await done(container.delete_container())
    operator(sdk, "legal-hold clear", container, tags=["case1"])
    await done(blob.delete_blob())
    await done(container.delete_container())


async def test_append_blobs_grow_under_a_policy_that_allows_it(sdk: Sdk) -> None:
    container = await sdk.new_container()
    operator(sdk, "immutability set", container, days=1, append_writes="append")
    blob = container.get_blob_client("log")
    await done(blob.create_append_blob())
    await done(blob.append_block(b"line"))
    with refused(409, "BlobImmutableDueToPolicy"):
        await done(blob.delete_blob())


async def test_the_policy_of_a_blob(sdk: Sdk) -> None:
    container = await new_versions(sdk)
    found = await done(container.get_container_properties())
    assert found.immutable_storage_with_versioning_enabled is True
    blob = await done(container.upload_blob("blob", b"data"))
    wanted = policy()
    answer = await done(blob.set_immutability_policy(immutability_policy=wanted))
    assert answer["immutability_policy_until_date"] == wanted.expiry_time
    assert answer["immutability_policy_mode"] == "unlocked"
    found = (await done(blob.get_blob_properties())).immutability_policy
    assert (found.expiry_time, found.policy_mode) == (wanted.expiry_time, "unlocked")
    (listed,) = await items(container.list_blobs(include=["immutabilitypolicy", "legalhold"]))
    assert listed.immutability_policy.expiry_time == wanted.expiry_time
    with refused(409, "BlobImmutableDueToPolicy"):
        await done(blob.delete_blob())
    await done(blob.delete_immutability_policy())
    found = (await done(blob.get_blob_properties())).immutability_policy
    assert found.expiry_time is None
    await done(blob.delete_blob())


async def test_a_locked_policy(sdk: Sdk) -> None:
    container = await new_versions(sdk)
    blob = await done(container.upload_blob("blob", b"data"))
    await done(blob.set_immutability_policy(policy(3600, BlobImmutabilityPolicyMode.LOCKED)))
    with refused(409, "BlobImmutableDueToPolicy"):
        await done(blob.set_immutability_policy(policy(1800, BlobImmutabilityPolicyMode.LOCKED)))
    with refused(409, "ImmutabilityPolicyDeleteOnLockedPolicy"):
        await done(blob.delete_immutability_policy())
    longer = policy(7200, BlobImmutabilityPolicyMode.LOCKED)
    await done(blob.set_immutability_policy(longer))
    found = (await done(blob.get_blob_properties())).immutability_policy
    assert (found.expiry_time, found.policy_mode) == (longer.expiry_time, "locked")


async def test_the_legal_hold_of_a_blob(sdk: Sdk) -> None:
    container = await new_versions(sdk)
    blob = await done(container.upload_blob("blob", b"data"))
    assert (await done(blob.set_legal_hold(True)))["legal_hold"] is True
    assert (await done(blob.get_blob_properties())).has_legal_hold is True
    (listed,) = await items(container.list_blobs(include=["legalhold"]))
    assert listed.has_legal_hold is True
    with refused(409, "BlobImmutableDueToLegalHold"):
        await done(blob.delete_blob())
    assert (await done(blob.set_legal_hold(False)))["legal_hold"] is False
    await done(blob.delete_blob())


async def test_policies_and_holds_of_new_blobs(sdk: Sdk) -> None:
    container = await new_versions(sdk)
    wanted = policy()
    options: dict[str, Any] = {"immutability_policy": wanted, "legal_hold": True}
    source = await done(container.upload_blob("block", b"data", **options))
    blobs = {name: container.get_blob_client(name) for name in ("append", "page", "list", "copy", "url")}
    await done(blobs["append"].create_append_blob(**options))
    await done(blobs["page"].create_page_blob(512, **options))
    await done(blobs["list"].stage_block("1", b"data"))
    await done(blobs["list"].commit_block_list(["1"], **options))
    await done(blobs["copy"].start_copy_from_url(source.url, **options))
    token = generate_blob_sas(
        ACCOUNT,
        container.container_name,
        "block",
        account_key=KEY,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    await done(blobs["url"].start_copy_from_url(f"{source.url}?{token}", requires_sync=True, **options))
    for blob in (source, *blobs.values()):
        found = await done(blob.get_blob_properties())
        assert found.immutability_policy.expiry_time == wanted.expiry_time, blob.blob_name
        assert found.has_legal_hold is True, blob.blob_name
        await done(blob.set_legal_hold(False))
        await done(blob.delete_immutability_policy())


async def test_an_overwrite_keeps_the_protected_version(sdk: Sdk) -> None:
    container = await new_versions(sdk)
    locked = policy(3600, BlobImmutabilityPolicyMode.LOCKED)
    blob = container.get_blob_client("blob")
    first = await done(blob.upload_blob(b"first", immutability_policy=locked, legal_hold=True))
    second = await done(blob.upload_blob(b"second", overwrite=True))
    found = await done(blob.get_blob_properties())
    assert (found.immutability_policy.expiry_time, found.has_legal_hold) == (None, None)
    old = await done(blob.get_blob_properties(version_id=first["version_id"]))
    assert (old.immutability_policy.expiry_time, old.has_legal_hold) == (locked.expiry_time, True)
    with refused(409, "BlobImmutableDueToLegalHold"):
        await done(blob.delete_blob(version_id=first["version_id"]))
    await done(blob.set_legal_hold(False, version_id=first["version_id"]))
    with refused(409, "BlobImmutableDueToPolicy"):
        await done(blob.delete_blob(version_id=first["version_id"]))
    await done(blob.delete_blob())
    await done(blob.set_immutability_policy(policy(), version_id=second["version_id"]))
    with refused(409, "BlobImmutableDueToPolicy"):
        await done(blob.delete_blob(version_id=second["version_id"]))
    await done(blob.delete_immutability_policy(version_id=second["version_id"]))
    await done(blob.delete_blob(version_id=second["version_id"]))
    downloaded = await done(blob.download_blob(version_id=first["version_id"]))
    assert await done(downloaded.readall()) == b"first"


async def test_the_default_policy_of_a_container(sdk: Sdk) -> None:
    container = await new_versions(sdk)
    operator(sdk, "immutability set", container, days=2)
    blob = await done(container.upload_blob("blob", b"data"))
    found = (await done(blob.get_blob_properties())).immutability_policy
    left = found.expiry_time - datetime.now(UTC)
    assert timedelta(days=1, hours=23) < left <= timedelta(days=2, seconds=1)
    assert found.policy_mode == "unlocked"
    own = policy()
    await done(blob.upload_blob(b"own", overwrite=True, immutability_policy=own))
    found = (await done(blob.get_blob_properties())).immutability_policy
    assert found.expiry_time == own.expiry_time
    with refused(409, "ContainerImmutableStorageWithVersioningEnabled"):
        await done(container.delete_container())
