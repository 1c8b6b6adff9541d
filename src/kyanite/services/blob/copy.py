"""Copy Blob, Copy Blob From URL, Put Blob From URL and Abort Copy Blob over REST."""

from typing import TypeVar

from kyanite.engine.api import Engine
from kyanite.model.blobs import copy, put
from kyanite.model.blobs.blob import BlobKey, Guard
from kyanite.model.blobs.copy import CopyAsk, PutFromAsk
from kyanite.model.blobs.put import Draft
from kyanite.model.content.intervals import ENDLESS
from kyanite.model.records import BlobRecord
from kyanite.rules.permissions import may_overwrite
from kyanite.services.blob.blob import Headers, blob_key_of, guard_of, set_http_headers_of, version_headers
from kyanite.services.blob.block_blob import MIB
from kyanite.services.blob.source import (
    check_no_body,
    expected_hashes_of,
    find_source,
    source_hash_headers,
    take_source,
)
from kyanite.services.blob.tiering import priority_of, tier_of
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.headers import flag_of, lease_id_of, metadata_of, required
from kyanite.services.rest.uploads import commit
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header

A = TypeVar("A")

_SEALS = "x-ms-seal-blob"
_COPY_FROM_MAX_BYTES = 256 * MIB
_PUT_FROM_MAX_BYTES = 5000 * MIB


async def copy_blob(exchange: Exchange) -> Response:
    """The asynchronous copy, which here is done at once: a source in the same account needs no signature."""
    record = await _copy(exchange, with_own_key=True, is_synchronous=False, max_length=ENDLESS)
    return Response(202, _copy_answer(record))


async def copy_blob_from_url(exchange: Exchange) -> Response:
    record = await _copy(exchange, with_own_key=False, is_synchronous=True, max_length=_COPY_FROM_MAX_BYTES)
    return Response(202, _copy_answer(record))


async def abort_copy_blob(exchange: Exchange) -> Response:
    if required(exchange.headers, "x-ms-copy-action").lower() != "abort":
        raise bad_header("x-ms-copy-action", exchange.headers["x-ms-copy-action"])
    copy_id = exchange.parameters.get("copyid")
    if not copy_id:
        raise Malformed("MissingRequiredQueryParameter", QueryParameterName="copyid")
    await copy.abort(exchange.environment.engine, blob_key_of(exchange), copy_id, guard_of(exchange.headers))
    return Response(204)


async def put_blob_from_url(exchange: Exchange) -> Response:
    """By reference; only when there is a hash to check, the bytes are read, and written anew as they were read."""
    headers = exchange.headers
    if required(headers, "x-ms-blob-type").lower() != "blockblob":
        raise bad_header("x-ms-blob-type", headers["x-ms-blob-type"])
    check_no_body(exchange)
    expected = expected_hashes_of(headers)
    source = await find_source(exchange, with_own_key=False)
    ask = PutFromAsk(
        source=source.key,
        source_conditions=source.conditions,
        http=set_http_headers_of(headers),
        takes_over_headers=flag_of(headers, "x-ms-copy-source-blob-properties", default=True),
        metadata=metadata_of(exchange.request),
        tier=tier_of(headers),
        max_length=_PUT_FROM_MAX_BYTES,
    )
    hashes: Headers = []
    if expected.md5 is None and expected.crc64 is None:
        record = await copy.put_from(*_onto(exchange, ask), may_overwrite=may_overwrite(exchange.grant))
    else:
        read = await take_source(exchange, source, None, ask.max_length, expected)
        draft = Draft(
            payload=read.taken.payload,
            length=read.taken.length,
            http=copy.description_of(ask, read.record),
            metadata=ask.metadata or read.record.metadata,
            tier=ask.tier,
        )
        putting = put.put(*_onto(exchange, draft), may_overwrite=may_overwrite(exchange.grant))
        record = await commit(exchange.environment, read.taken, putting)
        hashes = source_hash_headers(headers, read.taken)
    return Response(201, [*version_headers(record), *hashes, ("x-ms-request-server-encrypted", "true")])


async def _copy(
    exchange: Exchange, *, with_own_key: bool, is_synchronous: bool, max_length: int
) -> BlobRecord:
    source = await find_source(exchange, with_own_key=with_own_key)
    ask = CopyAsk(
        source=source.key,
        source_url=source.url,
        source_conditions=source.conditions,
        copy_id=exchange.environment.fresh_guid(),
        metadata=metadata_of(exchange.request),
        tier=tier_of(exchange.headers),
        rehydrate_priority=priority_of(exchange.headers),
        source_lease_id=lease_id_of(exchange.headers, "x-ms-source-lease-id"),
        seals=flag_of(exchange.headers, _SEALS) if _SEALS in exchange.headers else None,
        is_synchronous=is_synchronous,
        max_length=max_length,
    )
    return await copy.copy(*_onto(exchange, ask), may_overwrite=may_overwrite(exchange.grant))


def _onto(exchange: Exchange, ask: A) -> tuple[Engine, BlobKey, A, Guard]:
    """What every transaction that makes a blob is given."""
    return exchange.environment.engine, blob_key_of(exchange), ask, guard_of(exchange.headers)


def _copy_answer(record: BlobRecord) -> list[tuple[str, str]]:
    assert record.copy is not None
    return [
        *version_headers(record),
        ("x-ms-copy-id", record.copy.id),
        ("x-ms-copy-status", "success"),
    ]
