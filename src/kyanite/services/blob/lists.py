"""List Containers and List Blobs: the parameters in, the XML out.

The XML is built from templates, since a page of 5,000 blobs is about 4 MB. What clients chose (names, metadata, content
headers) is escaped; what the server made (dates, numbers, ETags) needs no escape.
"""

from binascii import b2a_base64
from collections.abc import Callable
from functools import lru_cache, partial
from operator import mul
from typing import NamedTuple

from kyanite.model.blobs import container_listing, listing
from kyanite.model.blobs.container_listing import ContainerItem, ContainerListing, ContainerPosition
from kyanite.model.blobs.listed_rows import (
    BASE_BLOB,
    NO_PARTS,
    STAGING_AREA,
    ListedParts,
    instant_of,
    is_version,
)
from kyanite.model.blobs.listing import BlobItem, BlobListing, BlobPageStart
from kyanite.model.blobs.records import APPEND_BLOB, BLOCK_BLOB, PAGE_BLOB
from kyanite.model.records import CopyState
from kyanite.rules import leases, system_containers, tiers
from kyanite.rules.authorization import Access, AccessedResource, authorize
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.rules.retention import whole_days_left
from kyanite.services.blob import accesses, features
from kyanite.services.blob.container import key_of
from kyanite.services.blob.immutability import blob_elements, container_elements
from kyanite.services.blob.tiering import tier_elements
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.paging import list_page, list_request_of, metadata_element
from kyanite.services.rest.rendered_items import RenderedItems
from kyanite.services.rest.restoring import encode_version
from kyanite.slices import encoded
from kyanite.values import Instant
from kyanite.wire import http_date, iso_time, numbers
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_parameter
from kyanite.wire.tags import element as tags_element
from kyanite.wire.xml import escape, name_element, valid_text

BLOB_TYPES = {BLOCK_BLOB: "BlockBlob", PAGE_BLOB: "PageBlob", APPEND_BLOB: "AppendBlob"}
_LIST_TAGS = Access(account="* t", service="t", role="blobs/tags/read")
"""What a list with tags needs beside the permission to list."""
_POSITION_MAX = (1 << 64) - 1
_CONTAINER_PARTS = frozenset({"metadata", "deleted", "system"})
_BLOB_PARTS = (
    frozenset(
        {
            "snapshots",
            "versions",
            "deleted",
            "deletedwithversions",
            "metadata",
            "uncommittedblobs",
            "copy",
            "tags",
            "immutabilitypolicy",
            "legalhold",
        }
    )
    | features.LISTED_PARTS
)
_UNCOMMITTED = (
    "<Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"
    "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState></Properties>"
)
"""The properties of a blob that has staged blocks only."""
_BLOCK = "<BlobType>BlockBlob</BlobType>"
_KINDS = {
    BLOCK_BLOB: f"{_BLOCK}<AccessTier>{tiers.DEFAULT}</AccessTier><AccessTierInferred>true</AccessTierInferred>",
    PAGE_BLOB: "<BlobType>PageBlob</BlobType>",
    APPEND_BLOB: "<BlobType>AppendBlob</BlobType>",
}
"""The elements for the kind and the tier of a blob for which no tier was chosen."""
_UNLEASED = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"
_DELETED_LEASE = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>expired</LeaseState>"
"""What recorded answers of Azure have for every deleted container, leased before or not."""


async def list_containers(context: RequestContext) -> Response:
    prefix, first, limit, parts = list_request_of(context.parameters, _CONTAINER_PARTS)
    engine, account, with_metadata = context.store.engine, context.account.name, "metadata" in parts
    start = _container_start_of(first, context.parameters)
    hidden = system_containers.NEVER_LISTED if "system" in parts else system_containers.UNLISTED
    if "deleted" in parts:
        request = ContainerListing(prefix, start, limit, hidden)
        found = await container_listing.list_with_deleted(engine, account, request)
        items = await encoded(found.items, partial(_container_item, found.at, with_metadata))
        return list_page(context, limit, "Containers", items, _container_name_of(found.next_start))
    # A marker from a list with deleted ones may lie behind the container itself.
    first = f"{start.name}\0" if start.position else start.name
    page = await container_listing.list_containers(
        engine, account, prefix=prefix, first=first, limit=limit, hidden=hidden
    )
    write = partial(_container_item, page.at, with_metadata)
    items = await encoded(page.items, lambda item: write(ContainerItem(*item)))
    return list_page(context, limit, "Containers", items, page.next_name)


