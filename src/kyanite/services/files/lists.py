"""List Shares, and List Directories and Files: the parameters in, the XML out."""

from collections.abc import Callable
from functools import partial

from kyanite.model.files import listing, share_listing
from kyanite.model.files.entry import Entry
from kyanite.model.files.listing import DirectoryListing
from kyanite.model.files.share_listing import ShareItem, SharePosition
from kyanite.rules import file_attributes, leases
from kyanite.rules.retention import begun_days_left
from kyanite.services.files import provisioning
from kyanite.services.files.properties import encode_permission_key
from kyanite.services.files.share import TIERS
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import readable_path_of
from kyanite.services.rest.headers import flag_of
from kyanite.services.rest.paging import list_page, list_request_of, metadata_element
from kyanite.services.rest.restoring import encode_version
from kyanite.slices import encoded
from kyanite.values import Instant
from kyanite.wire import http_date, iso_time, numbers
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_parameter
from kyanite.wire.xml import escape_attribute, name_element, valid_text

_POSITION_MAX = (1 << 64) - 1
_SHARE_PARTS = frozenset({"metadata", "snapshots", "deleted"})
_IDS_SINCE = "2020-10-02"
_ENTRY_PARTS = frozenset({"timestamps", "etag", "attributes", "permissionkey"})
_ITEMS_PER_SLICE = 40
"""An entry with all its parts takes several times as long as a blob."""


async def list_shares(context: RequestContext) -> Response:
    prefix, first, limit, parts = list_request_of(context.parameters, _SHARE_PARTS)
    request = share_listing.ShareListing(
        prefix=prefix,
        first=_start_of(first, context.parameters),
        limit=limit,
        snapshots="snapshots" in parts,
        deleted="deleted" in parts,
    )
    page = await share_listing.list_shares(context.store.engine, context.account.name, request)
    items = await encoded(page.items, partial(_share_item, page.at, "metadata" in parts))
    start = page.next_start
    next_name = None if start is None else f"{start.name}\0{start.position}"
    return list_page(context, limit, "Shares", items, next_name)


def _start_of(marked: str, parameters: dict[str, str]) -> SharePosition:
    """A marker has a name, a zero byte, which no name contains, and a position."""
    name, _, position = marked.partition("\0")
    number = numbers.decode(position or "0")
    if number is None or not 0 <= number <= _POSITION_MAX:
        raise bad_parameter("marker", parameters["marker"])
    return SharePosition(name, number)


def _share_item(now: Instant, with_metadata: bool, item: ShareItem) -> str:
    record = item.record
    settings = record.settings
    version = f"<Snapshot>{iso_time.encode(item.snapshot)}</Snapshot>" if item.snapshot is not None else ""
    status, state, duration = leases.properties_of(record.lease, now)
    lasting = f"<LeaseDuration>{duration}</LeaseDuration>" if duration else ""
    changed = (
        f"<AccessTierChangeTime>{http_date.encode(record.tier_changed_at)}</AccessTierChangeTime>"
        if record.tier_changed_at is not None
        else ""
    )
    squash = (
        f"<RootSquash>{settings.root_squash or 'NoRootSquash'}</RootSquash>"
        if settings.protocol == "NFS"
        else ""
    )
    metadata = metadata_element(record.metadata) if with_metadata else ""
    kept = ""
    if item.retired is not None:
        version = f"<Deleted>true</Deleted><Version>{encode_version(item.retired.deleted_at)}</Version>"
        kept = (
            f"<DeletedTime>{http_date.encode(item.retired.deleted_at)}</DeletedTime>"
            f"<RemainingRetentionDays>{begun_days_left(item.retired.expires_at, now)}</RemainingRetentionDays>"
        )
    return (
        f"<Share><Name>{item.name}</Name>{version}<Properties>"
        f"<Last-Modified>{http_date.encode(record.modified_at)}</Last-Modified>"
        f'<Etag>"{record.etag}"</Etag><Quota>{settings.quota_gib}</Quota>'
        f"<AccessTier>{settings.tier or TIERS[0]}</AccessTier>{changed}"
        f"<LeaseStatus>{status}</LeaseStatus><LeaseState>{state}</LeaseState>{lasting}"
        f"<EnabledProtocols>{settings.protocol}</EnabledProtocols>{squash}{provisioning.elements(record)}{kept}"
        f"</Properties>{metadata}</Share>"
    )


