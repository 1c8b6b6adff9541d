"""Page blobs over REST. Get Page Ranges is in ``page_ranges.py``."""

from collections.abc import Awaitable
from typing import NamedTuple

from kyanite.extents.api import Extent
from kyanite.model.blobs import page_blob
from kyanite.model.blobs.blob import AccessConditions
from kyanite.model.blobs.page_blob import PageBlobChange, PageWrite, SequenceCondition
from kyanite.model.blobs.records import PAGE_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules.sequence_numbers import LARGEST, Action, Change
from kyanite.services.blob.blob import (
    Headers,
    access_conditions_of,
    blob_key_of,
    set_http_headers_of,
    version_headers,
)
from kyanite.services.blob.block_blob import MIB
from kyanite.services.blob.put_empty import check_empty, put_empty
from kyanite.services.blob.source import RANGE, source_hash_headers, source_range_of, store_range
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import (
    number_of,
    one_of,
    required,
    written_range_of,
)
from kyanite.services.rest.structured import data_length_of, structured_headers
from kyanite.services.rest.uploads import ReceivedBody, hash_headers, store
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header, missing_header
from kyanite.wire.ranges import ByteRange

PAGE = 512
_BLOB_MAX_BYTES = 8 * 1024 * 1024 * MIB
_WRITE_MAX_BYTES = 4 * MIB


async def put_page_blob(context: RequestContext) -> Response:
    headers = context.headers
    check_empty(context)
    required(headers, "x-ms-blob-content-length")
    length = _size_of(headers) or 0
    sequence_number = number_of(headers, "x-ms-blob-sequence-number", LARGEST) or 0
    return await put_empty(context, PAGE_BLOB, length=length, sequence_number=sequence_number)


async def put_page(context: RequestContext) -> Response:
    headers = context.headers
    required(headers, "x-ms-page-write")
    clears = one_of(headers, "x-ms-page-write", ("update", "clear")) == "clear"
    request = _write_request_of(context)
    length = data_length_of(context)
    if clears:
        if length:
            raise bad_header("Content-Length", str(length))
        return _written(await _write(context, request, None), [])
    _check_size(request)
    if length != request.length:
        raise bad_header("Content-Length", str(length))
    received, record = await store(
        context, length, lambda received: _write(context, request, received.payload)
    )
    return _written(record, hash_headers(headers, received) + structured_headers(context))


async def put_page_from_url(context: RequestContext) -> Response:
    headers = context.headers
    if one_of(headers, "x-ms-page-write", ("update",), "update") != "update":
        raise bad_header("x-ms-page-write", headers["x-ms-page-write"])
    request = _write_request_of(context)
    _check_size(request)
    wanted = source_range_of(headers)
    if wanted is None:
        raise missing_header(RANGE)
    if wanted.length != request.length:
        raise bad_header(RANGE, headers[RANGE])

    def transaction(received: ReceivedBody) -> Awaitable[BlobRecord]:
        if received.length != request.length:
            raise Malformed("InvalidPageRange")
        return _write(context, request, received.payload)

    received, record = await store_range(context, (("", request.length),), transaction)
    return _written(record, source_hash_headers(headers, received))


class _WriteRequest(NamedTuple):
    """The headers of a write, decoded before its body is received."""

    key: BlobKey
    access_conditions: AccessConditions
    offset: int
    length: int
    sequence: SequenceCondition


def _write_request_of(context: RequestContext) -> _WriteRequest:
    headers = context.headers
    pages = _pages_of(headers)
    sequence = SequenceCondition(
        le=number_of(headers, "x-ms-if-sequence-number-le", LARGEST),
        lt=number_of(headers, "x-ms-if-sequence-number-lt", LARGEST),
        eq=number_of(headers, "x-ms-if-sequence-number-eq", LARGEST),
    )
    return _WriteRequest(
        blob_key_of(context), access_conditions_of(headers), pages.first, pages.length or 0, sequence
    )


def _check_size(request: _WriteRequest) -> None:
    if request.length > _WRITE_MAX_BYTES:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_WRITE_MAX_BYTES))


def _write(
    context: RequestContext, request: _WriteRequest, payload: bytes | tuple[Extent, ...] | None
) -> Awaitable[BlobRecord]:
    write = PageWrite(request.offset, request.length, payload, request.sequence)
    return page_blob.write(context.store.engine, request.key, write, request.access_conditions)


def _written(record: BlobRecord, hashes: Headers) -> Response:
    answer = [*version_headers(record), *hashes]
    answer.append(("x-ms-blob-sequence-number", str(record.sequence_number)))
    return Response(201, [*answer, ("x-ms-request-server-encrypted", "true")])


async def set_page_blob_properties(context: RequestContext) -> Response:
    """Set Blob Properties with what only page blobs have: a new size, or a change of the sequence number."""
    headers = context.headers
    request = PageBlobChange(
        http=set_http_headers_of(headers) if any(name.startswith(_CONTENT) for name in headers) else None,
        length=_size_of(headers),
        sequence=_sequence_change_of(headers),
    )
    record = await page_blob.change(
        context.store.engine, blob_key_of(context), request, access_conditions_of(headers)
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


def _size_of(headers: dict[str, str]) -> int | None:
    size = number_of(headers, "x-ms-blob-content-length", _BLOB_MAX_BYTES)
    if size is not None and size % PAGE:
        raise bad_header("x-ms-blob-content-length", str(size))
    return size


def _sequence_change_of(headers: dict[str, str]) -> Change | None:
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


def _pages_of(headers: dict[str, str]) -> ByteRange:
    """The range of a write. It is required, and consists of whole pages."""
    wanted = written_range_of(headers)
    if wanted.first % PAGE or (wanted.length or 0) % PAGE:
        raise Malformed("InvalidPageRange")
    return wanted
