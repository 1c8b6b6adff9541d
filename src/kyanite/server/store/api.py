"""What the server knows of a store. No adapter is named here: ``factory.py`` does that.

A store is an engine (rows), extents (bulk bytes) and the membership of the processes that have it open. Each worker
opens it after the fork. The supervisor never opens it; it looks at a ``StoreWatch``.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from kyanite.engine.api import Engine
from kyanite.extents.api import Extents, Inspectable, Reclaimable
from kyanite.membership.api import Membership
from kyanite.server.failures import BadUsage
from kyanite.server.nodes.node import Node
from kyanite.values import Instant

Clock = Callable[[], Instant]


EMBEDDED = "embedded"
"""The engine that is part of Kyanite: a database in the store's folder."""
POSTGRESQL = "postgresql"
"""The scheme of the URL of a database."""
MEMORY = "memory"
"""Rows in the memory of one worker, gone with the server."""
LOCAL = "local"
"""Extents in files of the store's folder."""
S3 = "s3"
"""Extents in an S3-compatible object store."""

ENGINE_SCHEMES = (EMBEDDED, POSTGRESQL)
"""What ``--engine`` may name, or begin with before a colon."""
EXTENTS_SCHEMES = (LOCAL, S3)
"""The same for ``--extents``."""


class StoreKind(msgspec.Struct, frozen=True):
    """Which engine and which extents a store has. Any engine goes with any extents.

    Each is a word of the above or a URL. The factory of its scheme knows what the rest of a URL means.
    """

    engine: str = EMBEDDED
    extents: str = LOCAL

    @property
    def is_in_memory(self) -> bool:
        """Whether the rows live and die with one worker."""
        return self.engine == MEMORY


EMBEDDED_STORE = StoreKind()
"""The default: everything in the store's folder."""


def scheme_of(text: str) -> str:
    return text.partition(":")[0]


def choose_kind(engine: str | None, extents: str | None, *, in_memory: bool) -> StoreKind:
    """The kind that the options ask for."""
    engine = engine or EMBEDDED
    extents = extents or LOCAL
    if scheme_of(engine) not in ENGINE_SCHEMES:
        raise BadUsage(
            f"--engine names no engine of this version: there are {EMBEDDED} and {POSTGRESQL}://…."
        )
    if scheme_of(extents) not in EXTENTS_SCHEMES:
        raise BadUsage(f"--extents names no store of this version: there are {', '.join(EXTENTS_SCHEMES)}.")
    if not in_memory:
        return StoreKind(engine, extents)
    if (engine, extents) != (EMBEDDED, LOCAL):
        raise BadUsage("--in-memory stores nothing for long, so it takes no --engine and no --extents.")
    return StoreKind(MEMORY, LOCAL)


class StoreExtents(Extents, Inspectable, Reclaimable, Protocol):
    """Extents as a server opens them: for requests, for checks and for garbage collection."""

    def segments(self) -> AsyncIterator[tuple[bytes, int]]:
        """All segments that are there, and the bytes that each occupies, in no order."""


class Store(msgspec.Struct, frozen=True):
    """A store that this process has opened."""

    engine: Engine
    extents: StoreExtents
    membership: Membership
    counters: Callable[[], Mapping[str, int]]
    """What the engine has counted since it was opened, by the names of the counters."""
    node: Node | None = None
    """What this process does with those of other nodes; None if one machine alone can have the engine."""

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


class EngineFactory(Protocol):
    """One engine at one place."""

    @property
    def is_shared(self) -> bool:
        """Whether several machines can have it open at the same time."""

    def open(self, clock: Clock) -> Engine:
        """The engine, on the running loop. An engine that is reached over a network connects when it is first used."""

    def counters(self, engine: Engine) -> Mapping[str, int]:
        """What this engine, which ``open`` returned, has counted since."""

    def exists(self) -> bool:
        """Whether there are rows to open, or may be."""

    def problems(self, *, limit: int) -> list[str]:
        """What the engine finds wrong with its own files, so many findings at most. To be called while the store is
        not open; takes long for a large one."""

    def watch(self) -> StoreWatch | None:
        """None if there is nothing that a supervisor could see from outside."""


class ExtentsFactory(Protocol):
    """Extents at one place."""

    @property
    def is_shared(self) -> bool:
        """Whether several machines can have them open at the same time."""

    def open(self, membership: Membership) -> StoreExtents:
        """The extents, on the running loop."""

    async def problem(self) -> str | None:
        """Why these extents cannot be used, in one sentence. Asked once, before a server opens the store."""

    def is_empty(self) -> bool:
        """Whether no segment is there. Asked before an engine without rows is opened, for which each would be
        garbage."""
