"""Purging the blocks of abandoned staging areas, and abandoning staging areas that have expired.

A staging area is abandoned by the write that makes or replaces the blob, or by Delete Blob. If none of these comes, it
expires. A walk through the heads of all staging areas finds the expired ones, so Put Block writes no row for that.
"""

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import rows, staged_blocks

ROWS_PER_STEP = 200
WALK_EVERY_SECONDS = 600.0


def purge(tx: Transaction, mark: bytes) -> None:
    if not staged_blocks.purge(tx, keys.id_of(mark), limit=ROWS_PER_STEP):
        tx.delete(mark)


def find_expired(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    return rows.expired_stagings(snap, start, limit=ROWS_PER_STEP)


def remove_expired(tx: Transaction, found: list[bytes]) -> None:
    rows.abandon_expired(tx, found)
