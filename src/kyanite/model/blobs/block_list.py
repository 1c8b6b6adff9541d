"""Block lists: a blob made of staged and committed blocks, in one step and entirely or not at all."""

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import container, destination, staged_blocks
from kyanite.model.blobs.blob import AccessConditions, BlobKey, load, scope_of
from kyanite.model.blobs.staged_blocks import StagedBlock, Staging
from kyanite.model.content import blocks
from kyanite.model.content.blocks import Block
from kyanite.model.content.content import Content
from kyanite.model.records import BLOCK_BLOB, BlobRecord, HttpHeaders, decode_blob
from kyanite.rules import leases
from kyanite.rules.leases import NO_LEASE
from kyanite.rules.refusals import Reason, Refused


class From(Enum):
    """Where a block of the list is to be looked for."""

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
    """What Get Block List tells: ids and sizes. The record is None while nothing is committed."""

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
    """The blob becomes exactly this list; every staged block that is not in it is dropped."""

    def body(tx: Transaction) -> BlobRecord:
        target = destination.prepare(
            tx, blob, access_conditions, may_overwrite=may_overwrite, kind=BLOCK_BLOB
        )
        chosen = _choose(tx, target.content, staged_blocks.load(tx, target.head), new_list.entries)
        now = tx.now
        composed = BlobRecord(
            modified_at=now,
            created_at=target.created_at,
            kind=BLOCK_BLOB,
            length=sum(block.length for block in chosen.blocks),
            content=blocks.compose(tx, target.content, chosen.staged, chosen.blocks),
            http=new_list.http,
            metadata=new_list.metadata,
            lease=target.lease,
            tier=new_list.tier,
            tier_changed_at=now if new_list.tier else None,
        )
        target.put(tx, composed)
        return composed

    return engine.run(body, scope_of(blob))


@dataclass(slots=True)
class _Chosen:
    blocks: list[Block]
    staged: list[Content]
    """The staged contents that went into the list, and so are no longer staged."""


def _choose(
    tx: Transaction, old: Content, area: Staging | None, entries: Sequence[tuple[From, bytes]]
) -> _Chosen:
    """Find every block of the list, or refuse the list as a whole."""
    staged = _take_staged(tx, area, {tag for source, tag in entries if source is not From.COMMITTED})
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


def _take_staged(tx: Transaction, area: Staging | None, tags: Iterable[bytes]) -> dict[bytes, StagedBlock]:
    """The staged blocks of these ids, taken out of their staging area."""
    if area is None:
        return {}
    wanted = sorted(tags)
    rows = [keys.staged_block(area.id, tag) for tag in wanted]
    found = {}
    for tag, row, value in zip(wanted, rows, tx.get_many(rows), strict=True):
        if value is not None:
            found[tag] = staged_blocks.decode_block(value)
            tx.delete(row)
    return found


def see(engine: Engine, blob: BlobKey, access_conditions: AccessConditions) -> Awaitable[BlockLists]:
    """The committed and the uncommitted blocks. A blob that has neither does not exist."""

    def body(snap: Snapshot) -> BlockLists:
        container_id = container.load(snap, blob.container).id
        if blob.snapshot is not None:
            record = load(snap, keys.version(container_id, blob.name, blob.snapshot))
            return BlockLists(_block_blob(record), _committed(snap, record), [])
        stored, head = snap.get_many(
            [keys.blob(container_id, blob.name), keys.staging(container_id, blob.name)]
        )
        area = staged_blocks.load(snap, head)
        if stored is None and area is None:
            raise Refused(Reason.BLOB_NOT_FOUND)
        found = None if stored is None else _block_blob(decode_blob(stored))
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
