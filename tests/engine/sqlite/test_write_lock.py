"""The write lock is fair: a process that has just released it does not get it again while another waits."""

import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.sqlite.write_lock import WriteLock

ROUNDS = 50
PATIENCE_SECONDS = 20.0


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[WriteLock, WriteLock]]:
    """Two that exclude each other: locks belong to the open file, so one process will do."""
    shared_state = SharedState(tmp_path)
    first, second = WriteLock(tmp_path, shared_state), WriteLock(tmp_path, shared_state)
    yield first, second
    first.close()
    second.close()
    shared_state.close()


def wait_in_line(waiting: WriteLock, folder: Path) -> Thread:
    """Let a thread wait for the lock; returns once it is first in line."""
    thread = Thread(target=waiting.acquire, daemon=True)
    thread.start()
    probe = os.open(folder / "turnstile.lock", os.O_RDWR)
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while True:
            try:
                fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return thread
            fcntl.flock(probe, fcntl.LOCK_UN)
            assert time.monotonic() < deadline
            time.sleep(0.001)
    finally:
        os.close(probe)


def test_who_comes_out_cannot_slip_in_again(pair: tuple[WriteLock, WriteLock], tmp_path: Path) -> None:
    first, second = pair
    for _ in range(ROUNDS):
        first.acquire()
        thread = wait_in_line(second, tmp_path)
        first.release()
        assert not first.try_acquire()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
        second.release()


def test_who_comes_out_and_waits_comes_after_who_waited(
    pair: tuple[WriteLock, WriteLock], tmp_path: Path
) -> None:
    first, second = pair
    for _ in range(ROUNDS):
        order: list[str] = []

        def acquire_and_release(order: list[str] = order) -> None:
            first.acquire()
            order.append("first")
            first.release()

        first.acquire()
        waiting = wait_in_line(second, tmp_path)
        first.release()
        again = Thread(target=acquire_and_release, daemon=True)
        again.start()
        waiting.join(PATIENCE_SECONDS)
        order.append("second")
        second.release()
        again.join(PATIENCE_SECONDS)
        assert order == ["second", "first"]


def test_a_free_lock_is_acquired_without_waiting(pair: tuple[WriteLock, WriteLock]) -> None:
    first, second = pair
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    second.release()
