"""Copying into blobs, from blobs and files of the same store: by reference and in one transaction.

So a copy is complete when its request is answered. A source in another store is read first, as it is at one moment, and
its bytes are stored here (``Streamed``).
"""

from collections.abc import Awaitable

import msgspec
from msgspec.structs import astuple, replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import copy_sources
from kyanite.model.blobs import rows
from kyanite.model.blobs.blob import AccessConditions, scope_of, with_tiering
from kyanite.model.blobs.put import prepare
from kyanite.model.blobs.records import APPEND_BLOB, BLOCK_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content import content, spread
from kyanite.model.content.content import Content
from kyanite.model.content.intervals import ENDLESS
from kyanite.model.content.spread import NewContent
from kyanite.model.copy_sources import CheckSource, SourceKey
from kyanite.model.records import CopyState, HttpHeaders
from kyanite.rules import leases, preconditions, tiers
from kyanite.rules.immutability import BlobProtection
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.values import LeaseId


class CopyRequest(msgspec.Struct, frozen=True):
    source: SourceKey
    source_url: str
    """As the properties of the copy return it."""
    source_conditions: Conditions
    copy_id: str
    metadata: dict[str, str]
    """Replaces the source's metadata; empty keeps the source's."""
    tier: str = ""
    rehydrate_priority: str = ""
    source_lease_id: LeaseId | None = None
    """The lease that the source must have, if the request says so."""
    seals: bool | None = None
    """Whether the copy of an append blob is sealed; None for the same as the source."""
    is_synchronous: bool = False
    """A synchronous copy reads its source by URL, and its target may have a lease of limited duration. An asynchronous
    copy needs an infinite lease, because it could outlast any other."""
    max_length: int = ENDLESS
    """The largest source that is copied."""
    tags: Tags | None = NO_TAGS
    """The tags of the copy; None for those of the source."""
    protection: BlobProtection | None = None
    """The immutability policy and legal hold in the request. Those of the source are not copied."""


class PutFromRequest(msgspec.Struct, frozen=True):
    """Put Blob From URL: a new block blob with the bytes of another blob or file."""

    source: SourceKey
    source_conditions: Conditions
    http: HttpHeaders
    """The headers in the request. An empty one is taken from the source, if ``copies_headers``."""
    copies_headers: bool
    metadata: dict[str, str]
    """Replaces the source's metadata; empty keeps the source's."""
    tier: str = ""
    max_length: int = ENDLESS
    tags: Tags | None = NO_TAGS
    """The tags of the new blob; None for those of the source."""


class Streamed(msgspec.Struct, frozen=True):
    """A source in another store: its record, and its bytes, which are in this one now."""

    record: BlobRecord
    content: NewContent


def load_source(snap: Snapshot, request: CopyRequest, blob: BlobKey) -> BlobRecord:
    """The source of a copy onto this blob. Refused when it cannot be read, or a condition on it fails."""
    check_source = preconditions.check_source_read if request.is_synchronous else preconditions.check_source
    may_be_archived = not request.is_synchronous and _is_in_account(request.source, blob.container.account)
    source = _load(snap, request, check_source, may_be_archived=may_be_archived)
    if not source.is_previous:
        leases.check_read(source.lease, request.source_lease_id, snap.now)
    return source


