"""Writing block blobs over REST."""

from collections.abc import Awaitable, Mapping
from typing import Final

from kyanite.model.blobs import put
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.records import BlobRecord
from kyanite.model.records import HttpHeaders
from kyanite.rules.authorization import may_overwrite
from kyanite.services.blob.blob import access_conditions_of, blob_key_of, version_headers, version_id_header
from kyanite.services.blob.immutability import protection_of
from kyanite.services.blob.tag_headers import tags_of
from kyanite.services.blob.tiering import tier_of
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import base64_text, md5_of, metadata_of, required
from kyanite.services.rest.structured import data_length_of, structured_headers
from kyanite.services.rest.uploads import ReceivedBody, check_body_length, store
from kyanite.wire import crc64
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header

_NOTHING: Final[Mapping[str, str]] = {}
MIB: Final = 1024 * 1024
_PUT_BLOB_MAX_BYTES: Final = (("2019-12-12", 5000 * MIB), ("2016-05-31", 256 * MIB), ("", 64 * MIB))
"""The largest body of a Put Blob, by the version of the request."""


async def put_blob(context: RequestContext) -> Response:
    headers = context.headers
    if required(headers, "x-ms-blob-type").lower() != "blockblob":
        raise bad_header("x-ms-blob-type", headers["x-ms-blob-type"])
    length = data_length_of(context)
    check_body_length(context.version, length, _PUT_BLOB_MAX_BYTES)
    key, access_conditions, metadata = (
        blob_key_of(context, may_protect=True),
        access_conditions_of(headers),
        metadata_of(context.request),
    )
    tier, tags, protection = tier_of(headers), tags_of(headers), protection_of(context)
    md5 = md5_of(headers, "x-ms-blob-content-md5")

    def transaction(received: ReceivedBody) -> Awaitable[BlobRecord]:
        new_blob = NewBlob(
            payload=received.payload,
            length=length,
            http=http_headers_of(headers, received.md5),
            metadata=metadata,
            tier=tier,
            tags=tags,
            protection=protection,
        )
        return put.put(
            context.store.engine,
            key,
            new_blob,
            access_conditions,
            may_overwrite=may_overwrite(context.principal),
        )

    received, record = await store(context, length, transaction, md5=md5, wants_md5=True)
    answer = version_headers(record)
    if record.version_at is not None:
        answer.append(version_id_header(record.version_at))
    answer += [
        ("Content-MD5", base64_text(received.md5)),
        ("x-ms-content-crc64", crc64.encode(received.crc64)),
        ("x-ms-request-server-encrypted", "true"),
    ]
    return Response(201, answer + structured_headers(context))


def http_headers_of(headers: dict[str, str], md5: bytes, *, own_only: bool = False) -> HttpHeaders:
    """The content headers to store: ``x-ms-blob-*`` takes precedence over the plain header of the request.

    ``own_only`` ignores the plain headers: the body of the request is not that of the blob.
    """
    get = headers.get
    plain = _NOTHING.get if own_only else get
    return HttpHeaders(
        content_type=get("x-ms-blob-content-type") or plain("content-type") or "application/octet-stream",
        content_encoding=get("x-ms-blob-content-encoding") or plain("content-encoding", ""),
        content_language=get("x-ms-blob-content-language") or plain("content-language", ""),
        cache_control=get("x-ms-blob-cache-control") or plain("cache-control", ""),
        content_disposition=get("x-ms-blob-content-disposition", ""),
        content_md5=md5,
    )
