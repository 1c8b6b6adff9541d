"""Sources of copies into blobs: what ``x-ms-copy-source`` names, or a range of it that is received like a body."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple, TypeVar

from kyanite.engine.api import Snapshot, Steps
from kyanite.model import copy_sources
from kyanite.model.accounts import Store
from kyanite.model.blobs.records import BLOCK_BLOB, PAGE_BLOB, BlobRecord
from kyanite.model.content.blocks import runs_of
from kyanite.model.content.opening import Opened, Reading
from kyanite.model.content.spread import NewContent, Run
from kyanite.model.copy_sources import SourceKey
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.blob.tag_headers import SOURCE_IF_TAGS, check_source_permissions, with_tags
from kyanite.services.rest import blob_paths, file_paths
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import conditions_of, content_length_of
from kyanite.services.rest.sources import (
    BLOB_SOURCE,
    COPY_SOURCE,
    FILE_SOURCE,
    CannotVerifySource,
    kind_of,
    source_of,
    without_signature,
)
from kyanite.services.rest.streamed_copies import store_runs
from kyanite.services.rest.streams import Stream
from kyanite.services.rest.uploads import (
    Expected,
    PiecedBody,
    ReceivedBody,
    Transaction,
    check_pieces,
    expected_of,
    hash_headers,
    max_length_of,
    store_body,
)
from kyanite.wire import ranges
from kyanite.wire.malformed import Malformed, bad_header
from kyanite.wire.ranges import ByteRange

T = TypeVar("T")

MD5 = "x-ms-source-content-md5"
CRC64 = "x-ms-source-content-crc64"
RANGE = "x-ms-source-range"


class Source(NamedTuple):
    store: Store
    """Where it is. If that is not the store of the copy, its bytes are streamed: no extent belongs to two stores."""
    key: SourceKey
    url: str
    """As the properties of the copy return it: without the signature, which is secret."""
    conditions: Conditions


async def find_source(context: RequestContext) -> Source:
    """The source that the request names, if it may read that."""
    kind = kind_of(context, (BLOB_SOURCE, FILE_SOURCE))
    is_blob = kind is BLOB_SOURCE
    found = await source_of(context, kind)
    try:
        if is_blob:
            check_source_permissions(context, found)
    except Refused as cause:
        raise CannotVerifySource(cause) from cause
    try:
        key = blob_paths.readable_key_of(found) if is_blob else file_paths.readable_path_of(found)
    except Refused as cause:
        raise CannotVerifySource(Refused(Reason.RESOURCE_NOT_FOUND)) from cause
    return Source(
        found.store, key, without_signature(context.headers[COPY_SOURCE]), _conditions_of(context.headers)
    )


async def store_range(
    context: RequestContext, limits: Sequence[tuple[str, int]], transaction: Transaction[T]
) -> tuple[ReceivedBody, T]:
    """Read the range of the source that is to be written and store it anew. It may not be empty."""
    check_no_body(context)
    wanted = source_range_of(context.headers)
    source = await find_source(context)
    expected = expected_hashes_of(context.headers)

    def of_range(_: BlobRecord, received: ReceivedBody) -> Awaitable[T]:
        if received.length == 0:
            raise Malformed("InvalidInput")
        return transaction(received)

    return await store_source(
        context, source, wanted, max_length_of(context.version, limits), expected, of_range
    )


async def store_source(
    context: RequestContext,
    source: Source,
    wanted: ByteRange | None,
    most: int,
    expected: Expected,
    transaction: Callable[[BlobRecord, ReceivedBody], Awaitable[T]],
) -> tuple[ReceivedBody, T]:
    """Read a source, the whole or a range of it, and store it anew; it may have ``most`` bytes.

    The transaction is given the record of the source as well.
    """
    stream: Stream[BlobRecord] = Stream(source.store)
    try:
        opened = await _open(stream, _reading_of(source, wanted))
        if opened.length > most:
            raise Refused(Reason.COPY_SOURCE_TOO_LARGE)
        async with aclosing(stream.data()) as pieces:
            body = PiecedBody(pieces, opened.length)
            return await store_body(
                context.store, body, opened.length, expected, partial(transaction, opened.record)
            )
    finally:
        stream.release()


async def store_copy(
    context: RequestContext,
    source: Source,
    load: Callable[[Snapshot], BlobRecord],
    transaction: Callable[[BlobRecord, NewContent], Awaitable[T]],
) -> T:
    """Read a source in another store and store it anew, with its blocks, and without the zeros of a page blob.

    The transaction is given the record and the content.
    """
    stream: Stream[BlobRecord] = Stream(source.store)
    try:
        opened = await _open(stream, Reading(load))
        if opened.record.kind == BLOCK_BLOB and opened.record.content.layer:
            opened = await stream.keep_content(Reading(load))
        record = opened.record
        is_sparse = record.kind == PAGE_BLOB

        def blocks(snap: Snapshot) -> Steps[list[Run]]:
            stream.check_kept(snap)
            return (yield from runs_of(snap, record.content, record.length))

        runs = await (stream.runs() if is_sparse else source.store.engine.read_in_steps(blocks))
        async with aclosing(stream.data_of(runs) if is_sparse else stream.data()) as pieces:
            return await store_runs(context.store, pieces, runs, partial(transaction, record))
    finally:
        stream.release()


async def check_source(source: Source, most: int, expected: Expected) -> Source:
    """Read a source to check its hashes. Returns it with the condition that it is still the one that was read."""
    stream: Stream[BlobRecord] = Stream(source.store)
    try:
        opened = await _open(stream, _reading_of(source, None))
        if opened.length > most:
            raise Refused(Reason.COPY_SOURCE_TOO_LARGE)
        async with aclosing(stream.data()) as pieces:
            await check_pieces(pieces, expected)
        conditions = Conditions(if_match=(opened.record.etag,), if_tags=source.conditions.if_tags)
        return source._replace(conditions=conditions)
    finally:
        stream.release()


async def _open(stream: Stream[BlobRecord], request: Reading[BlobRecord]) -> Opened[BlobRecord]:
    try:
        return await stream.open(request)
    except Refused as refusal:
        if refusal.reason is Reason.INVALID_RANGE:
            raise CannotVerifySource(refusal) from refusal
        raise


def source_range_of(headers: dict[str, str]) -> ByteRange | None:
    """A range that cannot be decoded is refused: to copy the whole source instead would be wrong."""
    text = headers.get(RANGE)
    if not text:
        return None
    wanted = ranges.decode(text)
    if wanted is None:
        raise bad_header(RANGE, text)
    return wanted


def expected_hashes_of(headers: dict[str, str]) -> Expected:
    return expected_of(headers, MD5, CRC64)


def source_hash_headers(headers: dict[str, str], received: ReceivedBody) -> list[tuple[str, str]]:
    return hash_headers(headers, received, MD5)


def check_no_body(context: RequestContext) -> None:
    if content_length_of(context.request) != 0:
        raise bad_header("Content-Length", context.headers.get("content-length", ""))


def _reading_of(source: Source, wanted: ByteRange | None) -> Reading[BlobRecord]:
    load = partial(copy_sources.load, source=source.key, conditions=source.conditions)
    if wanted is None:
        return Reading(load)
    return Reading(
        partial(load, first=wanted.first, last=wanted.last), wanted.first, wanted.last, is_whole=False
    )


def _conditions_of(headers: dict[str, str]) -> Conditions:
    conditions = conditions_of(
        {
            name.removeprefix("x-ms-source-"): value
            for name, value in headers.items()
            if name.startswith("x-ms-source-if-")
        }
    )
    return with_tags(conditions, headers, SOURCE_IF_TAGS)
