"""Taking in the body of an upload: its bytes to where they will stay, its hashes checked.

A small body stays in memory and becomes part of the transaction. A middling one is gathered and packed with others. A
large one streams to its own file; it is hashed and written in threads while the next piece arrives. Only so much is
gathered at a time: beyond the budget middling bodies stream too, so many slow clients cannot fill the memory.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from kyanite.engine.api import EngineBusy, EngineFull
from kyanite.extents.api import Extent, Extents
from kyanite.model.accounts import Store
from kyanite.model.content.content import INLINE_MAX, PACK_MAX
from kyanite.rules.refusals import Refused
from kyanite.services.rest.headers import base64_text, crc64_of, md5_of
from kyanite.wire import crc64
from kyanite.wire.http import Body, BodyError, Request
from kyanite.wire.malformed import Malformed

T = TypeVar("T")

_GATHER_BUDGET_BYTES = 64 * 1024 * 1024
_HASH_INLINE_MAX = 32 * 1024


class ReceivedBody(msgspec.Struct, frozen=True, gc=False):
    """A body that has arrived whole and is safe where it is."""

    payload: bytes | tuple[Extent, ...]
    length: int
    md5: bytes
    crc64: int


@dataclass(slots=True)
class _Gathering:
    held_bytes: int = 0


_gathering = _Gathering()
_settling: set[asyncio.Future[Any]] = set()


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
    """The hashes that a body was announced with."""

    md5: bytes | None
    crc64: int | None


def expected_of(headers: Mapping[str, str], md5_header: str, crc64_header: str) -> Expected:
    expected = Expected(md5_of(headers, md5_header), crc64_of(headers, crc64_header))
    if expected.md5 is not None and expected.crc64 is not None:
        raise Malformed("BothCrc64AndMd5HeaderPresent")
    return expected


def hash_headers(
    headers: Mapping[str, str], received: ReceivedBody, md5_header: str = "content-md5"
) -> list[tuple[str, str]]:
    """The hashes that an answer tells: the CRC64 always, the MD5 to who sent one."""
    told = [("x-ms-content-crc64", crc64.encode(received.crc64))]
    if md5_header in headers:
        told.append(("Content-MD5", base64_text(received.md5)))
    return told


def check_hashes(headers: Mapping[str, str], data: bytes) -> int:
    """Check a body that is in memory against the hashes it came with; its CRC64 is returned."""
    checksum = crc64.compute(data)
    md5 = hashlib.md5(data, usedforsecurity=False).digest()
    _check(md5, checksum, Expected(md5_of(headers, "content-md5"), crc64_of(headers)))
    return checksum


def take(store: Store, request: Request, length: int, *, md5: bytes | None = None) -> Awaitable[ReceivedBody]:
    """Read the request's body and check it against what the headers say of it, and against ``md5`` if that is given."""
    expected = expected_of(request.headers, "content-md5", "x-ms-content-crc64")
    if md5 is not None and expected.md5 != md5:
        if expected.md5 is not None:
            raise Malformed("Md5Mismatch", UserSpecifiedMd5=base64_text(md5))
        expected = expected._replace(md5=md5)
    return receive_body(store, request.body, length, expected)


async def receive_body(store: Store, body: Body, length: int, expected: Expected) -> ReceivedBody:
    """The same with a body from anywhere."""
    if length <= INLINE_MAX:
        return await _take_small(body, length, expected)
    if length <= PACK_MAX and _gathering.held_bytes + length <= _GATHER_BUDGET_BYTES:
        return await _take_middling(store, body, length, expected)
    return await _take_large(store, body, length, expected)


async def keep(store: Store, data: bytes) -> ReceivedBody:
    """The same for bytes that are in memory already."""
    digest, checksum = await _md5(data), crc64.compute(data)
    payload = data if len(data) <= INLINE_MAX else (await store.extents.put(data),)
    return ReceivedBody(payload, len(data), digest, checksum)


async def commit(store: Store, received: ReceivedBody, transaction: Awaitable[T]) -> T:
    """Wait for the transaction that refers to the body, and tell the store of bytes how it went.

    Also when the client goes away meanwhile and its request is cancelled: extents that nobody speaks for are kept
    until the process ends. After an unknown outcome they are left alone, for they may be referred to.
    """
    if isinstance(received.payload, bytes):
        return await transaction
    settling = asyncio.ensure_future(_settle(store.extents, received.payload, transaction))
    _settling.add(settling)
    settling.add_done_callback(_settled)
    return await asyncio.shield(settling)


def _settled(settling: asyncio.Future[Any]) -> None:
    _settling.discard(settling)
    if not settling.cancelled():
        settling.exception()  # It has been seen, though the one it concerned may have gone.


async def _settle(extents: Extents, body: tuple[Extent, ...], transaction: Awaitable[T]) -> T:
    try:
        result = await transaction
    except (Refused, EngineBusy, EngineFull):
        await extents.discard(body)
        raise
    extents.commit(body)
    return result


async def _take_small(body: Body, length: int, expected: Expected) -> ReceivedBody:
    data = await _whole(body, length)
    received = ReceivedBody(
        data, length, hashlib.md5(data, usedforsecurity=False).digest(), crc64.compute(data)
    )
    _check(received.md5, received.crc64, expected)
    return received


async def _take_middling(store: Store, body: Body, length: int, expected: Expected) -> ReceivedBody:
    _gathering.held_bytes += length
    try:
        data = await _whole(body, length)
        digest = await _md5(data)
        checksum = crc64.compute(data)
        _check(digest, checksum, expected)
        extent = await store.extents.put(data)
    finally:
        _gathering.held_bytes -= length
    return ReceivedBody((extent,), length, digest, checksum)


async def _take_large(store: Store, body: Body, length: int, expected: Expected) -> ReceivedBody:
    digest = hashlib.md5(usedforsecurity=False)
    upload = store.extents.upload(size_hint=length, observers=(digest.update,))
    try:
        received = 0
        while piece := await body.read():
            received += len(piece)
            await upload.write(piece)
        if received != length:
            raise BodyError("the body ended early")
        extents = tuple(await upload.finish())
        checksum = crc64.EMPTY
        for extent in extents:
            checksum = crc64.combine(checksum, extent.crc64, extent.length)
    except BaseException:
        await upload.abort()
        raise
    try:
        _check(digest.digest(), checksum, expected)
    except Malformed:
        await store.extents.discard(extents)
        raise
    return ReceivedBody(extents, length, digest.digest(), checksum)


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
