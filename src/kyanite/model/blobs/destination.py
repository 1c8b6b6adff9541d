"""Where a creating write goes: Put Blob, Put Block List and the copies make a blob, or put another in its place.

All of them ask the same of what is there: may it be overwritten, is it of the right kind, are the conditions met, whose
is the lease, is it archived. What they leave in place is the same too: the lease of who holds it, and the time of
creation.
"""

from collections.abc import Callable

import msgspec

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.blobs import container, staged_blocks
from kyanite.model.blobs.blob import AccessConditions, BlobKey, check_online
from kyanite.model.content import content
from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.records import BlobRecord, decode_blob, encode
from kyanite.rules import leases, preconditions
from kyanite.rules.leases import NO_LEASE, Lease
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, LeaseId

CheckLease = Callable[[Lease, LeaseId | None, Instant], Lease]


class Destination(msgspec.Struct, frozen=True, gc=False):
    key: bytes
    staging_key: bytes
    head: bytes | None
    """The stored head of the blob's staging area, if there is one."""
    content: Content
    """What is there now, and will be given up."""
    lease: Lease
    created_at: Instant

    def replace(self, tx: Transaction, record: BlobRecord) -> None:
        """Put the record there. The old content and whatever is staged are given up."""
        content.drop(tx, self.content)
        self.put(tx, record)

    def put(self, tx: Transaction, record: BlobRecord) -> None:
        """Put the record there, whose content has been made of the old one."""
        staged_blocks.abandon(tx, self.staging_key, self.head)
        tx.put(self.key, encode(record))


def prepare(
    tx: Transaction,
    blob: BlobKey,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
    kind: int | None = None,
    check_lease: CheckLease = leases.check_write,
) -> Destination:
    """Find the place, or refuse the write. ``kind`` is what a blob that is there already must be."""
    now = tx.now
    container_id = container.load(tx, blob.container).id
    key, staging_key = keys.blob(container_id, blob.name), keys.staging(container_id, blob.name)
    stored, head = tx.get_many((key, staging_key))
    if stored is None:
        preconditions.check_write(access_conditions.conditions, None, None, creates=True)
        leases.check_write(NO_LEASE, access_conditions.lease_id, now)
        return Destination(key, staging_key, head, NO_CONTENT, NO_LEASE, now)
    old = decode_blob(stored)
    if not may_overwrite:
        raise Refused(Reason.UNAUTHORIZED_BLOB_OVERWRITE)
    if kind is not None and old.kind != kind:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    preconditions.check_write(
        access_conditions.conditions,
        old.etag,
        old.modified_at,
        creates=True,
        holds_lease=leases.holds(old.lease, access_conditions.lease_id, now),
    )
    lease = check_lease(old.lease, access_conditions.lease_id, now)
    check_online(tx, old)
    return Destination(key, staging_key, head, old.content, lease, old.created_at)
