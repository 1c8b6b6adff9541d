"""The bytes of files over REST: Put Range, Get File, List Ranges."""

from collections.abc import Mapping
from functools import partial

from kyanite.engine.api import Snapshot
from kyanite.model.content.reading import Opened, Reading
from kyanite.model.files import file
from kyanite.model.files import ranges as file_ranges
from kyanite.model.files.entry import Entry
from kyanite.model.files.file import RangeWrite, Seen
from kyanite.services.files.file import ENCRYPTED, MIB, property_headers
from kyanite.services.files.properties import Headers, version_headers
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.downloads import download, download_structured
from kyanite.services.rest.file_paths import instant_of, path_of, readable_path_of
from kyanite.services.rest.headers import base64_text, flag_of, lease_id_of, one_of, required
from kyanite.services.rest.structured import data_length_of, is_structured, structured_headers, take_data
from kyanite.services.rest.uploads import commit
from kyanite.wire import crc64, iso_time, ranges, xml
from kyanite.wire.http import Response
from kyanite.wire.malformed import (
    Malformed,
    bad_header,
    bad_parameter,
    missing_header,
    parameter_out_of_range,
)
from kyanite.wire.ranges import ByteRange

_WRITE_MAX_BYTES = 4 * MIB
_RANGES_MAX = 10_000
_UNPAGED_MAX = 500_000
_PAGED_SINCE = "2026-10-06"
_TO_THE_END = 1 << 62
_THROUGH_RENAMES = "x-ms-file-support-rename"


async def put_range(exchange: Exchange) -> Response:
    """The answer tells both hashes of what was written, whichever the request brought."""
    headers = exchange.headers
    required(headers, "x-ms-write")
    clears = one_of(headers, "x-ms-write", ("update", "clear")) == "clear"
    asked = range_of(headers)
    keeps = one_of(headers, "x-ms-file-last-write-time", ("now", "preserve")) == "preserve"
    length = data_length_of(exchange)
    path, lease_id, engine = path_of(exchange), lease_id_of(headers), exchange.environment.engine
    if clears:
        if length:
            raise bad_header("Content-Length", str(length))
        ask = RangeWrite(asked.first, asked.length or 0, None, keeps)
        entry = await file.write_range(engine, path, ask, lease_id)
        hashes: Headers = []
    else:
        if (asked.length or 0) > _WRITE_MAX_BYTES:
            raise Malformed("RequestBodyTooLarge", MaxLimit=str(_WRITE_MAX_BYTES))
        if length != asked.length:
            raise bad_header("Content-Length", str(length))
        taken = await take_data(exchange, length)
        ask = RangeWrite(asked.first, length, taken.payload, keeps)
        entry = await commit(exchange.environment, taken, file.write_range(engine, path, ask, lease_id))
        md5 = ("Content-MD5", base64_text(taken.md5))
        hashes = [md5, ("x-ms-content-crc64", crc64.encode(taken.crc64)), *structured_headers(exchange)]
    return Response(201, written_headers(entry) + hashes)


def written_headers(entry: Entry) -> Headers:
    """What the answer to any write of a range says."""
    written = ("x-ms-file-last-write-time", iso_time.encode(entry.last_write_at))
    return [*version_headers(entry), written, ENCRYPTED]


async def get_file(exchange: Exchange) -> Response:
    asked = ranges.from_headers(exchange.headers)
    path, lease_id = readable_path_of(exchange), lease_id_of(exchange.headers)
    first = 0 if asked is None else asked.first
    length = (None if asked is None else asked.length) or _TO_THE_END

    def load(snap: Snapshot) -> Seen:
        place, entry = file.load_for_read(snap, path, lease_id, start=first, length=length)
        return Seen(entry, place.directory_id, snap.now)

    def describe(opened: Opened[Seen]) -> Headers:
        """The hash that is stored is that of the whole, so with a range it goes by another name."""
        entry = opened.record.entry
        headers = property_headers(exchange, entry, opened.record.parent_id, opened.at)
        md5 = entry.http.content_md5
        if md5:
            headers.append(("Content-MD5" if asked is None else "x-ms-content-md5", base64_text(md5)))
        return headers

    ask = Reading(load)
    if asked is not None:
        ask = Reading(load, asked.first, asked.last, is_whole=False)
    if is_structured(exchange):
        return await download_structured(exchange, ask, describe)
    return await download(exchange, ask, describe)


async def list_ranges(exchange: Exchange) -> Response:
    """A page, for who knows of pages; to others all ranges at once, up to very many."""
    asked = ranges.from_headers(exchange.headers) or ByteRange(0, None)
    since = instant_of(exchange, "prevsharesnapshot")
    through_renames = flag_of(exchange.headers, _THROUGH_RENAMES)
    if through_renames and since is None:
        raise bad_header(_THROUGH_RENAMES, exchange.headers[_THROUGH_RENAMES])
    list_page = partial(
        file_ranges.list_ranges,
        exchange.environment.engine,
        readable_path_of(exchange),
        lease_id_of(exchange.headers),
        last=asked.last,
        limit=min(_number_of(exchange.parameters, "maxresults", _RANGES_MAX, least=1), _RANGES_MAX),
        since=since,
        through_renames=through_renames,
    )
    found = await list_page(first=max(asked.first, _number_of(exchange.parameters, "marker", 0)))
    listed, next_start = list(found.page.ranges), found.page.next_start
    is_paged = exchange.version >= _PAGED_SINCE or "maxresults" in exchange.parameters
    while next_start is not None and not is_paged and len(listed) < _UNPAGED_MAX:
        page = (await list_page(first=next_start)).page
        listed += page.ranges
        next_start = page.next_start
    items = "".join(_item(each.start, each.end, each.is_clear) for each in listed)
    more = "" if next_start is None else str(next_start)
    if more or is_paged:
        items += f"<NextMarker>{more}</NextMarker>"
    headers = version_headers(found.entry)
    headers += [("Content-Type", "application/xml"), ("x-ms-content-length", str(found.entry.length))]
    return Response(200, headers, xml.document(f"<Ranges>{items}</Ranges>"))


def _item(start: int, end: int, is_clear: bool) -> str:
    name = "ClearRange" if is_clear else "Range"
    return f"<{name}><Start>{start}</Start><End>{end - 1}</End></{name}>"


def range_of(headers: Mapping[str, str]) -> ByteRange:
    """The range of a write, which must be told."""
    text = headers.get("x-ms-range") or headers.get("range")
    if not text:
        raise missing_header("x-ms-range")
    asked = ranges.decode(text)
    if asked is None or asked.last is None:
        raise bad_header("x-ms-range", text)
    return asked


def _number_of(parameters: Mapping[str, str], name: str, usual: int, *, least: int = 0) -> int:
    text = parameters.get(name)
    if not text:
        return usual
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise bad_parameter(name, text)
    if int(text) < least:
        raise parameter_out_of_range(name, text, least, _TO_THE_END)
    return int(text)
