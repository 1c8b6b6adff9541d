"""Shares with the official client."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare import (
    AccessPolicy,
    AccountSasPermissions,
    CorsRule,
    FileSasPermissions,
    Metrics,
    ResourceTypes,
    RetentionPolicy,
    ShareProtocolSettings,
    ShareSasPermissions,
    ShareSmbSettings,
    SmbMultichannel,
    generate_account_sas,
    generate_file_sas,
    generate_share_sas,
)

from tests.sdk.clients import Sdk, done, fresh_name, items, names, refused
from tests.sdk.files.clients import downloaded, new_share, share_service
from tests.sdk.raw_http import fetch

SDDL = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513"
    "D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)"
)


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


async def test_a_share_from_creation_to_deletion(sdk: Sdk) -> None:
    service = share_service(sdk)
    share = service.get_share_client(fresh_name())
    await done(share.create_share(metadata={"Color": "blue"}, quota=3, access_tier="Hot"))
    with refused(409, "ShareAlreadyExists", ResourceExistsError):
        await done(share.create_share())
    current = await done(share.get_share_properties())
    assert (current.quota, current.access_tier, current.metadata, current.protocols) == (
        3,
        "Hot",
        {"Color": "blue"},
        ["SMB"],
    )
    await done(share.set_share_quota(5))
    await done(share.set_share_metadata({"a": "b"}))
    await done(share.set_share_properties(access_tier="Cool"))
    current = await done(share.get_share_properties())
    assert (current.quota, current.access_tier, current.metadata) == (5, "Cool", {"a": "b"})
    listed = await items(service.list_shares(name_starts_with=share.share_name, include_metadata=True))
    assert [(each.name, each.quota, each.metadata) for each in listed] == [(share.share_name, 5, {"a": "b"})]
    await done(share.delete_share())
    with refused(404, "ShareNotFound", ResourceNotFoundError):
        await done(share.get_share_properties())
    await done(share.create_share())


async def test_snapshots_keep_the_whole_share(sdk: Sdk) -> None:
    share = await new_share(sdk)
    directory = await done(share.create_directory("d"))
    file = await done(directory.upload_file("f", b"old" * 100_000))
    snapshot = (await done(share.create_snapshot()))["snapshot"]
    await done(file.upload_file(b"new"))
    await done(directory.upload_file("g", b""))
    then = share_service(sdk).get_share_client(share.share_name, snapshot=snapshot)
    assert await downloaded(then.get_file_client("d/f")) == b"old" * 100_000
    assert await names(then.list_directories_and_files("d")) == ["f"]
    assert await names(share.list_directories_and_files("d")) == ["f", "g"]
    listed = await items(share_service(sdk).list_shares(share.share_name, include_snapshots=True))
    assert [each.snapshot for each in listed] == [snapshot, None]
    with refused(409, "ShareHasSnapshots"):
        await done(share.delete_share())
    await done(then.delete_share())
    with refused(404, "ShareSnapshotNotFound", ResourceNotFoundError):
        await downloaded(then.get_file_client("d/f"))
    await done(share.create_snapshot())
    await done(share.delete_share(delete_snapshots=True))


async def test_a_leased_share(sdk: Sdk) -> None:
    share = await new_share(sdk)
    lease = await done(share.acquire_lease(lease_duration=60))
    assert (await done(share.get_share_properties())).lease.state == "leased"
    with refused(412, "LeaseIdMissing"):
        await done(share.delete_share())
    await done(lease.renew())
    await done(lease.change("33333333-3333-3333-3333-333333333333"))
    await done(lease.release())
    lease = await done(share.acquire_lease(lease_duration=-1))
    assert await done(lease.break_lease()) == 0
    await done(share.delete_share())


async def test_permissions_and_stats(sdk: Sdk) -> None:
    share = await new_share(sdk)
    key = await done(share.create_permission_for_share(SDDL))
    assert await done(share.get_permission_for_share(key)) == SDDL
    file = share.get_file_client("f")
    await done(file.upload_file(b"12345", permission_key=key))
    assert (await done(file.get_file_properties())).permission_key == key
    assert await done(share.get_share_stats()) == 5


async def test_stored_policies_and_signatures(sdk: Sdk) -> None:
    share = await new_share(sdk)
    await done(share.get_file_client("f").upload_file(b"12345"))
    policy = AccessPolicy(ShareSasPermissions(read=True, list=True), expiry=soon())
    await done(share.set_share_access_policy({"readers": policy}))
    known = await done(share.get_share_access_policy())
    assert [each.id for each in known["signed_identifiers"]] == ["readers"]
    account, name = sdk.server.account, share.share_name
    token = generate_share_sas(account, name, sdk.key, policy_id="readers")
    reader = share_service(sdk, token).get_share_client(name)
    assert await names(reader.list_directories_and_files()) == ["f"]
    assert await downloaded(reader.get_file_client("f")) == b"12345"
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(reader.get_file_client("f").delete_file())
    with refused(403, "AuthorizationFailure"):
        await done(reader.get_share_properties())
    key = await done(share.create_permission_for_share(SDDL))
    assert await done(reader.get_permission_for_share(key)) == SDDL
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(reader.create_permission_for_share(SDDL))
    await done(share.set_share_access_policy({}))
    with refused(403, "AuthenticationFailed"):
        await downloaded(reader.get_file_client("f"))


async def test_a_signature_for_one_file_opens_one_file(sdk: Sdk) -> None:
    share = await new_share(sdk)
    directory = await done(share.create_directory("d"))
    for name in ("f", "g"):
        await done(directory.upload_file(name, b"12345"))
    token = generate_file_sas(
        sdk.server.account,
        share.share_name,
        ["d", "f"],
        sdk.key,
        permission=FileSasPermissions(read=True, write=True),
        expiry=soon(),
        content_type="text/override",
    )
    opened = share_service(sdk, token).get_share_client(share.share_name)
    file = opened.get_file_client("d/f")
    await done(file.upload_range(b"AB", 0, 2))
    assert await downloaded(file) == b"AB345"
    assert (await done(file.get_file_properties())).content_settings.content_type == "text/override"
    with refused(403, "AuthenticationFailed"):
        await downloaded(opened.get_file_client("d/g"))
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(file.delete_file())


async def test_an_account_signature_says_what_it_opens(sdk: Sdk) -> None:
    share = await new_share(sdk)
    token = generate_account_sas(
        sdk.server.account,
        sdk.key,
        ResourceTypes(container=True, object=True),
        AccountSasPermissions(read=True, list=True, create=True),
        soon(),
    )
    opened = share_service(sdk, token).get_share_client(share.share_name)
    await done(opened.create_directory("d"))
    assert await names(opened.list_directories_and_files()) == ["d"]
    assert (await done(opened.get_share_properties())).quota == 5120
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(opened.delete_share())


async def test_service_properties(sdk: Sdk) -> None:
    service = share_service(sdk)
    hours = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=5))
    rule = CorsRule(["https://example.org"], ["GET"], max_age_in_seconds=10)
    protocol = ShareProtocolSettings(smb=ShareSmbSettings(multichannel=SmbMultichannel(enabled=False)))
    await done(service.set_service_properties(hour_metrics=hours, cors=[rule], protocol=protocol))
    current = await done(service.get_service_properties())
    assert current["hour_metrics"].retention_policy.days == 5
    assert [each.allowed_origins for each in current["cors"]] == ["https://example.org"]
    assert current["protocol"].smb.multichannel.enabled is False
    await done(service.set_service_properties(cors=[]))


@pytest.mark.parametrize("name", ["a--b", "Upper", "x"])
async def test_names_that_no_share_can_have(sdk: Sdk, name: str) -> None:
    with pytest.raises(Exception, match=r"InvalidResourceName|OutOfRangeInput"):
        await done(share_service(sdk).create_share(name))


async def test_a_deleted_share_is_restored(sdk: Sdk) -> None:
    """The client cannot set the retention: elsewhere that belongs to the management of accounts."""
    service = share_service(sdk)
    await _retain(sdk, enabled=True)
    try:
        share = await new_share(sdk)
        await done(share.get_file_client("f").upload_file(b"12345"))
        await done(share.delete_share())
    finally:
        await _retain(sdk, enabled=False)
    listed = await items(service.list_shares(share.share_name, include_deleted=True))
    assert [(each.deleted, each.remaining_retention_days) for each in listed] == [(True, 3)]
    restored = await done(service.undelete_share(share.share_name, listed[0].version))
    assert await downloaded(restored.get_file_client("f")) == b"12345"


async def _retain(sdk: Sdk, *, enabled: bool) -> None:
    policy = "<Enabled>true</Enabled><Days>3</Days>" if enabled else "<Enabled>false</Enabled>"
    body = (
        "<StorageServiceProperties><ShareDeleteRetentionPolicy>"
        f"{policy}</ShareDeleteRetentionPolicy></StorageServiceProperties>"
    )
    token = generate_account_sas(
        sdk.server.account, sdk.key, ResourceTypes(service=True), AccountSasPermissions(write=True), soon()
    )
    url = f"{sdk.server.endpoints['file']}/?restype=service&comp=properties&{token}"
    answer = fetch(url, "PUT", {"x-ms-version": "2024-05-04"}, body.encode())
    assert answer.status == 202, answer.body
