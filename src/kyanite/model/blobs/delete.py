"""Deleting blobs, with or without their snapshots."""

from collections.abc import Awaitable
from enum import Enum

from kyanite.engine.api import Engine, Transaction
from kyanite.model import keys
from kyanite.model.blobs import container, staged_blocks
from kyanite.model.blobs.blob import AccessConditions, BlobKey, key_of, load, scope_of
from kyanite.model.content import content
from kyanite.model.records import BlobRecord, decode_blob
from kyanite.rules import leases, preconditions, tiers
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason, Refused


class Snapshots(Enum):
    """What deleting a blob does about its snapshots: without a word, a blob that has some is not deleted."""

    REFUSE = "refuse"
    INCLUDE = "include"
    ONLY = "only"


def delete(
    engine: Engine,
    blob: BlobKey,
    access_conditions: AccessConditions,
    snapshots: Snapshots = Snapshots.REFUSE,
    *,
    tier_times: Conditions = NONE,
) -> Awaitable[None]:
    """Delete the blob, or the one snapshot that the key names.

    ``tier_times`` are conditions on when its tier was chosen, or it was created if nobody chose one.
    """

    def body(tx: Transaction) -> None:
        if blob.snapshot is not None:
            key = key_of(tx, blob)
            _remove(tx, key, _load_checked(tx, key, access_conditions, tier_times))
            return
        container_id = container.load(tx, blob.container).id
        key, staging_key = keys.blob(container_id, blob.name), keys.staging(container_id, blob.name)
        stored, head = tx.get_many((key, staging_key))
        if stored is None and staged_blocks.load(tx, head) is None:
            raise Refused(Reason.BLOB_NOT_FOUND)
        record = None if stored is None else _load_checked(tx, key, access_conditions, tier_times)
        _settle(tx, keys.versions_of(container_id, blob.name), snapshots)
        if snapshots is Snapshots.ONLY:
            return
        staged_blocks.abandon(tx, staging_key, head)
        if record is not None:
            _remove(tx, key, record)

    return engine.run(body, scope_of(blob))


def _load_checked(
    tx: Transaction, key: bytes, access_conditions: AccessConditions, tier_times: Conditions
) -> BlobRecord:
    record = load(tx, key)
    preconditions.check_write(access_conditions.conditions, record.etag, record.modified_at, creates=False)
    if tier_times is not NONE:
        changed_at = tiers.current(record.tiering, tx.now).changed_at
        preconditions.check_time_write(tier_times, changed_at or record.created_at)
    leases.check_write(record.lease, access_conditions.lease_id, tx.now)
    return record


def _remove(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    content.drop(tx, record.content)
    tx.delete(key)


def _settle(tx: Transaction, prefix: bytes, wish: Snapshots) -> None:
    """Do with the snapshots under this prefix as the client wishes."""
    limit = 1 if wish is Snapshots.REFUSE else None
    for key, value in list(tx.scan(prefix, keys.after(prefix), limit=limit)):
        if wish is Snapshots.REFUSE:
            raise Refused(Reason.SNAPSHOTS_PRESENT)
        _remove(tx, key, decode_blob(value))
