"""What the official client for file shares can do."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from azure.storage.fileshare import (
    AccessPolicy,
    ContentSettings,
    Metrics,
    NTFSAttributes,
    RetentionPolicy,
    ShareServiceClient,
)

Step = Callable[[], Any]
_META = {"name": "value"}
_SDDL = "O:SYG:SYD:(A;OICI;FA;;;BA)"
_LEASE = "11111111-1111-1111-1111-111111111111"


def steps(url: str, key: str, options: dict[str, Any]) -> Iterator[Step]:
    service = ShareServiceClient(url, key, **options)
    retention = RetentionPolicy(enabled=True, days=5)
    yield lambda: service.set_service_properties(
        hour_metrics=Metrics(enabled=True, retention_policy=retention)
    )
    yield service.get_service_properties
    yield from _of_shares(service)
    yield from _of_directories(service)
    yield from _of_files(service)
    yield from _of_links(service)
    yield lambda: service.delete_share("spare-share", delete_snapshots=True)
    yield lambda: service.undelete_share("spare-share", "01DC000000000000")


def _of_shares(service: ShareServiceClient) -> Iterator[Step]:
    for name in ("share", "docs", "spare-share"):
        yield partial(service.create_share, name, metadata=_META, quota=10, access_tier="Hot")
    yield lambda: service.create_share("nfs", protocols="NFS", root_squash="NoRootSquash")
    share = service.get_share_client("share")
    yield lambda: list(
        service.list_shares(include_metadata=True, include_snapshots=True, include_deleted=True)
    )
    yield share.get_share_properties
    yield lambda: share.set_share_properties(quota=20, access_tier="Cool")
    yield lambda: share.set_share_metadata(_META)
    yield lambda: share.set_share_access_policy(
        {"reader": AccessPolicy("r", datetime(2027, 1, 1, tzinfo=UTC))}
    )
    yield share.get_share_access_policy
    yield share.get_share_stats
    yield lambda: share.create_snapshot(metadata=_META)
    keys: list[Any] = []
    yield lambda: keys.append(share.create_permission_for_share(_SDDL))
    yield lambda: share.get_permission_for_share(keys[0])
    lease: list[Any] = []
    yield lambda: lease.append(share.acquire_lease(lease_id=_LEASE, lease_duration=15))
    yield lease[0].renew
    yield lambda: lease[0].break_lease(lease_break_period=0)


def _of_directories(service: ShareServiceClient) -> Iterator[Step]:
    share = service.get_share_client("share")
    for name in ("dir", "dir/sub", "Ünder"):
        yield partial(share.create_directory, name, metadata=_META, file_permission=_SDDL)
    directory = share.get_directory_client("dir")
    yield directory.get_directory_properties
    yield lambda: directory.set_directory_metadata(_META)
    yield lambda: directory.set_http_headers(
        NTFSAttributes(directory=True, hidden=True), file_creation_time=datetime(2026, 1, 1, tzinfo=UTC)
    )
    yield lambda: list(
        directory.list_directories_and_files("s", include=["timestamps", "Etag"], include_extended_info=True)
    )
    yield lambda: list(directory.list_handles(recursive=True))
    yield lambda: directory.close_all_handles(recursive=True)
    yield lambda: share.get_directory_client("Ünder").rename_directory("new", overwrite=False, metadata=_META)
    yield lambda: share.delete_directory("new")


def _of_files(service: ShareServiceClient) -> Iterator[Step]:
    share = service.get_share_client("share")
    file, other = share.get_file_client("file"), share.get_file_client("dir/file")
    settings = ContentSettings("text/plain", "identity", "en", "inline", "no-cache")
    yield lambda: file.create_file(6000, content_settings=settings, metadata=_META, file_attributes="Archive")
    yield lambda: other.upload_file(b"data" * 500, validate_content=True)
    yield lambda: file.upload_range(
        b"x" * 100, 0, 100, validate_content=True, file_last_write_mode="preserve"
    )
    yield lambda: file.upload_range_from_url(other.url, 0, 100, 0)
    yield lambda: file.clear_range(0, 512)
    yield lambda: file.get_ranges(0, 5000)
    yield lambda: file.get_ranges_diff(share.create_snapshot()["snapshot"])
    yield lambda: file.download_file(offset=0, length=50, validate_content=True).readall()
    yield lambda: file.download_file().readall()
    yield file.get_file_properties
    yield lambda: file.set_file_metadata(_META)
    yield lambda: file.set_http_headers(
        settings, file_attributes="ReadOnly|Hidden", file_change_time=datetime(2026, 1, 1, tzinfo=UTC)
    )
    yield lambda: file.set_http_headers(settings, file_attributes="None")
    yield lambda: file.resize_file(7000)
    lease: list[Any] = []
    yield lambda: lease.append(file.acquire_lease(_LEASE))
    yield lambda: lease[0].change("22222222-2222-2222-2222-222222222222")
    yield lease[0].release
    yield lambda: other.start_copy_from_url(
        file.url, metadata=_META, file_permission="source", file_attributes="source", ignore_read_only=True
    )
    yield lambda: other.abort_copy(_LEASE)
    yield lambda: [*file.list_handles()]
    yield lambda: file.close_handle("5")
    yield lambda: other.rename_file("other.bin", overwrite=True, ignore_read_only=True, file_permission=_SDDL)
    yield lambda: share.get_file_client("other.bin").delete_file()


def _of_links(service: ShareServiceClient) -> Iterator[Step]:
    nfs = service.get_share_client("nfs")
    yield lambda: nfs.get_file_client("file").create_file(100, owner="0", group="0", file_mode="0644")
    yield lambda: nfs.get_file_client("link").create_symlink("../file", owner="0", group="0")
    yield nfs.get_file_client("link").get_symlink
    yield lambda: nfs.get_file_client("hard").create_hardlink("/file")
