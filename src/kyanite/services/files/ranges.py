"""The bytes of files over REST: Put Range, Get File, List Ranges."""

from collections.abc import Awaitable
from functools import partial

from kyanite.engine.api import Snapshot
from kyanite.model.content.opening import Opened, Reading
from kyanite.model.content.ranges import Range
from kyanite.model.files import file
from kyanite.model.files import ranges as file_ranges
from kyanite.model.files.entry import Entry
from kyanite.model.files.file import FileAtInstant, RangeWrite
from kyanite.services.files.file import ENCRYPTED, MIB, property_headers
from kyanite.services.files.properties import Headers, version_headers
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.downloads import download, download_structured
from kyanite.services.rest.file_paths import instant_of, path_of, readable_path_of
from kyanite.services.rest.headers import (
    base64_text,
    flag_of,
    lease_id_of,
    one_of,
    required,
    written_range_of,
)
from kyanite.services.rest.structured import data_length_of, is_structured, structured_headers
from kyanite.services.rest.timeouts import repeated_after_breaks
from kyanite.services.rest.uploads import ReceivedBody, store
from kyanite.slices import encoded
from kyanite.wire import crc64, iso_time, numbers, ranges, xml
from kyanite.wire.http import Response
from kyanite.wire.malformed import (
    Malformed,
    bad_header,
    bad_parameter,
    parameter_out_of_range,
)
from kyanite.wire.ranges import ByteRange

_WRITE_MAX_BYTES = 4 * MIB
_RANGES_MAX = 10_000
_UNPAGED_MAX = 500_000
_PAGED_SINCE = "2026-10-06"
_TO_THE_END = 1 << 62
_THROUGH_RENAMES = "x-ms-file-support-rename"


async def put_range(context: RequestContext) -> Response:
    """The response has both hashes of the range, whichever the request had."""
    headers = context.headers
    required(headers, "x-ms-write")
    clears = one_of(headers, "x-ms-write", ("update", "clear")) == "clear"
    wanted = written_range_of(headers)
    keeps = one_of(headers, "x-ms-file-last-write-time", ("now", "preserve")) == "preserve"
    length = data_length_of(context)
    path, lease_id, engine = path_of(context), lease_id_of(headers), context.store.engine
    if clears:
        if length:
            raise bad_header("Content-Length", str(length))
        request = RangeWrite(wanted.first, wanted.length or 0, None, keeps)
        entry = await file.write_range(engine, path, request, lease_id)
        hashes: Headers = []
    else:
        if (wanted.length or 0) > _WRITE_MAX_BYTES:
            raise Malformed("RequestBodyTooLarge", MaxLimit=str(_WRITE_MAX_BYTES))
        if length != wanted.length:
            raise bad_header("Content-Length", str(length))

        def transaction(received: ReceivedBody) -> Awaitable[Entry]:
            request = RangeWrite(wanted.first, length, received.payload, keeps)
            write = partial(file.write_range, engine, path, request, lease_id)
            return repeated_after_breaks(context, write)

        received, entry = await store(context, length, transaction, wants_md5=True)
        md5 = ("Content-MD5", base64_text(received.md5))
        hashes = [md5, ("x-ms-content-crc64", crc64.encode(received.crc64)), *structured_headers(context)]
    return Response(201, written_headers(entry) + hashes)


def written_headers(entry: Entry) -> Headers:
    """The headers in the response to any write of a range."""
    written = ("x-ms-file-last-write-time", iso_time.encode(entry.last_write_at))
    return [*version_headers(entry), written, ENCRYPTED]


async def get_file(context: RequestContext) -> Response:
    wanted = ranges.from_headers(context.headers)
    path, lease_id = readable_path_of(context), lease_id_of(context.headers)
    first = 0 if wanted is None else wanted.first
    length = (None if wanted is None else wanted.length) or _TO_THE_END

    def load(snap: Snapshot) -> FileAtInstant:
        location, entry = file.load_for_read(snap, path, lease_id, start=first, length=length)
        return FileAtInstant(entry, location.directory_id, snap.now)

    def describe(opened: Opened[FileAtInstant]) -> Response:
        """The stored hash is that of the whole file, so a response with a range returns it in another header."""
        entry = opened.record.entry
        headers = property_headers(context, entry, opened.record.parent_id, opened.at)
        md5 = entry.http.content_md5
        if md5:
            headers.append(("Content-MD5" if wanted is None else "x-ms-content-md5", base64_text(md5)))
        return Response(200, headers)

    request = Reading(load)
    if wanted is not None:
        request = Reading(load, wanted.first, wanted.last, is_whole=False)
    if is_structured(context):
        return await download_structured(context, request, describe)
    return await download(context, request, describe)


async def list_ranges(context: RequestContext) -> Response:
    """Paged for versions that support paging; otherwise all ranges, up to 500,000."""
    wanted = ranges.from_headers(context.headers) or ByteRange(0, None)
    since = instant_of(context, "prevsharesnapshot")
    through_renames = flag_of(context.headers, _THROUGH_RENAMES)
    if through_renames and since is None:
        raise bad_header(_THROUGH_RENAMES, context.headers[_THROUGH_RENAMES])
    list_page = partial(
        file_ranges.list_ranges,
        context.store.engine,
        readable_path_of(context),
        lease_id_of(context.headers),
        first=wanted.first,
        last=wanted.last,
        limit=min(_number_of(context.parameters, "maxresults", _RANGES_MAX, least=1), _RANGES_MAX),
        since=since,
        through_renames=through_renames,
    )
    found = await list_page(marker=_number_of(context.parameters, "marker", 0))
    listed, next_start = list(found.page.ranges), found.page.next_start
    is_paged = context.version >= _PAGED_SINCE or "maxresults" in context.parameters
    while next_start is not None and not is_paged and len(listed) < _UNPAGED_MAX:
        page = (await list_page(marker=next_start)).page
        listed += page.ranges
        next_start = page.next_start
    items = await encoded(listed, _item)
    more = "" if next_start is None else str(next_start)
    if more or is_paged:
        items.append(f"<NextMarker>{more}</NextMarker>".encode())
    headers = version_headers(found.entry)
    headers += [("Content-Type", "application/xml"), ("x-ms-content-length", str(found.entry.length))]
    return Response(200, headers, xml.document_of(b"<Ranges>", *items, b"</Ranges>"))


def _item(found: Range) -> str:
    name = "ClearRange" if found.is_clear else "Range"
    return f"<{name}><Start>{found.start}</Start><End>{found.end - 1}</End></{name}>"


def _number_of(parameters: dict[str, str], name: str, usual: int, *, least: int = 0) -> int:
    text = parameters.get(name)
    if not text:
        return usual
    number = numbers.decode(text)
    if number is None:
        raise bad_parameter(name, text)
    if number < least:
        raise parameter_out_of_range(name, text, least, _TO_THE_END)
    return min(number, _TO_THE_END)
