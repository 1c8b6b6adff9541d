"""Deleted shares that can still be restored, by their name and the instant of their deletion."""

from collections.abc import Awaitable, Callable, Iterator

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files.opens import watches
from kyanite.model.files.share import ShareKey, ShareRecord
from kyanite.model.records import encode
from kyanite.rules.leases import NO_LEASE
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant, later

_DAY_SECONDS = 86_400
_INSTANT_BYTES = 8
_ROWS_PER_STEP = 200


class RetiredShare(msgspec.Struct, array_like=True, frozen=True, gc=False):
    record: ShareRecord
    deleted_at: Instant
    expires_at: Instant

    def days_left(self, now: Instant) -> int:
        """Rounded up: on its last day there is one left."""
        return max(0, -((now - self.expires_at) // (TICKS_PER_SECOND * _DAY_SECONDS)))


decode: Callable[[bytes], RetiredShare] = msgspec.msgpack.Decoder(RetiredShare).decode


def retire(tx: Transaction, key: ShareKey, record: ShareRecord, days: int) -> None:
    retired = RetiredShare(replace(record, lease=NO_LEASE), tx.now, later(tx.now, days * _DAY_SECONDS))
    tx.put(keys.retired_share(key.account, key.name, tx.now), encode(retired))


def restore(engine: Engine, key: ShareKey, deleted_at: Instant) -> Awaitable[ShareRecord]:
    """Restore a deleted share with everything in it, unless another share has its name now."""

    def body(tx: Transaction) -> ShareRecord:
        row = keys.retired_share(key.account, key.name, deleted_at)
        stored = tx.get(row)
        if stored is None or decode(stored).expires_at <= tx.now:
            raise Refused(Reason.SHARE_NOT_FOUND)
        if tx.get(key.key) is not None:
            raise Refused(Reason.SHARE_ALREADY_EXISTS)
        record = decode(stored).record
        record = replace(record, is_watched=watches.load_feed(tx, record.id) is not None)
        tx.put(key.key, encode(record))
        tx.delete(row)
        return record

    return engine.run(body)


def retired(
    snap: Snapshot, account: str, prefix: str, first: str, deleted_from: Instant, limit: int
) -> Iterator[tuple[str, RetiredShare]]:
    """So many deleted shares by name, and of one name the oldest first, those that have expired included.

    They begin at the name ``first``, with those of this name that were deleted at ``deleted_from`` or later.
    """
    base = keys.retired_shares(account)
    within = base + prefix.encode()
    start = max(within, keys.retired_share(account, first, deleted_from) if first else within)
    for key, value in snap.scan(start, keys.after(within), limit=limit):
        yield key[len(base) : -_INSTANT_BYTES - 1].decode(), decode(value)


def overdue(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    """The expired ones among the next rows, and where to continue; empty at the end."""
    end = keys.after(keys.RETIRED_SHARES)
    rows = list(snap.scan(start or keys.RETIRED_SHARES, end, limit=_ROWS_PER_STEP))
    found = [key for key, value in rows if decode(value).expires_at <= snap.now]
    return found, rows[-1][0] + b"\0" if len(rows) == _ROWS_PER_STEP else b""


def expire(tx: Transaction, found: list[bytes]) -> None:
    """Leave these to be purged, unless another process has done so."""
    for key, value in zip(found, tx.get_many(found), strict=True):
        if value is not None:
            tx.delete(key)
            tx.put(keys.deleted_share(decode(value).record.id), b"")
