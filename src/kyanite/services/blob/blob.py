"""Blobs of any kind over REST: Get Blob, properties, metadata, leases, tiers, snapshots, delete."""

from typing import Final

import msgspec

from kyanite.engine.api import Snapshot
from kyanite.model.blobs import blob, delete, snapshots
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.records import BLOCK_BLOB, PAGE_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content.opening import Opened, Reading
from kyanite.model.records import HttpHeaders
from kyanite.rules.preconditions import NONE
from kyanite.services.blob import accesses, features
from kyanite.services.blob.container import key_of
from kyanite.services.blob.immutability import protection_headers
from kyanite.services.blob.lists import BLOB_TYPES
from kyanite.services.blob.tag_headers import IF_TAGS, TAGS, check_permissions, with_tags
from kyanite.services.blob.tiering import priority_of, tier_headers, tier_of, tier_times_of
from kyanite.services.rest.blob_paths import readable_key_of
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.downloads import download, download_structured
from kyanite.services.rest.header_blocks import HeaderBlocks
from kyanite.services.rest.headers import (
    base64_text,
    conditions_of,
    copy_headers,
    delete_snapshots_of,
    lease_id_of,
    metadata_headers,
    metadata_of,
    required,
    stored_md5_of,
)
from kyanite.services.rest.leases import lease_answer, lease_headers, lease_request_of
from kyanite.services.rest.structured import is_structured
from kyanite.values import Instant
from kyanite.wire import http_date, iso_time, ranges
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_parameter

Headers = list[tuple[str, str]]

_FIELDS: Final = {
    "content-type": "content_type",
    "content-encoding": "content_encoding",
    "content-language": "content_language",
    "cache-control": "cache_control",
    "content-disposition": "content_disposition",
}
"""The fields of a record for the headers that a shared access signature may replace."""
_TIER_SINCE: Final = "2026-10-06"
"""Get Blob returns the tier since this version."""
_IS_CURRENT: Final = ("x-ms-is-current-version", "true")
SEALED: Final = ("x-ms-blob-sealed", "true")
_TYPE_HEADERS: Final = {kind: ("x-ms-blob-type", name) for kind, name in BLOB_TYPES.items()}


def blob_key_of(context: RequestContext, *, may_protect: bool = False) -> BlobKey:
    """The blob that a write names. Snapshots and previous versions are never written.

    ``may_protect`` is for the operations that support the headers of immutability.
    """
    features.check(context, may_protect=may_protect)
    if TAGS in context.headers or IF_TAGS in context.headers:
        check_permissions(context)
    if "snapshot" in context.parameters:
        raise bad_parameter("snapshot", context.parameters["snapshot"])
    if "versionid" in context.parameters:
        raise bad_parameter("versionid", context.parameters["versionid"])
    return BlobKey(
        key_of(context),
        context.object_name,
        tracks_access=context.account.settings.last_access_tracking,
    )


def found_key_of(context: RequestContext) -> BlobKey:
    """The blob, snapshot or version that a read, a delete or a change of tier names."""
    features.check(context)
    if IF_TAGS in context.headers:
        check_permissions(context)
    return readable_key_of(context)


def access_conditions_of(headers: dict[str, str]) -> AccessConditions:
    conditions = conditions_of(headers)
    lease_id = lease_id_of(headers) if "x-ms-lease-id" in headers else None
    if IF_TAGS in headers:
        conditions = with_tags(conditions, headers, IF_TAGS)
    return (
        UNCONDITIONAL if conditions is NONE and lease_id is None else AccessConditions(conditions, lease_id)
    )


def version_headers(record: BlobRecord) -> Headers:
    return [
        ("ETag", '"0x%X"' % record.modified_at),  # noqa: UP031 (as in etag_of)
        ("Last-Modified", http_date.encode(record.modified_at)),
    ]


def written_headers(record: BlobRecord) -> Headers:
    """The headers of a write that makes a version, if the account keeps versions."""
    headers = version_headers(record)
    if record.version_at is not None:
        headers.append(version_id_header(record.version_at))
    return headers


def version_id_header(version_at: Instant) -> tuple[str, str]:
    return "x-ms-version-id", iso_time.encode(version_at)


