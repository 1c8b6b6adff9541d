"""Copying into blobs, from blobs and files of this store: by reference and in one transaction.

So a copy is done when it is answered.
"""

from collections.abc import Awaitable
from dataclasses import dataclass

from msgspec.structs import astuple, replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model import copy_sources
from kyanite.model.blobs import destination
from kyanite.model.blobs.blob import AccessConditions, BlobKey, key_of, load, scope_of, with_tiering
from kyanite.model.content import content
from kyanite.model.content.intervals import ENDLESS
from kyanite.model.copy_sources import CheckSource, SourceKey
from kyanite.model.records import APPEND_BLOB, BLOCK_BLOB, BlobRecord, CopyState, HttpHeaders
from kyanite.rules import leases, preconditions, tiers
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import LeaseId


@dataclass(frozen=True, slots=True)
class CopyRequest:
    source: SourceKey
    source_url: str
    """As it is told to whoever asks where the blob came from."""
    source_conditions: Conditions
    copy_id: str
    metadata: dict[str, str]
    """Replaces the source's; empty takes that over."""
    tier: str = ""
    rehydrate_priority: str = ""
    source_lease_id: LeaseId | None = None
    """The lease that the source must have, if the client says so."""
    seals: bool | None = None
    """Whether the copy of an append blob is sealed; None if it is as the source is."""
    is_synchronous: bool = False
    """A synchronous copy reads its source by URL, and may be made under a lease that ends; an asynchronous one might
    outlast it."""
    max_length: int = ENDLESS
    """How long the source may be."""


@dataclass(frozen=True, slots=True)
class PutFromRequest:
    """Put Blob From URL: a new block blob with the bytes of another blob or file."""

    source: SourceKey
    source_conditions: Conditions
    http: HttpHeaders
    """What the request says; empty leaves it to the source, or to nobody."""
    takes_over_headers: bool
    metadata: dict[str, str]
    """Replaces the source's; empty takes that over."""
    tier: str = ""
    max_length: int = ENDLESS


def copy(
    engine: Engine,
    blob: BlobKey,
    request: CopyRequest,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
) -> Awaitable[BlobRecord]:
    check_lease = leases.check_write if request.is_synchronous else leases.check_copy_onto
    check_source = preconditions.check_source_read if request.is_synchronous else preconditions.check_source

    def body(tx: Transaction) -> BlobRecord:
        source = _load(tx, request, check_source, may_be_archived=not request.is_synchronous)
        leases.check_read(source.lease, request.source_lease_id, tx.now)
        if request.tier and source.kind != BLOCK_BLOB:
            raise Refused(Reason.TIER_NOT_SUPPORTED)
        if request.seals and source.kind != APPEND_BLOB:
            raise Refused(Reason.INVALID_BLOB_TYPE)
        target = destination.prepare(
            tx,
            blob,
            access_conditions,
            may_overwrite=may_overwrite,
            kind=source.kind,
            check_lease=check_lease,
        )
        now = tx.now
        shared = replace(
            source,
            modified_at=now,
            created_at=target.created_at,
            content=content.share(tx, source.content),
            metadata=request.metadata or source.metadata,
            lease=target.lease,
            copy=CopyState(request.copy_id, request.source_url, now, source.length),
            is_sealed=source.is_sealed if request.seals is None else request.seals,
        )
        tiering = tiers.copied(source.tiering, request.tier, request.rehydrate_priority, now)
        record = with_tiering(shared, tiering)
        target.replace(tx, record)
        return record

    return engine.run(body, scope_of(blob))


def put_from(
    engine: Engine,
    blob: BlobKey,
    request: PutFromRequest,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
) -> Awaitable[BlobRecord]:
    """Put Blob with bytes that are here already, whatever kind of blob was there before."""

    def body(tx: Transaction) -> BlobRecord:
        source = _load(tx, request, preconditions.check_source_read)
        target = destination.prepare(tx, blob, access_conditions, may_overwrite=may_overwrite)
        now = tx.now
        record = BlobRecord(
            modified_at=now,
            created_at=target.created_at,
            kind=BLOCK_BLOB,
            length=source.length,
            content=content.share(tx, source.content),
            http=description_of(request, source),
            metadata=request.metadata or source.metadata,
            lease=target.lease,
            tier=request.tier,
            tier_changed_at=now if request.tier else None,
        )
        target.replace(tx, record)
        return record

    return engine.run(body, scope_of(blob))


_UNDESCRIBED = HttpHeaders(content_type="application/octet-stream")


def description_of(request: PutFromRequest, source: BlobRecord) -> HttpHeaders:
    """The headers of the new blob: of each what the request says, or else what the source has, if that counts."""
    otherwise = source.http if request.takes_over_headers else _UNDESCRIBED
    pairs = zip(astuple(request.http), astuple(otherwise), strict=True)
    return HttpHeaders(*(said or other for said, other in pairs))


def _load(
    tx: Transaction,
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
    """Every copy is complete as soon as it is there, so none can be aborted; which refusal that is can differ."""

    def body(tx: Transaction) -> None:
        record = load(tx, key_of(tx, blob))
        leases.check_abort_copy(record.lease, access_conditions.lease_id, tx.now)
        if record.copy is not None and record.copy.id != copy_id:
            raise Refused(Reason.COPY_ID_MISMATCH)
        raise Refused(Reason.NO_PENDING_COPY_OPERATION)

    return engine.run(body, scope_of(blob))
