"""A store in memory with a bug, if one is wanted: what shows that the checker finds bugs."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto

from tests.smb.histories import checker
from tests.smb.histories.history import History
from tests.smb.histories.workload import FIRST_VALUE


class Bug(Enum):
    STALE_READ = auto()
    """A cache is not told of some writes."""
    LOST_WRITE = auto()
    """A write is acknowledged and not stored."""
    WRITE_DESPITE_LOCK = auto()
    TWO_HOLDERS = auto()
    """A handle that shares nothing does not exclude a second one."""


class ToyStore:
    def __init__(self, bug: Bug | None = None) -> None:
        self._bug = bug
        self._lock = threading.Lock()
        self._values: dict[str, int] = {}
        self._cached: dict[str, int] = {}
        self._holders: dict[str, str] = {}
        self._chance = random.Random(3)

    def _happens(self, bug: Bug) -> bool:
        return self._bug is bug and self._chance.random() < 0.2

    def read(self, client: str, file: str) -> int | None:
        """None if it is refused."""
        with self._lock:
            if self._holders.get(file, client) != client:
                return None
            value = self._values.get(file, FIRST_VALUE)
            if self._happens(Bug.STALE_READ):
                return self._cached.get(file, FIRST_VALUE)
            self._cached[file] = value
            return value

    def write(self, client: str, file: str, value: int) -> bool:
        with self._lock:
            is_forbidden = self._holders.get(file, client) != client
            if is_forbidden and not self._happens(Bug.WRITE_DESPITE_LOCK):
                return False
            if not self._happens(Bug.LOST_WRITE):
                self._values[file] = value
            return True

    @contextmanager
    def held(self, client: str, file: str) -> Iterator[bool]:
        """Whether the client has the file to itself."""
        with self._lock:
            is_held = file not in self._holders or self._happens(Bug.TWO_HOLDERS)
            if is_held:
                self._holders[file] = client
        yield is_held
        if is_held:
            with self._lock:
                self._holders.pop(file, None)


class ToyClient:
    def __init__(self, name: str, store: ToyStore, history: History) -> None:
        self.name = name
        self._store = store
        self._history = history

    def act(self, chance: random.Random, file: str, values: Callable[[], int]) -> None:
        if chance.random() < 0.7:
            self._access(chance, file, values)
            return
        with self._store.held(self.name, file) as is_held:
            if not is_held:
                return
            began_at = time.monotonic_ns()
            self._access(chance, file, values)
            time.sleep(0.0005)
            self._history.held(self.name, file, checker.EXCLUSIVE_HANDLE, began_at, time.monotonic_ns())

    def close(self) -> None:
        pass

    def _access(self, chance: random.Random, file: str, values: Callable[[], int]) -> None:
        try:
            if chance.random() < 0.5:
                value = values()
                self._history.write(self.name, file, value, lambda: self._write(file, value))
            else:
                self._history.read(self.name, file, lambda: self._read(file))
        except PermissionError:
            self._history.refused("toy")

    def _read(self, file: str) -> int:
        value = self._store.read(self.name, file)
        if value is None:
            raise PermissionError
        return value

    def _write(self, file: str, value: int) -> None:
        if not self._store.write(self.name, file, value):
            raise PermissionError
