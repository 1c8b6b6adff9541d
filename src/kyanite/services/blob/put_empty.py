"""Put Blob for the kinds of blobs that are created without content: append blobs and page blobs."""

from kyanite.model.blobs import put
from kyanite.model.blobs.put import NewBlob
from kyanite.rules.authorization import may_overwrite
from kyanite.services.blob.blob import access_conditions_of, blob_key_of, written_headers
from kyanite.services.blob.block_blob import http_headers_of
from kyanite.services.blob.immutability import protection_of
from kyanite.services.blob.source import check_no_body
from kyanite.services.blob.tag_headers import tags_of
from kyanite.services.blob.tiering import check_no_tier
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import metadata_of, stored_md5_of
from kyanite.wire.http import Response


def check_empty(context: RequestContext) -> None:
    """The request has no body, and chooses no tier."""
    check_no_tier(context.headers)
    check_no_body(context)


async def put_empty(
    context: RequestContext, kind: int, *, length: int = 0, sequence_number: int = 0
) -> Response:
    """Create the blob. A length above zero is that of zeros."""
    headers = context.headers
    new_blob = NewBlob(
        payload=b"",
        length=length,
        http=http_headers_of(headers, stored_md5_of(headers) or b""),
        metadata=metadata_of(context.request),
        kind=kind,
        sequence_number=sequence_number,
        tags=tags_of(headers),
        protection=protection_of(context),
    )
    record = await put.put(
        context.store.engine,
        blob_key_of(context, may_protect=True),
        new_blob,
        access_conditions_of(headers),
        may_overwrite=may_overwrite(context.principal),
    )
    return Response(201, [*written_headers(record), ("x-ms-request-server-encrypted", "true")])
