"""Purging deleted shares, and entries that were preserved for snapshots which no longer exist.

No request can reach these rows any more. They are purged a bounded number at a time, and any number of processes may
do it: the transaction that deletes a row drops its content. A share that can still be restored is purged when its
retention is over.
"""

from bisect import bisect_left

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.files import deleted_shares
from kyanite.model.files.entry import decode_entry
from kyanite.model.files.opens import handles
from kyanite.model.files.share_snapshots import instants

ROWS_PER_STEP = 100
"""Each may refer to four extents, and giving one up takes three rows."""
WALK_EVERY_SECONDS = 60.0
_INSTANT_BYTES = 8


def find_expired(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    return deleted_shares.overdue(snap, start)


def remove_expired(tx: Transaction, found: list[bytes]) -> None:
    deleted_shares.expire(tx, found)


def purge(tx: Transaction, mark: bytes) -> None:
    left, share_id = ROWS_PER_STEP, keys.id_of(mark)
    for prefix in (keys.entries_of_share(share_id), keys.preserved_entries_of_share(share_id)):
        for key, value in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            content.drop(tx, decode_entry(value).content)
            tx.delete(key)
            left -= 1
    for prefix in (
        keys.share_snapshots(share_id),
        keys.permissions(share_id),
        keys.usages(share_id),
        keys.open_entries_of_share(share_id),
        keys.pending_deletes_of_share(share_id),
        keys.change_feed(share_id),
    ):
        for key, _ in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            tx.delete(key)
            left -= 1
    left -= handles.purge_share(tx, share_id, left)
    if left == ROWS_PER_STEP:
        tx.delete(keys.deleted_share(share_id))
        tx.delete(keys.unneeded_preserved_entries(share_id))


def purge_preserved_entries(tx: Transaction, mark: bytes) -> None:
    """Read some rows, from where the mark says, and delete those that are part of no snapshot."""
    share_id = keys.id_of(mark)
    prefix = keys.preserved_entries_of_share(share_id)
    kept = instants(tx, share_id)
    rows = list(tx.scan(tx.get(mark) or prefix, keys.after(prefix), limit=ROWS_PER_STEP))
    for key, value in rows:
        entry = decode_entry(value)
        until = int.from_bytes(key[-_INSTANT_BYTES:], "big")
        first = bisect_left(kept, entry.written_at)
        if first == len(kept) or kept[first] > until:
            content.drop(tx, entry.content)
            tx.delete(key)
    if len(rows) < ROWS_PER_STEP:
        tx.delete(mark)
    else:
        tx.put(mark, rows[-1][0] + b"\0")
