"""Get Page Ranges: which pages of a page blob hold data, or what has changed in it since a snapshot."""

from urllib.parse import urlsplit

from kyanite.model.blobs import page_blob
from kyanite.model.content.ranges import Range
from kyanite.services.blob.blob import access_conditions_of, found_key_of, version_headers
from kyanite.services.rest.context import RequestContext
from kyanite.slices import encoded
from kyanite.values import Instant
from kyanite.wire import iso_time, numbers, ranges, uri, xml
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header, bad_parameter
from kyanite.wire.ranges import ByteRange

_RANGES_MAX = 10_000
_MARKER_MAX = 1 << 62
"""Beyond the end of every blob."""
_PREVIOUS_URL = "x-ms-previous-snapshot-url"


async def get_page_ranges(context: RequestContext) -> Response:
    wanted = ranges.from_headers(context.headers) or ByteRange(0, None)
    found = await page_blob.page_ranges(
        context.store.engine,
        found_key_of(context),
        access_conditions_of(context.headers),
        first=max(wanted.first, _marker_of(context.parameters)),
        last=wanted.last,
        limit=_limit_of(context.parameters),
        since=_previous_of(context),
    )
    items = await encoded(found.page.ranges, _element)
    marker = "" if found.page.next_start is None else str(found.page.next_start)
    headers = version_headers(found.record)
    headers += [("Content-Type", "application/xml"), ("x-ms-blob-content-length", str(found.record.length))]
    more = f"<NextMarker>{marker}</NextMarker>" if marker or "maxresults" in context.parameters else ""
    return Response(200, headers, xml.document_of(b"<PageList>", *items, more.encode(), b"</PageList>"))


def _element(found: Range) -> str:
    name = "ClearRange" if found.is_clear else "PageRange"
    return f"<{name}><Start>{found.start}</Start><End>{found.end - 1}</End></{name}>"


def _previous_of(context: RequestContext) -> Instant | None:
    """The snapshot to compare with: by its time or, for clients of managed disks, by its URL."""
    text = context.parameters.get("prevsnapshot")
    if text:
        instant = iso_time.decode(text)
        if instant is None:
            raise bad_parameter("prevsnapshot", text)
        return instant
    url = context.headers.get(_PREVIOUS_URL)
    if not url:
        return None
    instant = _snapshot_in(url, context)
    if instant is None:
        raise bad_header(_PREVIOUS_URL, url)
    return instant


def _snapshot_in(url: str, context: RequestContext) -> Instant | None:
    """The snapshot that the URL names, if it is one of the blob that the request names."""
    try:
        parts = urlsplit(url)
        target = uri.decode_target(parts.netloc, parts.path, context.target.service)
        text = uri.decode_query(parts.query).get("snapshot")
    except (Malformed, ValueError):
        return None
    own = context.target
    if (target.account, target.first, target.rest) != (own.account, own.first, own.rest):
        return None
    return None if text is None else iso_time.decode(text)


def _limit_of(parameters: dict[str, str]) -> int:
    text = parameters.get("maxresults")
    if not text:
        return _RANGES_MAX
    limit = numbers.decode(text)
    if limit is None or limit <= 0:
        raise bad_parameter("maxresults", text)
    return min(limit, _RANGES_MAX)


def _marker_of(parameters: dict[str, str]) -> int:
    text = parameters.get("marker")
    if not text:
        return 0
    start = numbers.decode(text)
    if start is None or start < 0:
        raise bad_parameter("marker", text)
    return min(start, _MARKER_MAX)
