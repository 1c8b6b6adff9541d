"""Deleted containers that can still be restored, by their name and the instant of their deletion.

Beside each is a row in the order of expiry, so that maintenance reads those whose retention is over and no others.
"""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import protected_containers
from kyanite.model.blobs.records import ContainerRecord
from kyanite.model.records import NamedKey, encode
from kyanite.model.retired import Kind, Retired, decoder, take_back
from kyanite.model.retired import retire as retire_named
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.refusals import Reason
from kyanite.values import Instant

_ROWS_PER_STEP = 200

RetiredContainer = Retired[ContainerRecord]

decode = decoder(ContainerRecord)
CONTAINERS = Kind(
    keys.container,
    keys.retired_containers,
    keys.retired_container,
    decode,
)


def retire(tx: Transaction, key: NamedKey, record: ContainerRecord, days: int) -> None:
    retired = retire_named(tx, CONTAINERS, key, replace(record, lease=NO_LEASE), days)
    tx.put(_expiry_of(key, retired), b"")


def restore(engine: Engine, key: NamedKey, deleted_at: Instant) -> Awaitable[None]:
    """Restore a deleted container with everything in it, unless another container has its name now."""

    def body(tx: Transaction) -> None:
        retired = take_back(
            tx,
            CONTAINERS,
            key,
            deleted_at,
            not_found=Reason.CONTAINER_NOT_FOUND,
            already_exists=Reason.CONTAINER_ALREADY_EXISTS,
        )
        tx.delete(_expiry_of(key, retired))
        protected_containers.replace(tx, key, None, retired.record.protection)
        tx.put(keys.container(key.account, key.name), encode(retired.record))

    return engine.run(body)


def _expiry_of(key: NamedKey, retired: RetiredContainer) -> bytes:
    row = keys.retired_container(key.account, key.name, retired.deleted_at)
    return keys.expiry(retired.expires_at, row)


def overdue(snap: Snapshot) -> tuple[list[bytes], bool]:
    """Keys of some expiries that are past, and whether there may be more."""
    end = keys.expiry(snap.now + 1, b"")
    found = [key for key, _ in snap.scan(keys.EXPIRIES, end, limit=_ROWS_PER_STEP)]
    return found, len(found) == _ROWS_PER_STEP


def expire(tx: Transaction, found: list[bytes]) -> None:
    """Leave these to be purged, unless they have been restored or another process has done so."""
    rows = [keys.expiring_row(each) for each in found]
    for expiry, row, value in zip(found, rows, tx.get_many(rows), strict=True):
        tx.delete(expiry)
        if value is not None:
            tx.delete(row)
            tx.put(keys.deleted_container(decode(value).record.id), b"")
