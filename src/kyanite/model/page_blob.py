"""Page blobs: pages of 512 bytes, written and cleared anywhere, and a sequence number of the client's own."""

from collections.abc import Awaitable
from dataclasses import dataclass

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.engine.extents import Extent
from kyanite.model import content, ranges
from kyanite.model.blob import BlobKey, Guard, key_of, load, load_for_read, load_for_write, scope_of
from kyanite.model.content import Content
from kyanite.model.records import PAGE_BLOB, BlobRecord, HttpHeaders, encode
from kyanite.rules import preconditions, sequence_numbers
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.sequence_numbers import Change
from kyanite.values import Instant


@dataclass(frozen=True, slots=True)
class SequenceCondition:
    le: int | None = None
    lt: int | None = None
    eq: int | None = None


@dataclass(frozen=True, slots=True)
class PageWrite:
    offset: int
    length: int
    payload: bytes | tuple[Extent, ...] | None
    """None to clear the range."""
    sequence: SequenceCondition = SequenceCondition()


@dataclass(frozen=True, slots=True)
class PageBlobChange:
    """What Set Blob Properties may change of a page blob; None is left as it is."""

    http: HttpHeaders | None = None
    length: int | None = None
    sequence: Change | None = None


@dataclass(frozen=True, slots=True)
class PageRanges:
    record: BlobRecord
    page: ranges.Page


def write(engine: Engine, blob: BlobKey, ask: PageWrite, guard: Guard) -> Awaitable[BlobRecord]:
    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, guard, kind=PAGE_BLOB)
        wanted = ask.sequence
        preconditions.check_sequence_number(record.sequence_number, le=wanted.le, lt=wanted.lt, eq=wanted.eq)
        if ask.offset + ask.length > record.length:
            raise Refused(Reason.INVALID_PAGE_RANGE)
        written = replace(record, modified_at=tx.now, content=_written(tx, record.content, ask))
        tx.put(key, encode(written))
        return written

    return engine.run(body, scope_of(blob))


def _written(tx: Transaction, old: Content, ask: PageWrite) -> Content:
    if ask.payload is None:
        return content.clear(tx, old, ask.offset, ask.length)
    return content.write(tx, old, ask.offset, ask.payload)


def change(engine: Engine, blob: BlobKey, ask: PageBlobChange, guard: Guard) -> Awaitable[BlobRecord]:
    """Resize the blob, change its sequence number, or both. What a blob grows by reads as zeros."""

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, guard, kind=PAGE_BLOB)
        changed = replace(record, modified_at=tx.now)
        if ask.http is not None:
            changed = replace(changed, http=ask.http)
        if ask.sequence is not None:
            number = sequence_numbers.apply(record.sequence_number, ask.sequence)
            changed = replace(changed, sequence_number=number)
        if ask.length is not None:
            kept = record.content
            if ask.length < record.length:
                kept = content.truncate(tx, kept, ask.length)
            changed = replace(changed, length=ask.length, content=kept)
        tx.put(key, encode(changed))
        return changed

    return engine.run(body, scope_of(blob))


def page_ranges(
    engine: Engine,
    blob: BlobKey,
    guard: Guard,
    *,
    first: int,
    last: int | None,
    limit: int,
    since: Instant | None = None,
) -> Awaitable[PageRanges]:
    """Which pages hold data, from byte ``first`` to byte ``last``; or what has changed there ``since`` a snapshot."""

    def body(snap: Snapshot) -> PageRanges:
        record = load_for_read(snap, blob, guard)
        if record.kind != PAGE_BLOB:
            raise Refused(Reason.INVALID_BLOB_TYPE)
        if first and first >= record.length:
            raise Refused(Reason.INVALID_RANGE, **{"Content-Range": f"bytes */{record.length}"})
        end = record.length if last is None else min(last + 1, record.length)
        if since is None:
            return PageRanges(record, ranges.data_ranges(snap, record.content, first, end, limit=limit))
        old = _load_previous(snap, blob, since)
        return PageRanges(record, ranges.changed_ranges(snap, (old, record.content), first, end, limit=limit))

    return engine.read(body)


def _load_previous(snap: Snapshot, blob: BlobKey, since: Instant) -> Content:
    if blob.snapshot is not None and since > blob.snapshot:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NEWER)
    try:
        return load(snap, key_of(snap, replace(blob, snapshot=since))).content
    except Refused:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NOT_FOUND) from None
