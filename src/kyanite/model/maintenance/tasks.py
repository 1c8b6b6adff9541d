"""Maintenance: the table of what is done in the background, a bounded step at a time.

Requests leave work behind in three ways, and each has a kind of task:

- A *mark* is a row that a transaction writes, such as "this container is deleted". Its step does a part of the work and
  deletes the mark when nothing is left.
- *Expiry* leaves no mark. A walk reads all rows of a kind now and then, a page at a time, and removes the expired ones.
- *Extents* that are no longer referred to, and what a dead process leaves, have to wait until no reader can need their
  bytes. These tasks keep in memory what they wait for.

A step is one bounded transaction, finds in the store how far the work has come, and may run twice. So any number of
processes may run maintenance, and may stop anywhere.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import Reclaimable
from kyanite.membership.api import Membership
from kyanite.model import delegation, keys
from kyanite.model.files.opens import durable
from kyanite.model.maintenance import (
    blob_history,
    compaction,
    deleted_containers,
    deleted_shares,
    deleted_tables,
    last_accesses,
    removed_accounts,
    spent_messages,
    staging_areas,
)
from kyanite.model.maintenance.dead_processes import DeadProcesses
from kyanite.model.maintenance.freed_extents import FreedExtents
from kyanite.model.maintenance.unneeded_segments import UnneededSegments
from kyanite.values import Instant, later

Step = Callable[[], Awaitable[bool]]
"""Does a bounded part of the work. False when there is nothing to do."""


class Marked(NamedTuple):
    """Work that rows with this prefix ask for. The step is given the key of one of them."""

    prefix: bytes
    step: Callable[[Transaction, bytes], None]


class Expiring(NamedTuple):
    """Rows that expire. ``find`` reads a page from a key on, b"" for the first one: keys of rows that have expired, and
    where the next page begins, b"" at the end. ``remove`` checks them again, since they may have changed."""

    every_seconds: float
    find: Callable[[Snapshot, bytes], tuple[list[bytes], bytes]]
    remove: Callable[[Transaction, list[bytes]], None]


COMPACTION = Marked(keys.PENDING_COMPACTIONS, compaction.step)
TASKS: tuple[Marked | Expiring, ...] = (
    Marked(keys.DELETED_CONTAINERS, deleted_containers.purge),
    Expiring(
        deleted_containers.CHECK_EVERY_SECONDS,
        deleted_containers.find_expired,
        deleted_containers.remove_expired,
    ),
    Expiring(last_accesses.WALK_EVERY_SECONDS, last_accesses.find_unneeded, last_accesses.remove_unneeded),
    Marked(keys.HISTORY_CHANGES, blob_history.apply_changes),
    Expiring(blob_history.WALK_EVERY_SECONDS, blob_history.find_gone, blob_history.remove_gone),
    Marked(keys.ABANDONED_STAGINGS, staging_areas.purge),
    Expiring(staging_areas.WALK_EVERY_SECONDS, staging_areas.find_expired, staging_areas.remove_expired),
    Marked(keys.DELETED_SHARES, deleted_shares.purge),
    Marked(keys.UNNEEDED_PRESERVED_ENTRIES, deleted_shares.purge_preserved_entries),
    Expiring(deleted_shares.WALK_EVERY_SECONDS, deleted_shares.find_expired, deleted_shares.remove_expired),
    Expiring(durable.WALK_EVERY_SECONDS, durable.find_expired, durable.remove_expired),
    Expiring(delegation.WALK_EVERY_SECONDS, delegation.find_expired, delegation.remove_expired),
    Marked(keys.DISCARDED_MESSAGES, spent_messages.purge),
    Expiring(spent_messages.WALK_EVERY_SECONDS, spent_messages.find_expired, spent_messages.remove_expired),
    Marked(keys.DELETED_TABLES, deleted_tables.purge),
    Marked(keys.REMOVED_ACCOUNTS, removed_accounts.purge),
    COMPACTION,
)


def steps(engine: Engine, extents: Reclaimable, membership: Membership) -> list[Step]:
    """All maintenance of a store. The steps may run side by side."""
    return [step_of(engine, task) for task in TASKS] + extent_steps(engine, extents, membership)


def extent_steps(engine: Engine, extents: Reclaimable, membership: Membership) -> list[Step]:
    return [
        FreedExtents(engine, extents).step,
        DeadProcesses(engine, extents, membership).step,
        UnneededSegments(engine, extents).step,
    ]


def step_of(engine: Engine, task: Marked | Expiring) -> Step:
    return MarkedWork(engine, task).step if isinstance(task, Marked) else Walk(engine, task).step


async def step_each(each: Sequence[Step]) -> bool:
    """Take one step of each. False when none of them had anything to do."""
    return any([await step() for step in each])


class MarkedWork:
    """Goes through the marks in turn, so that a long piece of work does not delay the others."""

    def __init__(self, engine: Engine, task: Marked) -> None:
        self._engine = engine
        self._task = task
        self._last = b""

    async def step(self) -> bool:
        mark = await self._engine.read(self._next)
        self._last = mark or b""
        if mark is not None:
            await self._engine.run(lambda tx: self._task.step(tx, mark))
        return mark is not None

    def _next(self, snap: Snapshot) -> bytes | None:
        """The mark after the last one, or the first one."""
        prefix = self._task.prefix
        for start in (self._last + b"\0", prefix) if self._last else (prefix,):
            for key, _ in snap.scan(start, keys.after(prefix), limit=1):
                return key
        return None


class Walk:
    """Reads all rows that can expire, a page at each step, and then rests until the next walk."""

    def __init__(self, engine: Engine, task: Expiring) -> None:
        self._engine = engine
        self._task = task
        self._position = b""
        self._next_at = Instant(0)

    async def step(self) -> bool:
        now = await self._engine.read(lambda snap: snap.now)
        if now < self._next_at:
            return False
        found, self._position = await self._engine.read(lambda snap: self._task.find(snap, self._position))
        if found:
            await self._engine.run(lambda tx: self._task.remove(tx, found))
        if not self._position:
            self._next_at = later(now, self._task.every_seconds)
        return True
