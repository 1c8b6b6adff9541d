"""Copies, renames, comparisons and settings with all their options, with the official client."""

from datetime import UTC, datetime

from azure.core.exceptions import ResourceExistsError
from azure.storage.fileshare import NTFSAttributes

from tests.sdk.clients import Sdk, done, items, refused
from tests.sdk.files.clients import downloaded, new_share, share_service

SDDL = "O:SYG:SYD:(A;OICI;FA;;;BA)(A;;FA;;;SY)"
BORN, WRITTEN, CHANGED = (datetime(year, 2, 3, 4, 5, 6, tzinfo=UTC) for year in (2001, 2002, 2003))
TIMES = {"file_creation_time": BORN, "file_last_write_time": WRITTEN, "file_change_time": CHANGED}
LEASE_ID = "33333333-3333-3333-3333-333333333333"


async def test_a_copy_copies_all_properties_if_requested(sdk: Sdk) -> None:
    share = await new_share(sdk)
    source, target = share.get_file_client("source"), share.get_file_client("target")
    await done(
        source.create_file(
            5, file_permission=SDDL, file_attributes="Hidden|Archive", metadata={"a": "b"}, **TIMES
        )
    )
    copied = dict.fromkeys((*TIMES, "file_attributes", "file_permission"), "source")
    await done(target.start_copy_from_url(source.url, **copied))
    kept, current = await done(source.get_file_properties()), await done(target.get_file_properties())
    assert (current.file_attributes, current.permission_key) == (kept.file_attributes, kept.permission_key)
    assert (current.creation_time, current.last_write_time, current.change_time) == (BORN, WRITTEN, CHANGED)
    assert current.metadata == {"a": "b"}


async def test_a_copy_has_its_own_properties_if_given(sdk: Sdk) -> None:
    share = await new_share(sdk)
    source, target = share.get_file_client("source"), share.get_file_client("target")
    await done(source.upload_file(b"12345"))
    await done(target.create_file(1, file_attributes=NTFSAttributes(read_only=True)))
    with refused(409, "ReadOnlyAttribute", ResourceExistsError):
        await done(target.start_copy_from_url(source.url))
    lease = await done(target.acquire_lease(lease_id=LEASE_ID))
    with refused(412, "LeaseIdMissing"):
        await done(target.start_copy_from_url(source.url, ignore_read_only=True))
    key = await done(share.create_permission_for_share(SDDL))
    await done(
        target.start_copy_from_url(
            source.url,
            ignore_read_only=True,
            set_archive_attribute=True,
            file_attributes="Temporary|NoScrubData",
            permission_key=key,
            metadata={"c": "d"},
            lease=lease,
            **TIMES,
        )
    )
    current = await done(target.get_file_properties())
    assert current.file_attributes == "Archive | Temporary | NoScrubData"
    assert (current.permission_key, current.metadata, current.lease.state) == (key, {"c": "d"}, "leased")
    assert (current.creation_time, current.last_write_time, current.change_time) == (BORN, WRITTEN, CHANGED)
    assert await downloaded(target) == b"12345"


async def test_a_rename_sets_the_properties_of_the_request(sdk: Sdk) -> None:
    share = await new_share(sdk)
    file, there = share.get_file_client("f"), share.get_file_client("there")
    await done(file.upload_file(b"12345", metadata={"a": "b"}))
    lease = await done(file.acquire_lease())
    await done(there.create_file(1, file_attributes=NTFSAttributes(read_only=True)))
    lease_there = await done(there.acquire_lease())
    leases = {"source_lease": lease, "destination_lease": lease_there}
    with refused(409, "ReadOnlyAttribute", ResourceExistsError):
        await done(file.rename_file("there", overwrite=True, **leases))
    with refused(412, "LeaseIdMissing"):
        await done(file.rename_file("there", overwrite=True, ignore_read_only=True, source_lease=lease))
    moved = await done(
        file.rename_file(
            "there",
            overwrite=True,
            ignore_read_only=True,
            file_permission=SDDL,
            file_attributes=NTFSAttributes(hidden=True),
            content_type="text/plain",
            metadata={"c": "d"},
            **TIMES,
            **leases,
        )
    )
    current = await done(sdk.open(moved).get_file_properties())
    assert (current.file_attributes, current.metadata, current.content_settings.content_type) == (
        "Hidden",
        {"c": "d"},
        "text/plain",
    )
    assert (current.creation_time, current.last_write_time, current.change_time) == (BORN, WRITTEN, CHANGED)
    assert await done(share.get_permission_for_share(current.permission_key)) == SDDL
    assert await downloaded(moved) == b"12345"


