"""Page blobs: pages of 512 bytes, written and cleared at any offset, and a sequence number that clients set."""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Steps, Transaction
from kyanite.extents.api import Extent
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, load_for_read, load_for_write, scope_of
from kyanite.model.blobs.records import PAGE_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content import content, ranges
from kyanite.model.content.content import Content
from kyanite.model.records import HttpHeaders
from kyanite.rules import preconditions, sequence_numbers
from kyanite.rules.immutability import Change
from kyanite.rules.refusals import Reason, Refused, TotalLength
from kyanite.rules.sequence_numbers import Change as SequenceChange
from kyanite.values import Instant

_HISTORY_MAX = 100
"""At most this many snapshots are read in a comparison. Those in between only show pages that were cleared since."""


class SequenceCondition(msgspec.Struct, frozen=True):
    le: int | None = None
    lt: int | None = None
    eq: int | None = None


class PageWrite(msgspec.Struct, frozen=True):
    offset: int
    length: int
    payload: bytes | tuple[Extent, ...] | None
    """None to clear the range."""
    sequence: SequenceCondition = SequenceCondition()


class PageBlobChange(msgspec.Struct, frozen=True):
    """What Set Blob Properties changes of a page blob. A field that is None stays as it is."""

    http: HttpHeaders | None = None
    length: int | None = None
    sequence: SequenceChange | None = None


class PageRanges(msgspec.Struct, frozen=True):
    record: BlobRecord
    page: ranges.RangePage


def write(
    engine: Engine, blob: BlobKey, request: PageWrite, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions, Change.WRITE_PAGES, kind=PAGE_BLOB)
        wanted = request.sequence
        preconditions.check_sequence_number(record.sequence_number, le=wanted.le, lt=wanted.lt, eq=wanted.eq)
        if request.offset + request.length > record.length:
            raise Refused(Reason.INVALID_PAGE_RANGE)
        written = replace(record, modified_at=tx.now, content=_written(tx, record.content, request))
        rows.save(tx, key, written)
        return written

    return engine.run(body, scope_of(blob))


def _written(tx: Transaction, old: Content, request: PageWrite) -> Content:
    if request.payload is None:
        return content.clear(tx, old, request.offset, request.length)
    return content.write(tx, old, request.offset, request.payload)


def change(
    engine: Engine, blob: BlobKey, request: PageBlobChange, access_conditions: AccessConditions
) -> Awaitable[BlobRecord]:
    """Resize the blob, change its sequence number, or both. Bytes that are added read as zeros."""

    what = Change.SET_PROPERTIES if request.length is None else Change.WRITE_PAGES

    def body(tx: Transaction) -> BlobRecord:
        key, record = load_for_write(tx, blob, access_conditions, what, kind=PAGE_BLOB)
        changed = replace(record, modified_at=tx.now)
        if request.http is not None:
            changed = replace(changed, http=request.http)
        if request.sequence is not None:
            number = sequence_numbers.apply(record.sequence_number, request.sequence)
            changed = replace(changed, sequence_number=number)
        if request.length is not None:
            kept = record.content
            if request.length < record.length:
                kept = content.truncate(tx, kept, request.length)
            changed = replace(changed, length=request.length, content=kept)
        rows.save(tx, key, changed)
        return changed

    return engine.run(body, scope_of(blob))


def page_ranges(
    engine: Engine,
    blob: BlobKey,
    access_conditions: AccessConditions,
    *,
    first: int,
    last: int | None,
    limit: int,
    since: Instant | None = None,
) -> Awaitable[PageRanges]:
    """Which pages hold data, from byte ``first`` to byte ``last``; or which have changed ``since`` a snapshot."""

    def body(snap: Snapshot) -> Steps[PageRanges]:
        record = load_for_read(snap, blob, access_conditions)
        if record.kind != PAGE_BLOB:
            raise Refused(Reason.INVALID_BLOB_TYPE)
        if first and first >= record.length:
            raise Refused(Reason.INVALID_RANGE, TotalLength(record.length))
        end = record.length if last is None else min(last + 1, record.length)
        if since is None:
            page = yield from ranges.data_ranges(snap, record.content, first, end, limit=limit)
            return PageRanges(record, page)
        versions = [*_load_history(snap, blob, since), record.content]
        page = yield from ranges.changed_ranges(snap, versions, first, end, limit=limit)
        return PageRanges(record, page)

    return engine.read_in_steps(body)


def _load_history(snap: Snapshot, blob: BlobKey, since: Instant) -> list[Content]:
    """The content of the snapshot and of the next ones after it: pages that only they hold were cleared later."""
    if blob.snapshot is not None and since > blob.snapshot:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NEWER)
    found = rows.snapshots_from(snap, blob, since, limit=_HISTORY_MAX)
    if not found:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NOT_FOUND)
    return [record.content for record in found]
