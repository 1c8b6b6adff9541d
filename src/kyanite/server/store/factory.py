"""Opening a store: the only module that names adapters.

Another engine or other extents are a ``StoreKind``, a factory here, and a row in ``_FACTORIES``.

A store is opened in a worker, after the fork: neither a database nor a file of the store may be carried across it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kyanite.engine.api import EngineError
from kyanite.engine.clock import OwnBase, SteadyClock, ticks_since_boot
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.engine.sqlite import integrity
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.server.failures import Failure
from kyanite.server.store.api import Clock, Store, StoreFactory, StoreKind, WriteLockHolder

_ENGINE = "engine"
_EXTENTS = "extents"
_MEMBERSHIP = "extents/owners"


@dataclass(frozen=True, slots=True)
class EmbeddedFactory:
    """An embedded engine and local extents, side by side in a folder."""

    folder: Path

    def open_engine(self, clock: Clock) -> SqliteEngine:
        with _opening(self.folder):
            self._check_not_lost()
            return SqliteEngine.open(self.folder / _ENGINE, clock=clock, ticks=ticks_since_boot)

    def open(self, clock: Clock) -> Store:
        engine = self.open_engine(clock)
        with _opening(self.folder):
            membership = LocalMembership(self.folder / _MEMBERSHIP)
            extents = LocalExtents(self.folder / _EXTENTS, membership)

        def counters() -> Mapping[str, int]:
            return {"batches": engine.commits.batches, "transactions": engine.commits.transactions}

        return Store(engine, extents, membership, counters)

    def _check_not_lost(self) -> None:
        """In a store without rows every segment would be garbage."""
        segments = (self.folder / _EXTENTS).glob("segments/*/*")
        if not self.exists() and any(True for _ in segments):
            raise Failure(
                f"The store {self.folder} cannot be opened. Its database is missing or empty, but extents are there."
            )

    def exists(self) -> bool:
        return integrity.exists(self.folder / _ENGINE)

    def problems(self, *, limit: int) -> list[str]:
        return integrity.problems(self.folder / _ENGINE, limit=limit)

    def watch(self) -> "EmbeddedWatch":
        folder = self.folder / _ENGINE
        folder.mkdir(mode=0o700, exist_ok=True)
        return EmbeddedWatch(SharedState(folder))


@dataclass(frozen=True, slots=True)
class EmbeddedWatch:
    """Reads the page of memory that the processes of an embedded engine share. It opens no database."""

    shared_state: SharedState

    def write_lock_holder(self) -> WriteLockHolder | None:
        writer = self.shared_state.writer
        return None if writer is None else WriteLockHolder(writer.pid, writer.since_ns)

    def is_outcome_unknown(self) -> bool:
        return self.shared_state.failed


@dataclass(frozen=True, slots=True)
class MemoryFactory:
    """An engine in the memory of the process that opens it. The folder holds bulk bytes only."""

    folder: Path

    def open_engine(self, clock: Clock) -> MemoryEngine:
        return MemoryEngine(clock=SteadyClock(clock, ticks_since_boot, OwnBase()))

    def open(self, clock: Clock) -> Store:
        with _opening(self.folder):
            membership = LocalMembership(self.folder / _MEMBERSHIP)
            extents = LocalExtents(self.folder / _EXTENTS, membership)
            return Store(self.open_engine(clock), extents, membership, dict)

    def exists(self) -> bool:
        return False

    def problems(self, *, limit: int) -> list[str]:
        return []

    def watch(self) -> None:
        return None


_FACTORIES: Mapping[StoreKind, Callable[[Path], StoreFactory]] = {
    StoreKind.EMBEDDED: EmbeddedFactory,
    StoreKind.IN_MEMORY: MemoryFactory,
}


def factory_of(kind: StoreKind, folder: Path) -> StoreFactory:
    return _FACTORIES[kind](folder)


@contextmanager
def _opening(folder: Path) -> Iterator[None]:
    """Turn what goes wrong into one sentence."""
    try:
        yield
    except EngineError as error:
        raise Failure(f"The store {folder} cannot be opened. {error}") from error
    except OSError as error:
        raise Failure(f"The store {folder} cannot be opened: {error.strerror}.") from error
