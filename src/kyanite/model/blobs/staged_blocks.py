"""Staged blocks: uploaded, and not yet part of a blob.

The blocks of a blob gather in a staging area under an id of its own. Giving the area up is one small write, whatever
it holds; the rest is taken apart in the background. An area lives for a week after its last block.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.blobs import container
from kyanite.model.blobs.blob import BlobKey, scope_of
from kyanite.model.content import content
from kyanite.model.content.content import Content
from kyanite.model.records import BLOCK_BLOB, decode_blob, encode
from kyanite.rules import leases
from kyanite.rules.leases import NO_LEASE
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, LeaseId, later

MAX_STAGED_BLOCKS = 100_000
_LIFE_SECONDS = 7 * 24 * 3600


class Staging(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The head of a staging area."""

    id: int
    block_id_length: int
    count: int
    last_at: Instant

    def is_alive(self, now: Instant) -> bool:
        return now < later(self.last_at, _LIFE_SECONDS)


class StagedBlock(msgspec.Struct, array_like=True, frozen=True, gc=False):
    content: Content
    length: int


_decode_staging: Callable[[bytes], Staging] = msgspec.msgpack.Decoder(Staging).decode
decode_block: Callable[[bytes], StagedBlock] = msgspec.msgpack.Decoder(StagedBlock).decode


@dataclass(frozen=True, slots=True)
class NewBlock:
    id: bytes
    payload: bytes | tuple[Extent, ...]
    length: int


def put_block(engine: Engine, blob: BlobKey, block: NewBlock, lease_id: LeaseId | None) -> Awaitable[None]:
    """Stage a block in place of one of the same id. The blob itself is not changed, though its lease is asked."""

    def body(tx: Transaction) -> None:
        container_id = container.load(tx, blob.container).id
        base, head = tx.get_many([keys.blob(container_id, blob.name), keys.staging(container_id, blob.name)])
        _check_base(tx, base, lease_id)
        staging = load(tx, head) or Staging(tx.now, len(block.id), 0, tx.now)
        if staging.block_id_length != len(block.id):
            raise Refused(Reason.INVALID_BLOB_OR_BLOCK)
        key = keys.staged_block(staging.id, block.id)
        old = tx.get(key)
        if old is not None:
            content.drop(tx, decode_block(old).content)
        elif staging.count >= MAX_STAGED_BLOCKS:
            raise Refused(Reason.BLOCK_COUNT_EXCEEDS_LIMIT)
        staged = StagedBlock(content.create(tx, block.payload, tag=block.id), block.length)
        tx.put(key, encode(staged))
        count = staging.count + (old is None)
        staging = replace(staging, count=count, last_at=tx.now)
        tx.put(keys.staging(container_id, blob.name), encode(staging))

    return engine.run(body, scope_of(blob))


def _check_base(tx: Transaction, base: bytes | None, lease_id: LeaseId | None) -> None:
    if base is None:
        leases.check_write(NO_LEASE, lease_id, tx.now)
        return
    record = decode_blob(base)
    if record.kind != BLOCK_BLOB:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    leases.check_write(record.lease, lease_id, tx.now)


def load(snap: Snapshot, head: bytes | None) -> Staging | None:
    """The staging area whose stored head this is, unless there is none or its time is over."""
    if head is None:
        return None
    staging = _decode_staging(head)
    return staging if staging.is_alive(snap.now) else None


def blocks_of(snap: Snapshot, staging: Staging | None) -> Iterator[tuple[bytes, StagedBlock]]:
    """The staged blocks by their ids."""
    if staging is None:
        return
    prefix = keys.staged_blocks(staging.id)
    for key, value in snap.scan(prefix, keys.after(prefix)):
        yield key[len(prefix) :], decode_block(value)


def abandon(tx: Transaction, key: bytes, head: bytes | None) -> None:
    """Give up the staging area at this key: what it still holds is taken apart later."""
    if head is not None:
        tx.delete(key)
        tx.put(keys.abandoned_staging(_decode_staging(head).id), b"")