def copy(
    engine: Engine,
    blob: BlobKey,
    request: CopyRequest,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
    streamed: Streamed | None = None,
) -> Awaitable[BlobRecord]:
    check_lease = leases.check_write if request.is_synchronous else leases.check_copy_onto

    def body(tx: Transaction) -> BlobRecord:
        source = load_source(tx, request, blob) if streamed is None else streamed.record
        if request.tier and source.kind != BLOCK_BLOB:
            raise Refused(Reason.TIER_NOT_SUPPORTED)
        if request.seals and source.kind != APPEND_BLOB:
            raise Refused(Reason.INVALID_BLOB_TYPE)
        target = prepare(
            tx,
            blob,
            access_conditions,
            may_overwrite=may_overwrite,
            makes=source.kind,
            kind=source.kind,
            check_lease=check_lease,
            protection=request.protection,
        )
        now = tx.now
        shared = replace(
            source,
            modified_at=now,
            created_at=target.created_at,
            content=_content_of(tx, source, streamed),
            metadata=request.metadata or source.metadata,
            lease=target.lease,
            copy=CopyState(request.copy_id, request.source_url, now, source.length),
            is_sealed=source.is_sealed if request.seals is None else request.seals,
            version_at=target.version_at,
            is_previous=False,
            tags=source.tags if request.tags is None else request.tags,
            protection=target.protection,
        )
        tiering = tiers.copied(source.tiering, request.tier, request.rehydrate_priority, now)
        record = with_tiering(shared, tiering)
        rows.replace(tx, target.old, record)
        return record

    return engine.run(body, scope_of(blob))


def _content_of(tx: Transaction, source: BlobRecord, streamed: Streamed | None) -> Content:
    if streamed is not None:
        return spread.create(tx, streamed.content)
    if source.kind == BLOCK_BLOB:
        return content.share_to_end(tx, source.content, source.length)
    return content.share(tx, source.content)


def put_from(
    engine: Engine,
    blob: BlobKey,
    request: PutFromRequest,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
) -> Awaitable[BlobRecord]:
    """Create a block blob from a source, or replace a blob of any kind."""

    def body(tx: Transaction) -> BlobRecord:
        source = _load(tx, request, preconditions.check_source_read)
        target = prepare(tx, blob, access_conditions, may_overwrite=may_overwrite)
        now = tx.now
        record = BlobRecord(
            modified_at=now,
            created_at=target.created_at,
            kind=BLOCK_BLOB,
            length=source.length,
            content=content.share_to_end(tx, source.content, source.length),
            http=headers_of_copy(request, source),
            metadata=request.metadata or source.metadata,
            lease=target.lease,
            tier=request.tier,
            tier_changed_at=now if request.tier else None,
            version_at=target.version_at,
            tags=source.tags if request.tags is None else request.tags,
            protection=target.protection,
        )
        rows.replace(tx, target.old, record)
        return record

    return engine.run(body, scope_of(blob))


_DEFAULT_HEADERS = HttpHeaders(content_type="application/octet-stream")


def headers_of_copy(request: PutFromRequest, source: BlobRecord) -> HttpHeaders:
    """The headers of the new blob: each from the request if it is there, otherwise from the source or the default."""
    otherwise = source.http if request.copies_headers else _DEFAULT_HEADERS
    pairs = zip(astuple(request.http), astuple(otherwise), strict=True)
    return HttpHeaders(*(own or other for own, other in pairs))


def _is_in_account(source: SourceKey, account: str) -> bool:
    """An archived blob can be copied within its account only."""
    return isinstance(source, BlobKey) and source.container.account == account


def _load(
    tx: Snapshot,
    request: CopyRequest | PutFromRequest,
    check: CheckSource,
    *,
    may_be_archived: bool = False,
) -> BlobRecord:
    source = copy_sources.load(
        tx, request.source, request.source_conditions, check=check, may_be_archived=may_be_archived
    )
    if source.length > request.max_length:
        raise Refused(Reason.COPY_SOURCE_TOO_LARGE)
    return source


def abort(
    engine: Engine, blob: BlobKey, copy_id: str, access_conditions: AccessConditions
) -> Awaitable[None]:
    """Refuse: a copy is complete as soon as it exists. The lease and the copy id decide the reason."""

    def body(tx: Transaction) -> None:
        _, record = rows.load(tx, blob)
        leases.check_abort_copy(record.lease, access_conditions.lease_id, tx.now)
        if record.copy is not None and record.copy.id != copy_id:
            raise Refused(Reason.COPY_ID_MISMATCH)
        raise Refused(Reason.NO_PENDING_COPY_OPERATION)

    return engine.run(body, scope_of(blob))
