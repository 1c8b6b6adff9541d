"""Deleting blobs, with or without their snapshots."""

from collections.abc import Awaitable
from enum import Enum

from kyanite.engine.api import Engine, Transaction
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, check_mutable, scope_of
from kyanite.model.blobs.records import BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules import leases, preconditions, tiers
from kyanite.rules.immutability import Change
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason, Refused


class Snapshots(Enum):
    """What Delete Blob does with the snapshots of a base blob. By default a blob that has snapshots is not deleted."""

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
    """Delete the base blob, or the one snapshot that the key names.

    ``tier_times`` are conditions on when its tier was chosen, or on when it was created if no tier was chosen.
    """

    def body(tx: Transaction) -> None:
        if blob.snapshot is not None:
            found, key, record = rows.load_with_container(tx, blob)
            _check(tx, record, access_conditions, tier_times)
            if found.protection is not None:
                check_mutable(tx, Change.DELETE, found.protection, record)
            rows.retire(tx, key, record)
            return
        stored = rows.load_name(tx, blob)
        if stored.record is not None:
            _check(tx, stored.record, access_conditions, tier_times)
            if snapshots is not Snapshots.ONLY and stored.protection is not None:
                check_mutable(tx, Change.DELETE, stored.protection, stored.record)
        elif stored.staging(tx.now) is None:
            raise Refused(Reason.BLOB_NOT_FOUND)
        if snapshots is not Snapshots.REFUSE:
            rows.delete_snapshots(tx, stored)
        elif rows.has_snapshots(tx, stored):
            raise Refused(Reason.SNAPSHOTS_PRESENT)
        if snapshots is not Snapshots.ONLY:
            rows.delete(tx, stored)

    return engine.run(body, scope_of(blob))


def _check(
    tx: Transaction, record: BlobRecord, access_conditions: AccessConditions, tier_times: Conditions
) -> None:
    preconditions.check_delete(access_conditions.conditions, record.etag, record.modified_at, record.tags)
    if tier_times is not NONE:
        changed_at = tiers.current(record.tiering, tx.now).changed_at
        preconditions.check_time_write(tier_times, changed_at or record.created_at)
    leases.check_write(record.lease, access_conditions.lease_id, tx.now)
