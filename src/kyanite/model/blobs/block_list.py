"""Block lists: Put Block List makes a blob of staged and committed blocks in one transaction, or refuses the list."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from enum import Enum

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model.blobs import rows, staged_blocks
from kyanite.model.blobs.blob import AccessConditions, scope_of
from kyanite.model.blobs.put import prepare
from kyanite.model.blobs.rows import BLOCK_BLOB, BlobKey, BlobRecord, Staging
from kyanite.model.content import blocks
from kyanite.model.content.blocks import Block
from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.records import HttpHeaders
from kyanite.rules import leases
from kyanite.rules.leases import NO_LEASE
from kyanite.rules.refusals import Reason, Refused


class From(Enum):
    """Where an entry of the list finds its block."""

    COMMITTED = "Committed"
    UNCOMMITTED = "Uncommitted"
    LATEST = "Latest"


@dataclass(frozen=True, slots=True)
class NewBlockList:
    entries: Sequence[tuple[From, bytes]]
    http: HttpHeaders
    metadata: dict[str, str]
    tier: str = ""


@dataclass(frozen=True, slots=True)
class BlockLists:
    """The ids and sizes of blocks. The record is None while nothing is committed."""

    record: BlobRecord | None
    committed: list[tuple[bytes, int]]
    uncommitted: list[tuple[bytes, int]]


def put_block_list(
    engine: Engine,
    blob: BlobKey,
    new_list: NewBlockList,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
) -> Awaitable[BlobRecord]:
    """Make the blob of exactly these blocks. Staged blocks that are not in the list are abandoned."""

    def body(tx: Transaction) -> BlobRecord:
        target = prepare(tx, blob, access_conditions, may_overwrite=may_overwrite, kind=BLOCK_BLOB)
        now, old = tx.now, target.old
        old_content = NO_CONTENT if old.record is None else old.record.content
        chosen = _choose(tx, old_content, old.staging(now), new_list.entries)
        composed = BlobRecord(
            modified_at=now,
            created_at=target.created_at,
            kind=BLOCK_BLOB,
            length=sum(block.length for block in chosen.blocks),
            content=blocks.compose(tx, old_content, chosen.staged, chosen.blocks),
            http=new_list.http,
            metadata=new_list.metadata,
            lease=target.lease,
            tier=new_list.tier,
            tier_changed_at=now if new_list.tier else None,
        )
        rows.replace(tx, old, composed, drops_content=False)
        return composed

    return engine.run(body, scope_of(blob))


@dataclass(slots=True)
class _Chosen:
    blocks: list[Block]
    staged: list[Content]
    """The contents of the staged blocks that are in the list. They are no longer staged."""


def _choose(
    tx: Transaction, old: Content, area: Staging | None, entries: Sequence[tuple[From, bytes]]
) -> _Chosen:
    """Find every block of the list, or refuse the list."""
    staged = staged_blocks.remove(tx, area, {tag for source, tag in entries if source is not From.COMMITTED})
    committed: dict[bytes, Block] = {}
    if any(source is From.COMMITTED or tag not in staged for source, tag in entries):
        committed = {block.tag: block for block in blocks.blocks_of(tx, old) if block.tag}
    chosen = _Chosen([], [block.content for block in staged.values()])
    fresh = {tag: Block(tag, block.content.intervals) for tag, block in staged.items()}
    for source, tag in entries:
        block = fresh.get(tag) if source is not From.COMMITTED else None
        if block is None and source is not From.UNCOMMITTED:
            block = committed.get(tag)
        if block is None:
            raise Refused(Reason.INVALID_BLOCK_LIST)
        chosen.blocks.append(block)
    return chosen


def get_block_list(
    engine: Engine, blob: BlobKey, access_conditions: AccessConditions
) -> Awaitable[BlockLists]:
    """The committed and the uncommitted blocks. A blob that has neither does not exist."""

    def body(snap: Snapshot) -> BlockLists:
        if blob.snapshot is not None:
            _, record = rows.load(snap, blob)
            return BlockLists(_block_blob(record), _committed(snap, record), [])
        stored = rows.load_name(snap, blob)
        area, found = stored.staging(snap.now), stored.record
        if found is None and area is None:
            raise Refused(Reason.BLOB_NOT_FOUND)
        if found is not None:
            _block_blob(found)
        leases.check_read(NO_LEASE if found is None else found.lease, access_conditions.lease_id, snap.now)
        uncommitted = [(tag, block.length) for tag, block in staged_blocks.blocks_of(snap, area)]
        return BlockLists(found, [] if found is None else _committed(snap, found), uncommitted)

    return engine.read(body)


def _block_blob(record: BlobRecord) -> BlobRecord:
    if record.kind != BLOCK_BLOB:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    return record


def _committed(snap: Snapshot, record: BlobRecord) -> list[tuple[bytes, int]]:
    return [(block.tag, block.length) for block in blocks.blocks_of(snap, record.content) if block.tag]
