"""Directories and files with the official client."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from azure.storage.fileshare import ContentSettings, FileSasPermissions, NTFSAttributes, generate_file_sas

from tests.sdk.clients import Sdk, done, items, names, pages, refused
from tests.sdk.files.clients import downloaded, new_share

MIB = 1 << 20


async def test_a_directory_from_creation_to_deletion(sdk: Sdk) -> None:
    share = await new_share(sdk)
    directory = await done(share.create_directory("Dir", metadata={"a": "b"}))
    assert await done(directory.exists()) is True
    with refused(409, "ResourceAlreadyExists", ResourceExistsError):
        await done(share.create_directory("dir"))
    with refused(404, "ParentNotFound", ResourceNotFoundError):
        await done(share.create_directory("no/no"))
    inside = await done(directory.create_subdirectory("Sub"))
    current = await done(inside.get_directory_properties())
    parent = await done(directory.get_directory_properties())
    assert (current.parent_id, parent.metadata, parent.parent_id) == (parent.file_id, {"a": "b"}, "0")
    await done(directory.set_directory_metadata({"c": "d"}))
    await done(directory.set_http_headers(file_attributes=NTFSAttributes(hidden=True, directory=True)))
    parent = await done(directory.get_directory_properties())
    assert parent.metadata == {"c": "d"}
    assert "Hidden" in parent.file_attributes
    with refused(409, "DirectoryNotEmpty"):
        await done(directory.delete_directory())
    await done(directory.delete_subdirectory("sub"))
    await done(directory.delete_directory())
    assert await done(directory.exists()) is False


@pytest.mark.parametrize("size", [0, 11, 100_000, 9 * MIB + 1])
async def test_what_is_uploaded_is_downloaded(sdk: Sdk, size: int) -> None:
    share = await new_share(sdk)
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    settings = ContentSettings(content_type="text/plain", content_language="eo", cache_control="no-store")
    file = share.get_file_client("f")
    await done(file.upload_file(data, max_concurrency=3, content_settings=settings, metadata={"m": "1"}))
    assert await downloaded(file, max_concurrency=3) == data
    current = await done(file.get_file_properties())
    assert (current.size, current.metadata, current.content_settings.content_type) == (
        size,
        {"m": "1"},
        "text/plain",
    )
    assert current.file_attributes == "Archive"
    if size:
        assert await downloaded(file, offset=3, length=5) == data[3:8]


async def test_validated_content(sdk: Sdk) -> None:
    share = await new_share(sdk)
    file = share.get_file_client("f")
    await done(file.upload_file(b"12345" * 1000, validate_content=True))
    assert await downloaded(file, validate_content=True) == b"12345" * 1000


async def test_ranges_are_written_cleared_and_listed(sdk: Sdk) -> None:
    share = await new_share(sdk)
    file = share.get_file_client("f")
    await done(file.create_file(8192))
    await done(file.upload_range(b"x" * 2048, 1024, 2048))
    await done(file.clear_range(1536, 512))
    whole = file.list_ranges(results_per_page=1)
    assert [(each.start, each.end) for each in await items(whole)] == [(1024, 1535), (2048, 3071)]
    before = (await done(share.create_snapshot()))["snapshot"]
    await done(file.upload_range(b"y" * 512, 4096, 512))
    await done(file.clear_range(2048, 512))
    changed = await items(file.list_ranges_diff(before))
    returned = [(each.start, each.end, each.cleared) for each in changed]
    assert returned == [(2048, 2559, True), (4096, 4607, False)]
    with refused(416, "InvalidRange"):
        await done(file.upload_range(b"z", 8192, 1))
    await done(file.resize_file(1100))
    assert await downloaded(file) == bytes(1024) + b"x" * 76


async def test_properties(sdk: Sdk) -> None:
    share = await new_share(sdk)
    file = share.get_file_client("f")
    born = datetime(2001, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
    await done(
        file.create_file(
            10,
            file_attributes=NTFSAttributes(read_only=True, archive=True),
            file_creation_time=born,
            file_last_write_time=born,
        )
    )
    current = await done(file.get_file_properties())
    assert (current.creation_time, current.last_write_time) == (born, born)
    assert current.change_time > born
    with refused(409, "ReadOnlyAttribute"):
        await done(file.delete_file())
    await done(file.set_http_headers(ContentSettings(content_type="a/b"), file_attributes="None"))
    current = await done(file.get_file_properties())
    assert (current.creation_time, current.file_attributes, current.content_settings.content_type) == (
        born,
        "None",
        "a/b",
    )
    await done(file.set_file_metadata({"x": "y"}))
    assert (await done(file.get_file_properties())).metadata == {"x": "y"}
    await done(file.delete_file())
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        await done(file.get_file_properties())


async def test_a_leased_file(sdk: Sdk) -> None:
    share = await new_share(sdk)
    file = share.get_file_client("f")
    await done(file.upload_file(b"12345"))
    lease = await done(file.acquire_lease())
    with refused(412, "LeaseIdMissing"):
        await done(file.upload_range(b"x", 0, 1))
    await done(file.upload_range(b"x", 0, 1, lease=lease))
    await done(lease.change("33333333-3333-3333-3333-333333333333"))
    with refused(409, "LeaseAlreadyPresent"):
        await done(file.acquire_lease())
    await done(lease.release())
    lease = await done(file.acquire_lease())
    await done(lease.break_lease())
    await done(file.delete_file())


async def test_listings(sdk: Sdk) -> None:
    share = await new_share(sdk)
    for name in ("b", "A", "c"):
        await done(share.get_file_client(name).create_file(7))
    await done(share.create_directory("B2"))
    # The client gives the directories of a page before its files.
    assert await names(share.list_directories_and_files()) == ["B2", "A", "b", "c"]
    assert await names(share.list_directories_and_files(name_starts_with="B")) == ["B2", "b"]
    found = await pages(share.list_directories_and_files(results_per_page=3))
    assert [[each.name for each in page] for page in found] == [["B2", "A", "b"], ["c"]]
    root = share.get_directory_client("")
    listed = await items(
        root.list_directories_and_files(include=["timestamps", "Etag", "Attributes", "PermissionKey"])
    )
    assert {each.name for each in listed if each.is_directory} == {"B2"}
    assert all(each.etag and each.file_id and each.permission_key and each.last_write_time for each in listed)


@pytest.mark.parametrize("name", ["Größe 日本 😀", "a+b %41 #", "it's & that", " lead", "x" * 255])
async def test_names_of_all_kinds(sdk: Sdk, name: str) -> None:
    share = await new_share(sdk)
    file = share.get_file_client(name)
    await done(file.upload_file(b"1"))
    assert await names(share.list_directories_and_files()) == [name]
    assert await downloaded(share.get_file_client(name.upper() if name.isascii() else name)) == b"1"


async def test_renames(sdk: Sdk) -> None:
    share = await new_share(sdk)
    directory = await done(share.create_directory("d"))
    file = await done(directory.upload_file("f", b"12345"))
    moved = await done(file.rename_file("g", metadata={"n": "1"}))
    sdk.open(moved)
    assert await downloaded(moved) == b"12345"
    there = sdk.open(await done(directory.rename_directory("e")))
    assert await done(there.exists()) is True
    await done(there.upload_file("g", b"other"))
    with refused(409, "ResourceAlreadyExists", ResourceExistsError):
        await done(moved.rename_file("e/g"))
    replaced = sdk.open(await done(moved.rename_file("e/g", overwrite=True)))
    assert await downloaded(replaced) == b"12345"
    assert await names(share.list_directories_and_files()) == ["e"]


async def test_copies_from_files_and_blobs(sdk: Sdk) -> None:
    share = await new_share(sdk)
    source = share.get_file_client("source")
    await done(source.upload_file(b"x" * 100_000))
    target = share.get_file_client("target")
    copied = await done(target.start_copy_from_url(source.url))
    assert copied["copy_status"] == "success"
    assert await downloaded(target) == b"x" * 100_000
    container = await sdk.new_container()
    blob = await done(container.upload_blob("b", b"blob" * 50_000))
    with refused(401, "CannotVerifyCopySource", ClientAuthenticationError):
        await done(target.start_copy_from_url(blob.url))
    signed = generate_blob_sas(
        sdk.server.account,
        container.container_name,
        "b",
        account_key=sdk.key,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    await done(target.start_copy_from_url(f"{blob.url}?{signed}"))
    assert await downloaded(target) == b"blob" * 50_000
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        await done(target.start_copy_from_url(share.get_file_client("no").url))
    token = generate_file_sas(
        sdk.server.account,
        share.share_name,
        ["source"],
        sdk.key,
        permission=FileSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    await done(target.upload_range_from_url(f"{source.url}?{token}", 4, 8, 100))
    assert (await downloaded(target))[:16] == b"blob" + b"x" * 8 + b"blob"


async def test_handles_when_none_is_open(sdk: Sdk) -> None:
    share = await new_share(sdk)
    directory = await done(share.create_directory("d"))
    assert await items(directory.list_handles(recursive=True)) == []
    closed = await done(directory.close_all_handles(recursive=True))
    assert closed == {"closed_handles_count": 0, "failed_handles_count": 0}


async def test_links_owners_and_modes_of_a_share_that_speaks_nfs(sdk: Sdk) -> None:
    share = await new_share(sdk, protocols="NFS", root_squash="RootSquash")
    current = await done(share.get_share_properties())
    assert (current.protocols, current.root_squash) == (["NFS"], "RootSquash")
    file = share.get_file_client("f")
    await done(file.create_file(5, owner="345", group="123", file_mode="7777"))
    known = await done(file.get_file_properties())
    assert (known.owner, known.group, known.file_mode, known.nfs_file_type) == (
        "345",
        "123",
        "7777",
        "Regular",
    )
    link = share.get_file_client("l")
    await done(link.create_symlink(f"{share.share_name}/f", owner="345", group="123"))
    assert (await done(link.get_symlink()))["link_text"].endswith("f")
    directory = share.get_directory_client("d")
    await done(directory.create_directory(owner="1", group="2", file_mode="0755"))
    assert (await done(directory.get_directory_properties())).nfs_file_type == "Directory"
    assert {each.name for each in await items(share.list_directories_and_files())} == {"d", "f", "l"}