async def test_a_directory_is_renamed_onto_a_file(sdk: Sdk) -> None:
    share = await new_share(sdk)
    directory = await done(share.create_directory("d"))
    await done(directory.upload_file("inside", b"12345"))
    await done(share.get_file_client("f").create_file(1, file_attributes=NTFSAttributes(read_only=True)))
    with refused(409, "ReadOnlyAttribute", ResourceExistsError):
        await done(directory.rename_directory("f", overwrite=True))
    moved = await done(
        directory.rename_directory(
            "f",
            overwrite=True,
            ignore_read_only=True,
            file_attributes="Hidden|Directory",
            metadata={"c": "d"},
        )
    )
    current = await done(sdk.open(moved).get_directory_properties())
    assert (current.file_attributes, current.metadata) == ("Hidden | Directory", {"c": "d"})
    assert await downloaded(moved.get_file_client("inside")) == b"12345"


async def test_names_that_end_in_dots_move_and_are_copied(sdk: Sdk) -> None:
    service = share_service(sdk, allow_trailing_dot=True, allow_source_trailing_dot=True)
    share = service.get_share_client((await new_share(sdk)).share_name)
    file = share.get_file_client("f.")
    await done(file.upload_file(b"12345"))
    await done(share.get_file_client("copy..").start_copy_from_url(file.url))
    sdk.open(await done(file.rename_file("g.")))
    found = {each.name for each in await items(share.list_directories_and_files())}
    assert found == {"copy..", "g."}


async def test_changes_since_a_snapshot_are_listed_through_a_rename(sdk: Sdk) -> None:
    share = await new_share(sdk)
    file = share.get_file_client("f")
    await done(file.upload_file(b"x" * 4096))
    before = (await done(share.create_snapshot()))["snapshot"]
    await done(file.upload_range(b"y", 600, 1))
    await done(file.clear_range(1024, 512))
    moved = sdk.open(await done(file.rename_file("g")))
    with refused(409, "PreviousSnapshotNotFound", ResourceExistsError):
        await items(moved.list_ranges_diff(before))
    changed = await items(moved.list_ranges_diff(before, include_renames=True))
    returned = [(each.start, each.end, each.cleared) for each in changed]
    assert returned == [(512, 1023, False), (1024, 1535, True)]


async def test_a_long_descriptor_is_used_by_its_key(sdk: Sdk) -> None:
    share = await new_share(sdk)
    text = SDDL + "".join(f"(A;;FA;;;S-1-5-21-1-2-3-{number})" for number in range(1000, 1600))
    assert len(text) > 8192
    key = await done(share.create_permission_for_share(text))
    directory = await done(share.create_directory("d", file_permission_key=key))
    assert (await done(directory.get_directory_properties())).permission_key == key
    assert await done(share.get_permission_for_share(key)) == text
    short = await done(share.create_permission_for_share(SDDL))
    binary = await done(share.get_permission_for_share(short, file_permission_format="binary"))
    file = share.get_file_client("f")
    await done(file.create_file(1, file_permission=binary, file_permission_format="binary"))
    assert (await done(file.get_file_properties())).permission_key == short


async def test_a_file_with_two_names_and_a_copy_with_its_owner(sdk: Sdk) -> None:
    share = await new_share(sdk, protocols="NFS")
    file = share.get_file_client("f")
    await done(file.create_file(5, owner="345", group="123", file_mode="0640"))
    linked = await done(share.get_file_client("l").create_hardlink("f"))
    assert (linked["link_count"], linked["owner"], linked["mode"]) == (2, "345", "0640")
    copy = share.get_file_client("c")
    await done(copy.start_copy_from_url(file.url, file_mode_copy_mode="source", owner_copy_mode="source"))
    current = await done(copy.get_file_properties())
    assert (current.owner, current.group, current.file_mode, current.link_count) == ("345", "123", "0640", 1)
    assert (current.file_attributes, current.permission_key) == (None, None)


async def test_what_a_share_is_provisioned_with(sdk: Sdk) -> None:
    share = await new_share(
        sdk,
        provisioned_iops=600,
        provisioned_bandwidth_mibps=150,
        paid_bursting_enabled=True,
        paid_bursting_iops=1000,
        paid_bursting_bandwidth_mibps=5000,
    )
    await done(share.set_share_properties(provisioned_iops=3000, root_squash="NoRootSquash"))
    listed = await items(share_service(sdk).list_shares(share.share_name))
    for current in (await done(share.get_share_properties()), listed[0]):
        assert (current.provisioned_iops, current.provisioned_bandwidth) == (3000, 150)
        assert (current.paid_bursting_enabled, current.paid_bursting_iops) == (True, 1000)
        assert current.paid_bursting_bandwidth_mibps == 5000
        assert (current.included_burst_iops, current.max_burst_credits_for_iops) == (9000, 6000 * 3600)
        assert current.next_provisioned_iops_downgrade
