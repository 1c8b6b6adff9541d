"""What is copied into a blob: what ``x-ms-copy-source`` names, or a range of it as if that had been sent."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from kyanite.model import copy_sources
from kyanite.model.content.reading import Reading
from kyanite.model.copy_sources import SourceKey
from kyanite.model.records import BlobRecord
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest import blob_paths, file_paths
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.downloads import Stream
from kyanite.services.rest.headers import conditions_of, content_length_of
from kyanite.services.rest.limits import most_of
from kyanite.services.rest.source_kinds import BLOB_SOURCE, FILE_SOURCE
from kyanite.services.rest.sources import COPY_SOURCE, Unverified, kind_of, source_of
from kyanite.services.rest.uploads import Expected, PiecedBody, Taken, expected_of, hash_headers, take_body
from kyanite.wire import ranges
from kyanite.wire.malformed import Malformed, bad_header
from kyanite.wire.ranges import ByteRange

MD5 = "x-ms-source-content-md5"
CRC64 = "x-ms-source-content-crc64"
RANGE = "x-ms-source-range"

_MOMENTS = ("snapshot=", "versionid=", "sharesnapshot=")


class Source(NamedTuple):
    key: SourceKey
    url: str
    """As it is shown later: without the signature, which is a secret."""
    conditions: Conditions


class TakenSource(NamedTuple):
    record: BlobRecord
    taken: Taken


async def find_source(exchange: Exchange, *, with_own_key: bool) -> Source:
    """What the request may copy. A file always has to be opened by a signature of its own."""
    kind = kind_of(exchange, (BLOB_SOURCE, FILE_SOURCE))
    is_blob = kind is BLOB_SOURCE
    found = await source_of(exchange, kind, with_own_key=with_own_key and is_blob)
    try:
        key = blob_paths.readable_key_of(found) if is_blob else file_paths.readable_path_of(found)
    except Refused as cause:
        raise Unverified(Refused(Reason.RESOURCE_NOT_FOUND)) from cause
    return Source(key, _told(exchange.headers[COPY_SOURCE]), _conditions_of(exchange.headers))


async def take_range(exchange: Exchange, limits: Sequence[tuple[str, int]]) -> Taken:
    """The range of the source that is to be written, checked and safe. It may not be empty."""
    check_no_body(exchange)
    asked = source_range_of(exchange.headers)
    source = await find_source(exchange, with_own_key=False)
    expected = expected_hashes_of(exchange.headers)
    taken = (await take_source(exchange, source, asked, most_of(exchange.version, limits), expected)).taken
    if taken.length == 0:
        raise Malformed("InvalidInput")
    return taken


async def take_source(
    exchange: Exchange, source: Source, asked: ByteRange | None, most: int, expected: Expected
) -> TakenSource:
    """Read a source, the whole or a range of it, and store it anew; ``most`` bytes may come of it."""
    stream = Stream(exchange.environment, _reading_of(source, asked))
    try:
        opened = await stream.open()
        if opened.length > most:
            raise Refused(Reason.COPY_SOURCE_TOO_LARGE)
        async with aclosing(stream.data()) as pieces:
            body = PiecedBody(pieces, opened.length)
            taken = await take_body(exchange.environment, body, opened.length, expected)
        return TakenSource(opened.record, taken)
    except Refused as refusal:
        if refusal.reason is Reason.INVALID_RANGE:
            raise Unverified(refusal) from refusal
        raise
    finally:
        stream.release()


def source_range_of(headers: Mapping[str, str]) -> ByteRange | None:
    """What is not a range is refused: the whole, taken for a part of it, would do harm."""
    text = headers.get(RANGE)
    if not text:
        return None
    asked = ranges.decode(text)
    if asked is None:
        raise bad_header(RANGE, text)
    return asked


def expected_hashes_of(headers: Mapping[str, str]) -> Expected:
    return expected_of(headers, MD5, CRC64)


def source_hash_headers(headers: Mapping[str, str], taken: Taken) -> list[tuple[str, str]]:
    return hash_headers(headers, taken, MD5)


def check_no_body(exchange: Exchange) -> None:
    if content_length_of(exchange.request) != 0:
        raise bad_header("Content-Length", exchange.headers.get("content-length", ""))


def _reading_of(source: Source, asked: ByteRange | None) -> Reading[BlobRecord]:
    load = partial(copy_sources.load, source=source.key, conditions=source.conditions)
    if asked is None:
        return Reading(load)
    return Reading(partial(load, first=asked.first, last=asked.last), asked.first, asked.last, is_whole=False)


def _conditions_of(headers: Mapping[str, str]) -> Conditions:
    return conditions_of(
        {
            name.removeprefix("x-ms-source-"): value
            for name, value in headers.items()
            if name.startswith("x-ms-source-if-")
        }
    )


def _told(url: str) -> str:
    parts = urlsplit(url)
    kept = "&".join(part for part in parts.query.split("&") if part.startswith(_MOMENTS))
    return parts._replace(query=kept).geturl()
