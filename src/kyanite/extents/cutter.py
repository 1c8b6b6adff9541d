"""Cutting a body into extents while it is written."""

from collections.abc import Iterable

from kyanite.extents.api import EXTENT_MAX, WrittenExtent
from kyanite.extents.crc64 import BlockChecksums


class Cutter:
    """Cuts the written bytes into extents and computes their checksums. Used by one thread at a time."""

    __slots__ = ("_at", "_computed", "_extents", "_segment")

    def __init__(self, segment: bytes, start: int) -> None:
        self._segment = segment
        self._at = start
        self._computed = BlockChecksums()
        self._extents: list[WrittenExtent] = []

    def add(self, chunks: Iterable[bytes | bytearray | memoryview]) -> None:
        for chunk in chunks:
            room = EXTENT_MAX - self._computed.length
            if len(chunk) < room:
                self._computed.add(chunk)
            else:
                rest = memoryview(chunk)
                while len(rest) >= room:
                    self._computed.add(rest[:room])
                    self._cut()
                    rest, room = rest[room:], EXTENT_MAX
                self._computed.add(rest)

    def finish(self) -> list[WrittenExtent]:
        if self._computed.length:
            self._cut()
        return self._extents

    def _cut(self) -> None:
        length = self._computed.length
        self._extents.append(WrittenExtent(self._segment, self._at, length, *self._computed.finish()))
        self._at += length
        self._computed = BlockChecksums()
