"""Put Blob: a blob of any kind, written whole or created empty. Blobs made of blocks are in ``block_list.py``."""

from collections.abc import Awaitable

import msgspec

from kyanite.engine.api import Engine, Transaction
from kyanite.extents.api import Extent
from kyanite.model.blobs import destination
from kyanite.model.blobs.blob import AccessConditions, BlobKey, scope_of
from kyanite.model.content import content
from kyanite.model.records import BLOCK_BLOB, BlobRecord, HttpHeaders


class NewBlob(msgspec.Struct, frozen=True, gc=False):
    """A blob as a client wants it to be."""

    payload: bytes | tuple[Extent, ...]
    length: int
    http: HttpHeaders
    metadata: dict[str, str]
    tier: str = ""
    kind: int = BLOCK_BLOB
    sequence_number: int = 0


def put(
    engine: Engine,
    blob: BlobKey,
    new_blob: NewBlob,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
) -> Awaitable[BlobRecord]:
    """Create the blob or replace it, of whatever kind it was; a lease that the writer holds goes on."""

    def body(tx: Transaction) -> BlobRecord:
        target = destination.prepare(tx, blob, access_conditions, may_overwrite=may_overwrite)
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
        )
        target.replace(tx, record)
        return record

    return engine.run(body, scope_of(blob))