async def get_blob(context: RequestContext) -> Response:
    """The whole blob or a range."""
    wanted = ranges.from_headers(context.headers)
    key, access_conditions = found_key_of(context), access_conditions_of(context.headers)

    def load(snap: Snapshot) -> BlobRecord:
        return blob.load_to_be_read(snap, key, access_conditions)

    def describe(opened: "Opened[BlobRecord]") -> Response:
        response = _described(context, opened.record, opened.at, _OF_WHOLE if wanted is None else _OF_RANGE)
        if context.version >= _TIER_SINCE:
            response.headers += tier_headers(opened.record, opened.at)
        return response

    is_whole = wanted is None
    first, last = (0, None) if wanted is None else (wanted.first, wanted.last)
    request = Reading(load, first, last, is_whole=is_whole, needs_time=blob.depends_on_time)
    if is_structured(context):
        response = await download_structured(context, request, describe)
    else:
        response = await download(context, request, describe)
    if context.account.settings.last_access_tracking:
        await accesses.record_read(context, response)
    return response


async def get_blob_properties(context: RequestContext) -> Response:
    found = await blob.get_properties(
        context.store.engine, found_key_of(context), access_conditions_of(context.headers)
    )
    record = found.record
    response = _described(context, record, found.at, _OF_WHOLE)
    response.headers += tier_headers(record, found.at)
    if context.account.settings.last_access_tracking:
        response.headers += await accesses.header_of(context)
    response.length = record.length
    return response


async def get_blob_metadata(context: RequestContext) -> Response:
    found = await blob.get_properties(
        context.store.engine, found_key_of(context), access_conditions_of(context.headers)
    )
    return Response(200, version_headers(found.record) + metadata_headers(found.record.metadata))


async def set_blob_properties(context: RequestContext) -> Response:
    http = set_http_headers_of(context.headers)
    record = await blob.set_http_headers(
        context.store.engine, blob_key_of(context), http, access_conditions_of(context.headers)
    )
    return Response(200, version_headers(record))


def set_http_headers_of(headers: dict[str, str]) -> HttpHeaders:
    """Replaces all content headers: one that is not sent is cleared."""
    get = headers.get
    return HttpHeaders(
        content_type=get("x-ms-blob-content-type", ""),
        content_encoding=get("x-ms-blob-content-encoding", ""),
        content_language=get("x-ms-blob-content-language", ""),
        cache_control=get("x-ms-blob-cache-control", ""),
        content_disposition=get("x-ms-blob-content-disposition", ""),
        content_md5=stored_md5_of(headers) or b"",
    )


async def set_blob_metadata(context: RequestContext) -> Response:
    record = await blob.set_metadata(
        context.store.engine,
        blob_key_of(context),
        metadata_of(context.request),
        access_conditions_of(context.headers),
    )
    return Response(200, [*written_headers(record), ("x-ms-request-server-encrypted", "true")])


async def lease_blob(context: RequestContext) -> Response:
    request = lease_request_of(context)
    record, outcome = await blob.lease(
        context.store.engine,
        blob_key_of(context),
        request,
        access_conditions_of(context.headers).conditions,
    )
    return lease_answer(request, outcome, version_headers(record))


async def set_blob_tier(context: RequestContext) -> Response:
    """202 while the blob is being rehydrated from Archive."""
    required(context.headers, "x-ms-access-tier")
    is_pending = await blob.set_tier(
        context.store.engine,
        found_key_of(context),
        tier_of(context.headers),
        priority_of(context.headers),
        access_conditions_of(context.headers),
    )
    return Response(202 if is_pending else 200)


async def snapshot_blob(context: RequestContext) -> Response:
    snapshot = await snapshots.take(
        context.store.engine,
        blob_key_of(context),
        metadata_of(context.request),
        access_conditions_of(context.headers),
    )
    headers = [*version_headers(snapshot.record), ("x-ms-snapshot", iso_time.encode(snapshot.at))]
    if snapshot.version_at is not None:
        headers.append(version_id_header(snapshot.version_at))
    return Response(201, headers)


