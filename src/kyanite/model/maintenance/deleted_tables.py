"""Taking apart the tables that were deleted: their entities, a bounded number of rows at a time.

Nobody can reach these rows any more, since the name that led to them is gone. Every step may be done twice or by
several processes at once.
"""

from functools import partial

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys

ROWS_AT_ONCE = 500


class DeletedTables:
    """To be stepped by a background task: at once while it has work, now and then while it has none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def step(self) -> bool:
        """Do a little. False when there is nothing to do."""
        table_id = await self._engine.read(_first)
        if table_id is None:
            return False
        await self._engine.run(partial(_take_apart, table_id=table_id))
        return True


def _first(snap: Snapshot) -> int | None:
    for key, _ in snap.scan(keys.DELETED_TABLES, keys.after(keys.DELETED_TABLES), limit=1):
        return int.from_bytes(key[len(keys.DELETED_TABLES) :], "big")
    return None


def _take_apart(tx: Transaction, table_id: int) -> None:
    left = ROWS_AT_ONCE
    for prefix in (keys.entities(table_id), keys.entity_parts(table_id)):
        for key, _ in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            tx.delete(key)
            left -= 1
    if left == ROWS_AT_ONCE:
        tx.delete(keys.deleted_table(table_id))
