"""Shares over REST."""

from msgspec.structs import replace

from kyanite.model.files import deleted_shares, directory, share, share_snapshots, usage
from kyanite.model.files.share import ShareKey, ShareRecord, ShareSettings
from kyanite.model.files.share_snapshots import Snapshots
from kyanite.services.files import provisioning
from kyanite.services.files.properties import Headers
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import readable_share_of, share_of
from kyanite.services.rest.headers import (
    delete_snapshots_of,
    lease_id_of,
    metadata_headers,
    metadata_of,
    number_of,
    one_of,
)
from kyanite.services.rest.leases import lease_answer, lease_headers, lease_request_of
from kyanite.services.rest.policies import policies_document, policies_of
from kyanite.services.rest.restoring import deletion_of
from kyanite.values import Instant
from kyanite.wire import http_date, iso_time, xml
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header

TIERS = ("TransactionOptimized", "Hot", "Cool", "Premium")
_SQUASHES = ("NoRootSquash", "RootSquash", "AllSquash")
_QUOTA_MAX_GIB = 256 * 1024


def version_headers(record: ShareRecord) -> Headers:
    return [("ETag", f'"{record.etag}"'), ("Last-Modified", http_date.encode(record.modified_at))]


async def create_share(context: RequestContext) -> Response:
    settings = _settings_of(context.headers, ShareSettings())
    protocol = one_of(context.headers, "x-ms-enabled-protocols", ("SMB", "NFS"), "SMB")
    settings = replace(settings, protocol=protocol)
    _check_squash(settings)
    record = await share.create(
        context.store.engine,
        share_of(context),
        metadata_of(context.request),
        settings,
        directory.create_root,
    )
    return Response(201, version_headers(record))


async def get_share_properties(context: RequestContext) -> Response:
    found = await share.get_properties(
        context.store.engine, readable_share_of(context), lease_id_of(context.headers)
    )
    record = found.record
    headers = version_headers(record) + _settings_headers(record) + lease_headers(record.lease, found.at)
    return Response(200, headers + metadata_headers(record.metadata))


async def get_share_metadata(context: RequestContext) -> Response:
    found = await share.get_properties(
        context.store.engine, readable_share_of(context), lease_id_of(context.headers)
    )
    return Response(200, version_headers(found.record) + metadata_headers(found.record.metadata))


async def set_share_properties(context: RequestContext) -> Response:
    headers = context.headers

    def to(record: ShareRecord, now: Instant) -> ShareRecord:
        settings = _settings_of(headers, record.settings)
        _check_squash(settings)
        changed_at = record.tier_changed_at if settings.tier == record.settings.tier else now
        return replace(record, settings=settings, tier_changed_at=changed_at)

    _settings_of(headers, ShareSettings())
    record = await share.change(context.store.engine, share_of(context), lease_id_of(headers), to)
    return Response(200, version_headers(record) + _settings_headers(record))


async def set_share_metadata(context: RequestContext) -> Response:
    metadata = metadata_of(context.request)
    record = await share.change(
        context.store.engine,
        share_of(context),
        lease_id_of(context.headers),
        lambda record, _: replace(record, metadata=metadata),
    )
    return Response(200, version_headers(record))


async def get_share_acl(context: RequestContext) -> Response:
    found = await share.get_properties(context.store.engine, share_of(context), lease_id_of(context.headers))
    headers = [*version_headers(found.record), ("Content-Type", "application/xml")]
    return Response(200, headers, policies_document(found.record.policies))


async def set_share_acl(context: RequestContext) -> Response:
    key, lease_id = share_of(context), lease_id_of(context.headers)
    policies = await policies_of(context)
    record = await share.change(
        context.store.engine, key, lease_id, lambda record, _: replace(record, policies=policies)
    )
    return Response(200, version_headers(record))


async def get_share_stats(context: RequestContext) -> Response:
    """The lengths of all files together; before 2018-03-28 in GiB, rounded up."""
    record, used = await usage.get_stats(
        context.store.engine, share_of(context), lease_id_of(context.headers)
    )
    if context.version >= "2018-03-28":
        text = f"<ShareUsageBytes>{used}</ShareUsageBytes>"
    else:
        text = f"<ShareUsage>{-(-used >> 30) if used else 0}</ShareUsage>"
    headers = [*version_headers(record), ("Content-Type", "application/xml")]
    return Response(200, headers, xml.document(f"<ShareStats>{text}</ShareStats>"))


async def lease_share(context: RequestContext) -> Response:
    request = lease_request_of(context)
    record, outcome = await share.lease(context.store.engine, readable_share_of(context), request)
    return lease_answer(request, outcome, version_headers(record))


async def snapshot_share(context: RequestContext) -> Response:
    """Take a snapshot of the share as it is now. Azure ignores a snapshot in the request, and so does this."""
    key = ShareKey(context.account.name, context.container)
    snapshot_at, record = await share_snapshots.take(context.store.engine, key, metadata_of(context.request))
    return Response(201, [*version_headers(record), ("x-ms-snapshot", iso_time.encode(snapshot_at))])


async def delete_share(context: RequestContext) -> Response:
    key = readable_share_of(context)
    choice = delete_snapshots_of(context.headers, ("include", "include-leased"), key.snapshot)
    await share_snapshots.delete(context.store.engine, key, lease_id_of(context.headers), Snapshots(choice))
    return Response(202)


async def restore_share(context: RequestContext) -> Response:
    deleted_at = deletion_of(context, "share")
    record = await deleted_shares.restore(context.store.engine, share_of(context), deleted_at)
    return Response(201, version_headers(record))


def _settings_of(headers: dict[str, str], present: ShareSettings) -> ShareSettings:
    """The present settings, with those that the request sets."""
    quota = number_of(headers, "x-ms-share-quota", _QUOTA_MAX_GIB)
    if quota == 0:
        raise bad_header("x-ms-share-quota", "0")
    return replace(
        present,
        quota_gib=quota or present.quota_gib,
        tier=one_of(headers, "x-ms-access-tier", TIERS, present.tier),
        root_squash=one_of(headers, "x-ms-root-squash", _SQUASHES, present.root_squash),
        others={**present.others, **provisioning.settings_of(headers)},
    )


def _check_squash(settings: ShareSettings) -> None:
    """Only NFS shares have a root to squash. ``NoRootSquash`` is accepted for any share."""
    if settings.root_squash not in {"", _SQUASHES[0]} and settings.protocol != "NFS":
        raise bad_header("x-ms-root-squash", settings.root_squash)


def _settings_headers(record: ShareRecord) -> Headers:
    settings = record.settings
    headers = [
        ("x-ms-share-quota", str(settings.quota_gib)),
        ("x-ms-access-tier", settings.tier or TIERS[0]),
        ("x-ms-enabled-protocols", settings.protocol),
    ]
    if record.tier_changed_at is not None:
        headers.append(("x-ms-access-tier-change-time", http_date.encode(record.tier_changed_at)))
    if settings.protocol == "NFS":
        headers.append(("x-ms-root-squash", settings.root_squash or _SQUASHES[0]))
    return headers + list(provisioning.figures_of(record).items())
