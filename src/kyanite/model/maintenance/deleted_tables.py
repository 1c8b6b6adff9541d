"""Purging the entities of deleted tables, a bounded number of rows at a time. No request can reach them any more."""

from kyanite.engine.api import Transaction
from kyanite.model import keys

ROWS_PER_STEP = 500


def purge(tx: Transaction, mark: bytes) -> None:
    left, table_id = ROWS_PER_STEP, keys.id_of(mark)
    for prefix in (keys.entities(table_id), keys.entity_parts(table_id)):
        for key, _ in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            tx.delete(key)
            left -= 1
    if left == ROWS_PER_STEP:
        tx.delete(mark)
