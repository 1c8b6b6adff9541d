"""The tags of a blob, a snapshot or a version: Get and Set Blob Tags."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, scope_of
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules import leases, preconditions
from kyanite.rules.tags import Tags


def get(engine: Engine, blob: BlobKey, access_conditions: AccessConditions) -> Awaitable[Tags]:
    """A lease does not prevent it, and neither does the Archive tier: tags are no content."""

    def body(snap: Snapshot) -> Tags:
        _, record = rows.load(snap, blob)
        preconditions.check_tags_read(
            access_conditions.conditions, record.etag, record.modified_at, record.tags
        )
        if not record.is_previous:
            leases.check_read(record.lease, access_conditions.lease_id, snap.now)
        return record.tags

    return engine.read(body)


def set_tags(
    engine: Engine, blob: BlobKey, tags: Tags, access_conditions: AccessConditions
) -> Awaitable[None]:
    """Replace all tags. ETag and Last-Modified stay, and an archived blob can be tagged. A lease has to be named."""

    def body(tx: Transaction) -> None:
        key, record = rows.load(tx, blob)
        preconditions.check_write(
            access_conditions.conditions, record.etag, record.modified_at, record.tags, creates=False
        )
        lease = record.lease
        if not record.is_previous:
            lease = leases.check_write(lease, access_conditions.lease_id, tx.now)
        rows.save_tags(tx, blob, key, replace(record, lease=lease, tags=tags), before=record.tags)

    return engine.run(body, scope_of(blob))
