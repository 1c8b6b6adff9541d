"""Append blobs over REST."""

from collections.abc import Awaitable
from functools import partial
from typing import NamedTuple

from kyanite.model.blobs import append_blob
from kyanite.model.blobs.append_blob import NewAppendBlock
from kyanite.model.blobs.blob import AccessConditions
from kyanite.model.blobs.records import APPEND_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.services.blob.blob import SEALED, Headers, access_conditions_of, blob_key_of, version_headers
from kyanite.services.blob.block_blob import MIB
from kyanite.services.blob.put_empty import check_empty, put_empty
from kyanite.services.blob.source import source_hash_headers, store_range
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import number_of
from kyanite.services.rest.structured import data_length_of, structured_headers
from kyanite.services.rest.uploads import ReceivedBody, check_body_length, hash_headers, store
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header

_BLOCK_MAX_BYTES = (("2022-11-02", 100 * MIB), ("", 4 * MIB))


async def put_append_blob(context: RequestContext) -> Response:
    check_empty(context)
    return await put_empty(context, APPEND_BLOB)


async def append_block(context: RequestContext) -> Response:
    headers = context.headers
    length = data_length_of(context)
    if length == 0:
        raise bad_header("Content-Length", "0")
    check_body_length(context.version, length, _BLOCK_MAX_BYTES)
    request = _write_request_of(context)
    received, record = await store(context, length, partial(_append, context, request))
    return _appended(record, received, hash_headers(headers, received) + structured_headers(context))


async def append_block_from_url(context: RequestContext) -> Response:
    request = _write_request_of(context)
    received, record = await store_range(context, _BLOCK_MAX_BYTES, partial(_append, context, request))
    return _appended(record, received, source_hash_headers(context.headers, received))


async def seal_append_blob(context: RequestContext) -> Response:
    headers = context.headers
    position = number_of(headers, "x-ms-blob-condition-appendpos")
    record = await append_blob.seal(
        context.store.engine, blob_key_of(context), position, access_conditions_of(headers)
    )
    return Response(200, [*version_headers(record), SEALED])


class _WriteRequest(NamedTuple):
    """The headers of a write, decoded before its body is received."""

    key: BlobKey
    access_conditions: AccessConditions
    position: int | None
    max_size: int | None


def _write_request_of(context: RequestContext) -> _WriteRequest:
    headers = context.headers
    return _WriteRequest(
        blob_key_of(context),
        access_conditions_of(headers),
        number_of(headers, "x-ms-blob-condition-appendpos"),
        number_of(headers, "x-ms-blob-condition-maxsize"),
    )


def _append(context: RequestContext, request: _WriteRequest, received: ReceivedBody) -> Awaitable[BlobRecord]:
    new_block = NewAppendBlock(received.payload, received.length, request.position, request.max_size)
    return append_blob.append_block(context.store.engine, request.key, new_block, request.access_conditions)


def _appended(record: BlobRecord, received: ReceivedBody, hashes: Headers) -> Response:
    answer = version_headers(record)
    answer += hashes
    answer += [
        ("x-ms-blob-append-offset", str(record.length - received.length)),
        ("x-ms-blob-committed-block-count", str(record.appended)),
        ("x-ms-request-server-encrypted", "true"),
    ]
    return Response(201, answer)