async def delete_blob(context: RequestContext) -> Response:
    key = found_key_of(context)
    wish = delete_snapshots_of(context.headers, ("include", "only"), key.snapshot or key.version)
    if "deletetype" in context.parameters:
        return await _delete_permanently(context, key)
    is_permanent = await delete.delete(
        context.store.engine,
        key,
        access_conditions_of(context.headers),
        Snapshots(wish) if wish else Snapshots.REFUSE,
        tier_times=tier_times_of(context.headers),
    )
    return Response(202, [("x-ms-delete-type-permanent", "true" if is_permanent else "false")])


async def _delete_permanently(context: RequestContext, key: BlobKey) -> Response:
    kind = context.parameters["deletetype"]
    if kind.lower() != "permanent" or (key.snapshot is None and key.version is None):
        raise bad_parameter("deletetype", kind)
    await delete.delete_permanently(context.store.engine, key)
    return Response(202, [("x-ms-delete-type-permanent", "true")])


async def undelete_blob(context: RequestContext) -> Response:
    await delete.undelete(context.store.engine, blob_key_of(context))
    return Response(200)


def _described(context: RequestContext, record: BlobRecord, now: Instant, blocks: HeaderBlocks) -> Response:
    """A response with the headers of Get Blob and of Get Blob Properties.

    Without a lease they do not depend on the time, so those of blobs that are read repeatedly are remembered.
    """
    is_usual = not context.overrides and "snapshot" not in context.parameters
    if is_usual:
        block = blocks.find(record)
        if block is not None:
            return block.response(200)
    headers = property_headers(context, record, now)
    md5 = record.http.content_md5
    if md5:  # That of the whole blob, so with a range it has another name.
        name = "Content-MD5" if blocks is _OF_WHOLE else "x-ms-blob-content-md5"
        headers.append((name, base64_text(md5)))
    if is_usual and record.lease.id is None:
        blocks.remember(record, headers)
    return Response(200, headers)


_OF_WHOLE, _OF_RANGE = HeaderBlocks(), HeaderBlocks()


def property_headers(context: RequestContext, record: BlobRecord, now: Instant) -> Headers:
    headers = version_headers(record)
    http, overrides = record.http, context.overrides
    if overrides:
        http = msgspec.structs.replace(http, **{_FIELDS[name]: value for name, value in overrides.items()})
    if http.content_type:
        headers.append(("Content-Type", http.content_type))
    if http.content_encoding:
        headers.append(("Content-Encoding", http.content_encoding))
    if http.content_language:
        headers.append(("Content-Language", http.content_language))
    if http.cache_control:
        headers.append(("Cache-Control", http.cache_control))
    if http.content_disposition:
        headers.append(("Content-Disposition", http.content_disposition))
    headers += (
        ("Accept-Ranges", "bytes"),
        ("x-ms-creation-time", http_date.encode(record.created_at)),
        _TYPE_HEADERS[record.kind],
        ("x-ms-server-encrypted", "true"),
    )
    if "snapshot" not in context.parameters:
        version_at = record.version_at
        headers += (
            lease_headers(record.lease, now)
            if version_at is None
            else _headers_of_version(record, version_at, now)
        )
    if record.kind != BLOCK_BLOB:
        headers += _kind_headers(record)
    if record.tags:
        headers.append(("x-ms-tag-count", str(len(record.tags))))
    if record.copy is not None:
        headers += copy_headers(record.copy)
    if record.protection is not None:
        headers += protection_headers(record.protection)
    if record.metadata:
        headers += metadata_headers(record.metadata)
    return headers


def _headers_of_version(record: BlobRecord, version_at: Instant, now: Instant) -> Headers:
    """Only the current version can be leased."""
    headers = [version_id_header(version_at)]
    if not record.is_previous:
        headers += (_IS_CURRENT, *lease_headers(record.lease, now))
    return headers


def _kind_headers(record: BlobRecord) -> Headers:
    """What only page blobs or append blobs have."""
    if record.kind == PAGE_BLOB:
        return [("x-ms-blob-sequence-number", str(record.sequence_number))]
    count = ("x-ms-blob-committed-block-count", str(record.appended))
    return [count, SEALED] if record.is_sealed else [count]