async def list_directories_and_files(context: RequestContext) -> Response:
    parameters = context.parameters
    prefix, first, limit, parts = list_request_of(parameters, _ENTRY_PARTS)
    request = DirectoryListing(prefix=prefix, first=first, limit=limit)
    page = await listing.list_directory(context.store.engine, readable_path_of(context), request)
    flag_of(context.headers, "x-ms-file-extended-info")
    with_ids = context.version >= _IDS_SINCE
    item = _item_writer(parts, with_ids=with_ids)
    directory_id = f"<DirectoryId>{page.directory.id}</DirectoryId>" if with_ids else ""
    snapshot = parameters.get("sharesnapshot")
    received = f' ShareSnapshot="{escape_attribute(snapshot)}"' if snapshot else ""
    directory_path = escape_attribute(valid_text(context.object_name.removesuffix("/")))
    return list_page(
        context,
        limit,
        "Entries",
        await encoded(page.entries, item, _ITEMS_PER_SLICE),
        page.next_name,
        attributes=f' ShareName="{context.container}"{received} DirectoryPath="{directory_path}"',
        behind=directory_id,
    )


def _item_writer(parts: frozenset[str], *, with_ids: bool) -> Callable[[Entry], str]:
    """How one entry is written. Ids are always included, other properties as the request says."""
    with_times, with_etag = "timestamps" in parts, "etag" in parts
    with_attributes, with_permission = "attributes" in parts, "permissionkey" in parts
    if not parts:
        return _item_with_id if with_ids else _plain_item

    def write(entry: Entry) -> str:
        properties = "" if entry.is_directory else f"<Content-Length>{entry.length}</Content-Length>"
        if with_times:
            properties += _times(entry)
        if with_etag:
            properties += f'<Etag>"0x{entry.modified_at:X}"</Etag>'
        more = ""
        if with_attributes and entry.posix is None:
            more = f"<Attributes>{file_attributes.text_of(entry.attributes)}</Attributes>"
        if with_permission and entry.posix is None:
            more += f"<PermissionKey>{encode_permission_key(entry.permission)}</PermissionKey>"
        word = "Directory" if entry.is_directory else "File"
        return (
            f"<{word}>{name_element(entry.name)}<FileId>{entry.id}</FileId>"
            f"<Properties>{properties}</Properties>{more}</{word}>"
        )

    return write


def _item_with_id(entry: Entry) -> str:
    if entry.is_directory:
        return f"<Directory>{name_element(entry.name)}<FileId>{entry.id}</FileId><Properties /></Directory>"
    return (
        f"<File>{name_element(entry.name)}<FileId>{entry.id}</FileId><Properties>"
        f"<Content-Length>{entry.length}</Content-Length></Properties></File>"
    )


def _plain_item(entry: Entry) -> str:
    if entry.is_directory:
        return f"<Directory>{name_element(entry.name)}<Properties /></Directory>"
    return (
        f"<File>{name_element(entry.name)}<Properties><Content-Length>{entry.length}</Content-Length>"
        "</Properties></File>"
    )


def _times(entry: Entry) -> str:
    written = iso_time.encode(entry.last_write_at)
    accessed = iso_time.encode(entry.set_last_access_at) if entry.set_last_access_at else written
    return (
        f"<CreationTime>{iso_time.encode(entry.created_at)}</CreationTime>"
        f"<LastAccessTime>{accessed}</LastAccessTime><LastWriteTime>{written}</LastWriteTime>"
        f"<ChangeTime>{iso_time.encode(entry.changed_at)}</ChangeTime>"
        f"<Last-Modified>{http_date.encode(entry.modified_at)}</Last-Modified>"
    )
