"""A sorted set of keys: a list of short sorted lists, so that an insertion moves hundreds of keys, not millions."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

_SPLIT_AT = 1024


class SortedKeys:
    def __init__(self) -> None:
        self._chunks: list[list[bytes]] = []
        self._firsts: list[bytes] = []

    def add(self, key: bytes) -> None:
        """Add a key that is not in the set."""
        if not self._chunks:
            self._chunks.append([key])
            self._firsts.append(key)
            return
        index = self._chunk_of(key)
        chunk = self._chunks[index]
        insort(chunk, key)
        self._firsts[index] = chunk[0]
        if len(chunk) > _SPLIT_AT:
            half = len(chunk) // 2
            self._chunks.insert(index + 1, chunk[half:])
            self._firsts.insert(index + 1, chunk[half])
            del chunk[half:]

    def remove(self, key: bytes) -> None:
        """Remove a key that is in the set."""
        index = self._chunk_of(key)
        chunk = self._chunks[index]
        del chunk[bisect_left(chunk, key)]
        if chunk:
            self._firsts[index] = chunk[0]
        else:
            del self._chunks[index], self._firsts[index]

    def between(self, start: bytes, end: bytes, reverse: bool) -> Iterator[bytes]:
        """Keys with start <= key < end. The set must not change during the iteration."""
        return self._downwards(start, end) if reverse else self._upwards(start, end)

    def _upwards(self, start: bytes, end: bytes) -> Iterator[bytes]:
        for index in range(self._chunk_of(start), len(self._chunks)):
            chunk = self._chunks[index]
            if chunk[0] >= end:
                return
            yield from chunk[bisect_left(chunk, start) : bisect_left(chunk, end)]

    def _downwards(self, start: bytes, end: bytes) -> Iterator[bytes]:
        for index in range(min(self._chunk_of(end), len(self._chunks) - 1), -1, -1):
            chunk = self._chunks[index]
            if chunk[-1] < start:
                return
            yield from reversed(chunk[bisect_left(chunk, start) : bisect_left(chunk, end)])

    def _chunk_of(self, key: bytes) -> int:
        """The chunk that contains the key or would."""
        return max(bisect_right(self._firsts, key) - 1, 0)
