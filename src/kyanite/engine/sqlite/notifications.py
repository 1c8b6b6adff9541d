"""Notifications between processes: a named pipe for each process with subscribers, in one folder.

After a commit, a process writes the topics into the pipes of all others. A topic is sent as a digest of eight bytes, so
a pipe has room for thousands; two topics with the same digest merely wake a subscriber too often. A full pipe loses
notifications, and the pipe of a dead process is removed. While there are no subscribers elsewhere, a notification costs
reading one word of shared memory.
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
_ATOMIC_WRITE_BYTES = 512  # Every system writes so much to a pipe atomically.
_READ_BYTES = 64 * 1024
_UNFINISHED = ".new"
_FOLDER = "bells"
"""Its name in existing stores."""


class PipeNotifications:
    def __init__(self, folder: Path, shared_state: SharedState) -> None:
        self._folder = folder / _FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._shared_state = shared_state
        self._notifications = Notifications()
        self._loop = asyncio.get_running_loop()
        self._own: Path | None = None
        self._own_ends: tuple[int, int] | None = None
        self._others: dict[Path, int] = {}
        self._others_version: int | None = None

    def subscribe(self, topic: bytes) -> Subscriber:
        subscriber = self._notifications.subscribe(_digest(topic))
        if self._own is None:
            self._open_own()
        return subscriber

    def notify(self, topics: Iterable[bytes]) -> None:
        digests = {_digest(topic) for topic in topics}
        self._notifications.notify(digests)
        if self._others_version != self._shared_state.subscriptions:
            self._find_others()
        if self._others:
            self._notify_others(b"".join(digests))

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
            self._shared_state.change_subscriptions(time.monotonic_ns())

    def _open_own(self) -> None:
        """Others remove a pipe without a reader, so it gets its name only when it has one."""
        path = self._folder / f"{os.getpid()}-{time.monotonic_ns()}"
        unfinished = path.with_suffix(_UNFINISHED)
        os.mkfifo(unfinished, 0o600)
        reading = os.open(unfinished, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # With a writing end here, the pipe is never at its end when the last other writer closes it.
        writing = os.open(unfinished, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        unfinished.rename(path)
        self._own, self._own_ends = path, (reading, writing)
        self._loop.add_reader(reading, self._receive)
        self._shared_state.change_subscriptions(time.monotonic_ns())

    def _receive(self) -> None:
        assert self._own_ends is not None
        with suppress(BlockingIOError):
            received = os.read(self._own_ends[0], _READ_BYTES)
            self._notifications.notify(
                {received[at : at + _DIGEST_BYTES] for at in range(0, len(received), _DIGEST_BYTES)}
            )

    def _find_others(self) -> None:
        self._others_version = self._shared_state.subscriptions
        there = {path for path in self._folder.iterdir() if path.suffix != _UNFINISHED}
        for path in self._others.keys() - there:
            self._drop(path)
        for path in there - self._others.keys() - {self._own}:
            try:
                self._others[path] = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:  # It has no reader: its process is dead.
                path.unlink(missing_ok=True)

    def _notify_others(self, digests: bytes) -> None:
        for path, descriptor in tuple(self._others.items()):
            try:
                for at in range(0, len(digests), _ATOMIC_WRITE_BYTES):
                    os.write(descriptor, digests[at : at + _ATOMIC_WRITE_BYTES])
            except BlockingIOError:
                continue  # It has thousands of notifications to read already.
            except BrokenPipeError:
                self._drop(path)
                path.unlink(missing_ok=True)

    def _drop(self, path: Path) -> None:
        os.close(self._others.pop(path))


def _digest(topic: bytes) -> bytes:
    return blake2b(topic, digest_size=_DIGEST_BYTES).digest()
