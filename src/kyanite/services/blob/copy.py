"""Copy Blob, Copy Blob From URL, Put Blob From URL and Abort Copy Blob over REST."""

from collections.abc import Awaitable
from functools import partial
from typing import TypeVar

from kyanite.engine.api import Engine
from kyanite.model.blobs import copy, put
from kyanite.model.blobs.blob import AccessConditions
from kyanite.model.blobs.copy import CopyRequest, PutFromRequest, Streamed
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.records import BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content.intervals import ENDLESS
from kyanite.model.content.spread import NewContent
from kyanite.rules.authorization import may_overwrite
from kyanite.services.blob.blob import (
    Headers,
    access_conditions_of,
    blob_key_of,
    set_http_headers_of,
    written_headers,
)
from kyanite.services.blob.block_blob import MIB
from kyanite.services.blob.immutability import protection_of
from kyanite.services.blob.source import (
    check_no_body,
    check_source,
    expected_hashes_of,
    find_source,
    source_hash_headers,
    store_copy,
    store_source,
)
from kyanite.services.blob.tag_headers import copied_tags_of
from kyanite.services.blob.tiering import priority_of, tier_of
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import (
    aborted_copy_of,
    base64_text,
    flag_of,
    lease_id_of,
    metadata_of,
    required,
)
from kyanite.services.rest.uploads import NO_HASHES, Expected, ReceivedBody
from kyanite.wire import crc64
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header

A = TypeVar("A")

_SEALS = "x-ms-seal-blob"
_COPY_FROM_MAX_BYTES = 256 * MIB
_PUT_FROM_MAX_BYTES = 5000 * MIB


async def copy_blob(context: RequestContext) -> Response:
    """The asynchronous copy, which is complete with the answer."""
    record = await _copy(context, is_synchronous=False, max_length=ENDLESS)
    return Response(202, _copy_answer(record))


async def copy_blob_from_url(context: RequestContext) -> Response:
    """By reference. Only if there is a hash to check, the bytes are read first; the answer repeats that hash."""
    expected = expected_hashes_of(context.headers)
    record = await _copy(context, is_synchronous=True, max_length=_COPY_FROM_MAX_BYTES, expected=expected)
    hashes: Headers = []
    if expected.md5 is not None:
        hashes.append(("Content-MD5", base64_text(expected.md5)))
    if expected.crc64 is not None:
        hashes.append(("x-ms-content-crc64", crc64.encode(expected.crc64)))
    return Response(202, _copy_answer(record) + hashes)


async def abort_copy_blob(context: RequestContext) -> Response:
    copy_id = aborted_copy_of(context.headers, context.parameters)
    await copy.abort(
        context.store.engine, blob_key_of(context), copy_id, access_conditions_of(context.headers)
    )
    return Response(204)


async def put_blob_from_url(context: RequestContext) -> Response:
    """By reference. If there is a hash to check, or the source is in another store, the bytes are read, and stored as
    they were read."""
    headers = context.headers
    if required(headers, "x-ms-blob-type").lower() != "blockblob":
        raise bad_header("x-ms-blob-type", headers["x-ms-blob-type"])
    check_no_body(context)
    expected = expected_hashes_of(headers)
    source = await find_source(context)
    request = PutFromRequest(
        source=source.key,
        source_conditions=source.conditions,
        http=set_http_headers_of(headers),
        copies_headers=flag_of(headers, "x-ms-copy-source-blob-properties", default=True),
        metadata=metadata_of(context.request),
        tier=tier_of(headers),
        max_length=_PUT_FROM_MAX_BYTES,
        tags=copied_tags_of(headers, may_copy=True),
    )
    hashes: Headers = []
    if expected == NO_HASHES and source.store is context.store:
        record = await copy.put_from(*_onto(context, request), may_overwrite=may_overwrite(context.principal))
    else:

        def transaction(of_source: BlobRecord, received: ReceivedBody) -> Awaitable[BlobRecord]:
            new_blob = NewBlob(
                payload=received.payload,
                length=received.length,
                http=copy.headers_of_copy(request, of_source),
                metadata=request.metadata or of_source.metadata,
                tier=request.tier,
                tags=of_source.tags if request.tags is None else request.tags,
            )
            return put.put(*_onto(context, new_blob), may_overwrite=may_overwrite(context.principal))

        received, record = await store_source(
            context, source, None, request.max_length, expected, transaction
        )
        hashes = source_hash_headers(headers, received)
    return Response(201, [*written_headers(record), *hashes, ("x-ms-request-server-encrypted", "true")])


async def _copy(
    context: RequestContext,
    *,
    is_synchronous: bool,
    max_length: int,
    expected: Expected = NO_HASHES,
) -> BlobRecord:
    protection = protection_of(context)
    source = await find_source(context)
    if expected != NO_HASHES:
        source = await check_source(source, max_length, expected)
    request = CopyRequest(
        source=source.key,
        source_url=source.url,
        source_conditions=source.conditions,
        copy_id=context.environment.fresh_guid(),
        metadata=metadata_of(context.request),
        tier=tier_of(context.headers),
        rehydrate_priority=priority_of(context.headers),
        source_lease_id=lease_id_of(context.headers, "x-ms-source-lease-id"),
        seals=flag_of(context.headers, _SEALS) if _SEALS in context.headers else None,
        is_synchronous=is_synchronous,
        max_length=max_length,
        protection=protection,
        tags=copied_tags_of(context.headers, may_copy=is_synchronous),
    )
    onto = _onto(context, request, may_protect=True)
    overwrites = may_overwrite(context.principal)
    if source.store is context.store:
        return await copy.copy(*onto, may_overwrite=overwrites)

    def transaction(of_source: BlobRecord, content: NewContent) -> Awaitable[BlobRecord]:
        return copy.copy(*onto, may_overwrite=overwrites, streamed=Streamed(of_source, content))

    load = partial(copy.load_source, request=request, blob=blob_key_of(context))
    return await store_copy(context, source, load, transaction)


def _onto(
    context: RequestContext, request: A, *, may_protect: bool = False
) -> tuple[Engine, BlobKey, A, AccessConditions]:
    """The arguments that every transaction which creates a blob has."""
    key = blob_key_of(context, may_protect=may_protect)
    return context.store.engine, key, request, access_conditions_of(context.headers)


def _copy_answer(record: BlobRecord) -> list[tuple[str, str]]:
    assert record.copy is not None
    return [
        *written_headers(record),
        ("x-ms-copy-id", record.copy.id),
        ("x-ms-copy-status", "success"),
    ]
