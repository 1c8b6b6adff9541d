"""Snapshots: a blob kept as it was at an instant. The instant names the snapshot."""

from collections.abc import Awaitable
from typing import NamedTuple

from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, check_mutable, check_online, scope_of
from kyanite.model.blobs.records import BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content import content
from kyanite.rules import leases, preconditions
from kyanite.rules.immutability import Change
from kyanite.rules.lease_records import NO_LEASE
from kyanite.values import Instant


class NewSnapshot(NamedTuple):
    at: Instant
    record: BlobRecord
    version_at: Instant | None
    """The version id of the base blob since."""


def take(
    engine: Engine, blob: BlobKey, metadata: dict[str, str], access_conditions: AccessConditions
) -> Awaitable[NewSnapshot]:
    """Keep the blob as it is now, sharing its content. A lease does not prevent it.

    A snapshot with metadata of its own gets an ETag of its own. Otherwise it has the ETag of the blob. It has the
    immutability policy and the legal hold that the blob has now. The blob itself does not change. But if the account
    keeps versions, it is a new version from now on, with the same ETag.
    """

    def body(tx: Transaction) -> NewSnapshot:
        stored, record = rows.load_base(tx, blob)
        preconditions.check_write(
            access_conditions.conditions, record.etag, record.modified_at, record.tags, creates=False
        )
        leases.check_read(record.lease, access_conditions.lease_id, tx.now)
        check_online(tx, record)
        if stored.protection is not None:
            check_mutable(tx, Change.SNAPSHOT, stored.protection, record)
        kept = replace(record, content=content.share(tx, record.content), lease=NO_LEASE, version_at=None)
        if metadata:
            kept = replace(kept, metadata=metadata, modified_at=tx.now)
        rows.add_snapshot(tx, stored.key, kept)
        if stored.history is not None:
            record = rows.revise(tx, stored, record)
        return NewSnapshot(tx.now, kept, record.version_at)

    return engine.run(body, scope_of(blob))
