"""Entities: reading one, and changing one or a group of them.

A change of a single entity is a group of one. A group is one transaction: it reads all its entities together and makes
its changes in order, all of them or none. All entities that it writes have the same time and hence the same ETag.
"""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.tables import stored_entity, table
from kyanite.model.tables.stored_entity import Stamp
from kyanite.model.tables.table import TableKey
from kyanite.rules import entities
from kyanite.rules.entities import ANY, MERGING, Act, Properties
from kyanite.rules.refusals import Reason, Refused


class Change:
    """One change of one entity, checked as far as that needs no stored state.

    A class with slots, because a group has up to a hundred of them. The texts are made here, outside the transaction.
    """

    __slots__ = (
        "act",
        "if_match",
        "key",
        "keys_text",
        "partition_key",
        "properties",
        "properties_text",
        "row_key",
    )

    def __init__(
        self, act: Act, partition_key: str, row_key: str, properties: Properties, if_match: str = ANY
    ) -> None:
        entities.check_keys(partition_key, row_key)
        self.act = act
        self.if_match = if_match
        """The ETag that the entity must have, or ``*``."""
        self.partition_key = partition_key
        self.row_key = row_key
        self.properties = properties
        self.key = keys.entity(partition_key, row_key)
        self.keys_text = stored_entity.keys_text(partition_key, row_key)
        self.properties_text = stored_entity.properties_text(properties)
        entities.check_properties(properties, len(self.properties_text))
        if entities.may_be_too_large(len(self.keys_text) + len(self.properties_text)):
            entities.check_size(partition_key, row_key, properties)


class ChangeRefused(Refused):
    """One change of a group is refused, so none of them is made."""

    def __init__(self, cause: Refused, index: int) -> None:
        super().__init__(cause.reason, cause.detail)
        self.index = index


class Written(NamedTuple):
    table_name: str
    """As the table was created."""
    etag: str
    """The ETag of all entities written, without its weak mark and its quotes."""
    texts: list[bytes]
    """What each change wrote; empty for a deletion."""


class Found(NamedTuple):
    table_name: str
    text: bytes


def apply(engine: Engine, key: TableKey, changes: Sequence[Change]) -> Awaitable[Written]:
    """Make all the changes, which are of one partition, or none of them."""

    def body(tx: Transaction) -> Written:
        record = table.load(tx, key)
        base = keys.entities(record.id)
        entity_keys = [base + change.key for change in changes]
        rows = tx.get_many(entity_keys)
        stamp = Stamp(tx.now)
        texts: list[bytes] = []
        for number, change in enumerate(changes):
            try:
                texts.append(_change(tx, record.id, entity_keys[number], rows[number], change, stamp))
            except Refused as cause:
                raise ChangeRefused(cause, number) from None
        return Written(record.name, stamp.etag.decode(), texts)

    return engine.run(body, keys.table_scope(key.account, key.name, changes[0].partition_key))


def _change(
    tx: Transaction, table_id: int, key: bytes, row: bytes | None, change: Change, stamp: Stamp
) -> bytes:
    entities.check_act(change.act, change.if_match, None if row is None else stored_entity.etag_of(row))
    properties = change.properties_text
    if row is not None:
        if change.act in MERGING:
            properties = _merged(change, stored_entity.whole(tx, table_id, row))
        stored_entity.drop(tx, table_id, row)
        if change.act is Act.DELETE:
            tx.delete(key)
            return b""
    text = stored_entity.text_of(stamp, change.keys_text, properties)
    stored_entity.save(tx, table_id, key, text)
    return text


def _merged(change: Change, present: bytes) -> bytes:
    """The text of the present properties with those of the change. Together they must be an allowed entity."""
    merged = entities.merge(stored_entity.properties_of(present), change.properties)
    text = stored_entity.properties_text(merged)
    entities.check_properties(merged, len(text))
    if entities.may_be_too_large(len(change.keys_text) + len(text)):
        entities.check_size(change.partition_key, change.row_key, merged)
    return text


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
