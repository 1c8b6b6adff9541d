"""Opening a store: the only module that names adapters.

The engine and the extents are chosen independently, by the scheme of what ``StoreKind`` says of each. Another one is a
factory and a row in ``_ENGINES`` or ``_EXTENTS``, and its scheme in ``api.py``.

A store is opened in a worker, after the fork: neither a database nor a file of the store may be carried across it.
What an embedded store does not need is imported by the functions that do.
"""

import importlib.util
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kyanite.engine.api import Damaged, Engine, EngineError, Snapshot
from kyanite.engine.clock import OwnBase, SteadyClock, ticks_since_boot, wall_clock
from kyanite.engine.sqlite import integrity
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.api import Membership
from kyanite.membership.local import LocalMembership
from kyanite.server.failures import BadUsage, Failure
from kyanite.server.nodes.membership import DEAD_AFTER_SECONDS, EngineMembership
from kyanite.server.nodes.node import Node
from kyanite.server.store.api import (
    EMBEDDED,
    LOCAL,
    MEMORY,
    POSTGRESQL,
    S3,
    Clock,
    EngineFactory,
    ExtentsFactory,
    Store,
    StoreKind,
    StoreWatch,
    WriteLockHolder,
    scheme_of,
)

if TYPE_CHECKING:
    from kyanite.engine.memory.engine import MemoryEngine
    from kyanite.engine.postgres.address import Address
    from kyanite.extents.s3.location import S3Location
    from kyanite.extents.s3.store import S3Extents

_ENGINE = "engine"
_LOCAL_EXTENTS = "extents"
_MEMBERSHIP = "extents/owners"


class StoreFactory(msgspec.Struct, frozen=True):
    """An engine, extents, and the folder in which this machine keeps what belongs to the store."""

    engine: EngineFactory
    extents: ExtentsFactory
    folder: Path
    dead_after_seconds: float = DEAD_AFTER_SECONDS
    """After so long without a heartbeat the other nodes declare a process of this one dead."""

    def open_engine(self, clock: Clock) -> Engine:
        """The engine alone, on the running loop."""
        with _opening(self.folder):
            self._check_not_lost()
            return self.engine.open(clock)

    def open(self, clock: Clock, process: str = "command") -> Store:
        """The store, on the running loop. Raises a Failure. ``process`` is what other nodes call this process."""
        engine = self.open_engine(clock)
        counters = partial(self.engine.counters, engine)
        with _opening(self.folder):
            local = LocalMembership(self.folder / _MEMBERSHIP)
            if not self.engine.is_shared:
                return Store(engine, self.extents.open(local), local, counters)
            from kyanite.server.nodes.fenced_engine import FencedEngine

            membership = EngineMembership(
                engine,
                local,
                node=f"{socket.gethostname()}:{self.folder.resolve()}",
                process=process,
                dead_after_seconds=self.dead_after_seconds,
                has_own_extents=not self.extents.is_shared,
                on_lost=_end_process,
            )
            fenced = FencedEngine(engine, membership)
            node = Node(fenced, membership.id)
            return Store(fenced, self.extents.open(membership), membership, counters, node)

    def _check_not_lost(self) -> None:
        """In a store without rows every segment would be garbage."""
        if not self.engine.exists() and not self.extents.is_empty():
            raise Failure(
                f"The store {self.folder} cannot be opened. Its database is missing or empty, but extents are there."
            )

    async def check_extents(self) -> None:
        """Raises a Failure if the extents cannot be used."""
        if (problem := await self.extents.problem()) is not None:
            raise Failure(problem)

    async def check_rows(self, engine: Engine) -> None:
        """The same for an engine whose rows cannot be looked for before it is opened."""
        if await engine.read(_has_rows) or self.extents.is_empty():
            return
        raise Failure(
            f"The store {self.folder} cannot be opened. Its database has no rows, but extents are there: "
            "does --engine name the right database and schema?"
        )

    async def check_shared(self) -> None:
        """Raises a Failure if a shared engine cannot be used: opening the store would wait until it can."""
        if not self.engine.is_shared:
            return
        engine = self.open_engine(wall_clock)
        try:
            await self.check_rows(engine)
        except EngineError as error:
            raise Failure(f"The store {self.folder} cannot be opened. {error}") from error
        finally:
            await engine.close()

    def exists(self) -> bool:
        """Whether there is a store to open, and none would be made."""
        return self.engine.exists()

    def problems(self, *, limit: int) -> list[str]:
        """What the engine finds wrong with its own files (``EngineFactory.problems``)."""
        return self.engine.problems(limit=limit)

    def watch(self) -> StoreWatch | None:
        """None if a supervisor cannot see anything of the store."""
        return self.engine.watch()


class EmbeddedFactory(msgspec.Struct, frozen=True):
    """An embedded engine in a folder."""

    folder: Path
    is_shared = False

    def open(self, clock: Clock) -> SqliteEngine:
        return SqliteEngine.open(self.folder, clock=clock, ticks=ticks_since_boot)

    def counters(self, engine: Engine) -> Mapping[str, int]:
        assert isinstance(engine, SqliteEngine)
        return {"batches": engine.commits.batches, "transactions": engine.commits.transactions}

    def exists(self) -> bool:
        return integrity.exists(self.folder)

    def problems(self, *, limit: int) -> list[str]:
        return integrity.problems(self.folder, limit=limit)

    def watch(self) -> "EmbeddedWatch":
        self.folder.mkdir(mode=0o700, exist_ok=True)
        return EmbeddedWatch(SharedState(self.folder))


