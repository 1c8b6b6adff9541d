"""Blobs of any kind: reading their records, leases, and changes of what is stored about them.

What is special to one kind is in ``block_list.py``, ``append_blob.py`` and ``page_blob.py``. Each function that takes
an engine is one transaction, so nothing can happen between its checks and its commit.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from kyanite.engine.api import Engine, Scope, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import rows
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.lease import LeaseRequest, Outcome, act
from kyanite.model.records import HttpHeaders, Value
from kyanite.rules import immutability, leases, preconditions, tiers
from kyanite.rules.immutability import Change, ContainerProtection
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tiers import Tiering
from kyanite.values import Instant, LeaseId


class AccessConditions(Value, frozen=True):
    """What a request requires of the blob: conditions, and the lease that it names."""

    conditions: Conditions = preconditions.NONE
    lease_id: LeaseId | None = None


UNCONDITIONAL: Final = AccessConditions()


class BlobAtInstant(Value, frozen=True):
    """A blob and the instant at which it was read: lease states and tiers depend on the time."""

    record: BlobRecord
    at: Instant


def load_for_read(snap: Snapshot, blob: BlobKey, access_conditions: AccessConditions) -> BlobRecord:
    _, _, record = rows.load_with_container(snap, blob)
    if access_conditions is not UNCONDITIONAL:
        preconditions.check_read(access_conditions.conditions, record.etag, record.modified_at, record.tags)
        if not record.is_previous:
            leases.check_read(record.lease, access_conditions.lease_id, snap.now)
    return record


def load_to_be_read(snap: Snapshot, blob: BlobKey, access_conditions: AccessConditions) -> BlobRecord:
    """The same for a request that reads the bytes. Refused when the blob is archived."""
    record = load_for_read(snap, blob, access_conditions)
    if record.tier == tiers.ARCHIVE:
        tiers.check_online(record.tiering, snap.now)
    return record


def depends_on_time(record: BlobRecord) -> bool:
    """Whether anything that clients are told about the blob changes with the time alone: its lease or its tier."""
    return record.lease.id is not None or record.rehydration is not None


def check_online(snap: Snapshot, record: BlobRecord) -> None:
    if record.tier == tiers.ARCHIVE:
        tiers.check_online(record.tiering, snap.now)


def check_mutable(
    snap: Snapshot,
    what: Change,
    protection: ContainerProtection,
    record: BlobRecord,
    *,
    keeps_version: bool = False,
) -> None:
    """Refuse what the policies and legal holds of the container, which has some, or of the blob do not allow."""
    immutability.check(
        what, protection, record.protection, record.times, snap.now, keeps_version=keeps_version
    )


def load_for_write(
    tx: Transaction,
    blob: BlobKey,
    access_conditions: AccessConditions,
    what: Change,
    *,
    kind: int | None = None,
) -> tuple[bytes, BlobRecord]:
    """The key and the record of a blob that must exist. The record has its lease as the write leaves it.

    Refused, in this order, when the blob does not exist, is of another kind than needed, does not meet the conditions,
    is leased and the request does not name the lease, is archived, or is immutable.
    """
    found, key, record = rows.load_with_container(tx, blob)
    if kind is not None and record.kind != kind:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    return key, _checked(tx, record, access_conditions, what, found.protection)


def _checked(
    tx: Transaction,
    record: BlobRecord,
    access_conditions: AccessConditions,
    what: Change,
    protection: ContainerProtection | None,
) -> BlobRecord:
    preconditions.check_write(
        access_conditions.conditions, record.etag, record.modified_at, record.tags, creates=False
    )
    lease = leases.check_write(record.lease, access_conditions.lease_id, tx.now)
    check_online(tx, record)
    if protection is not None:
        check_mutable(tx, what, protection, record)
    return record if lease is record.lease else replace(record, lease=lease)


def get_properties(
    engine: Engine, blob: BlobKey, access_conditions: AccessConditions
) -> Awaitable[BlobAtInstant]:
    def body(snap: Snapshot) -> BlobAtInstant:
        return BlobAtInstant(load_for_read(snap, blob, access_conditions), snap.now)

    return engine.read(body)


def set_http_headers(
    engine: Engine, blob: BlobKey, http: HttpHeaders, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    return change(
        engine, blob, access_conditions, Change.SET_PROPERTIES, lambda record: replace(record, http=http)
    )


def set_metadata(
    engine: Engine, blob: BlobKey, metadata: dict[str, str], access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    """Replace the metadata. The blob as it was before becomes a version, if the account keeps versions."""

    def body(tx: Transaction) -> BlobRecord:
        stored, record = rows.load_base(tx, blob)
        checked = _checked(tx, record, access_conditions, Change.SET_METADATA, stored.protection)
        return rows.revise(tx, stored, replace(checked, metadata=metadata, modified_at=tx.now))

    return engine.run(body, scope_of(blob))


def change(
    engine: Engine,
    blob: BlobKey,
    access_conditions: AccessConditions,
    what: Change,
    to: Callable[[BlobRecord], BlobRecord],
) -> Awaitable[BlobRecord]:
    """Change the record of a blob but not its content, if the request's conditions are met."""

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions, what)
        changed = replace(to(record), modified_at=tx.now)
        rows.save(tx, key, changed)
        return changed

    return engine.run(body, scope_of(blob))


def lease(
    engine: Engine, blob: BlobKey, request: LeaseRequest, conditions: Conditions
) -> Awaitable[tuple[BlobRecord, Outcome]]:
    def body(tx: Transaction) -> tuple[BlobRecord, Outcome]:
        _, key, record = rows.load_with_container(tx, blob)
        if conditions is not preconditions.NONE:
            preconditions.check_write(conditions, record.etag, record.modified_at, record.tags, creates=False)
        outcome = act(record.lease, request, tx.now)
        rows.save(tx, key, replace(record, lease=outcome.lease))
        return record, outcome

    return engine.run(body, scope_of(blob))


def set_tier(
    engine: Engine, blob: BlobKey, tier: str, priority: str, access_conditions: AccessConditions
) -> Awaitable[bool]:
    """Set the tier of a block blob, or of a snapshot or version of one. Its ETag and its lease do not change.

    Of the conditions only that on its tags counts. Returns whether the change is pending: leaving Archive takes time. A
    snapshot cannot leave Archive, but be copied.
    """

    def body(tx: Transaction) -> bool:
        key, record = rows.load(tx, blob)
        if record.kind != BLOCK_BLOB:
            raise Refused(Reason.TIER_NOT_SUPPORTED)
        preconditions.check_tags(access_conditions.conditions, record.tags)
        if not record.is_previous:
            leases.check_write(record.lease, access_conditions.lease_id, tx.now)
        if blob.snapshot is not None and tier != tiers.ARCHIVE:
            check_online(tx, record)
        tiering = tiers.change(record.tiering, tier, priority, tx.now)
        rows.save(tx, key, with_tiering(record, tiering))
        return tiering.rehydration is not None

    return engine.run(body, scope_of(blob))


def with_tiering(record: BlobRecord, tiering: Tiering) -> BlobRecord:
    return replace(
        record, tier=tiering.tier, tier_changed_at=tiering.changed_at, rehydration=tiering.rehydration
    )


def scope_of(blob: BlobKey) -> Scope:
    return keys.blob_scope(blob.container.account, blob.container.name, blob.name)
