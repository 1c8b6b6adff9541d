"""Taking in the body of an upload: its bytes to where they will stay, its hashes checked.

A small body stays in memory and becomes part of the transaction. A middling one is gathered and packed with others. A
large one streams to its own file; it is hashed and written in threads while the next piece arrives. Only so much is
gathered at a time: beyond the budget middling bodies stream too, so many slow clients cannot fill the memory.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from kyanite.engine.api import EngineBusy, EngineFull
from kyanite.engine.extents import Extent, Extents
from kyanite.model.content import INLINE_MAX, PACK_MAX
from kyanite.rules.refusals import Refused
from kyanite.services.common.environment import Environment
from kyanite.services.common.headers import base64_text, crc64_of, md5_of
from kyanite.wire import crc64
from kyanite.wire.http import BodyError, Request
from kyanite.wire.malformed import Malformed

T = TypeVar("T")

_GATHER_BUDGET_BYTES = 64 * 1024 * 1024
_HASH_INLINE_MAX = 32 * 1024


class Taken(msgspec.Struct, frozen=True, gc=False):
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


def hash_headers(headers: Mapping[str, str], taken: Taken) -> list[tuple[str, str]]:
    """The hash that an answer tells: the MD5 to who sent one, otherwise the CRC64."""
    if "content-md5" in headers:
        return [("Content-MD5", base64_text(taken.md5))]
    return [("x-ms-content-crc64", crc64.encode(taken.crc64))]


def check_hashes(headers: Mapping[str, str], data: bytes) -> int:
    """Check a body that is in memory against the hashes it came with; its CRC64 is returned."""
    checksum = crc64.compute(data)
    md5 = hashlib.md5(data, usedforsecurity=False).digest()
    _check(md5, md5_of(headers, "content-md5"), checksum, crc64_of(headers))
    return checksum


async def take(environment: Environment, request: Request, length: int) -> Taken:
    """Read the body and check it against what the headers say of it."""
    headers = request.headers
    wanted_md5, wanted_crc64 = md5_of(headers, "content-md5"), crc64_of(headers)
    if wanted_md5 is not None and wanted_crc64 is not None:
        raise Malformed("BothCrc64AndMd5HeaderPresent")
    if length <= INLINE_MAX:
        taken = await _take_small(request, length)
    elif length <= PACK_MAX and _gathering.held_bytes + length <= _GATHER_BUDGET_BYTES:
        return await _take_middling(environment, request, length, wanted_md5, wanted_crc64)
    else:
        return await _take_large(environment, request, length, wanted_md5, wanted_crc64)
    _check(taken.md5, wanted_md5, taken.crc64, wanted_crc64)
    return taken


async def commit(environment: Environment, taken: Taken, transaction: Awaitable[T]) -> T:
    """Wait for the transaction that refers to the body, and tell the store of bytes how it went.

    Also when the client goes away meanwhile and its request is cancelled: extents that nobody speaks for are kept
    until the process ends. After an unknown outcome they are left alone, for they may be referred to.
    """
    if isinstance(taken.payload, bytes):
        return await transaction
    settling = asyncio.ensure_future(_settle(environment.extents, taken.payload, transaction))
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
    extents.settle(body)
    return result


async def _take_small(request: Request, length: int) -> Taken:
    data = await _whole(request, length)
    return Taken(data, length, hashlib.md5(data, usedforsecurity=False).digest(), crc64.compute(data))


async def _take_middling(
    environment: Environment, request: Request, length: int, md5: bytes | None, crc: int | None
) -> Taken:
    _gathering.held_bytes += length
    try:
        data = await _whole(request, length)
        digest = await _md5(data)
        checksum = crc64.compute(data)
        _check(digest, md5, checksum, crc)
        extent = await environment.extents.put(data)
    finally:
        _gathering.held_bytes -= length
    return Taken((extent,), length, digest, checksum)


async def _take_large(
    environment: Environment, request: Request, length: int, md5: bytes | None, crc: int | None
) -> Taken:
    digest = hashlib.md5(usedforsecurity=False)
    upload = environment.extents.upload(size_hint=length, observers=(digest.update,))
    try:
        received = 0
        while piece := await request.body.read():
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
        _check(digest.digest(), md5, checksum, crc)
    except Malformed:
        await environment.extents.discard(extents)
        raise
    return Taken(extents, length, digest.digest(), checksum)


async def _whole(request: Request, length: int) -> bytes:
    data = await request.body.read_all(length)
    if data is None or len(data) != length:
        raise BodyError("the body is not of the announced length")
    return data


async def _md5(data: bytes) -> bytes:
    if len(data) <= _HASH_INLINE_MAX:
        return hashlib.md5(data, usedforsecurity=False).digest()
    return await asyncio.to_thread(lambda: hashlib.md5(data, usedforsecurity=False).digest())


def _check(md5: bytes, wanted_md5: bytes | None, checksum: int, wanted_crc64: int | None) -> None:
    if wanted_md5 is not None and wanted_md5 != md5:
        raise Malformed(
            "Md5Mismatch", UserSpecifiedMd5=base64_text(wanted_md5), ServerCalculatedMd5=base64_text(md5)
        )
    if wanted_crc64 is not None and wanted_crc64 != checksum:
        raise Malformed(
            "Crc64Mismatch",
            UserSpecifiedCrc64=crc64.encode(wanted_crc64),
            ServerCalculatedCrc64=crc64.encode(checksum),
        )
