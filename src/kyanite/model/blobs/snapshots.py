"""Snapshots: a blob kept as it was at an instant. The instant names the snapshot."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, check_mutable, check_online, scope_of
from kyanite.model.blobs.records import BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content import content
from kyanite.rules import leases, preconditions
from kyanite.rules.immutability import Change
from kyanite.rules.leases import NO_LEASE
from kyanite.values import Instant


def take(
    engine: Engine, blob: BlobKey, metadata: dict[str, str], access_conditions: AccessConditions
) -> Awaitable[tuple[Instant, BlobRecord]]:
    """Keep the blob as it is now, sharing its content. The blob does not change, and a lease does not prevent it.

    A snapshot with metadata of its own gets an ETag of its own. Otherwise it has the ETag of the blob. It has the
    immutability policy and the legal hold that the blob has now.
    """

    def body(tx: Transaction) -> tuple[Instant, BlobRecord]:
        found, key, record = rows.load_with_container(tx, blob)
        preconditions.check_write(
            access_conditions.conditions, record.etag, record.modified_at, record.tags, creates=False
        )
        leases.check_read(record.lease, access_conditions.lease_id, tx.now)
        check_online(tx, record)
        if found.protection is not None:
            check_mutable(tx, Change.SNAPSHOT, found.protection, record)
        kept = replace(record, content=content.share(tx, record.content), lease=NO_LEASE)
        if metadata:
            kept = replace(kept, metadata=metadata, modified_at=tx.now)
        rows.add_snapshot(tx, key, kept)
        return tx.now, kept

    return engine.run(body, scope_of(blob))
