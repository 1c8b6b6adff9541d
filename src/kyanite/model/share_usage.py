"""How many bytes the files of a share have, and whether there may be more.

Counted in several rows, each for the files whose id falls to it, so that writers of different files seldom meet. The
lengths of files count, holes included; snapshots do not.
"""

from kyanite.engine import keys
from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.share import ShareRecord
from kyanite.rules.refusals import Reason, Refused

SHARDS = 16
_GIB = 1 << 30


def used_bytes(snap: Snapshot, share_id: int) -> int:
    base = keys.usages(share_id)
    return sum(int.from_bytes(value, "big", signed=True) for _, value in snap.scan(base, keys.after(base)))


def change(tx: Transaction, share: ShareRecord, file_id: int, difference: int) -> None:
    """A file has become so much longer or shorter. Refused when it is more than the share may hold."""
    if not difference:
        return
    quota = share.settings.quota_gib * _GIB
    if difference > 0 and used_bytes(tx, share.id) + difference > quota:
        raise Refused(Reason.SHARE_SIZE_LIMIT_REACHED)
    key = keys.usage(share.id, file_id % SHARDS)
    stored = tx.get(key)
    used = (0 if stored is None else int.from_bytes(stored, "big", signed=True)) + difference
    tx.put(key, used.to_bytes(8, "big", signed=True))
