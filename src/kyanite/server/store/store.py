"""Opening the store: which engine and which extents a configuration means, and where they lie in its folder.

Opened in a worker, after the fork: neither a database nor a file of the store may be carried across it. The
supervisor only maps the engine's page of shared memory.
"""

from dataclasses import dataclass
from pathlib import Path

from kyanite.engine.api import EngineError
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.group_commit import Commits
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model.maintenance.deleted_containers import DeletedContainers
from kyanite.model.maintenance.deleted_shares import DeletedShares
from kyanite.model.maintenance.deleted_tables import DeletedTables
from kyanite.model.maintenance.garbage_collection import GarbageCollector
from kyanite.model.maintenance.spent_messages import SpentMessages
from kyanite.server.failures import Failure
from kyanite.server.store.maintenance import Step

_ENGINE = "engine"
_EXTENTS = "extents"
_MEMBERSHIP = "extents/owners"


@dataclass(frozen=True, slots=True)
class Store:
    engine: SqliteEngine | MemoryEngine
    extents: LocalExtents
    membership: LocalMembership

    @property
    def commits(self) -> Commits | None:
        """What the engine has counted, if it counts."""
        return self.engine.commits if isinstance(self.engine, SqliteEngine) else None

    def upkeep(self) -> list[Step]:
        """What gives space back in the background, one step at a time."""
        return [
            DeletedContainers(self.engine).step,
            DeletedShares(self.engine).step,
            GarbageCollector(self.engine, self.extents, self.membership).step,
            SpentMessages(self.engine).step,
            DeletedTables(self.engine).step,
        ]

    async def close(self) -> None:
        await self.extents.close()
        self.membership.close()
        await self.engine.close()


def open_store(folder: Path, *, in_memory: bool) -> Store:
    """Open the store on the running loop, or say in one sentence why not."""
    try:
        engine = MemoryEngine() if in_memory else SqliteEngine.open(folder / _ENGINE)
        membership = LocalMembership(folder / _MEMBERSHIP)
        return Store(engine, LocalExtents(folder / _EXTENTS, membership), membership)
    except EngineError as error:
        raise Failure(f"The store {folder} cannot be opened. {error}") from error
    except OSError as error:
        raise Failure(f"The store {folder} cannot be opened: {error.strerror}.") from error


def engine_shared_state(folder: Path) -> SharedState:
    """What the engine shows of itself to a supervisor."""
    (folder / _ENGINE).mkdir(mode=0o700, exist_ok=True)
    return SharedState(folder / _ENGINE)