async def list_blobs(context: RequestContext) -> Response:
    parameters = context.parameters
    prefix, first, limit, parts = list_request_of(parameters, _BLOB_PARTS)
    features.check_listing(parts)
    if "tags" in parts:
        authorize(context.principal, _LIST_TAGS, AccessedResource("blob", context.is_read_only))
    request = BlobListing(
        prefix=prefix,
        delimiter=parameters.get("delimiter", ""),
        first=max(
            _start_of(first, parameters),
            BlobPageStart(parameters.get("startfrom", "")),
            key=lambda start: start.name,
        ),
        before=parameters.get("endbefore", ""),
        limit=limit,
        parts=ListedParts(
            snapshots="snapshots" in parts,
            versions="versions" in parts,
            deleted="deleted" in parts,
            only_versions="deletedwithversions" in parts,
            uncommitted="uncommittedblobs" in parts,
        ),
    )
    if request.parts.snapshots and request.delimiter:
        raise bad_parameter(
            "include", parameters["include"], "Snapshots are listed without a delimiter only."
        )
    page = await listing.list_blobs(context.store.engine, key_of(context), request)
    included = IncludedParts(
        "metadata" in parts,
        "copy" in parts,
        "tags" in parts,
        "immutabilitypolicy" in parts,
        "legalhold" in parts,
        "versions" in parts,
    )
    write = partial(_item, page.at, included)
    if context.account.settings.last_access_tracking:
        accessed = await accesses.elements_of(context, page.items)
        items = await encoded(page.items, partial(accesses.with_element, accessed, write))
    elif request.parts != NO_PARTS:
        items = await encoded(page.items, write)
    else:
        form = sum(map(mul, included, _FORMS))
        items = await _rendered.written(page.items.rows, form, partial(_written, write))
    delimiter = request.delimiter
    return list_page(
        context,
        limit,
        "Blobs",
        items,
        _name_of(page.next_start),
        attributes=f' ContainerName="{escape(context.container)}"',
        echo=f"<Delimiter>{escape(valid_text(delimiter))}</Delimiter>" if delimiter else "",
    )


class IncludedParts(NamedTuple):
    """What the items of a list of blobs include."""

    metadata: bool
    copy: bool
    tags: bool
    policy: bool
    legal_hold: bool
    versions: bool


_FORMS = (1, 2, 4, 8, 16, 32)
"""Each part that is included makes the items of a list differ."""
_rendered = RenderedItems()


def _written(write: Callable[[BlobItem], str], row: tuple[bytes, bytes]) -> tuple[str, bool]:
    item = listing.item_of(row)
    record = item.record
    return write(item), record is None or (record.lease == NO_LEASE and record.rehydration is None)


_VERSION_MARKER = "v"


def _start_of(marked: str, parameters: dict[str, str]) -> BlobPageStart:
    """A marker inside the rows of one name has their order after the name and a zero byte, which no name has.

    That of a snapshot is its instant, as in markers that earlier versions gave out, and that of a version has a letter.
    """
    name, _, text = marked.partition("\0")
    if not text:
        return BlobPageStart(name)
    number = numbers.decode(text.removeprefix(_VERSION_MARKER))
    if number is None or not 0 <= number <= STAGING_AREA:
        raise bad_parameter("marker", parameters["marker"])
    if number >= BASE_BLOB:
        return BlobPageStart(name, number)
    return BlobPageStart(name, min(2 * number + text.startswith(_VERSION_MARKER), BASE_BLOB))


def _name_of(start: BlobPageStart | None) -> str | None:
    """The name in the marker of the next page."""
    if start is None:
        return None
    if start.order in (0, BASE_BLOB, STAGING_AREA):
        return f"{start.name}\0{start.order}" if start.order else start.name
    letter = _VERSION_MARKER if is_version(start.order) else ""
    return f"{start.name}\0{letter}{instant_of(start.order)}"


def _container_start_of(marked: str, parameters: dict[str, str]) -> ContainerPosition:
    """A marker between deleted containers of one name has a position after the name and a zero byte."""
    name, _, text = marked.partition("\0")
    position = numbers.decode(text or "0")
    if position is None or not 0 <= position <= _POSITION_MAX:
        raise bad_parameter("marker", parameters["marker"])
    return ContainerPosition(name, position)


def _container_name_of(start: ContainerPosition | None) -> str | None:
    """The name in the marker of the next page."""
    if start is None:
        return None
    return f"{start.name}\0{start.position}" if start.position else start.name


def _container_item(now: Instant, with_metadata: bool, item: ContainerItem) -> str:
    record, retired = item.record, item.retired
    public = f"<PublicAccess>{record.public_access}</PublicAccess>" if record.public_access else ""
    metadata = metadata_element(record.metadata) if with_metadata else ""
    version, kept, lease = "", "", _UNLEASED
    if retired is not None:
        version = f"<Deleted>true</Deleted><Version>{encode_version(retired.deleted_at)}</Version>"
        kept = (
            f"<DeletedTime>{http_date.encode(retired.deleted_at)}</DeletedTime>"
            f"<RemainingRetentionDays>{whole_days_left(retired.expires_at, now)}</RemainingRetentionDays>"
        )
        lease = _DELETED_LEASE
    elif record.lease != NO_LEASE:
        lease = _lease(record.lease, now)
    return (
        f"<Container><Name>{escape(item.name)}</Name>{version}<Properties>"
        f"<Last-Modified>{http_date.encode(record.modified_at)}</Last-Modified>"
        f'<Etag>"{record.etag}"</Etag>{lease}{public}'
        "<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>"
        "<DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>"
        f"{container_elements(record)}{kept}</Properties>{metadata}</Container>"
    )


