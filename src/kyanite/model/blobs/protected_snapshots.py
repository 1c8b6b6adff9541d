"""Which snapshots of a blob have an immutability policy or a legal hold of their own.

Deleting a blob with all its snapshots is one small transaction however many there are, and must be refused while one of
them is protected. So each that has a policy or a hold has a row here as well, in the order in which their protection
ends, and only the last row of a blob is read. A policy that has expired keeps its row: it cannot become active again.
"""

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.rules.immutability import BlobProtection
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant

_ENDLESS = (1 << 63) - 1
"""The end of a legal hold."""
_INSTANT_BYTES = 8


def replace(tx: Transaction, key: bytes, before: BlobProtection | None, after: BlobProtection | None) -> None:
    """Write and delete the row for what is stored under this key, if that is a snapshot.

    It may be one that was deleted and that a pending change of the blob's history restores.
    """
    if key[:1] == keys.DELETED_BLOBS:
        key = keys.restored_from(key)
    if not keys.is_snapshot(key):
        return
    if before is not None:
        tx.delete(keys.protected_snapshot(key, end_of(before)))
    if after is not None:
        tx.put(keys.protected_snapshot(key, end_of(after)), b"")


def end_of(protection: BlobProtection) -> int:
    return _ENDLESS if protection.has_legal_hold else protection.until or 0


def check_deleted(tx: Transaction, container_id: int, name: str) -> None:
    """Refuse to delete all snapshots of a blob while one of them is protected."""
    prefix = keys.protected_snapshots(container_id, name)
    for key, _ in tx.scan(prefix, keys.after(prefix), reverse=True, limit=1):
        end = Instant(int.from_bytes(key[-2 * _INSTANT_BYTES : -_INSTANT_BYTES], "big"))
        if end == _ENDLESS:
            raise Refused(Reason.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD)
        if tx.now < end:
            raise Refused(Reason.BLOB_IMMUTABLE_DUE_TO_POLICY)
