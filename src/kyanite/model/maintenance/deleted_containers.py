"""Purging deleted containers.

No request can reach these rows any more. They are purged a bounded number at a time, and any number of processes may
do it: the transaction that deletes a row drops its content.
"""

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.blobs import rows

ROWS_PER_STEP = 100
"""Each may refer to four extents, and giving one up takes three rows."""


def purge(tx: Transaction, mark: bytes) -> None:
    if not rows.purge_container(tx, keys.id_of(mark), limit=ROWS_PER_STEP):
        tx.delete(mark)
