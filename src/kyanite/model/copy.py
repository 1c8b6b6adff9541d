"""Copying blobs within the store: by reference and in one transaction, so a copy is done when it is answered."""

from collections.abc import Awaitable
from dataclasses import dataclass

from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model import content, destination
from kyanite.model.blob import BlobKey, Guard, key_of, load, scope_of
from kyanite.model.records import BlobRecord, CopyState
from kyanite.rules import leases, preconditions
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused


@dataclass(frozen=True, slots=True)
class CopyAsk:
    source: BlobKey
    source_url: str
    """As it is told to whoever asks where the blob came from."""
    source_conditions: Conditions
    copy_id: str
    metadata: dict[str, str]
    """Replaces the source's; empty takes that over."""
    tier: str = ""
    finite_lease_suffices: bool = False
    """A synchronous copy may be made under a lease that ends; an asynchronous one might outlast it."""


def copy(
    engine: Engine, blob: BlobKey, ask: CopyAsk, guard: Guard, *, may_overwrite: bool
) -> Awaitable[BlobRecord]:
    check_lease = leases.check_write if ask.finite_lease_suffices else leases.check_copy_onto

    def body(tx: Transaction) -> BlobRecord:
        source = _load_source(tx, ask.source)
        preconditions.check_source(ask.source_conditions, source.etag, source.modified_at)
        place = destination.prepare(
            tx, blob, guard, may_overwrite=may_overwrite, kind=source.kind, check_lease=check_lease
        )
        now = tx.now
        record = replace(
            source,
            modified_at=now,
            created_at=place.created_at,
            content=content.share(tx, source.content),
            metadata=ask.metadata or source.metadata,
            lease=place.lease,
            tier=ask.tier,
            tier_changed_at=now if ask.tier else None,
            copy=CopyState(ask.copy_id, ask.source_url, now, source.length),
        )
        place.replace(tx, record)
        return record

    return engine.run(body, scope_of(blob))


def _load_source(tx: Transaction, blob: BlobKey) -> BlobRecord:
    try:
        return load(tx, key_of(tx, blob))
    except Refused:
        raise Refused(Reason.COPY_SOURCE_NOT_FOUND) from None


def abort(engine: Engine, blob: BlobKey, copy_id: str, guard: Guard) -> Awaitable[None]:
    """Every copy is complete as soon as it is there, so none can be aborted; which refusal that is can differ."""

    def body(tx: Transaction) -> None:
        record = load(tx, key_of(tx, blob))
        leases.check_abort_copy(record.lease, guard.lease_id, tx.now)
        if record.copy is not None and record.copy.id != copy_id:
            raise Refused(Reason.COPY_ID_MISMATCH)
        raise Refused(Reason.NO_PENDING_COPY_OPERATION)

    return engine.run(body, scope_of(blob))
