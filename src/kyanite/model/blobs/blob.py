"""Blobs of any kind: finding, reading, leasing, changing what is said about them.

What is special to a kind is in ``block_blob.py``, ``append_blob.py`` and ``page_blob.py``. Each function is one
transaction: the checks and the commit cannot be torn apart.
"""

from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Scope, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.lease import LeaseRequest, Outcome, act
from kyanite.model.records import BLOCK_BLOB, BlobRecord, HttpHeaders, decode_blob, encode
from kyanite.rules import leases, preconditions, tiers
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tiers import Tiering
from kyanite.values import Instant, LeaseId


class BlobKey(msgspec.Struct, frozen=True, gc=False):
    container: ContainerKey
    name: str
    snapshot: Instant | None = None
    """Which snapshot of the blob is meant; None for the blob itself."""


class AccessConditions(msgspec.Struct, frozen=True, gc=False):
    """What a request demands of the blob before it may be touched."""

    conditions: Conditions = preconditions.NONE
    lease_id: LeaseId | None = None


UNCONDITIONAL = AccessConditions()


class BlobAtInstant(msgspec.Struct, frozen=True, gc=False):
    """A blob as it was at an instant, for whatever is computed from time."""

    record: BlobRecord
    at: Instant


def key_of(snap: Snapshot, blob: BlobKey) -> bytes:
    """Where the blob or snapshot is, or would be; refused when its container does not exist."""
    container_id = container.load(snap, blob.container).id
    if blob.snapshot is not None:
        return keys.version(container_id, blob.name, blob.snapshot)
    return keys.blob(container_id, blob.name)


def load(snap: Snapshot, key: bytes) -> BlobRecord:
    stored = snap.get(key)
    if stored is None:
        raise Refused(Reason.BLOB_NOT_FOUND)
    return decode_blob(stored)


def load_for_read(snap: Snapshot, blob: BlobKey, access_conditions: AccessConditions) -> BlobRecord:
    record = load(snap, key_of(snap, blob))
    if access_conditions is not UNCONDITIONAL:
        preconditions.check_read(access_conditions.conditions, record.etag, record.modified_at)
        leases.check_read(record.lease, access_conditions.lease_id, snap.now)
    return record


def load_to_be_read(snap: Snapshot, blob: BlobKey, access_conditions: AccessConditions) -> BlobRecord:
    """The same of a blob whose bytes are wanted: not when it is archived."""
    record = load_for_read(snap, blob, access_conditions)
    check_online(snap, record)
    return record


def check_online(snap: Snapshot, record: BlobRecord) -> None:
    if record.tier == tiers.ARCHIVE:
        tiers.check_online(record.tiering, snap.now)


def load_for_write(
    tx: Transaction, blob: BlobKey, access_conditions: AccessConditions, *, kind: int | None = None
) -> tuple[bytes, BlobRecord]:
    """The key and the record of a blob that must exist, its lease as the write leaves it.

    Refused, in this order, when it does not exist, is of another kind than needed, does not meet the conditions, is
    leased to somebody else, or is archived.
    """
    key = key_of(tx, blob)
    record = load(tx, key)
    if kind is not None and record.kind != kind:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    preconditions.check_write(access_conditions.conditions, record.etag, record.modified_at, creates=False)
    lease = leases.check_write(record.lease, access_conditions.lease_id, tx.now)
    check_online(tx, record)
    return key, record if lease is record.lease else replace(record, lease=lease)


def get_properties(
    engine: Engine, blob: BlobKey, access_conditions: AccessConditions
) -> Awaitable[BlobAtInstant]:
    """Its properties and metadata."""

    def body(snap: Snapshot) -> BlobAtInstant:
        return BlobAtInstant(load_for_read(snap, blob, access_conditions), snap.now)

    return engine.read(body)


def set_http_headers(
    engine: Engine, blob: BlobKey, http: HttpHeaders, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    return change(engine, blob, access_conditions, lambda record: replace(record, http=http))


def set_metadata(
    engine: Engine, blob: BlobKey, metadata: dict[str, str], access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    return change(engine, blob, access_conditions, lambda record: replace(record, metadata=metadata))


def change(
    engine: Engine, blob: BlobKey, access_conditions: AccessConditions, to: Callable[[BlobRecord], BlobRecord]
) -> Awaitable[BlobRecord]:
    """Write the blob's record anew, content untouched, when the request's demands are met."""

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions)
        changed = replace(to(record), modified_at=tx.now)
        tx.put(key, encode(changed))
        return changed

    return engine.run(body, scope_of(blob))


def lease(
    engine: Engine, blob: BlobKey, request: LeaseRequest, conditions: Conditions
) -> Awaitable[tuple[BlobRecord, Outcome]]:
    def body(tx: Transaction) -> tuple[BlobRecord, Outcome]:
        key = key_of(tx, blob)
        record = load(tx, key)
        preconditions.check_write(conditions, record.etag, record.modified_at, creates=False)
        outcome = act(record.lease, request, tx.now)
        tx.put(key, encode(replace(record, lease=outcome.lease)))
        return record, outcome

    return engine.run(body, scope_of(blob))


def set_tier(
    engine: Engine, blob: BlobKey, tier: str, priority: str, lease_id: LeaseId | None
) -> Awaitable[bool]:
    """Put a block blob or a snapshot of one into a tier; neither its ETag nor its lease changes.

    Whether that is still to come is returned. A snapshot never comes out of the archive: it can be copied.
    """

    def body(tx: Transaction) -> bool:
        key = key_of(tx, blob)
        record = load(tx, key)
        if record.kind != BLOCK_BLOB:
            raise Refused(Reason.TIER_NOT_SUPPORTED)
        leases.check_write(record.lease, lease_id, tx.now)
        if blob.snapshot is not None and tier != tiers.ARCHIVE:
            check_online(tx, record)
        tiering = tiers.change(record.tiering, tier, priority, tx.now)
        tx.put(key, encode(with_tiering(record, tiering)))
        return tiering.rehydration is not None

    return engine.run(body, scope_of(blob))


def with_tiering(record: BlobRecord, tiering: Tiering) -> BlobRecord:
    return replace(
        record, tier=tiering.tier, tier_changed_at=tiering.changed_at, rehydration=tiering.rehydration
    )


def scope_of(blob: BlobKey) -> Scope:
    return keys.blob_scope(blob.container.account, blob.container.name, blob.name)
