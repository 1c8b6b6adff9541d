"""Get Blob: the whole or a range, from the version that was there when the request came.

The bytes of a small blob are in the answer at once. Those of extents follow as they are read, or are sent by the
kernel straight from the file; a pin keeps them until the client has them all, whatever happens to the blob meanwhile.
"""

import hashlib
from collections.abc import AsyncIterator, Callable

from kyanite.engine.extents import Extents
from kyanite.model import blob
from kyanite.model.blob import Opened
from kyanite.model.content import Part, Plan, Zeros
from kyanite.services.blob.blob import guard_of, property_headers, readable_key_of
from kyanite.services.common.exchange import Exchange
from kyanite.services.common.headers import base64_text, flag_of
from kyanite.wire import crc64, ranges
from kyanite.wire.http import FileSpan, Piece, Response
from kyanite.wire.malformed import bad_header, missing_header
from kyanite.wire.ranges import ByteRange

_HASHED_RANGE_MAX = 4 * 1024 * 1024
_READ_MAX = 128 * 1024
"""Parts up to this size are read into memory and checked; longer ones go by the kernel."""
_ZEROS = bytes(64 * 1024)


async def get_blob(exchange: Exchange) -> Response:
    headers = exchange.headers
    asked = ranges.from_headers(headers)
    hashes = _hashes_of(exchange, asked)
    extents = exchange.environment.extents
    pin = extents.pin()
    try:
        opened = await _open(exchange, asked)
        answer = property_headers(exchange, opened.record, opened.at)
        status = _describe_range(answer, opened, asked)
        body, release = await _content(extents, opened.plan, in_memory=bool(hashes))
        if hashes:
            assert isinstance(body, bytes)
            answer += [(name, hash_of(body)) for name, hash_of in hashes]
    except BaseException:
        pin.release()
        raise
    if isinstance(body, bytes):
        pin.release()
        return Response(status, answer, body)

    def done() -> None:
        pin.release()
        release()

    return Response(status, answer, body, length=opened.length, release=done)


async def _open(exchange: Exchange, asked: ByteRange | None) -> Opened:
    engine, key, guard = exchange.environment.engine, readable_key_of(exchange), guard_of(exchange.headers)
    if asked is None:
        return await blob.open_range(engine, key, guard)
    return await blob.open_range(engine, key, guard, first=asked.first, last=asked.last, whole=False)


def _describe_range(answer: list[tuple[str, str]], opened: Opened, asked: ByteRange | None) -> int:
    """A range is 206 and says where it lies; the hash that is stored is that of the whole."""
    record = opened.record
    md5 = base64_text(record.http.content_md5) if record.http.content_md5 else ""
    if asked is None:
        if md5:
            answer.append(("Content-MD5", md5))
        return 200
    answer.append(
        ("Content-Range", ranges.content_range(ranges.Span(opened.offset, opened.length), record.length))
    )
    if md5:
        answer.append(("x-ms-blob-content-md5", md5))
    return 206


def _hashes_of(exchange: Exchange, asked: ByteRange | None) -> list[tuple[str, Callable[[bytes], str]]]:
    """The hashes of the range that the client wants with it: only of one range, and only of a short one."""
    wanted: list[tuple[str, Callable[[bytes], str]]] = []
    for header, name, hash_of in (
        ("x-ms-range-get-content-md5", "Content-MD5", _md5_text),
        ("x-ms-range-get-content-crc64", "x-ms-content-crc64", _crc64_text),
    ):
        if not flag_of(exchange.headers, header):
            continue
        if asked is None:
            raise missing_header("x-ms-range")
        if asked.length is None or asked.length > _HASHED_RANGE_MAX:
            raise bad_header(header, exchange.headers[header])
        wanted.append((name, hash_of))
    if len(wanted) > 1:
        raise bad_header("x-ms-range-get-content-crc64", exchange.headers["x-ms-range-get-content-crc64"])
    return wanted


def _md5_text(data: bytes) -> str:
    return base64_text(hashlib.md5(data, usedforsecurity=False).digest())


def _crc64_text(data: bytes) -> str:
    return crc64.encode(crc64.compute(data))


async def _content(
    extents: Extents, plan: Plan, *, in_memory: bool
) -> tuple[bytes | AsyncIterator[Piece], Callable[[], None]]:
    pieces = plan.pieces
    if not pieces:
        return b"", _nothing
    if len(pieces) == 1:
        piece = pieces[0]
        if isinstance(piece, bytes):
            return piece, _nothing
        if isinstance(piece, Part) and piece.length <= _READ_MAX:
            return await extents.read(piece.extent, piece.offset, piece.length), _nothing
    stream = _Stream(extents, plan)
    if in_memory:
        return b"".join([bytes(piece) async for piece in stream.in_memory()]), _nothing
    return stream.pieces(), stream.release


def _nothing() -> None:
    """There is nothing to let go of."""


class _Stream:
    """The pieces of a plan one after the other. At most one file is held open at a time."""

    def __init__(self, extents: Extents, plan: Plan) -> None:
        self._extents = extents
        self._plan = plan
        self._close: Callable[[], None] = _nothing

    async def pieces(self) -> AsyncIterator[Piece]:
        for piece in self._plan.pieces:
            if isinstance(piece, Part) and piece.length > _READ_MAX:
                span = self._extents.span(piece.extent, piece.offset, piece.length)
                self._close = span.release
                yield FileSpan(span.fd, span.offset, span.length)
                self.release()
            else:
                async for data in self._bytes_of(piece):
                    yield data

    async def in_memory(self) -> AsyncIterator[bytes | memoryview]:
        for piece in self._plan.pieces:
            async for data in self._bytes_of(piece):
                yield data

    async def _bytes_of(self, piece: Zeros | Part | bytes) -> AsyncIterator[bytes | memoryview]:
        if isinstance(piece, bytes):
            yield piece
        elif isinstance(piece, Part):
            async for data in self._extents.stream(piece.extent, piece.offset, piece.length):
                yield data
        else:
            left = piece.length
            while left > 0:
                yield _ZEROS if left >= len(_ZEROS) else _ZEROS[:left]
                left -= len(_ZEROS)

    def release(self) -> None:
        close, self._close = self._close, _nothing
        close()
