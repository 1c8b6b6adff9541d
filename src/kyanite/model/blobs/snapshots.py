"""Snapshots: a blob kept as it was at an instant, which from then on names it."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model import keys
from kyanite.model.blobs import container
from kyanite.model.blobs.blob import AccessConditions, BlobKey, check_online, load, scope_of
from kyanite.model.content import content
from kyanite.model.records import BlobRecord, encode
from kyanite.rules import leases, preconditions
from kyanite.rules.leases import NO_LEASE
from kyanite.values import Instant


def take(
    engine: Engine, blob: BlobKey, metadata: dict[str, str], access_conditions: AccessConditions
) -> Awaitable[tuple[Instant, BlobRecord]]:
    """Keep the blob as it is now, sharing its content. The blob itself is not changed, nor is a lease in the way.

    A snapshot that is given metadata of its own is a version of its own; otherwise it has the blob's ETag.
    """

    def body(tx: Transaction) -> tuple[Instant, BlobRecord]:
        container_id = container.load(tx, blob.container).id
        record = load(tx, keys.blob(container_id, blob.name))
        preconditions.check_write(
            access_conditions.conditions, record.etag, record.modified_at, creates=False
        )
        leases.check_read(record.lease, access_conditions.lease_id, tx.now)
        check_online(tx, record)
        kept = replace(record, content=content.share(tx, record.content), lease=NO_LEASE)
        if metadata:
            kept = replace(kept, metadata=metadata, modified_at=tx.now)
        tx.put(keys.version(container_id, blob.name, tx.now), encode(kept))
        return tx.now, kept

    return engine.run(body, scope_of(blob))
