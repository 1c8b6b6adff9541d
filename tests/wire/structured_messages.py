"""Structured bodies made and read in one call, for tests."""

from collections.abc import AsyncIterator

from kyanite.wire.structured_message import decode, encode


async def written(data: bytes, step: int = 7) -> bytes:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), step):
            yield data[at : at + step]

    return b"".join([piece async for piece in encode(pieces(), len(data))])


async def read(message: bytes, length: int, step: int = 5) -> bytes:
    pieces = iter([message[at : at + step] for at in range(0, len(message), step)])

    async def more() -> bytes:
        return next(pieces, b"")

    return b"".join([piece async for piece in decode(more, len(message), length)])
