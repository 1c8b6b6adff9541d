"""Get and Set Blob Tags over REST."""

from kyanite.model.blobs import tags
from kyanite.model.blobs.blob import AccessConditions
from kyanite.rules import tags as rules
from kyanite.services.blob.blob import found_key_of
from kyanite.services.blob.tag_headers import IF_TAGS, with_tags
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import conditions_of, lease_id_of
from kyanite.services.rest.uploads import check_hashes
from kyanite.wire import tags as wire
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_parameter

SINCE = "2019-12-12"
_BLOB_CONDITIONS = "x-ms-blob-if-"
_DOCUMENT_MAX_BYTES = 64 * 1024
"""Ten tags of the greatest length, escaped as badly as can be, have some 25 KiB."""


async def get_blob_tags(context: RequestContext) -> Response:
    _check_version(context)
    found = await tags.get(context.store.engine, found_key_of(context), _access_conditions_of(context))
    return Response(200, [("Content-Type", "application/xml")], wire.encode(found))


async def set_blob_tags(context: RequestContext) -> Response:
    _check_version(context)
    key, access_conditions = found_key_of(context), _access_conditions_of(context)
    document = await context.request.body.read_all(_DOCUMENT_MAX_BYTES)
    if document is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_DOCUMENT_MAX_BYTES))
    await check_hashes(context.headers, document)
    new = rules.checked(wire.decode(document))
    await tags.set_tags(context.store.engine, key, new, access_conditions)
    return Response(204)


def _check_version(context: RequestContext) -> None:
    """Older versions know no such operation."""
    if context.version < SINCE:
        raise bad_parameter("comp", context.parameters["comp"])


def _access_conditions_of(context: RequestContext) -> AccessConditions:
    """The usual conditions would be about the tags themselves here, so those about the blob have names of their own."""
    headers = context.headers
    of_blob = {
        name.removeprefix("x-ms-blob-"): value
        for name, value in headers.items()
        if name.startswith(_BLOB_CONDITIONS)
    }
    return AccessConditions(with_tags(conditions_of(of_blob), headers, IF_TAGS), lease_id_of(headers))
