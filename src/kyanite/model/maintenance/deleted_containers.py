"""Purging deleted containers.

No request can reach these rows any more. They are purged a bounded number at a time, and any number of processes may
do it: the transaction that deletes a row drops its content. A container that can still be restored is purged when its
retention is over.
"""

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import deleted_containers, rows

ROWS_PER_STEP = 100
"""Each may refer to four extents, and giving one up takes three rows."""

CHECK_EVERY_SECONDS = 60.0


def find_expired(snap: Snapshot, _start: bytes) -> tuple[list[bytes], bytes]:
    """Those that were found are removed, so the next page begins where this one did."""
    found, has_more = deleted_containers.overdue(snap)
    return found, keys.EXPIRIES if has_more else b""


def remove_expired(tx: Transaction, found: list[bytes]) -> None:
    deleted_containers.expire(tx, found)


def purge(tx: Transaction, mark: bytes) -> None:
    if not rows.purge_container(tx, keys.id_of(mark), limit=ROWS_PER_STEP):
        tx.delete(mark)
