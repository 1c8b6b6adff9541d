"""Page blobs over REST."""

from collections.abc import Mapping

from kyanite.model import creation, page_blob
from kyanite.model.creation import Draft
from kyanite.model.page_blob import PageBlobChange, PageWrite, SequenceCondition
from kyanite.model.records import PAGE_BLOB
from kyanite.rules.permissions import may_overwrite
from kyanite.rules.sequence_numbers import LARGEST, Action, Change
from kyanite.services.blob.blob import (
    blob_key_of,
    guard_of,
    set_http_headers_of,
    version_headers,
)
from kyanite.services.blob.block_blob import MIB, http_headers_of
from kyanite.services.common.blob_paths import readable_key_of
from kyanite.services.common.exchange import Exchange
from kyanite.services.common.headers import (
    content_length_of,
    md5_of,
    metadata_of,
    number_of,
    one_of,
    required,
)
from kyanite.services.common.intake import commit, hash_headers, take
from kyanite.wire import ranges, xml
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header, bad_parameter, missing_header
from kyanite.wire.ranges import ByteRange

PAGE = 512
_BLOB_MAX_BYTES = 8 * 1024 * 1024 * MIB
_WRITE_MAX_BYTES = 4 * MIB
_RANGES_MAX = 10_000


async def put_page_blob(exchange: Exchange) -> Response:
    headers = exchange.headers
    if content_length_of(exchange.request) != 0:
        raise bad_header("Content-Length", headers.get("content-length", ""))
    required(headers, "x-ms-blob-content-length")
    draft = Draft(
        payload=b"",
        length=_size_of(headers) or 0,
        http=http_headers_of(headers, md5_of(headers, "x-ms-blob-content-md5") or b""),
        metadata=metadata_of(exchange.request),
        kind=PAGE_BLOB,
        sequence_number=number_of(headers, "x-ms-blob-sequence-number", LARGEST) or 0,
    )
    record = await creation.put(
        exchange.environment.engine,
        blob_key_of(exchange),
        draft,
        guard_of(headers),
        may_overwrite=may_overwrite(exchange.grant),
    )
    return Response(201, [*version_headers(record), ("x-ms-request-server-encrypted", "true")])


async def put_page(exchange: Exchange) -> Response:
    headers = exchange.headers
    clears = one_of(headers, "x-ms-page-write", ("update", "clear")) == "clear"
    required(headers, "x-ms-page-write")
    asked = _pages_of(headers)
    length = content_length_of(exchange.request)
    key, guard = blob_key_of(exchange), guard_of(headers)
    sequence = SequenceCondition(
        le=number_of(headers, "x-ms-if-sequence-number-le", LARGEST),
        lt=number_of(headers, "x-ms-if-sequence-number-lt", LARGEST),
        eq=number_of(headers, "x-ms-if-sequence-number-eq", LARGEST),
    )
    engine = exchange.environment.engine
    if clears:
        if length:
            raise bad_header("Content-Length", str(length))
        ask = PageWrite(asked.first, asked.length or 0, None, sequence)
        record = await page_blob.write(engine, key, ask, guard)
        hashes: list[tuple[str, str]] = []
    else:
        if (asked.length or 0) > _WRITE_MAX_BYTES:
            raise Malformed("RequestBodyTooLarge", MaxLimit=str(_WRITE_MAX_BYTES))
        if length != asked.length:
            raise bad_header("Content-Length", str(length))
        taken = await take(exchange.environment, exchange.request, length)
        ask = PageWrite(asked.first, length, taken.payload, sequence)
        record = await commit(exchange.environment, taken, page_blob.write(engine, key, ask, guard))
        hashes = hash_headers(headers, taken)
    answer = [*version_headers(record), *hashes]
    answer.append(("x-ms-blob-sequence-number", str(record.sequence_number)))
    return Response(201, [*answer, ("x-ms-request-server-encrypted", "true")])


async def get_page_ranges(exchange: Exchange) -> Response:
    asked = ranges.from_headers(exchange.headers) or ByteRange(0, None)
    limit = _limit_of(exchange.parameters)
    found = await page_blob.page_ranges(
        exchange.environment.engine,
        readable_key_of(exchange),
        guard_of(exchange.headers),
        first=max(asked.first, _marker_of(exchange.parameters)),
        last=asked.last,
        limit=limit,
    )
    items = "".join(
        f"<PageRange><Start>{start}</Start><End>{end - 1}</End></PageRange>"
        for start, end, _ in found.page.ranges
    )
    marker = "" if found.page.next_start is None else str(found.page.next_start)
    headers = version_headers(found.record)
    headers += [("Content-Type", "application/xml"), ("x-ms-blob-content-length", str(found.record.length))]
    more = f"<NextMarker>{marker}</NextMarker>" if marker or "maxresults" in exchange.parameters else ""
    return Response(200, headers, xml.document(f"<PageList>{items}{more}</PageList>"))


async def set_page_blob_properties(exchange: Exchange) -> Response:
    """Set Blob Properties as only page blobs know it: a new size, or a change of the sequence number."""
    headers = exchange.headers
    ask = PageBlobChange(
        http=set_http_headers_of(headers) if any(name.startswith(_CONTENT) for name in headers) else None,
        length=_size_of(headers),
        sequence=_sequence_change_of(headers),
    )
    record = await page_blob.change(
        exchange.environment.engine, blob_key_of(exchange), ask, guard_of(headers)
    )
    answer = version_headers(record)
    answer.append(("x-ms-blob-sequence-number", str(record.sequence_number)))
    return Response(200, answer)


_CONTENT = (
    "x-ms-blob-cache-control",
    "x-ms-blob-content-type",
    "x-ms-blob-content-md5",
    "x-ms-blob-content-encoding",
    "x-ms-blob-content-language",
    "x-ms-blob-content-disposition",
)


def _size_of(headers: Mapping[str, str]) -> int | None:
    size = number_of(headers, "x-ms-blob-content-length", _BLOB_MAX_BYTES)
    if size is not None and size % PAGE:
        raise bad_header("x-ms-blob-content-length", str(size))
    return size


def _sequence_change_of(headers: Mapping[str, str]) -> Change | None:
    action = one_of(headers, "x-ms-sequence-number-action", [action.value for action in Action])
    if not action:
        return None
    number = number_of(headers, "x-ms-blob-sequence-number", LARGEST)
    if action == Action.INCREMENT.value:
        if number is not None:
            raise bad_header("x-ms-blob-sequence-number", str(number))
        return Change(Action.INCREMENT)
    if number is None:
        raise missing_header("x-ms-blob-sequence-number")
    return Change(Action(action), number)


def _pages_of(headers: Mapping[str, str]) -> ByteRange:
    """The range of a write, which must be told and must be whole pages."""
    text = headers.get("x-ms-range") or headers.get("range")
    if not text:
        raise missing_header("x-ms-range")
    asked = ranges.decode(text)
    if asked is None or asked.last is None:
        raise bad_header("x-ms-range", text)
    if asked.first % PAGE or (asked.last + 1) % PAGE:
        raise Malformed("InvalidPageRange")
    return asked


def _limit_of(parameters: Mapping[str, str]) -> int:
    text = parameters.get("maxresults")
    if not text:
        return _RANGES_MAX
    if not text.isdecimal() or int(text) == 0:
        raise bad_parameter("maxresults", text)
    return min(int(text), _RANGES_MAX)


def _marker_of(parameters: Mapping[str, str]) -> int:
    text = parameters.get("marker")
    if not text:
        return 0
    if not text.isdecimal():
        raise bad_parameter("marker", text)
    return int(text)
