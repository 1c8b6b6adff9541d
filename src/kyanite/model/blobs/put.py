"""Writes that create a blob or replace one. Put Blob is here; Put Block List and copies prepare their write here too.

All of them check what is stored under the name in the same way: whether it may be overwritten, its kind, the
conditions, the lease, and whether it is archived or immutable. All keep the lease of a blob that they replace, and its
creation time unless that blob is kept as a version.
"""

from collections.abc import Awaitable, Callable

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import Extent
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, check_mutable, check_online, scope_of
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey, StoredName
from kyanite.model.content import content
from kyanite.model.records import HttpHeaders, Value
from kyanite.rules import immutability, leases, preconditions
from kyanite.rules.immutability import BlobProtection, Change
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.rules.versions import Former
from kyanite.values import Instant, LeaseId

CheckLease = Callable[[Lease, LeaseId | None, Instant], Lease]


class NewBlob(Value, frozen=True):
    """A blob as a client sends it."""

    payload: bytes | tuple[Extent, ...]
    length: int
    http: HttpHeaders
    metadata: dict[str, str]
    tier: str = ""
    kind: int = BLOCK_BLOB
    sequence_number: int = 0
    tags: Tags = NO_TAGS
    protection: BlobProtection | None = None
    """The immutability policy and legal hold in the request."""


class Destination(Value, frozen=True):
    """Where the new blob goes, and what it keeps of the blob that it replaces."""

    old: StoredName
    lease: Lease
    created_at: Instant
    version_at: Instant | None
    """The version id of the new blob."""
    protection: BlobProtection | None
    """That of the new blob."""


def put(
    engine: Engine,
    blob: BlobKey,
    new_blob: NewBlob,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
) -> Awaitable[BlobRecord]:
    """Create the blob, or replace a blob of any kind. A lease that the request names stays in force."""

    def body(tx: Transaction) -> BlobRecord:
        target = prepare(
            tx,
            blob,
            access_conditions,
            may_overwrite=may_overwrite,
            makes=new_blob.kind,
            protection=new_blob.protection,
        )
        now = tx.now
        record = BlobRecord(
            modified_at=now,
            created_at=target.created_at,
            kind=new_blob.kind,
            length=new_blob.length,
            content=content.create(tx, new_blob.payload),
            http=new_blob.http,
            metadata=new_blob.metadata,
            lease=target.lease,
            tier=new_blob.tier,
            tier_changed_at=now if new_blob.tier else None,
            sequence_number=new_blob.sequence_number,
            version_at=target.version_at,
            tags=new_blob.tags,
            protection=target.protection,
        )
        rows.replace(tx, target.old, record)
        return record

    return engine.run(body, scope_of(blob))


def prepare(
    tx: Snapshot,
    blob: BlobKey,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
    makes: int = BLOCK_BLOB,
    kind: int | None = None,
    check_lease: CheckLease = leases.check_write,
    protection: BlobProtection | None = None,
) -> Destination:
    """Load what is stored under the name, or refuse the write.

    ``makes`` is the kind of the new blob, ``kind`` the kind that an existing blob must have. ``protection`` is the
    immutability policy and legal hold that the request asks for.
    """
    now = tx.now
    stored = rows.load_name(tx, blob)
    old, version_at = stored.record, None
    if stored.history is not None and stored.history.versioning:
        version_at = now
    is_plain = protection is None and stored.protection is None
    if old is None:
        preconditions.check_write(access_conditions.conditions, None, None, creates=True)
        leases.check_write(NO_LEASE, access_conditions.lease_id, now)
        if stored.history is not None:
            stored = rows.check_type(tx, stored, makes)
        return Destination(
            stored,
            NO_LEASE,
            now,
            version_at,
            None if is_plain else immutability.of_new_blob(stored.protection, protection, now),
        )
    if not may_overwrite:
        raise Refused(Reason.UNAUTHORIZED_BLOB_OVERWRITE)
    if kind is not None and old.kind != kind:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    if stored.history is not None:
        stored = rows.check_type(tx, stored, makes)
    preconditions.check_write(
        access_conditions.conditions,
        old.etag,
        old.modified_at,
        old.tags,
        creates=True,
        holds_lease=leases.holds(old.lease, access_conditions.lease_id, now),
    )
    lease = check_lease(old.lease, access_conditions.lease_id, now)
    check_online(tx, old)
    is_kept = stored.history is not None and stored.former is Former.VERSION
    if stored.protection is not None:
        check_mutable(tx, Change.OVERWRITE, stored.protection, old, keeps_version=is_kept)
    return Destination(
        stored,
        lease,
        now if is_kept else old.created_at,
        version_at,
        None if is_plain else immutability.of_new_blob(stored.protection, protection, now),
    )
