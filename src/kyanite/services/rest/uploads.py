"""Storing the body of a request: receive it, check its hashes, and run the transaction that refers to it.

A small body stays in memory and becomes part of the transaction. All others go to the extents as they arrive: a medium
one is written together with others, a large one is hashed and written by threads while the next bytes arrive, if
possible into buffers of the extents, without a copy.

There is no other way to the bytes than ``store`` and its siblings: they give them to the transaction and then either
commit its extents or discard them, so no error and no cancellation between the two can leave them behind.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kyanite.engine.api import EngineBusy, EngineFull
from kyanite.extents.api import PACK_MAX, Extent, Extents, Upload
from kyanite.model.accounts import Store
from kyanite.model.content.content import INLINE_MAX
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.model.records import Value
from kyanite.rules.refusals import Refused
from kyanite.services.rest import structured
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import base64_text, crc64_of, md5_of
from kyanite.wire import crc64
from kyanite.wire.direct_reads import DirectReads
from kyanite.wire.http import Body, BodyError
from kyanite.wire.malformed import Malformed

T = TypeVar("T")

_HASH_INLINE_MAX: Final = 32 * 1024


class ReceivedBody(Value, frozen=True):
    """A body that has arrived whole. Its bytes are on the disk already, unless they are few enough for a row."""

    payload: bytes | tuple[Extent, ...]
    length: int
    md5: bytes
    """Empty unless the client announced it or the caller wants it, because it costs more than everything else."""
    crc64: int


Transaction = Callable[[ReceivedBody], Awaitable[T]]
"""Starts the transaction that refers to the body. May raise what it likes before it does."""


_committing: Final[set[asyncio.Future[Any]]] = set()


class PiecedBody:
    """Bytes that come in pieces from within the server, as the body of an upload."""

    __slots__ = ("_pieces", "length")

    def __init__(self, pieces: AsyncIterator[bytes], length: int) -> None:
        self._pieces = pieces
        self.length = length

    async def read(self) -> bytes:
        return await anext(self._pieces, b"")

    async def read_all(self, limit: int) -> bytes | None:
        if self.length > limit:
            return None
        return b"".join([piece async for piece in self._pieces])


class Expected(NamedTuple):
    """The hashes that the headers announce."""

    md5: bytes | None
    crc64: int | None


NO_HASHES: Final = Expected(None, None)


def expected_of(headers: dict[str, str], md5_header: str, crc64_header: str) -> Expected:
    md5, checksum = md5_of(headers, md5_header), crc64_of(headers, crc64_header)
    if md5 is None and checksum is None:
        return NO_HASHES
    if md5 is not None and checksum is not None:
        raise Malformed("BothCrc64AndMd5HeaderPresent")
    return Expected(md5, checksum)


def hash_headers(
    headers: dict[str, str], received: ReceivedBody, md5_header: str = "content-md5"
) -> list[tuple[str, str]]:
    """The hashes in a response: the CRC64 always, the MD5 if the request had one."""
    hashes = [("x-ms-content-crc64", crc64.encode(received.crc64))]
    if headers.get(md5_header):
        hashes.append(("Content-MD5", base64_text(received.md5)))
    return hashes


async def check_hashes(headers: dict[str, str], data: bytes) -> int:
    """Check a body in memory against the hashes in the headers; returns its CRC64."""
    checksum = crc64.compute(data)
    expected = Expected(md5_of(headers, "content-md5"), crc64_of(headers))
    _check(await _md5(data) if expected.md5 is not None else b"", checksum, expected)
    return checksum


def check_body_length(version: str, length: int, limits: Sequence[tuple[str, int]]) -> None:
    """Refuse a body that is longer than its version allows; ``limits`` are (since, maximum), the newest first."""
    maximum = max_length_of(version, limits)
    if length > maximum:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(maximum))


def max_length_of(version: str, limits: Sequence[tuple[str, int]]) -> int:
    return next(maximum for since, maximum in limits if version >= since)


def store(
    context: RequestContext,
    length: int,
    transaction: Transaction[T],
    *,
    md5: bytes | None = None,
    wants_md5: bool = False,
) -> Awaitable[tuple[ReceivedBody, T]]:
    """Store the body of the request, ``length`` bytes of data, and return it with what the transaction returned.

    The body must have the hashes that its headers announce. If ``md5`` is given, it takes precedence over Content-MD5.
    ``wants_md5``: the MD5 is stored or returned even if the client did not announce it.
    """
    request = context.request
    expected = expected_of(request.headers, "content-md5", "x-ms-content-crc64")
    if structured.is_structured(context):
        structured.check_no_hashes(context, expected.md5, expected.crc64)
        body: Body = PiecedBody(structured.data_of(context, length), length)
        return store_body(context.store, body, length, Expected(md5, None), transaction, wants_md5)
    if md5 is not None:
        expected = expected._replace(md5=md5)
    return store_body(context.store, request.body, length, expected, transaction, wants_md5)


async def store_body(
    store: Store,
    body: Body,
    length: int,
    expected: Expected,
    transaction: Transaction[T],
    wants_md5: bool = False,
) -> tuple[ReceivedBody, T]:
    """The same with a body from anywhere."""
    wants_md5 = wants_md5 or expected.md5 is not None
    if length <= INLINE_MAX:
        data = await _whole(body, length)
        md5 = hashlib.md5(data, usedforsecurity=False).digest() if wants_md5 else b""
        received = ReceivedBody(data, length, md5, crc64.compute(data))
        _check(received.md5, received.crc64, expected)
        return received, await transaction(received)
    received = await _receive(store.extents, body, length, expected, wants_md5)
    return received, await _commit(store.extents, received, transaction)


async def check_pieces(pieces: AsyncIterator[bytes], expected: Expected) -> None:
    """Check bytes that are not to be stored against the hashes."""
    digest, checksum = hashlib.md5(usedforsecurity=False), crc64.EMPTY
    async for piece in pieces:
        if expected.md5 is not None:
            await asyncio.to_thread(digest.update, piece)
        checksum = crc64.combine(checksum, crc64.compute(piece), len(piece))
    _check(digest.digest(), checksum, expected)


async def store_data(store: Store, data: bytes, transaction: Transaction[T]) -> tuple[ReceivedBody, T]:
    """The same with bytes that are in memory and checked already."""
    checksum = crc64.compute(data)
    if len(data) <= INLINE_MAX:
        received = ReceivedBody(data, len(data), b"", checksum)
        return received, await transaction(received)
    received = ReceivedBody((await store.extents.put(data),), len(data), b"", checksum)
    return received, await _commit(store.extents, received, transaction)


async def _receive(
    extents: Extents, body: Body, length: int, expected: Expected, wants_md5: bool
) -> ReceivedBody:
    hashing = hashlib.md5(usedforsecurity=False)
    upload = extents.upload(size_hint=length, observers=(hashing.update,) if wants_md5 else ())
    try:
        if await _pass_on(body, length, upload) != length:
            raise BodyError("the body ended early")
        written = tuple(await upload.finish())
    except BaseException as error:
        await upload.abort()
        raise error
    checksum = crc64.EMPTY
    for extent in written:
        checksum = crc64.combine(checksum, extent.crc64, extent.length)
    md5 = hashing.digest() if wants_md5 else b""
    try:
        _check(md5, checksum, expected)
    except Malformed as malformed:
        await extents.discard(written)
        raise malformed
    return ReceivedBody(written, length, md5, checksum)


async def _pass_on(body: Body, length: int, upload: Upload) -> int:
    """Pass all bytes on as they come; returns how many there were."""
    direct = body if length > PACK_MAX and isinstance(body, DirectReads) else None
    received = 0
    while True:
        buffer = upload.buffer() if direct is not None else None
        if direct is not None and buffer is not None:
            count = await direct.read_into(buffer)
            received += count
            await upload.filled(count)
        elif piece := await body.read():
            received += len(piece)
            await upload.write(piece)
        else:
            return received


async def _commit(extents: Extents, received: ReceivedBody, transaction: Transaction[T]) -> T:
    """Run the transaction in a task of its own, which a cancelled request does not cancel.

    There is no point at which a request can be cancelled between the last byte and this task.
    """
    committing = asyncio.ensure_future(_run(extents, received, transaction))
    _committing.add(committing)
    committing.add_done_callback(_committed)
    return await asyncio.shield(committing)


def _committed(committing: asyncio.Future[Any]) -> None:
    _committing.discard(committing)
    if not committing.cancelled():
        committing.exception()  # Marked as retrieved: the request it concerns may be cancelled.


async def _run(extents: Extents, received: ReceivedBody, transaction: Transaction[T]) -> T:
    """After an unknown outcome the extents are left alone, for they may be referred to."""
    written = received.payload
    assert isinstance(written, tuple)
    try:
        running = transaction(received)
    except BaseException as error:
        await extents.discard(written)
        raise error
    try:
        result = await running
    except (Refused, Malformed, BreakNeeded, EngineBusy, EngineFull) as error:
        await extents.discard(written)
        raise error
    extents.commit(written)
    return result


async def _whole(body: Body, length: int) -> bytes:
    data = await body.read_all(length)
    if data is None or len(data) != length:
        raise BodyError("the body is not of the announced length")
    return data


async def _md5(data: bytes) -> bytes:
    if len(data) <= _HASH_INLINE_MAX:
        return hashlib.md5(data, usedforsecurity=False).digest()
    return await asyncio.to_thread(lambda: hashlib.md5(data, usedforsecurity=False).digest())


def _check(md5: bytes, checksum: int, expected: Expected) -> None:
    if expected.md5 is not None and expected.md5 != md5:
        raise Malformed(
            "Md5Mismatch",
            UserSpecifiedMd5=base64_text(expected.md5),
            ServerCalculatedMd5=base64_text(md5),
        )
    if expected.crc64 is not None and expected.crc64 != checksum:
        raise Malformed(
            "Crc64Mismatch",
            UserSpecifiedCrc64=crc64.encode(expected.crc64),
            ServerCalculatedCrc64=crc64.encode(checksum),
        )
