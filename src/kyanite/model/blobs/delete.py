"""Deleting blobs, with or without their snapshots, and restoring what was deleted."""

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
) -> Awaitable[bool]:
    """Delete the base blob, or the one snapshot or version that the key names. Returns whether nothing of it is kept.

    ``tier_times`` are conditions on when its tier was chosen, or on when it was created if no tier was chosen.
    """

    def body(tx: Transaction) -> bool:
        if blob.snapshot is not None or blob.version is not None:
            return _delete_row(tx, blob, access_conditions, tier_times)
        stored = rows.load_name(tx, blob)
        if stored.record is not None:
            _check(tx, stored.record, access_conditions, tier_times)
            if snapshots is not Snapshots.ONLY and stored.protection is not None:
                check_mutable(tx, Change.DELETE, stored.protection, stored.record)
        elif stored.staging(tx.now) is None:
            raise Refused(Reason.BLOB_NOT_FOUND)
        is_permanent = True
        if snapshots is not Snapshots.REFUSE:
            is_permanent = rows.delete_snapshots(tx, stored)
        elif rows.has_snapshots(tx, stored):
            raise Refused(Reason.SNAPSHOTS_PRESENT)
        if snapshots is not Snapshots.ONLY:
            is_permanent = rows.delete(tx, stored)
        return is_permanent

    return engine.run(body, scope_of(blob))


def _delete_row(
    tx: Transaction, blob: BlobKey, access_conditions: AccessConditions, tier_times: Conditions
) -> bool:
    found, key, record = rows.load_with_container(tx, blob)
    if blob.version is not None and not record.is_previous:
        raise Refused(Reason.CURRENT_VERSION)
    _check(tx, record, access_conditions, tier_times)
    if found.protection is not None:
        check_mutable(tx, Change.DELETE, found.protection, record)
    return rows.delete_row(tx, key, record, rows.load_history(tx, blob.container.account))


def delete_permanently(engine: Engine, blob: BlobKey) -> Awaitable[None]:
    """End a deleted snapshot or version before its time. Refused unless the account allows that."""

    def body(tx: Transaction) -> None:
        found = rows.load_deleted(tx, blob)
        is_allowed = rows.load_history(tx, blob.container.account).allows_permanent_delete
        if found is None or not is_allowed:
            raise Refused(Reason.PERMANENT_DELETE_NOT_ALLOWED)
        in_container, key, record = found
        if in_container.protection is not None:
            check_mutable(tx, Change.DELETE, in_container.protection, record)
        rows.retire(tx, key, record)

    return engine.run(body, scope_of(blob))


def undelete(engine: Engine, blob: BlobKey) -> Awaitable[None]:
    """Restore everything of the name that is deleted and not gone."""

    def body(tx: Transaction) -> None:
        rows.undelete(tx, rows.load_name(tx, blob))

    return engine.run(body, scope_of(blob))


def _check(
    tx: Transaction, record: BlobRecord, access_conditions: AccessConditions, tier_times: Conditions
) -> None:
    preconditions.check_delete(access_conditions.conditions, record.etag, record.modified_at, record.tags)
    if tier_times is not NONE:
        changed_at = tiers.current(record.tiering, tx.now).changed_at
        preconditions.check_time_write(tier_times, changed_at or record.created_at)
    if not record.is_previous:
        leases.check_write(record.lease, access_conditions.lease_id, tx.now)
