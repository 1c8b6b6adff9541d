"""Deleted shares that can still be restored, by their name and the instant of their deletion."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files.opens import watches
from kyanite.model.files.share import ShareKey, ShareRecord
from kyanite.model.records import encode
from kyanite.model.retired import Kind, Retired, decoder, take_back
from kyanite.model.retired import retire as retire_named
from kyanite.rules import retention
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.refusals import Reason
from kyanite.values import Instant

_ROWS_PER_STEP = 200

RetiredShare = Retired[ShareRecord]

decode = decoder(ShareRecord)
SHARES = Kind(
    keys.share,
    keys.retired_shares,
    keys.retired_share,
    decode,
)


def retire(tx: Transaction, key: ShareKey, record: ShareRecord, days: int) -> None:
    retire_named(tx, SHARES, key, replace(record, lease=NO_LEASE), days)


def restore(engine: Engine, key: ShareKey, deleted_at: Instant) -> Awaitable[ShareRecord]:
    """Restore a deleted share with everything in it, unless another share has its name now."""

    def body(tx: Transaction) -> ShareRecord:
        record = take_back(
            tx,
            SHARES,
            key,
            deleted_at,
            not_found=Reason.SHARE_NOT_FOUND,
            already_exists=Reason.SHARE_ALREADY_EXISTS,
        ).record
        record = replace(record, is_watched=watches.load_feed(tx, record.id) is not None)
        tx.put(key.key, encode(record))
        return record

    return engine.run(body)


def overdue(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    """The expired ones among the next rows, and where to continue; empty at the end."""
    end = keys.after(keys.RETIRED_SHARES)
    rows = list(snap.scan(start or keys.RETIRED_SHARES, end, limit=_ROWS_PER_STEP))
    found = [key for key, value in rows if retention.is_over(decode(value).expires_at, snap.now)]
    return found, rows[-1][0] + b"\0" if len(rows) == _ROWS_PER_STEP else b""


def expire(tx: Transaction, found: list[bytes]) -> None:
    """Leave these to be purged, unless another process has done so."""
    for key, value in zip(found, tx.get_many(found), strict=True):
        if value is not None:
            tx.delete(key)
            tx.put(keys.deleted_share(decode(value).record.id), b"")
