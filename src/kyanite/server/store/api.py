"""What the server knows of a store. No adapter is named here: ``factory.py`` does that.

A store is an engine (rows), extents (bulk bytes) and the membership of the processes that have it open. Each worker
opens it after the fork. The supervisor never opens it; it looks at a ``StoreWatch``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from kyanite.engine.api import Engine
from kyanite.extents.api import Extents, Inspectable, Reclaimable
from kyanite.membership.api import Membership
from kyanite.server.failures import BadUsage
from kyanite.values import Instant

Clock = Callable[[], Instant]


class StoreKind(Enum):
    """Which engine and which extents a store has."""

    EMBEDDED = "embedded"
    """An embedded database and files, both in one folder."""
    IN_MEMORY = "in memory"
    """Rows in the memory of one worker, bulk bytes in a temporary folder: all gone with the server."""


def choose_kind(engine: str | None, extents: str | None, *, in_memory: bool) -> StoreKind:
    """The kind that the options ask for. The URLs of other engines and extents are reserved."""
    if engine not in (None, "embedded"):
        raise BadUsage(
            "Only the embedded engine is part of this version, so --engine cannot name another one yet."
        )
    if extents not in (None, "local"):
        raise BadUsage(
            "Only local extents are part of this version, so --extents cannot name another store yet."
        )
    return StoreKind.IN_MEMORY if in_memory else StoreKind.EMBEDDED


class StoreExtents(Extents, Inspectable, Reclaimable, Protocol):
    """Extents as a server opens them: for requests, for checks and for garbage collection."""

    def segments(self) -> Iterator[tuple[bytes, int]]:
        """All segments that are there, and the bytes that each occupies, in no order."""


@dataclass(frozen=True, slots=True)
class Store:
    """A store that this process has opened."""

    engine: Engine
    extents: StoreExtents
    membership: Membership
    counters: Callable[[], Mapping[str, int]]
    """What the engine has counted since it was opened, by the names of the counters."""

    async def close(self) -> None:
        await self.extents.close()
        self.membership.close()
        await self.engine.close()


class WriteLockHolder(NamedTuple):
    """The process that holds the write lock of a store."""

    pid: int
    since_ns: int
    """On the machine's monotonic clock, ``time.monotonic_ns()``."""


class StoreWatch(Protocol):
    """What can be known of a store without opening it. Safe to use before and after a fork."""

    def write_lock_holder(self) -> WriteLockHolder | None:
        """Who holds the write lock. A process that died may still be named."""

    def is_outcome_unknown(self) -> bool:
        """Whether a commit ended with an unknown outcome, so that the store takes no writes until it is reopened."""


class StoreFactory(Protocol):
    """One kind of store at one place."""

    def open_engine(self, clock: Clock) -> Engine:
        """The engine alone, on the running loop."""

    def open(self, clock: Clock) -> Store:
        """The store, on the running loop. Raises a Failure."""

    def exists(self) -> bool:
        """Whether there is a store to open, and none would be made."""

    def problems(self, *, limit: int) -> list[str]:
        """What the engine finds wrong with its own files, so many findings at most. To be called while the store is
        not open; takes long for a large one."""

    def watch(self) -> StoreWatch | None:
        """None if the store lives and dies with its process."""
