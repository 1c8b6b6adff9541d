"""What clients did, and when: the history of a run."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Kind(Enum):
    READ = "reads"
    WRITE = "writes"


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write of one file that succeeded."""

    client: str
    file: str
    kind: Kind
    value: int
    began_at: int
    ended_at: int
    is_rest: bool

    def __str__(self) -> str:
        return (
            f"{self.client} {self.kind.value} {self.value} of {self.file} [{self.began_at}, {self.ended_at}]"
        )


@dataclass(frozen=True, slots=True)
class Holding:
    """The time in which a client has surely had something of a file that binds others."""

    client: str
    file: str
    what: str
    began_at: int
    """When the client knew that it has it."""
    ended_at: int
    """When the client began to give it up."""

    def __str__(self) -> str:
        return f"{self.client} has a {self.what} of {self.file} [{self.began_at}, {self.ended_at}]"


class History:
    """Written by many threads."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.holdings: list[Holding] = []
        self.refusals: dict[str, int] = {}
        self._lock = threading.Lock()

    def read(self, client: str, file: str, act: Callable[[], int], *, is_rest: bool = False) -> int:
        began_at = time.monotonic_ns()
        value = act()
        self._add(Access(client, file, Kind.READ, value, began_at, time.monotonic_ns(), is_rest))
        return value

    def write(
        self, client: str, file: str, value: int, act: Callable[[], object], *, is_rest: bool = False
    ) -> None:
        began_at = time.monotonic_ns()
        act()
        self._add(Access(client, file, Kind.WRITE, value, began_at, time.monotonic_ns(), is_rest))

    def held(self, client: str, file: str, what: str, began_at: int, ended_at: int) -> None:
        with self._lock:
            self.holdings.append(Holding(client, file, what, began_at, ended_at))

    def refused(self, why: str) -> None:
        with self._lock:
            self.refusals[why] = self.refusals.get(why, 0) + 1

    def _add(self, access: Access) -> None:
        with self._lock:
            self.accesses.append(access)
