"""Staged blocks: uploaded, and not yet part of a blob.

The blocks of a blob are in a staging area with an id of its own; its head is in ``rows.py``. Abandoning the area is a
small write however many blocks it has, and maintenance purges the blocks. An area expires a week after its last block.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Steps, Transaction
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import scope_of
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord, Staging
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content import content
from kyanite.model.content.content import Content
from kyanite.model.page import collected
from kyanite.model.records import encode
from kyanite.rules import leases
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import LeaseId

MAX_STAGED_BLOCKS = 100_000
_ID_AT = len(keys.staged_blocks(0))
_INTERVALS_DROPPED_MAX = 400
"""By one step of a purge. A large block has dozens of intervals."""


class StagedBlock(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored: fields are only ever added at the end."""

    content: Content
    length: int


decode_block: Callable[[bytes], StagedBlock] = msgspec.msgpack.Decoder(StagedBlock).decode


class NewBlock(msgspec.Struct, frozen=True):
    id: bytes
    payload: bytes | tuple[Extent, ...]
    length: int


def put_block(engine: Engine, blob: BlobKey, block: NewBlock, lease_id: LeaseId | None) -> Awaitable[None]:
    """Stage a block, or replace the staged block of the same id. The blob does not change, but its lease is checked."""

    def body(tx: Transaction) -> None:
        stored = rows.load_name(tx, blob)
        _check_base(tx, stored.record, lease_id)
        present = stored.staging(tx.now)
        staging = present or Staging(tx.new_id(), len(block.id), 0, tx.now)
        if staging.block_id_length != len(block.id):
            raise Refused(Reason.INVALID_BLOB_OR_BLOCK)
        key = keys.staged_block(staging.id, block.id)
        old = None if present is None else tx.get(key)
        if old is not None:
            content.drop(tx, decode_block(old).content)
        elif staging.count >= MAX_STAGED_BLOCKS:
            raise Refused(Reason.BLOCK_COUNT_EXCEEDS_LIMIT)
        staged = StagedBlock(content.create(tx, block.payload, tag=block.id), block.length)
        tx.put(key, encode(staged))
        count = staging.count + (old is None)
        rows.keep_deleted_base(tx, stored)
        rows.save_staging(tx, stored, replace(staging, count=count, last_at=tx.now))

    return engine.run(body, scope_of(blob))


def _check_base(tx: Transaction, base: BlobRecord | None, lease_id: LeaseId | None) -> None:
    if base is not None and base.kind != BLOCK_BLOB:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    leases.check_write(NO_LEASE if base is None else base.lease, lease_id, tx.now)


def collect(snap: Snapshot, staging: Staging) -> Steps[list[tuple[bytes, bytes]]]:
    """The rows of all staged blocks, in the order of their ids."""
    prefix = keys.staged_blocks(staging.id)
    return collected(snap.scan(prefix, keys.after(prefix), limit=MAX_STAGED_BLOCKS))


def id_in(key: bytes) -> bytes:
    """The id of the block, in the key of its row."""
    return key[_ID_AT:]


def load(snap: Snapshot, staging: Staging, ids: Sequence[bytes]) -> dict[bytes, StagedBlock]:
    """Those of these blocks that are staged."""
    found = snap.get_many([keys.staged_block(staging.id, block_id) for block_id in ids])
    return {
        block_id: decode_block(value) for block_id, value in zip(ids, found, strict=True) if value is not None
    }


def remove(tx: Transaction, staging: Staging | None, ids: Iterable[bytes]) -> dict[bytes, StagedBlock]:
    """Remove the staged blocks of these ids from their staging area. Their content goes to the caller."""
    if staging is None:
        return {}
    wanted = sorted(ids)
    block_keys = [keys.staged_block(staging.id, block_id) for block_id in wanted]
    found = {}
    for block_id, key, value in zip(wanted, block_keys, tx.get_many(block_keys), strict=True):
        if value is not None:
            found[block_id] = decode_block(value)
            tx.delete(key)
    return found


def purge(tx: Transaction, staging_id: int, *, limit: int) -> bool:
    """Delete some blocks of an abandoned staging area. False when there were none."""
    prefix = keys.staged_blocks(staging_id)
    some = list(tx.scan(prefix, keys.after(prefix), limit=limit))
    dropped = 0
    for key, value in some:
        block = decode_block(value).content
        dropped += len(block.intervals)
        if dropped > _INTERVALS_DROPPED_MAX and dropped > len(block.intervals):
            break
        content.drop(tx, block)
        tx.delete(key)
    return bool(some)
