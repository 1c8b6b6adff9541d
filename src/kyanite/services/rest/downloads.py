"""Sending the bytes of a blob or file: the whole or a range, from the version that was there when the request came.

The bytes of a small one are in the answer at once. Those of extents follow as they are read, or are sent by the kernel
straight from the file; a pin keeps them until the client has them all, whatever is written meanwhile.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from itertools import count
from typing import Generic, TypeVar

from kyanite.model.accounts import Store
from kyanite.model.content import pinned_reads
from kyanite.model.content.content import Part, Plan, Zeros
from kyanite.model.content.reading import Opened, Readable, Reading, let_go, open_held, open_once
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import base64_text, flag_of
from kyanite.wire import crc64, ranges, structured_message
from kyanite.wire.http import FileSlice, Piece, Response
from kyanite.wire.malformed import bad_header, missing_header

R = TypeVar("R", bound=Readable)

Headers = list[tuple[str, str]]
Hashes = list[tuple[str, Callable[[bytes], str]]]
"""Names of headers, and what makes their values of the bytes that are sent."""

_HASHED_RANGE_MAX = 4 * 1024 * 1024
_READ_MAX = 128 * 1024
"""Parts up to this size are read into memory and checked; longer ones go by the kernel."""
_ZEROS = bytes(64 * 1024)

_holds = count(1)
"""Numbers for this process's holds on content that is read for long."""
_letting_go: set[asyncio.Future[None]] = set()


async def download(
    context: RequestContext, request: Reading[R], describe: Callable[[Opened[R]], Headers]
) -> Response:
    """Answer a GET of bytes; ``describe`` tells what there is to say about what they belong to.

    Most of what is read is small and comes with the record. Only where there are extents is the reading begun
    again, with a pin.
    """
    hashes = _hashes_of(context, request)
    opened = await open_once(context.store.engine, request)
    body = _in_plan(opened.plan)
    if body is not None and opened.is_planned_whole:
        return _answer(opened, request, describe, hashes, body)
    stream = Stream(context.store, request)
    try:
        opened = await stream.open()
        body = await stream.at_once()
        if body is None and hashes:
            body = await stream.gathered()
        response = _answer(opened, request, describe, hashes, body)
    except BaseException:
        stream.release()
        raise
    if body is None:
        response.body, response.length, response.release = stream.pieces(), opened.length, stream.release
    else:
        stream.release()
    return response


async def download_structured(
    context: RequestContext, request: Reading[R], describe: Callable[[Opened[R]], Headers]
) -> Response:
    """The same with checksums inside the body; a segment at a time is in memory."""
    stream = Stream(context.store, request)
    try:
        opened = await stream.open()
        if structured_message.segments_of(opened.length) > structured_message.SEGMENTS_MAX:
            raise bad_header("x-ms-structured-body", context.headers["x-ms-structured-body"])
        response = _answer(opened, request, describe, [], None)
    except BaseException:
        stream.release()
        raise
    response.headers.append(("x-ms-structured-body", structured_message.FORM))
    response.headers.append(("x-ms-structured-content-length", str(opened.length)))
    response.body = structured_message.encode(stream.data(), opened.length)
    response.length, response.release = structured_message.framed_length(opened.length), stream.release
    return response


async def read_bytes(store: Store, request: Reading[R]) -> bytes:
    """The bytes of a short reading, in memory: for what is written somewhere else."""
    stream = Stream(store, request)
    try:
        await stream.open()
        return await stream.gathered()
    finally:
        stream.release()


def _answer(
    opened: Opened[R],
    request: Reading[R],
    describe: Callable[[Opened[R]], Headers],
    hashes: Hashes,
    body: bytes | None,
) -> Response:
    headers = describe(opened)
    if not request.is_whole:
        span = ranges.Span(opened.offset, opened.length)
        headers.append(("Content-Range", ranges.content_range(span, opened.record.length)))
    if body is None:
        return Response(200 if request.is_whole else 206, headers)
    headers += [(name, hash_of(body)) for name, hash_of in hashes]
    return Response(200 if request.is_whole else 206, headers, body)


def _in_plan(plan: Plan) -> bytes | None:
    """The bytes, if they are all in the plan itself."""
    pieces = plan.pieces
    if not pieces:
        return b""
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], bytes) else None


