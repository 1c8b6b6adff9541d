"""Applying pending changes of the history of blobs to its rows, and purging deleted blobs that are gone.

Requests see the rows as changed before that, and what is gone does not exist for them. Any number of processes may do
this: the transaction that changes a row finds in the store how far the work has come.
"""

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.blobs import history

ROWS_PER_STEP = 100
"""Each may refer to four extents, and giving one up takes three rows."""
WALK_EVERY_SECONDS = 60.0


def apply_changes(tx: Transaction, list_key: bytes) -> None:
    history.apply_changes(tx, list_key, limit=ROWS_PER_STEP)


def find_gone(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    return history.find_gone(snap, start, limit=ROWS_PER_STEP)


def remove_gone(tx: Transaction, found: list[bytes]) -> None:
    history.remove_gone(tx, found)
