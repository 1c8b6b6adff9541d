"""The bell between processes: a named pipe for each process that listens, in one folder.

Whoever commits rings writes them into the pipes of all the others. A topic travels as a digest of eight bytes, so a
pipe holds thousands of them, and two topics that share one merely wake somebody too often. A full pipe loses rings
and a dead reader's pipe is removed. While nobody listens, a ring costs a look at one word of shared memory.
"""

import asyncio
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from kyanite.engine.notifications import Notifications, Subscriber
from kyanite.engine.sqlite.shared_state import SharedState

_DIGEST_BYTES = 8
_ATOMIC_WRITE_BYTES = 512  # What every system writes to a pipe in one piece.
_READ_BYTES = 64 * 1024
_UNFINISHED = ".new"


class FifoNotifications:
    def __init__(self, folder: Path, shared_state: SharedState) -> None:
        self._folder = folder / "bells"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._shared_state = shared_state
        self._notifications = Notifications()
        self._loop = asyncio.get_running_loop()
        self._own: Path | None = None
        self._own_ends: tuple[int, int] | None = None
        self._others: dict[Path, int] = {}
        self._others_as_of: int | None = None

    def subscribe(self, topic: bytes) -> Subscriber:
        subscriber = self._notifications.subscribe(_digest(topic))
        if self._own is None:
            self._open_own()
        return subscriber

    def notify(self, topics: Iterable[bytes]) -> None:
        digests = {_digest(topic) for topic in topics}
        self._notifications.notify(digests)
        if self._others_as_of != self._shared_state.bells:
            self._find_others()
        if self._others:
            self._tell_others(b"".join(digests))

    def close(self) -> None:
        self._notifications.close()
        for path in tuple(self._others):
            self._drop(path)
        if self._own is not None and self._own_ends is not None:
            self._loop.remove_reader(self._own_ends[0])
            self._own.unlink(missing_ok=True)
            for end in self._own_ends:
                os.close(end)
            self._own = None
            self._shared_state.change_bells(time.monotonic_ns())

    def _open_own(self) -> None:
        """Others take a pipe that nobody reads for a dead one: so it gets its name only when it is being read."""
        path = self._folder / f"{os.getpid()}-{time.monotonic_ns()}"
        unfinished = path.with_suffix(_UNFINISHED)
        os.mkfifo(unfinished, 0o600)
        reading = os.open(unfinished, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # A writing end of our own, or the pipe would be at its end whenever the last writer leaves.
        writing = os.open(unfinished, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        unfinished.rename(path)
        self._own, self._own_ends = path, (reading, writing)
        self._loop.add_reader(reading, self._hear)
        self._shared_state.change_bells(time.monotonic_ns())

    def _hear(self) -> None:
        assert self._own_ends is not None
        with suppress(BlockingIOError):
            heard = os.read(self._own_ends[0], _READ_BYTES)
            self._notifications.notify(
                {heard[at : at + _DIGEST_BYTES] for at in range(0, len(heard), _DIGEST_BYTES)}
            )

    def _find_others(self) -> None:
        self._others_as_of = self._shared_state.bells
        there = {path for path in self._folder.iterdir() if path.suffix != _UNFINISHED}
        for path in self._others.keys() - there:
            self._drop(path)
        for path in there - self._others.keys() - {self._own}:
            try:
                self._others[path] = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:  # Nobody reads it: its process is dead.
                path.unlink(missing_ok=True)

    def _tell_others(self, digests: bytes) -> None:
        for path, descriptor in tuple(self._others.items()):
            try:
                for at in range(0, len(digests), _ATOMIC_WRITE_BYTES):
                    os.write(descriptor, digests[at : at + _ATOMIC_WRITE_BYTES])
            except BlockingIOError:
                continue  # It has thousands of rings to look at already.
            except BrokenPipeError:
                self._drop(path)
                path.unlink(missing_ok=True)

    def _drop(self, path: Path) -> None:
        os.close(self._others.pop(path))


def _digest(topic: bytes) -> bytes:
    return blake2b(topic, digest_size=_DIGEST_BYTES).digest()
