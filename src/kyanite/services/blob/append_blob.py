"""Append blobs over REST."""

from typing import NamedTuple

from kyanite.model.blobs import append_blob, put
from kyanite.model.blobs.append_blob import AppendDraft
from kyanite.model.blobs.blob import BlobKey, Guard
from kyanite.model.blobs.put import Draft
from kyanite.model.records import APPEND_BLOB
from kyanite.rules.permissions import may_overwrite
from kyanite.services.blob.blob import SEALED, Headers, blob_key_of, guard_of, version_headers
from kyanite.services.blob.block_blob import MIB, http_headers_of
from kyanite.services.blob.source import source_hash_headers, take_range
from kyanite.services.blob.tiering import check_no_tier
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.headers import content_length_of, metadata_of, number_of, stored_md5_of
from kyanite.services.rest.limits import check_body_length
from kyanite.services.rest.structured import data_length_of, structured_headers, take_data
from kyanite.services.rest.uploads import Taken, commit, hash_headers
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header

_BLOCK_MAX_BYTES = (("2022-11-02", 100 * MIB), ("", 4 * MIB))


async def put_append_blob(exchange: Exchange) -> Response:
    headers = exchange.headers
    check_no_tier(headers)
    if content_length_of(exchange.request) != 0:
        raise bad_header("Content-Length", headers.get("content-length", ""))
    draft = Draft(
        payload=b"",
        length=0,
        http=http_headers_of(headers, stored_md5_of(headers) or b""),
        metadata=metadata_of(exchange.request),
        kind=APPEND_BLOB,
    )
    record = await put.put(
        exchange.environment.engine,
        blob_key_of(exchange),
        draft,
        guard_of(headers),
        may_overwrite=may_overwrite(exchange.grant),
    )
    return Response(201, [*version_headers(record), ("x-ms-request-server-encrypted", "true")])


async def append_block(exchange: Exchange) -> Response:
    headers = exchange.headers
    length = data_length_of(exchange)
    if length == 0:
        raise bad_header("Content-Length", "0")
    check_body_length(exchange.version, length, _BLOCK_MAX_BYTES)
    ask = _ask_of(exchange)
    taken = await take_data(exchange, length)
    return await _append(exchange, ask, taken, hash_headers(headers, taken) + structured_headers(exchange))


async def append_block_from_url(exchange: Exchange) -> Response:
    ask = _ask_of(exchange)
    taken = await take_range(exchange, _BLOCK_MAX_BYTES)
    return await _append(exchange, ask, taken, source_hash_headers(exchange.headers, taken))


async def seal_append_blob(exchange: Exchange) -> Response:
    headers = exchange.headers
    position = number_of(headers, "x-ms-blob-condition-appendpos")
    record = await append_blob.seal(
        exchange.environment.engine, blob_key_of(exchange), position, guard_of(headers)
    )
    return Response(200, [*version_headers(record), SEALED])


class _Ask(NamedTuple):
    """What the head of a request says, before its body is taken in."""

    key: BlobKey
    guard: Guard
    position: int | None
    max_size: int | None


def _ask_of(exchange: Exchange) -> _Ask:
    headers = exchange.headers
    return _Ask(
        blob_key_of(exchange),
        guard_of(headers),
        number_of(headers, "x-ms-blob-condition-appendpos"),
        number_of(headers, "x-ms-blob-condition-maxsize"),
    )


async def _append(exchange: Exchange, ask: _Ask, taken: Taken, hashes: Headers) -> Response:
    draft = AppendDraft(taken.payload, taken.length, ask.position, ask.max_size)
    appending = append_blob.append_block(exchange.environment.engine, ask.key, draft, ask.guard)
    record = await commit(exchange.environment, taken, appending)
    answer = version_headers(record)
    answer += hashes
    answer += [
        ("x-ms-blob-append-offset", str(record.length - taken.length)),
        ("x-ms-blob-committed-block-count", str(record.appended)),
        ("x-ms-request-server-encrypted", "true"),
    ]
    return Response(201, answer)
