"""Deleting blobs, with or without their snapshots."""

from collections.abc import Awaitable
from enum import Enum

from kyanite.engine import keys
from kyanite.engine.api import Engine, Transaction
from kyanite.model import container, content
from kyanite.model.blob import BlobKey, Guard, key_of, load, scope_of
from kyanite.model.records import decode_blob
from kyanite.rules import leases, preconditions
from kyanite.rules.refusals import Reason, Refused


class Snapshots(Enum):
    """What deleting a blob does about its snapshots: without a word, a blob that has some is not deleted."""

    REFUSE = "refuse"
    INCLUDE = "include"
    ONLY = "only"


def delete(
    engine: Engine, blob: BlobKey, guard: Guard, snapshots: Snapshots = Snapshots.REFUSE
) -> Awaitable[None]:
    """Delete the blob, or the one snapshot that the key names."""

    def body(tx: Transaction) -> None:
        key = key_of(tx, blob)
        record = load(tx, key)
        preconditions.check_write(guard.conditions, record.etag, record.modified_at, creates=False)
        leases.check_write(record.lease, guard.lease_id, tx.now)
        if blob.snapshot is None:
            container_id = container.load(tx, blob.container).id
            _settle(tx, keys.versions_of(container_id, blob.name), snapshots)
        if snapshots is not Snapshots.ONLY:
            content.drop(tx, record.content)
            tx.delete(key)

    return engine.run(body, scope_of(blob))


def _settle(tx: Transaction, prefix: bytes, wish: Snapshots) -> None:
    """Do with the snapshots under this prefix as the client wishes."""
    limit = 1 if wish is Snapshots.REFUSE else None
    for key, value in list(tx.scan(prefix, keys.after(prefix), limit=limit)):
        if wish is Snapshots.REFUSE:
            raise Refused(Reason.SNAPSHOTS_PRESENT)
        content.drop(tx, decode_blob(value).content)
        tx.delete(key)
