"""Put Blob: a blob of any kind, written whole or created empty. Blobs made of blocks are in ``block_list.py``."""

from collections.abc import Awaitable

import msgspec

from kyanite.engine.api import Engine, Transaction
from kyanite.extents.api import Extent
from kyanite.model.blobs import destination
from kyanite.model.blobs.blob import BlobKey, Guard, scope_of
from kyanite.model.content import content
from kyanite.model.records import BLOCK_BLOB, BlobRecord, HttpHeaders


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
        place = destination.prepare(tx, blob, guard, may_overwrite=may_overwrite)
        now = tx.now
        record = BlobRecord(
            modified_at=now,
            created_at=place.created_at,
            kind=draft.kind,
            length=draft.length,
            content=content.create(tx, draft.payload),
            http=draft.http,
            metadata=draft.metadata,
            lease=place.lease,
            tier=draft.tier,
            tier_changed_at=now if draft.tier else None,
            sequence_number=draft.sequence_number,
        )
        place.replace(tx, record)
        return record

    return engine.run(body, scope_of(blob))