def _item(now: Instant, included: IncludedParts, item: BlobItem) -> str:
    name, record, snapshot = item.name, item.record, item.snapshot
    element = f"<Name>{name}</Name>" if name.isalnum() and name.isascii() else name_element(name)
    if record is None:
        return (
            f"<Blob>{element}{_UNCOMMITTED}</Blob>"
            if item.is_uncommitted
            else f"<BlobPrefix>{element}</BlobPrefix>"
        )
    http = record.http
    md5 = b2a_base64(http.content_md5, newline=False).decode("ascii") if http.content_md5 else ""
    before_md5, after_md5 = _content_headers(
        http.content_type,
        http.content_encoding,
        http.content_language,
        http.cache_control,
        http.content_disposition,
    )
    of_history, deleted, lease, of_kind = "", "", _UNLEASED, ""
    if snapshot is not None:
        of_history, lease = f"<Snapshot>{iso_time.encode(snapshot)}</Snapshot>", ""
    elif item.has_versions_only:
        of_history = "<HasVersionsOnly>true</HasVersionsOnly>"
    elif included.versions and record.version_at is not None:
        of_history = f"<VersionId>{iso_time.encode(record.version_at)}</VersionId>"
        if record.is_previous:
            lease = ""
        elif item.deletion is None:
            of_history += "<IsCurrentVersion>true</IsCurrentVersion>"
    if item.deletion is not None:
        of_history, lease = of_history + "<Deleted>true</Deleted>", "<LeaseStatus />"
        deleted = (
            f"<DeletedTime>{http_date.encode(item.deletion.at)}</DeletedTime>"
            f"<RemainingRetentionDays>{whole_days_left(item.deletion.gone_at, now)}</RemainingRetentionDays>"
        )
    elif record.lease != NO_LEASE:
        lease = _lease(record.lease, now)
    if record.is_sealed:
        of_kind = "<Sealed>true</Sealed>"
    elif record.kind == PAGE_BLOB:
        of_kind = f"<x-ms-blob-sequence-number>{record.sequence_number}</x-ms-blob-sequence-number>"
    kind_and_tier = _KINDS[record.kind] if not record.tier else _BLOCK + tier_elements(record, now)
    modified_at, created_at = record.modified_at, record.created_at
    modified = http_date.encode(modified_at)
    created = modified if created_at == modified_at else http_date.encode(created_at)
    metadata = metadata_element(record.metadata) if included.metadata else ""
    copied = _copy(record.copy) if included.copy and record.copy is not None else ""
    tag_count = f"<TagCount>{len(record.tags)}</TagCount>" if record.tags else ""
    tags = tags_element(record.tags) if included.tags and record.tags else ""
    if record.protection is not None:
        copied += blob_elements(
            record.protection, with_policy=included.policy, with_legal_hold=included.legal_hold
        )
    return (
        f"<Blob>{element}{of_history}<Properties><Creation-Time>{created}</Creation-Time>"
        f"<Last-Modified>{modified}</Last-Modified><Etag>0x{modified_at:X}</Etag>"
        f"<Content-Length>{record.length}</Content-Length>{before_md5}{md5}{after_md5}{of_kind}"
        f"{kind_and_tier}{lease}{copied}"
        f"<ServerEncrypted>true</ServerEncrypted>{deleted}{tag_count}</Properties>"
        f"{metadata}{tags}<OrMetadata /></Blob>"
    )


@lru_cache(maxsize=256)
def _content_headers(
    content_type: str, encoding: str, language: str, cache_control: str, disposition: str
) -> tuple[str, str]:
    """The elements before and after the MD5. The same few combinations are listed again and again."""
    return (
        f"<Content-Type>{escape(content_type)}</Content-Type>"
        f"<Content-Encoding>{escape(encoding)}</Content-Encoding>"
        f"<Content-Language>{escape(language)}</Content-Language>"
        "<Content-CRC64 /><Content-MD5>",
        "</Content-MD5>"
        f"<Cache-Control>{escape(cache_control)}</Cache-Control>"
        f"<Content-Disposition>{escape(disposition)}</Content-Disposition>",
    )


def _copy(state: CopyState) -> str:
    return (
        f"<CopyId>{state.id}</CopyId><CopyStatus>success</CopyStatus><CopySource>{escape(state.source)}</CopySource>"
        f"<CopyProgress>{state.length}/{state.length}</CopyProgress>"
        f"<CopyCompletionTime>{http_date.encode(state.completed_at)}</CopyCompletionTime>"
    )


def _lease(lease: Lease, now: Instant) -> str:
    status, state, duration = leases.properties_of(lease, now)
    elements = f"<LeaseStatus>{status}</LeaseStatus><LeaseState>{state}</LeaseState>"
    return f"{elements}<LeaseDuration>{duration}</LeaseDuration>" if duration else elements
