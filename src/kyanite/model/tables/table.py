"""Tables: the transactions over them and their listing.

A table is found by its name, compared without case, and its entities by its id. Deleting it removes the name and leaves
the entities to be purged in the background. So the name is free immediately, and deleting a table of any size is one
small transaction. Tables have no ETags; the last writer of a policy wins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Steps, Transaction
from kyanite.model import keys
from kyanite.model.named import finder, loader
from kyanite.model.records import NamedKey, Policy, encode
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant

MAX_TABLES_READ = 5000
"""A page of a listing ends after so many tables, however few of them match."""


_TABLES_PER_STEP = 100


class TableKey(NamedKey, frozen=True, gc=False):
    @property
    def key(self) -> bytes:
        return keys.table(self.account, self.name)


class TableRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    id: int
    name: str
    """In the case in which the table was created."""
    created_at: Instant
    policies: tuple[Policy, ...] = ()


decode_table: Callable[[bytes], TableRecord] = msgspec.msgpack.Decoder(TableRecord).decode
load: Callable[[Snapshot, TableKey], TableRecord] = loader(keys.table, decode_table, Reason.TABLE_NOT_FOUND)
find: Callable[[Engine, TableKey], Awaitable[TableRecord | None]] = finder(keys.table, decode_table)


class TablePage(msgspec.Struct, frozen=True):
    names: list[str]
    next_name: str | None
    """Where the next page begins, or None when this was the last."""


def create(engine: Engine, table: TableKey) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        if tx.get(table.key) is not None:
            raise Refused(Reason.TABLE_ALREADY_EXISTS)
        tx.put(table.key, encode(TableRecord(id=tx.new_id(), name=table.name, created_at=tx.now)))

    return engine.run(body)


def get(engine: Engine, table: TableKey) -> Awaitable[TableRecord]:
    return engine.read(lambda snap: load(snap, table))


def set_policies(engine: Engine, table: TableKey, policies: tuple[Policy, ...]) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        tx.put(table.key, encode(replace(load(tx, table), policies=policies)))

    return engine.run(body)


def delete(engine: Engine, table: TableKey) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        record = load(tx, table)
        tx.delete(table.key)
        tx.put(keys.deleted_table(record.id), b"")

    return engine.run(body)


def list_tables(
    engine: Engine, account: str, *, matches: Callable[[str], bool], first: str, limit: int
) -> Awaitable[TablePage]:
    """The tables of an account that match, in the order of their names without case, from ``first`` on."""

    def body(snap: Snapshot) -> Steps[TablePage]:
        names: list[str] = []
        if limit == 0:
            return TablePage(names, None)
        base = keys.tables(account)
        rows = snap.scan(keys.table(account, first), keys.after(base), limit=MAX_TABLES_READ + 1)
        for count, (_, value) in enumerate(rows):
            name = decode_table(value).name
            if len(names) == limit or count == MAX_TABLES_READ:
                return TablePage(names, name)
            if matches(name):
                names.append(name)
            if count % _TABLES_PER_STEP == _TABLES_PER_STEP - 1:
                yield
        return TablePage(names, None)

    return engine.read_in_steps(body)
