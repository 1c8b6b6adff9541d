"""Put Blob: a blob of any kind, written whole or created empty. Blobs made of blocks are in ``block_list.py``."""

from collections.abc import Awaitable

import msgspec

from kyanite.engine import keys
from kyanite.engine.api import Engine, Transaction
from kyanite.engine.extents import Extent
from kyanite.model import container, content, staging
from kyanite.model.blob import BlobKey, Guard, scope_of
from kyanite.model.records import BLOCK_BLOB, BlobRecord, HttpHeaders, decode_blob, encode
from kyanite.rules import leases, preconditions
from kyanite.rules.leases import NO_LEASE
from kyanite.rules.refusals import Reason, Refused


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A blob as a client wants it to be."""

    payload: bytes | tuple[Extent, ...]
    length: int
    http: HttpHeaders
    metadata: dict[str, str]
    tier: str = ""
    kind: int = BLOCK_BLOB
    sequence_number: int = 0


def put(
    engine: Engine, blob: BlobKey, draft: Draft, guard: Guard, *, may_overwrite: bool
) -> Awaitable[BlobRecord]:
    """Create the blob or replace it, of whatever kind it was; a lease that the writer holds goes on."""

    def body(tx: Transaction) -> BlobRecord:
        now = tx.now
        container_id = container.load(tx, blob.container).id
        key, staging_key = keys.blob(container_id, blob.name), keys.staging(container_id, blob.name)
        stored, head = tx.get_many((key, staging_key))
        lease, created_at = NO_LEASE, now
        if stored is None:
            preconditions.check_write(guard.conditions, None, None, creates=True)
            leases.check_write(NO_LEASE, guard.lease_id, now)
        else:
            old = decode_blob(stored)
            if not may_overwrite:
                raise Refused(Reason.UNAUTHORIZED_BLOB_OVERWRITE)
            holds_lease = leases.holds(old.lease, guard.lease_id, now)
            preconditions.check_write(
                guard.conditions, old.etag, old.modified_at, creates=True, holds_lease=holds_lease
            )
            lease, created_at = leases.check_write(old.lease, guard.lease_id, now), old.created_at
            content.drop(tx, old.content)
        staging.abandon(tx, staging_key, head)
        record = BlobRecord(
            modified_at=now,
            created_at=created_at,
            kind=draft.kind,
            length=draft.length,
            content=content.create(tx, draft.payload),
            http=draft.http,
            metadata=draft.metadata,
            lease=lease,
            tier=draft.tier,
            tier_changed_at=now if draft.tier else None,
            sequence_number=draft.sequence_number,
        )
        tx.put(key, encode(record))
        return record

    return engine.run(body, scope_of(blob))
