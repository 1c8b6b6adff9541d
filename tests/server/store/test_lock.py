"""One server per store, also while the last workers of a killed one are on their way out."""

import os
import threading
from pathlib import Path

import pytest

from kyanite.server.failures import Failure
from kyanite.server.store import lock as store_lock
from kyanite.server.store.lock import take_store_lock


def test_a_store_is_locked_once(tmp_path: Path) -> None:
    lock = take_store_lock(tmp_path)
    with pytest.raises(Failure, match="is in use by another Kyanite server"):
        take_store_lock(tmp_path)
    lock.release()
    take_store_lock(tmp_path).release()


def test_left_over_workers_are_waited_for(tmp_path: Path) -> None:
    lock = take_store_lock(tmp_path)
    lock.keep_as_worker()  # Now this is what a worker holds whose supervisor was killed.
    leaving = threading.Timer(0.1, os.close, [lock._workers])
    leaving.start()
    take_store_lock(tmp_path).release()
    leaving.join()


def test_left_over_workers_that_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_lock, "WAIT_SECONDS", 0.05)
    lock = take_store_lock(tmp_path)
    lock.keep_as_worker()
    with pytest.raises(Failure, match="still in use by workers"):
        take_store_lock(tmp_path)
    os.close(lock._workers)
    take_store_lock(tmp_path).release()


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="Cannot open"):
        take_store_lock(tmp_path / "nowhere")
