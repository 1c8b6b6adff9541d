"""Entities: reading one, and changing one or a group of them.

A change of a single entity is a group of one. A group is one transaction: it reads all its entities together and makes
its changes in order, all of them or none. All entities that it writes have the same time and hence the same ETag.
Changes are merged into long entities before the transaction (``merging.py``).
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from kyanite.engine.api import Engine, EngineBusy, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.records import Value
from kyanite.model.tables import merging, stored_entity, table
from kyanite.model.tables.change import Change
from kyanite.model.tables.merging import Merged, Unprepared
from kyanite.model.tables.stored_entity import Stamp
from kyanite.model.tables.table import TableKey
from kyanite.rules import entities
from kyanite.rules.entities import MERGING, Act
from kyanite.rules.refusals import Reason, Refused

_ATTEMPTS: Final = 8


class ChangeRefused(Refused):
    """One change of a group is refused, so none of them is made."""

    def __init__(self, cause: Refused, index: int) -> None:
        super().__init__(cause.reason, cause.detail, cause.facts)
        self.index = index


class Written(Value, frozen=True):
    table_name: str
    """As the table was created."""
    etag: str
    """The ETag of all entities written, without its weak mark and its quotes."""
    texts: list[bytes]
    """The text of each entity that was inserted; empty for other changes."""


class Found(Value, frozen=True):
    table_name: str
    text: bytes


async def apply(engine: Engine, key: TableKey, changes: Sequence[Change]) -> Written:
    """Make all the changes, which are of one partition, or none of them."""
    scope = keys.table_scope(key.account, key.name, changes[0].partition_key)
    prepared: dict[int, Merged] = {}

    def body(tx: Transaction) -> Written | Unprepared:
        return _apply(tx, key, changes, prepared)

    outcome = await engine.run(body, scope)
    if isinstance(outcome, Written):
        return outcome
    async with merging.room_for(outcome):
        for _ in range(_ATTEMPTS):
            prepared |= await merging.prepare(engine, outcome, changes)
            outcome = await engine.run(body, scope)
            if isinstance(outcome, Written):
                return outcome
    raise EngineBusy("other clients keep changing the entities while changes are merged into them")


def _apply(
    tx: Transaction, key: TableKey, changes: Sequence[Change], prepared: Mapping[int, Merged]
) -> Written | Unprepared:
    record = table.load(tx, key)
    base = keys.entities(record.id)
    entity_keys = [base + change.key for change in changes]
    rows = tx.get_many(entity_keys)
    if any(rows):
        unprepared = merging.find_unprepared(record.id, changes, rows, prepared)
        if unprepared is not None:
            return unprepared
    stamp = Stamp(tx.now)
    texts: list[bytes] = []
    for number, change in enumerate(changes):
        try:
            row = rows[number]
            texts.append(
                _change(tx, record.id, entity_keys[number], row, change, stamp, prepared.get(number))
            )
        except Refused as cause:
            raise ChangeRefused(cause, number) from None
    return Written(record.name, stamp.etag.decode(), texts)


def _change(
    tx: Transaction,
    table_id: int,
    key: bytes,
    row: bytes | None,
    change: Change,
    stamp: Stamp,
    prepared: Merged | None,
) -> bytes:
    entities.check_act(change.act, change.if_match, None if row is None else stored_entity.etag_of(row))
    properties = change.properties_text
    if row is not None:
        if change.act in MERGING:
            if prepared is None:
                properties = merging.merged(change, stored_entity.whole(tx, table_id, row))
            else:
                properties = prepared.properties()
        stored_entity.drop(tx, table_id, row)
        if change.act is Act.DELETE:
            tx.delete(key)
            return b""
    head = stored_entity.head_of(stamp, change.keys_text)
    stored_entity.save(tx, table_id, key, head, properties)
    return head + properties if change.act is Act.INSERT else b""


def find(engine: Engine, key: TableKey, partition_key: str, row_key: str) -> Awaitable[Found]:
    """The entity with these keys."""
    suffix = keys.entity(partition_key, row_key)

    def body(snap: Snapshot) -> Found:
        record = table.load(snap, key)
        row = snap.get(keys.entities(record.id) + suffix)
        if row is None:
            raise Refused(Reason.ENTITY_NOT_FOUND)
        return Found(record.name, stored_entity.whole(snap, record.id, row))

    return engine.read(body)
