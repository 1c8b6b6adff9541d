"""Sending the bytes of a blob or file: the whole or a range, of the version that was there when the request came.

The bytes of a small one are sent with the head. Those of extents follow in a stream (``streams.py``).
"""

import hashlib
from collections.abc import Callable
from typing import Final, TypeVar

from kyanite.model.accounts import Store
from kyanite.model.content.opening import Opened, Readable, Reading
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import base64_text, flag_of
from kyanite.services.rest.streams import Stream, begun
from kyanite.wire import crc64, ranges, structured_message
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header, missing_header

R = TypeVar("R", bound=Readable)

Headers = list[tuple[str, str]]
Hashes = list[tuple[str, Callable[[bytes], str]]]
"""Names of headers, and functions that compute their values from the bytes that are sent."""

_MD5: Final = "x-ms-range-get-content-md5"
_CRC64: Final = "x-ms-range-get-content-crc64"
_HASHED_RANGE_MAX: Final = 4 * 1024 * 1024


async def download(
    context: RequestContext, request: Reading[R], describe: Callable[[Opened[R]], Response]
) -> Response:
    """Answer a GET of bytes. ``describe`` makes the response, with the headers about the blob or file.

    Most bodies are short and come with the record. The others go on from the same snapshot, under the same pin.
    """
    headers, store = context.headers, context.store
    hashes = _hashes_of(headers, request) if _MD5 in headers or _CRC64 in headers else []
    pin = store.extents.pin()
    try:
        opened = await store.engine.read(request)
        body = _inline(opened)
        if body is not None:
            response = _answer(opened, request, describe, hashes, body)
            pin.release()
            return response
        stream: Stream[R] = Stream(store, pin)
    except BaseException:
        pin.release()
        raise
    try:
        opened = await stream.resume(opened, request)
        body = await (stream.gathered() if hashes else stream.read_short())
        response = _answer(opened, request, describe, hashes, body)
        if body is None:
            response.body = await begun(context.request, stream.pieces())
            response.length, response.release = opened.length, stream.release
            return response
    except BaseException:
        stream.release()
        raise
    stream.release()
    return response


async def download_structured(
    context: RequestContext, request: Reading[R], describe: Callable[[Opened[R]], Response]
) -> Response:
    """The same with checksums inside the body. One segment at a time is in memory."""
    stream: Stream[R] = Stream(context.store)
    try:
        opened = await stream.open(request)
        if structured_message.segments_of(opened.length) > structured_message.SEGMENTS_MAX:
            raise bad_header("x-ms-structured-body", context.headers["x-ms-structured-body"])
        response = _answer(opened, request, describe, [], None)
        data = await begun(context.request, stream.data())
    except BaseException:
        stream.release()
        raise
    response.headers.append(("x-ms-structured-body", structured_message.FORM))
    response.headers.append(("x-ms-structured-content-length", str(opened.length)))
    response.body = structured_message.encode(data, opened.length)
    response.length, response.release = structured_message.framed_length(opened.length), stream.release
    return response


async def read_bytes(store: Store, request: Reading[R]) -> bytes:
    """The bytes of a short range, in memory: for a copy."""
    stream: Stream[R] = Stream(store)
    try:
        await stream.open(request)
        return await stream.gathered()
    finally:
        stream.release()


def _answer(
    opened: Opened[R],
    request: Reading[R],
    describe: Callable[[Opened[R]], Response],
    hashes: Hashes,
    body: bytes | None,
) -> Response:
    response = describe(opened)
    if not request.is_whole:
        span = ranges.ResolvedRange(opened.offset, opened.length)
        response.headers.append(("Content-Range", ranges.content_range(span, opened.record.length)))
        response.status = 206
    if body is not None:
        for name, hash_of in hashes:
            response.headers.append((name, hash_of(body)))
        response.body = body
    return response


def _hashes_of(headers: dict[str, str], request: Reading[R]) -> Hashes:
    """The hashes of the range that the client wants with it: only of one range, and only of a short one."""
    wanted: Hashes = []
    for header, name, hash_of in (
        (_MD5, "Content-MD5", _md5_text),
        (_CRC64, "x-ms-content-crc64", _crc64_text),
    ):
        if not flag_of(headers, header):
            continue
        if request.is_whole:
            raise missing_header("x-ms-range")
        if request.last is None or request.last - request.first >= _HASHED_RANGE_MAX:
            raise bad_header(header, headers[header])
        wanted.append((name, hash_of))
    if len(wanted) > 1:
        raise bad_header(_CRC64, headers[_CRC64])
    return wanted


def _md5_text(data: bytes) -> str:
    return base64_text(hashlib.md5(data, usedforsecurity=False).digest())


def _crc64_text(data: bytes) -> str:
    return crc64.encode(crc64.compute(data))


def _inline(opened: Opened[R]) -> bytes | None:
    """The bytes, if the plan itself holds them all."""
    plan = opened.plan
    if not plan.parts:
        return b""
    part = plan.parts[0]
    is_all = len(plan.parts) == 1 and plan.end == opened.offset + opened.length
    return part if is_all and isinstance(part, bytes) else None
