"""A set of keys in order: a list of short sorted lists, so that an insertion moves hundreds of keys, not millions."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

_SPLIT_AT = 1024


class OrderedKeys:
    def __init__(self) -> None:
        self._runs: list[list[bytes]] = []
        self._firsts: list[bytes] = []

    def add(self, key: bytes) -> None:
        """Add a key that is not there yet."""
        if not self._runs:
            self._runs.append([key])
            self._firsts.append(key)
            return
        index = self._run_of(key)
        run = self._runs[index]
        insort(run, key)
        self._firsts[index] = run[0]
        if len(run) > _SPLIT_AT:
            half = len(run) // 2
            self._runs.insert(index + 1, run[half:])
            self._firsts.insert(index + 1, run[half])
            del run[half:]

    def remove(self, key: bytes) -> None:
        """Remove a key that is there."""
        index = self._run_of(key)
        run = self._runs[index]
        del run[bisect_left(run, key)]
        if run:
            self._firsts[index] = run[0]
        else:
            del self._runs[index], self._firsts[index]

    def between(self, start: bytes, end: bytes, reverse: bool) -> Iterator[bytes]:
        """Keys with start <= key < end. The set must not change while this is under way."""
        return self._downwards(start, end) if reverse else self._upwards(start, end)

    def _upwards(self, start: bytes, end: bytes) -> Iterator[bytes]:
        for index in range(self._run_of(start), len(self._runs)):
            run = self._runs[index]
            if run[0] >= end:
                return
            yield from run[bisect_left(run, start) : bisect_left(run, end)]

    def _downwards(self, start: bytes, end: bytes) -> Iterator[bytes]:
        for index in range(min(self._run_of(end), len(self._runs) - 1), -1, -1):
            run = self._runs[index]
            if run[-1] < start:
                return
            yield from reversed(run[bisect_left(run, start) : bisect_left(run, end)])

    def _run_of(self, key: bytes) -> int:
        """The run in which the key is or belongs."""
        return max(bisect_right(self._firsts, key) - 1, 0)