def _hashes_of(context: RequestContext, request: Reading[R]) -> Hashes:
    """The hashes of the range that the client wants with it: only of one range, and only of a short one."""
    wanted: Hashes = []
    for header, name, hash_of in (
        ("x-ms-range-get-content-md5", "Content-MD5", _md5_text),
        ("x-ms-range-get-content-crc64", "x-ms-content-crc64", _crc64_text),
    ):
        if not flag_of(context.headers, header):
            continue
        if request.is_whole:
            raise missing_header("x-ms-range")
        if request.last is None or request.last - request.first >= _HASHED_RANGE_MAX:
            raise bad_header(header, context.headers[header])
        wanted.append((name, hash_of))
    if len(wanted) > 1:
        raise bad_header("x-ms-range-get-content-crc64", context.headers["x-ms-range-get-content-crc64"])
    return wanted


def _md5_text(data: bytes) -> str:
    return base64_text(hashlib.md5(data, usedforsecurity=False).digest())


def _crc64_text(data: bytes) -> str:
    return crc64.encode(crc64.compute(data))


def _nothing() -> None:
    """There is nothing to let go of."""


class Stream(Generic[R]):
    """The bytes of one reading. At most one file is held open at a time. To be released, once."""

    __slots__ = ("_close", "_hold", "_opened", "_pin", "_reading", "_store")

    def __init__(self, store: Store, reading: Reading[R]) -> None:
        self._store = store
        self._reading = reading
        self._pin = store.extents.pin()
        self._close: Callable[[], None] = _nothing
        self._hold: int | None = None

    async def open(self) -> Opened[R]:
        engine = self._store.engine
        self._opened = await open_once(engine, self._reading)
        if not self._opened.is_planned_whole:
            self._hold = next(_holds)
            owner = self._store.membership.id
            self._opened = await open_held(engine, self._reading, owner, self._hold)
        return self._opened

    async def at_once(self) -> bytes | None:
        """The bytes, if they are few enough to be sent with the head."""
        found = _in_plan(self._opened.plan)
        if found is not None or len(self._opened.plan.pieces) > 1:
            return found
        piece = self._opened.plan.pieces[0]
        if isinstance(piece, Part) and piece.length <= _READ_MAX:
            return await self._store.extents.read(piece.extent, piece.offset, piece.length)
        return None

    async def gathered(self) -> bytes:
        """All bytes, in memory."""
        gathered = bytearray()
        async for data in self.data():
            gathered += data
        return bytes(gathered)

    async def data(self) -> AsyncGenerator[bytes, None]:
        """All bytes, one piece after the other, through memory."""
        async for piece in self._planned():
            async for data in self._bytes_of(piece):
                yield data

    async def pieces(self) -> AsyncIterator[Piece]:
        async for piece in self._planned():
            if isinstance(piece, Part) and piece.length > _READ_MAX:
                span = self._store.extents.open_extent(piece.extent, piece.offset, piece.length)
                self._close = span.release
                yield FileSlice(span.fd, span.offset, span.length)
                self._close_file()
            else:
                async for data in self._bytes_of(piece):
                    yield data

    def release(self) -> None:
        """Let go of everything, however the reading ended. Called once."""
        self._close_file()
        self._pin.release()
        if self._hold is not None:
            store = self._store
            task = asyncio.ensure_future(let_go(store.engine, store.membership.id, self._hold))
            _letting_go.add(task)
            task.add_done_callback(_letting_go.discard)

    def _planned(self) -> AsyncIterator[Zeros | Part | bytes]:
        opened = self._opened
        end = opened.offset + opened.length
        return pinned_reads.pieces(self._store.engine, opened.record.content, opened.plan, end)

    async def _bytes_of(self, piece: Zeros | Part | bytes) -> AsyncIterator[bytes]:
        if isinstance(piece, bytes):
            yield piece
        elif isinstance(piece, Part):
            async for data in self._store.extents.stream(piece.extent, piece.offset, piece.length):
                yield data
        else:
            left = piece.length
            while left > 0:
                yield _ZEROS if left >= len(_ZEROS) else _ZEROS[:left]
                left -= len(_ZEROS)

    def _close_file(self) -> None:
        close, self._close = self._close, _nothing
        close()
