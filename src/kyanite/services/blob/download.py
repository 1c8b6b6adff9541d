"""Get Blob: the whole or a range."""

from functools import partial

from kyanite.model.blob import load_for_read
from kyanite.model.reading import Opened, Reading
from kyanite.model.records import BlobRecord
from kyanite.services.blob.blob import guard_of, property_headers, readable_key_of
from kyanite.services.common.download import Headers, download
from kyanite.services.common.exchange import Exchange
from kyanite.services.common.headers import base64_text
from kyanite.wire.http import Response
from kyanite.wire.ranges import ByteRange


async def get_blob(exchange: Exchange) -> Response:
    load = partial(load_for_read, blob=readable_key_of(exchange), guard=guard_of(exchange.headers))

    def reading(asked: ByteRange | None) -> Reading[BlobRecord]:
        if asked is None:
            return Reading(load)
        return Reading(load, asked.first, asked.last, is_whole=False)

    def describe(opened: Opened[BlobRecord], is_range: bool) -> Headers:
        """The hash that is stored is that of the whole, so with a range it goes by another name."""
        headers = property_headers(exchange, opened.record, opened.at)
        md5 = opened.record.http.content_md5
        if md5:
            name = "x-ms-blob-content-md5" if is_range else "Content-MD5"
            headers.append((name, base64_text(md5)))
        return headers

    return await download(exchange, reading, describe)
