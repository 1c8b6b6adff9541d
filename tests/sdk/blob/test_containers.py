"""Containers: made, described, changed and deleted."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import AccessPolicy, ContainerSasPermissions

from tests.sdk.clients import Sdk, content, done, fresh_name, names, refused
from tests.sdk.raw_http import fetch

HOUR = timedelta(hours=1)


async def test_a_container_exists_from_its_creation_to_its_deletion(sdk: Sdk) -> None:
    container = sdk.service().get_container_client(fresh_name())
    assert await done(container.exists()) is False
    created = await done(container.create_container())
    assert created["etag"].startswith('"0x')
    assert await done(container.exists()) is True
    with refused(409, "ContainerAlreadyExists", ResourceExistsError):
        await done(container.create_container())
    await done(container.delete_container())
    assert await done(container.exists()) is False
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(container.delete_container())


async def test_a_name_can_be_reused_immediately_and_has_no_old_blobs(sdk: Sdk) -> None:
    container = await sdk.new_container(metadata={"first": "yes"}, public_access="container")
    await done(container.upload_blob("small", b"old"))
    await done(container.upload_blob("large", bytes(300_000)))
    before = await done(container.get_container_properties())
    await done(container.delete_container())
    await done(container.create_container())
    after = await done(container.get_container_properties())
    assert (after.metadata, after.public_access) == ({}, None)
    assert after.etag != before.etag
    assert await names(container.list_blobs()) == []
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        await content(container.get_blob_client("small"))


async def test_metadata_keeps_the_case_of_its_names(sdk: Sdk) -> None:
    metadata = {"Hello": "World", "camelCase": "Kept As It Is", "UPPER_9": "1 + 1 = 2", "_under": "~"}
    container = await sdk.new_container(metadata=metadata)
    before = await done(container.get_container_properties())
    assert before.metadata == metadata
    changed = await done(container.set_container_metadata({"Other": "x"}))
    after = await done(container.get_container_properties())
    assert after.metadata == {"Other": "x"}
    assert after.etag.strip('"') == changed["etag"].strip('"') != before.etag.strip('"')
    await done(container.set_container_metadata())
    assert (await done(container.get_container_properties())).metadata == {}


@pytest.mark.parametrize("name", ["no-dash", "1name", "dot.ted"])
async def test_metadata_names_that_are_no_identifiers_are_refused(sdk: Sdk, name: str) -> None:
    container = await sdk.new_container(metadata={"kept": "yes"})
    with refused(400, "InvalidMetadata"):
        await done(container.set_container_metadata({name: "value"}))
    assert (await done(container.get_container_properties())).metadata == {"kept": "yes"}


async def test_too_much_metadata_is_refused(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.set_container_metadata({"name": "v" * (8 * 1024 - 4)}))
    with refused(400, "MetadataTooLarge"):
        await done(container.set_container_metadata({"name": "v" * (8 * 1024 - 3)}))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Upper", "InvalidResourceName"),
        ("under_score", "InvalidResourceName"),
        ("double--dash", "InvalidResourceName"),
        ("-first", "InvalidResourceName"),
        ("last-", "InvalidResourceName"),
    ],
)
async def test_names_that_are_none_are_refused(sdk: Sdk, name: str, code: str) -> None:
    with refused(400, code):
        await done(sdk.service().create_container(name))


async def test_properties_tell_what_a_container_is(sdk: Sdk) -> None:
    container = await sdk.new_container(public_access="blob")
    found = await done(container.get_container_properties())
    assert found.name == container.container_name
    assert found.public_access == "blob"
    assert (found.lease.status, found.lease.state, found.lease.duration) == ("unlocked", "available", None)
    assert (found.has_immutability_policy, found.has_legal_hold) == (False, False)
    assert abs(datetime.now(UTC) - found.last_modified) < timedelta(minutes=1)


async def test_policies_and_public_level_come_back_as_they_were_set(sdk: Sdk) -> None:
    container = await sdk.new_container()
    assert await done(container.get_container_access_policy()) == {
        "public_access": None,
        "signed_identifiers": [],
    }
    start = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    policies = {
        "full": AccessPolicy(ContainerSasPermissions(read=True, list=True), start + HOUR, start),
        "only-expiry": AccessPolicy(expiry=start),
        "empty": AccessPolicy(),
    }
    await done(container.set_container_access_policy(policies, public_access="container"))
    found = await done(container.get_container_access_policy())
    assert found["public_access"] == "container"
    full, only_expiry, empty = found["signed_identifiers"]
    assert (full.id, full.access_policy.permission) == ("full", "rl")
    assert full.access_policy.start.startswith("2030-01-02T03:04:05")
    assert full.access_policy.expiry.startswith("2030-01-02T04:04:05")
    assert (only_expiry.id, only_expiry.access_policy.start) == ("only-expiry", None)
    assert only_expiry.access_policy.expiry.startswith("2030-01-02T03:04:05")
    assert empty.id == "empty"
    await done(container.set_container_access_policy({}))
    assert await done(container.get_container_access_policy()) == {
        "public_access": None,
        "signed_identifiers": [],
    }


async def test_a_container_that_changed_is_not_deleted_under_a_condition(sdk: Sdk) -> None:
    container = await sdk.new_container()
    modified = (await done(container.get_container_properties())).last_modified
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        await done(container.delete_container(if_unmodified_since=modified - HOUR))
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        await done(container.delete_container(if_modified_since=modified))
    with refused(400, "MultipleConditionHeadersNotSupported"):
        await done(
            container.delete_container(if_modified_since=modified - HOUR, if_unmodified_since=modified)
        )
    await done(container.delete_container(if_unmodified_since=modified))
    assert await done(container.exists()) is False


async def test_nothing_can_be_done_in_a_container_that_is_not_there(sdk: Sdk) -> None:
    container = sdk.service().get_container_client(fresh_name())
    blob = container.get_blob_client("blob")
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(container.upload_blob("small", b"data"))
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(container.upload_blob("large", bytes(3_000_000)))
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await names(container.list_blobs())
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(container.set_container_metadata({"a": "b"}))
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(blob.get_blob_properties())
    assert await done(blob.exists()) is False


async def test_blobs_of_the_root_container_have_no_container_in_their_address(sdk: Sdk) -> None:
    service = sdk.service()
    root = service.get_container_client("$root")
    if not await done(root.exists()):
        await done(root.create_container(public_access="blob"))
    name = fresh_name()
    await done(root.upload_blob(name, b"at the root"))
    assert fetch(f"{sdk.url}/{name}").body == b"at the root"
    assert fetch(f"{sdk.url}/$root/{name}").body == b"at the root"
    with refused(400, "InvalidResourceName"):
        await done(root.upload_blob("with/slash", b""))
