"""Get Blob: the whole or a range."""

from __future__ import annotations

from functools import partial

from kyanite.model.blobs.blob import load_to_be_read
from kyanite.model.content.reading import Opened, Reading
from kyanite.model.records import BlobRecord
from kyanite.services.blob.blob import found_key_of, guard_of, property_headers
from kyanite.services.blob.tiering import tier_headers
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.downloads import Headers, download, download_structured
from kyanite.services.rest.headers import base64_text
from kyanite.services.rest.structured import is_structured
from kyanite.wire import ranges
from kyanite.wire.http import Response

_TELLS_TIER_SINCE = "2026-10-06"


async def get_blob(exchange: Exchange) -> Response:
    asked = ranges.from_headers(exchange.headers)
    load = partial(load_to_be_read, blob=found_key_of(exchange), guard=guard_of(exchange.headers))

    def describe(opened: Opened[BlobRecord]) -> Headers:
        """The hash that is stored is that of the whole, so with a range it goes by another name."""
        headers = property_headers(exchange, opened.record, opened.at)
        if exchange.version >= _TELLS_TIER_SINCE:
            headers += tier_headers(opened.record, opened.at)
        md5 = opened.record.http.content_md5
        if md5:
            headers.append(("Content-MD5" if asked is None else "x-ms-blob-content-md5", base64_text(md5)))
        return headers

    ask = Reading(load) if asked is None else Reading(load, asked.first, asked.last, is_whole=False)
    if is_structured(exchange):
        return await download_structured(exchange, ask, describe)
    return await download(exchange, ask, describe)
