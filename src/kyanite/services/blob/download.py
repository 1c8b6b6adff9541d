"""Get Blob: the whole or a range."""

from __future__ import annotations

from functools import partial

from kyanite.model.blobs.blob import load_to_be_read
from kyanite.model.blobs.rows import BlobRecord
from kyanite.model.content.reading import Opened, Reading
from kyanite.services.blob.blob import access_conditions_of, found_key_of, property_headers
from kyanite.services.blob.tiering import tier_headers
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.downloads import Headers, download, download_structured
from kyanite.services.rest.headers import base64_text
from kyanite.services.rest.structured import is_structured
from kyanite.wire import ranges
from kyanite.wire.http import Response

_TELLS_TIER_SINCE = "2026-10-06"


async def get_blob(context: RequestContext) -> Response:
    wanted = ranges.from_headers(context.headers)
    load = partial(
        load_to_be_read, blob=found_key_of(context), access_conditions=access_conditions_of(context.headers)
    )

    def describe(opened: Opened[BlobRecord]) -> Headers:
        """The hash that is stored is that of the whole, so with a range it goes by another name."""
        headers = property_headers(context, opened.record, opened.at)
        if context.version >= _TELLS_TIER_SINCE:
            headers += tier_headers(opened.record, opened.at)
        md5 = opened.record.http.content_md5
        if md5:
            headers.append(("Content-MD5" if wanted is None else "x-ms-blob-content-md5", base64_text(md5)))
        return headers

    request = Reading(load) if wanted is None else Reading(load, wanted.first, wanted.last, is_whole=False)
    if is_structured(context):
        return await download_structured(context, request, describe)
    return await download(context, request, describe)
