"""Append blobs: each block is added at the end, and its writer learns the offset."""

from collections.abc import Awaitable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.extents.api import Extent
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, load_for_write, scope_of
from kyanite.model.blobs.records import APPEND_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content import content
from kyanite.rules import preconditions
from kyanite.rules.immutability import Change
from kyanite.rules.refusals import Reason, Refused

MAX_BLOCKS = 50_000


class NewAppendBlock(msgspec.Struct, frozen=True):
    payload: bytes | tuple[Extent, ...]
    length: int
    position: int | None = None
    """The offset that the block must have, if the request says so."""
    max_size: int | None = None
    """The longest that the blob may become, if the request says so."""


def append_block(
    engine: Engine, blob: BlobKey, block: NewAppendBlock, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    """Add the block. Its offset is the new length of the blob less the length of the block."""

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions, Change.APPEND, kind=APPEND_BLOB)
        if record.is_sealed:
            raise Refused(Reason.BLOB_IS_SEALED)
        preconditions.check_append(
            record.length, block.length, position=block.position, max_size=block.max_size
        )
        if record.appended >= MAX_BLOCKS:
            raise Refused(Reason.BLOCK_COUNT_EXCEEDS_LIMIT)
        grown = replace(
            record,
            modified_at=tx.now,
            length=record.length + block.length,
            appended=record.appended + 1,
            content=content.write(tx, record.content, record.length, block.payload),
        )
        rows.save(tx, key, grown)
        return grown

    return engine.run(body, scope_of(blob))


def seal(
    engine: Engine, blob: BlobKey, position: int | None, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    """Refuse further blocks for ever. ``position`` is the length that the blob must have, if the request says so.

    Its properties can still be changed. Sealing a sealed blob changes nothing.
    """

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions, Change.SEAL, kind=APPEND_BLOB)
        preconditions.check_append(record.length, 0, position=position, max_size=None)
        if record.is_sealed:
            return record
        sealed = replace(record, modified_at=tx.now, is_sealed=True)
        rows.save(tx, key, sealed)
        return sealed

    return engine.run(body, scope_of(blob))
