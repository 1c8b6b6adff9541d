"""Append blobs over REST."""

from kyanite.model import append_blob, creation
from kyanite.model.append_blob import AppendDraft
from kyanite.model.creation import Draft
from kyanite.model.records import APPEND_BLOB
from kyanite.rules.permissions import may_overwrite
from kyanite.services.blob.blob import blob_key_of, guard_of, version_headers
from kyanite.services.blob.block_blob import MIB, http_headers_of
from kyanite.services.common.exchange import Exchange
from kyanite.services.common.headers import content_length_of, md5_of, metadata_of, number_of
from kyanite.services.common.intake import commit, hash_headers, take
from kyanite.services.common.limits import check_body_length
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header

_BLOCK_MAX_BYTES = (("2022-11-02", 100 * MIB), ("", 4 * MIB))


async def put_append_blob(exchange: Exchange) -> Response:
    headers = exchange.headers
    if content_length_of(exchange.request) != 0:
        raise bad_header("Content-Length", headers.get("content-length", ""))
    draft = Draft(
        payload=b"",
        length=0,
        http=http_headers_of(headers, md5_of(headers, "x-ms-blob-content-md5") or b""),
        metadata=metadata_of(exchange.request),
        kind=APPEND_BLOB,
    )
    record = await creation.put(
        exchange.environment.engine,
        blob_key_of(exchange),
        draft,
        guard_of(headers),
        may_overwrite=may_overwrite(exchange.grant),
    )
    return Response(201, [*version_headers(record), ("x-ms-request-server-encrypted", "true")])


async def append_block(exchange: Exchange) -> Response:
    headers = exchange.headers
    length = content_length_of(exchange.request)
    if length == 0:
        raise bad_header("Content-Length", "0")
    check_body_length(exchange.version, length, _BLOCK_MAX_BYTES)
    key, guard = blob_key_of(exchange), guard_of(headers)
    position = number_of(headers, "x-ms-blob-condition-appendpos")
    max_size = number_of(headers, "x-ms-blob-condition-maxsize")
    taken = await take(exchange.environment, exchange.request, length)
    draft = AppendDraft(taken.payload, length, position, max_size)
    record = await commit(
        exchange.environment,
        taken,
        append_blob.append_block(exchange.environment.engine, key, draft, guard),
    )
    answer = version_headers(record)
    answer += hash_headers(headers, taken)
    answer += [
        ("x-ms-blob-append-offset", str(record.length - length)),
        ("x-ms-blob-committed-block-count", str(record.appended)),
        ("x-ms-request-server-encrypted", "true"),
    ]
    return Response(201, answer)
