"""Block lists: Put Block List makes a blob of staged and committed blocks, or refuses the list.

A short list is one transaction. A long one would keep the write lock and the loop for too long, so it is prepared
(``long_block_list.py``) and made visible by one small transaction. Either way it is there entirely or not at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot, Steps, Transaction
from kyanite.model.blobs import rows, staged_blocks
from kyanite.model.blobs.blob import AccessConditions, scope_of
from kyanite.model.blobs.put import Destination, prepare
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord, Staging
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content import blocks, content
from kyanite.model.content.blocks import Block
from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.page import Decoded
from kyanite.model.records import HttpHeaders
from kyanite.rules import leases, preconditions
from kyanite.rules.immutability import BlobProtection
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.rules.versions import KEPT
from kyanite.values import Instant

ENTRIES_AT_ONCE = 300
"""A list of up to so many entries is committed by one transaction, unless its blocks or the present ones are many."""

_INTERVALS_AT_ONCE = 500
_BLOCKS_PER_STEP = 250


class From(Enum):
    """Where an entry of the list finds its block."""

    COMMITTED = "Committed"
    UNCOMMITTED = "Uncommitted"
    LATEST = "Latest"


class NewBlockList(msgspec.Struct, frozen=True):
    entries: list[tuple[From, bytes]]
    http: HttpHeaders
    metadata: dict[str, str]
    tier: str = ""
    tags: Tags = NO_TAGS
    protection: BlobProtection | None = None
    """The immutability policy and legal hold in the request."""


class ListedBlock(NamedTuple):
    id: bytes
    length: int


class BlockLists(msgspec.Struct, frozen=True):
    """The blocks of a blob. The record is None while nothing is committed."""

    record: BlobRecord | None
    committed: list[ListedBlock]
    uncommitted: Decoded[ListedBlock]


class ListTooLong(Exception):
    """Too long for one transaction."""


def put_short_list(
    engine: Engine,
    blob: BlobKey,
    new_list: NewBlockList,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
) -> Awaitable[BlobRecord]:
    """Make the blob of exactly these blocks. Staged blocks that are not in the list are abandoned.

    Raises ListTooLong.
    """

    def body(tx: Transaction) -> BlobRecord:
        if len(new_list.entries) > ENTRIES_AT_ONCE:
            raise ListTooLong
        target = prepare(
            tx,
            blob,
            access_conditions,
            may_overwrite=may_overwrite,
            kind=BLOCK_BLOB,
            protection=new_list.protection,
        )
        now, old = tx.now, target.old
        old_content = NO_CONTENT if old.record is None else old.record.content
        if old.history is not None and old.former in KEPT:
            old_content = content.share(tx, old_content)
        chosen = _choose(tx, old_content, old.staging(now), new_list.entries)
        composed = blocks.compose(tx, old_content, chosen.staged, chosen.blocks)
        record = new_record(new_list, target, composed, chosen.length, now)
        rows.replace(tx, old, record, drops_content=False)
        return record

    return engine.run(body, scope_of(blob))


def new_record(
    new_list: NewBlockList, target: Destination, composed: Content, length: int, now: Instant
) -> BlobRecord:
    return BlobRecord(
        modified_at=now,
        created_at=target.created_at,
        kind=BLOCK_BLOB,
        length=length,
        content=composed,
        http=new_list.http,
        metadata=new_list.metadata,
        lease=target.lease,
        tier=new_list.tier,
        tier_changed_at=now if new_list.tier else None,
        version_at=target.version_at,
        tags=new_list.tags,
        protection=target.protection,
    )


class _Chosen(NamedTuple):
    blocks: list[Block]
    staged: list[Content]
    """The contents of the staged blocks that are in the list. They are no longer staged."""
    length: int


def _choose(
    tx: Transaction, old: Content, area: Staging | None, entries: Sequence[tuple[From, bytes]]
) -> _Chosen:
    """Find every block of the list, or refuse the list."""
    staged = staged_blocks.remove(tx, area, {tag for source, tag in entries if source is not From.COMMITTED})
    committed: dict[bytes, Block] = {}
    if any(source is From.COMMITTED or tag not in staged for source, tag in entries):
        committed = _few_blocks(tx, old)
    fresh = {tag: Block(tag, block.content.intervals) for tag, block in staged.items()}
    chosen = choose(entries, fresh, committed)
    lengths = [interval.length for block in chosen for interval in block.intervals]
    if len(lengths) > _INTERVALS_AT_ONCE:
        raise ListTooLong
    return _Chosen(chosen, [block.content for block in staged.values()], sum(lengths))


def choose(
    entries: Sequence[tuple[From, bytes]], staged: Mapping[bytes, Block], committed: Mapping[bytes, Block]
) -> list[Block]:
    """The blocks that these entries mean, or a refusal."""
    chosen: list[Block] = []
    for source, tag in entries:
        block = staged.get(tag) if source is not From.COMMITTED else None
        if block is None and source is not From.UNCOMMITTED:
            block = committed.get(tag)
        if block is None:
            raise Refused(Reason.INVALID_BLOCK_LIST)
        chosen.append(block)
    return chosen


def _few_blocks(tx: Transaction, old: Content) -> dict[bytes, Block]:
    """The committed blocks, if they are few."""
    found = list(islice(blocks.blocks_of(tx, old), _INTERVALS_AT_ONCE + 1))
    if sum(len(block.intervals) for block in found) > _INTERVALS_AT_ONCE:
        raise ListTooLong
    return {block.tag: block for block in found if block.tag}


def get_block_list(
    engine: Engine,
    blob: BlobKey,
    access_conditions: AccessConditions,
    *,
    committed: bool = True,
    uncommitted: bool = True,
) -> Awaitable[BlockLists]:
    """The committed and the uncommitted blocks, as far as wanted. A blob that has neither does not exist."""

    def body(snap: Snapshot) -> Steps[BlockLists]:
        if blob.snapshot is not None or blob.version is not None:
            _, record = rows.load(snap, blob)
            preconditions.check_tags(access_conditions.conditions, record.tags)
            return BlockLists(_block_blob(record), (yield from _committed(snap, record)), _NONE_STAGED)
        stored = rows.load_name(snap, blob)
        area, found = stored.staging(snap.now), stored.record
        if found is None and area is None:
            raise Refused(Reason.BLOB_NOT_FOUND)
        if found is not None:
            _block_blob(found)
        preconditions.check_tags(access_conditions.conditions, NO_TAGS if found is None else found.tags)
        leases.check_read(NO_LEASE if found is None else found.lease, access_conditions.lease_id, snap.now)
        blocks_of_blob: list[ListedBlock] = []
        staged = _NONE_STAGED
        if committed and found is not None:
            blocks_of_blob = yield from _committed(snap, found)
        if uncommitted and area is not None:
            staged = Decoded((yield from staged_blocks.collect(snap, area)), _staged)
        return BlockLists(found, blocks_of_blob, staged)

    return engine.read_in_steps(body)


def _block_blob(record: BlobRecord) -> BlobRecord:
    if record.kind != BLOCK_BLOB:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    return record


def _committed(snap: Snapshot, record: BlobRecord) -> Steps[list[ListedBlock]]:
    found: list[ListedBlock] = []
    for count, block in enumerate(blocks.blocks_of(snap, record.content), 1):
        if block.tag:
            found.append(ListedBlock(block.tag, block.length))
        if count % _BLOCKS_PER_STEP == 0:
            yield
    return found


def _staged(some: Sequence[tuple[bytes, bytes]]) -> list[ListedBlock]:
    return [
        ListedBlock(staged_blocks.id_in(key), staged_blocks.decode_block(value).length) for key, value in some
    ]


_NONE_STAGED: Decoded[ListedBlock] = Decoded([], _staged)
