"""What the official client for blobs can do."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.storage.blob import (
    AccessPolicy,
    BlobAnalyticsLogging,
    BlobBlock,
    BlobServiceClient,
    ContainerSasPermissions,
    ContentSettings,
    CorsRule,
    Metrics,
    RetentionPolicy,
    StandardBlobTier,
)

Step = Callable[[], Any]
_META = {"name": "value", "Other": "x"}
_LEASE = "11111111-1111-1111-1111-111111111111"


def steps(url: str, key: str, options: dict[str, Any]) -> Iterator[Step]:
    service = BlobServiceClient(url, key, **options)
    yield from _of_service(service)
    yield from _of_container(service)
    yield from _of_block_blobs(service)
    yield from _of_other_blobs(service)
    yield from _of_copies(service)
    yield from _of_leases(service)
    box = service.get_container_client("box")
    yield lambda: box.delete_blobs("long", "a.b/c d")
    yield lambda: box.set_standard_blob_tier_blobs("Cool", "block", "dir/block")
    yield lambda: box.get_blob_client("block").delete_blob(delete_snapshots="include")
    yield lambda: service.delete_container("spare")


def _of_service(service: BlobServiceClient) -> Iterator[Step]:
    retention = RetentionPolicy(enabled=True, days=5)
    rule = CorsRule(
        ["*"], ["GET", "PUT"], allowed_headers=["x-ms-*"], exposed_headers=["*"], max_age_in_seconds=5
    )
    yield lambda: service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(
            read=True, write=True, delete=True, retention_policy=retention
        ),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=retention),
        cors=[rule],
        target_version="2021-12-02",
    )
    yield service.get_service_properties
    yield service.get_service_stats
    yield service.get_account_information
    yield lambda: list(
        service.list_containers(name_starts_with="b", include_metadata=True, results_per_page=2)
    )
    yield lambda: list(service.find_blobs_by_tags("a = 'b'"))
    yield lambda: service.get_user_delegation_key(datetime.now(UTC), datetime.now(UTC) + timedelta(hours=1))


def _of_container(service: BlobServiceClient) -> Iterator[Step]:
    for name in ("box", "crate", "spare"):
        yield partial(service.create_container, name, metadata=_META, public_access="blob")
    box = service.get_container_client("box")
    yield box.get_container_properties
    yield lambda: box.set_container_metadata(_META)
    until, since = datetime(2027, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    policy = AccessPolicy(ContainerSasPermissions(read=True), until, since)
    yield lambda: box.set_container_access_policy({"reader": policy}, public_access="container")
    yield box.get_container_access_policy
    yield box.get_account_information
    yield box.exists


def _of_block_blobs(service: BlobServiceClient) -> Iterator[Step]:
    box = service.get_container_client("box")
    block = box.get_blob_client("block")
    settings = ContentSettings("text/plain", "identity", "en", "inline", "no-cache")
    for name in ("block", "dir/block", "ü block", "a.b/c d", "long"):
        yield partial(box.upload_blob, name, b"data" * 300, overwrite=True)
    yield lambda: block.upload_blob(
        b"x" * 100, overwrite=True, metadata=_META, content_settings=settings, validate_content=True
    )
    yield lambda: block.upload_blob(
        b"x", standard_blob_tier=StandardBlobTier.COOL, overwrite=True, tags={"a": "b"}
    )
    yield lambda: block.upload_blob(b"x", overwrite=False)
    yield lambda: block.stage_block("AAAA", b"one", validate_content=True)
    yield lambda: block.stage_block("AAAB", b"two")
    yield lambda: block.get_block_list("all")
    yield lambda: block.commit_block_list([BlobBlock("AAAA"), BlobBlock("AAAB")], metadata=_META)
    yield lambda: block.download_blob().readall()
    yield lambda: block.download_blob(offset=1, length=3, validate_content=True).readall()
    yield lambda: block.download_blob(match_condition=MatchConditions.IfPresent).readall()
    yield lambda: block.get_blob_properties(if_modified_since=datetime(2020, 1, 1, tzinfo=UTC))
    yield lambda: block.set_blob_metadata(_META, if_unmodified_since=datetime(2030, 1, 1, tzinfo=UTC))
    yield lambda: block.set_http_headers(settings)
    yield lambda: block.set_standard_blob_tier("Hot")
    yield lambda: block.set_blob_tags({"a": "b"})
    yield block.get_blob_tags
    yield block.create_snapshot
    yield lambda: block.query_blob("SELECT * from BlobStorage").readall()
    yield block.undelete_blob
    yield lambda: list(box.list_blobs(name_starts_with="d", include=["snapshots", "metadata", "copy"]))
    yield lambda: list(box.walk_blobs(delimiter="/", include=["uncommittedblobs"]))
    yield lambda: list(box.list_blobs(results_per_page=2))


def _of_other_blobs(service: BlobServiceClient) -> Iterator[Step]:
    box = service.get_container_client("box")
    append, page = box.get_blob_client("append"), box.get_blob_client("page")
    yield lambda: append.create_append_blob(metadata=_META)
    yield lambda: append.append_block(
        b"abc", appendpos_condition=0, maxsize_condition=100, validate_content=True
    )
    yield lambda: append.append_block_from_url(box.get_blob_client("long").url, 0, 5)
    yield append.seal_append_blob
    yield lambda: page.create_page_blob(8192, sequence_number=3)
    yield lambda: page.upload_page(b"p" * 512, 512, 512, if_sequence_number_lte=5)
    yield lambda: page.clear_page(0, 512)
    yield lambda: page.upload_pages_from_url(page.url, 0, 512, 512)
    yield lambda: page.resize_blob(4096)
    yield lambda: page.set_sequence_number("update", "7")
    yield lambda: page.get_page_ranges(0, 1024)
    yield lambda: list(page.list_page_ranges(results_per_page=1))
    yield lambda: page.get_page_ranges(previous_snapshot_diff=str(page.create_snapshot()["snapshot"]))


def _of_copies(service: BlobServiceClient) -> Iterator[Step]:
    box = service.get_container_client("box")
    block, target = box.get_blob_client("long"), service.get_blob_client("crate", "block")
    yield lambda: target.start_copy_from_url(
        block.url, metadata=_META, standard_blob_tier=StandardBlobTier.HOT
    )
    yield lambda: target.start_copy_from_url(block.url, requires_sync=True)
    yield lambda: target.abort_copy(_LEASE)
    yield lambda: target.upload_blob_from_url(block.url, overwrite=True, include_source_blob_properties=True)
    yield lambda: target.stage_block_from_url("AAAC", block.url, 0, 10)


def _of_leases(service: BlobServiceClient) -> Iterator[Step]:
    yield from _of_lease(service.get_container_client("crate"))
    yield from _of_lease(service.get_blob_client("box", "block"))


def _of_lease(client: Any) -> Iterator[Step]:
    lease: list[Any] = []
    yield lambda: lease.append(client.acquire_lease(15, _LEASE))
    yield lease[0].renew
    yield lambda: lease[0].change("22222222-2222-2222-2222-222222222222")
    yield lambda: lease[0].break_lease(0)
    yield lease[0].release
