"""Append blobs: blocks are added at the end, one after the other, and each writer is told where its block went."""

from collections.abc import Awaitable
from dataclasses import dataclass

from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.extents.api import Extent
from kyanite.model.blobs.blob import AccessConditions, BlobKey, load_for_write, scope_of
from kyanite.model.content import content
from kyanite.model.records import APPEND_BLOB, BlobRecord, encode
from kyanite.rules import preconditions
from kyanite.rules.refusals import Reason, Refused

MAX_BLOCKS = 50_000


@dataclass(frozen=True, slots=True)
class NewAppendBlock:
    payload: bytes | tuple[Extent, ...]
    length: int
    position: int | None = None
    """Where the block must go, if the client says so."""
    max_size: int | None = None
    """How long the blob may become at the most."""


def append_block(
    engine: Engine, blob: BlobKey, block: NewAppendBlock, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    """Add the block. It begins where the blob ended: at the new length less that of the block."""

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions, kind=APPEND_BLOB)
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
        tx.put(key, encode(grown))
        return grown

    return engine.run(body, scope_of(blob))


def seal(
    engine: Engine, blob: BlobKey, position: int | None, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    """Let nothing more be appended, ever; ``position`` is how long the blob must be, if the client says so.

    Its properties can still be changed. To seal what is sealed changes nothing.
    """

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions, kind=APPEND_BLOB)
        preconditions.check_append(record.length, 0, position=position, max_size=None)
        if record.is_sealed:
            return record
        sealed = replace(record, modified_at=tx.now, is_sealed=True)
        tx.put(key, encode(sealed))
        return sealed

    return engine.run(body, scope_of(blob))