class EmbeddedWatch(msgspec.Struct, frozen=True):
    """Reads the page of memory that the processes of an embedded engine share. It opens no database."""

    shared_state: SharedState

    def write_lock_holder(self) -> WriteLockHolder | None:
        writer = self.shared_state.writer
        return None if writer is None else WriteLockHolder(writer.pid, writer.since_ns)

    def is_outcome_unknown(self) -> bool:
        return self.shared_state.failed


class MemoryFactory(msgspec.Struct, frozen=True):
    """An engine in the memory of the process that opens it."""

    is_shared = False

    def open(self, clock: Clock) -> "MemoryEngine":
        from kyanite.engine.memory.engine import MemoryEngine

        return MemoryEngine(clock=SteadyClock(clock, ticks_since_boot, OwnBase()))

    def counters(self, engine: Engine) -> Mapping[str, int]:
        return {}

    def exists(self) -> bool:
        return False

    def problems(self, *, limit: int) -> list[str]:
        return []

    def watch(self) -> None:
        return None


class PostgresFactory(msgspec.Struct, frozen=True):
    """A database that several nodes may share."""

    address: "Address"
    is_shared = True

    def open(self, clock: Clock) -> Engine:
        """By the database's clock, unless the clock is one that tests move."""
        try:
            # Imported here, since its driver is an extra.
            from kyanite.engine.postgres.engine import PostgresEngine
        except ModuleNotFoundError as error:
            raise Failure(
                "The engine needs the driver of PostgreSQL: install it with pip install 'kyanite[postgres]'."
            ) from error
        return PostgresEngine(self.address, clock=None if clock is wall_clock else clock)

    def counters(self, engine: Engine) -> Mapping[str, int]:
        from kyanite.engine.postgres.engine import PostgresEngine

        assert isinstance(engine, PostgresEngine)
        return engine.counters()

    def exists(self) -> bool:
        return True

    def problems(self, *, limit: int) -> list[str]:
        return []  # Its files are the database's.

    def watch(self) -> None:
        return None


def _postgres(url: str, _folder: Path) -> PostgresFactory:
    from kyanite.engine.postgres.address import BadAddress, parse

    try:
        return PostgresFactory(parse(url))
    except BadAddress as error:
        raise BadUsage(str(error)) from None


class LocalFactory(msgspec.Struct, frozen=True):
    """Extents in files of a folder."""

    folder: Path
    is_shared = False

    def open(self, membership: Membership) -> LocalExtents:
        return LocalExtents(self.folder, membership)

    async def problem(self) -> str | None:
        return None

    def is_empty(self) -> bool:
        return not any(True for _ in self.folder.glob("segments/*/*"))


class S3Factory(msgspec.Struct, frozen=True):
    """Extents in a bucket. What needs the client library is imported when it is used, after the fork."""

    location: "S3Location"
    is_shared = True

    def open(self, membership: Membership) -> "S3Extents":
        from kyanite.extents.s3.store import S3Extents

        return S3Extents(self.location, membership)

    async def problem(self) -> str | None:
        from kyanite.extents.s3.check import problem

        return await problem(self.location)

    def is_empty(self) -> bool:
        from kyanite.extents.s3.check import is_empty

        return is_empty(self.location)


def _s3_factory(url: str) -> S3Factory:
    if importlib.util.find_spec("obstore") is None:
        raise Failure("Extents in an object store need the extra s3: pip install 'kyanite[s3]'.")
    from kyanite.extents.s3.location import parse

    try:
        return S3Factory(parse(url, os.environ))
    except ValueError as error:
        raise BadUsage(str(error)) from error


_ENGINES: Mapping[str, Callable[[str, Path], EngineFactory]] = {
    EMBEDDED: lambda _url, folder: EmbeddedFactory(folder / _ENGINE),
    MEMORY: lambda _url, _folder: MemoryFactory(),
    POSTGRESQL: _postgres,
}
_EXTENTS: Mapping[str, Callable[[str, Path], ExtentsFactory]] = {
    LOCAL: lambda _url, folder: LocalFactory(folder / _LOCAL_EXTENTS),
    S3: lambda url, _folder: _s3_factory(url),
}


def factory_of(
    kind: StoreKind, folder: Path, *, dead_after_seconds: float = DEAD_AFTER_SECONDS
) -> StoreFactory:
    """Raises BadUsage for a URL that cannot be used."""
    return StoreFactory(
        _ENGINES[scheme_of(kind.engine)](kind.engine, folder),
        _EXTENTS[scheme_of(kind.extents)](kind.extents, folder),
        folder,
        dead_after_seconds,
    )


def _end_process() -> None:
    """This process was declared dead, and what it held is no longer its own. Its supervisor starts another."""
    logging.shutdown()
    os._exit(1)


def _has_rows(snap: Snapshot) -> bool:
    try:
        return any(True for _ in snap.scan(b"", b"\xff", limit=1))
    except Damaged:
        return True


@contextmanager
def _opening(folder: Path) -> Iterator[None]:
    """Turn what goes wrong into one sentence."""
    try:
        yield
    except EngineError as error:
        raise Failure(f"The store {folder} cannot be opened. {error}") from error
    except OSError as error:
        raise Failure(f"The store {folder} cannot be opened: {error.strerror}.") from error
