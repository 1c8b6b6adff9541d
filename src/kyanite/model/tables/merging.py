"""Merging changes into entities.

Merging decodes the entity that is there and encodes what it becomes. For long entities that takes milliseconds each, so
it is done before the transaction, one entity in each slice of the loop. The transaction compares ETags, of which no two
are the same, and writes what was prepared. If another client has changed an entity meanwhile, that one is merged again.

What is prepared is in memory, up to a hundred entities of a mebibyte, so only so many groups are prepared at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from kyanite.engine.api import Engine, Snapshot
from kyanite.model import keys
from kyanite.model.tables import stored_entity
from kyanite.model.tables.change import Change
from kyanite.rules import entities
from kyanite.rules.entities import MERGING
from kyanite.rules.refusals import Refused
from kyanite.slices import next_slice

_AT_ONCE_BYTES = 128 * 1024
"""So much of present entities is merged in the transaction itself."""
_ROOMS = 32
"""Long entities that are prepared in a process at a time; a group with more is prepared alone."""


class Merged(NamedTuple):
    """What an entity becomes, if it still has this ETag."""

    etag: str
    outcome: bytes | Refused
    """The text of its properties, or why it cannot become that."""

    def properties(self) -> bytes:
        if isinstance(self.outcome, Refused):
            raise self.outcome
        return self.outcome


class Unprepared(NamedTuple):
    """The changes that have to be merged before the transaction."""

    table_id: int
    numbers: list[int]


def find_unprepared(
    table_id: int, changes: Sequence[Change], rows: Sequence[bytes | None], prepared: Mapping[int, Merged]
) -> Unprepared | None:
    """None if the transaction can go on."""
    numbers: list[int] = []
    size = 0
    for number, row in enumerate(rows):
        if row is None or changes[number].act not in MERGING:
            continue
        if number in prepared and prepared[number].etag == stored_entity.etag_of(row):
            continue
        numbers.append(number)
        size += _AT_ONCE_BYTES + 1 if stored_entity.is_long(row) else len(row)
    return Unprepared(table_id, numbers) if size > _AT_ONCE_BYTES or (prepared and numbers) else None


def merged(change: Change, present: bytes) -> bytes:
    """The text of the present properties with those of the change. Together they must be an allowed entity."""
    properties = entities.merge(stored_entity.properties_of(present), change.properties)
    text = stored_entity.properties_text(properties)
    entities.check_properties(properties, len(text))
    if entities.may_be_too_large(len(change.keys_text) + len(text)):
        entities.check_size(change.partition_key, change.row_key, properties)
    return text


async def prepare(engine: Engine, unprepared: Unprepared, changes: Sequence[Change]) -> dict[int, Merged]:
    """Merge these changes into the entities as they are now. One that is gone meanwhile is left out."""
    prepared: dict[int, Merged] = {}
    for number in unprepared.numbers:
        change = changes[number]
        await next_slice()
        found = await engine.read(partial(_load, table_id=unprepared.table_id, key=change.key))
        if found is None:
            continue
        await next_slice()
        etag, text = found
        try:
            prepared[number] = Merged(etag, merged(change, text))
        except Refused as refusal:
            prepared[number] = Merged(etag, refusal)
    return prepared


def _load(snap: Snapshot, table_id: int, key: bytes) -> tuple[str, bytes] | None:
    row = snap.get(keys.entities(table_id) + key)
    return None if row is None else (stored_entity.etag_of(row), stored_entity.whole(snap, table_id, row))


class _Rooms:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(_ROOMS)
        self.acquiring = asyncio.Lock()
        """Two groups that acquire rooms at the same time could wait for each other."""


_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, _Rooms] = WeakKeyDictionary()


@asynccontextmanager
async def room_for(unprepared: Unprepared) -> AsyncIterator[None]:
    """Wait until there is room for what will be prepared."""
    rooms = _rooms.setdefault(asyncio.get_running_loop(), _Rooms())
    acquired = 0
    try:
        async with rooms.acquiring:
            while acquired < min(len(unprepared.numbers), _ROOMS):
                await rooms.free.acquire()
                acquired += 1
        yield
    finally:
        for _ in range(acquired):
            rooms.free.release()
