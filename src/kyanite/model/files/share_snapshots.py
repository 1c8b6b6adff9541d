"""Snapshots of a share, and deleting either. The background purges what they contained."""

from collections.abc import Awaitable
from enum import Enum

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys, settings
from kyanite.model.files.deleted_shares import retire
from kyanite.model.files.share import NEVER, ShareKey, ShareRecord, decode_share, load, load_any
from kyanite.model.records import encode
from kyanite.rules import leases
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, LeaseId, later

MAX_SNAPSHOTS = 200


class Snapshots(Enum):
    """What deleting a share does with its snapshots. By default a share that has any is not deleted."""

    REFUSE = ""
    INCLUDE = "include"
    INCLUDE_LEASED = "include-leased"


def take(engine: Engine, key: ShareKey, metadata: dict[str, str]) -> Awaitable[tuple[Instant, ShareRecord]]:
    """Take a snapshot of the share: one row, whatever is in the share."""

    def body(tx: Transaction) -> tuple[Instant, ShareRecord]:
        record = load(tx, key)
        if len(instants(tx, record.id)) >= MAX_SNAPSHOTS:
            raise Refused(Reason.SHARE_SNAPSHOT_COUNT_EXCEEDED)
        kept = replace(record, lease=NO_LEASE, latest_snapshot=NEVER)
        if metadata:
            kept = replace(kept, metadata=metadata)
        tx.put(keys.share_snapshot(record.id, tx.now), encode(kept))
        tx.put(key.key, encode(replace(record, latest_snapshot=tx.now)))
        return tx.now, kept

    return engine.run(body)


def snapshots(snap: Snapshot, share_id: int) -> list[tuple[Instant, ShareRecord]]:
    """The oldest first."""
    return [(instant, decode_share(value)) for instant, value in _rows(snap, share_id)]


def instants(snap: Snapshot, share_id: int) -> list[Instant]:
    return [instant for instant, _ in _rows(snap, share_id)]


def latest_within(snap: Snapshot, share_id: int, second: Instant) -> Instant | None:
    """The latest snapshot of this second: SMB clients name snapshots by whole seconds."""
    found = [each for each in instants(snap, share_id) if second <= each < later(second, 1)]
    return found[-1] if found else None


def _rows(snap: Snapshot, share_id: int) -> list[tuple[Instant, bytes]]:
    base = keys.share_snapshots(share_id)
    return [
        (Instant(int.from_bytes(key[len(base) :], "big")), value)
        for key, value in snap.scan(base, keys.after(base), limit=MAX_SNAPSHOTS)
    ]


def delete(
    engine: Engine, key: ShareKey, lease_id: LeaseId | None, choice: Snapshots = Snapshots.REFUSE
) -> Awaitable[None]:
    """Delete the share, or the one snapshot that the key names.

    A deleted share can be restored for as many days as the File service of its account retains shares.
    """

    def body(tx: Transaction) -> None:
        record = load_any(tx, key)
        leases.check_write(record.lease, lease_id, tx.now)
        if key.snapshot is not None:
            _delete_snapshot(tx, key, key.snapshot)
            return
        _check_snapshots(tx, record.id, choice)
        tx.delete(key.key)
        retention = settings.load(tx, key.account, "file").share_retention
        if retention is not None and retention.days:
            retire(tx, key, record, retention.days)
        else:
            tx.put(keys.deleted_share(record.id), b"")

    return engine.run(body)


def _delete_snapshot(tx: Transaction, key: ShareKey, instant: Instant) -> None:
    record = load(tx, key)
    tx.delete(keys.share_snapshot(record.id, instant))
    left = [each for each in instants(tx, record.id) if each != instant]
    tx.put(key.key, encode(replace(record, latest_snapshot=left[-1] if left else NEVER)))
    tx.put(keys.unneeded_preserved_entries(record.id), b"")


def _check_snapshots(tx: Transaction, share_id: int, choice: Snapshots) -> None:
    kept = snapshots(tx, share_id)
    if kept and choice is Snapshots.REFUSE:
        raise Refused(Reason.SHARE_HAS_SNAPSHOTS)
    if choice is Snapshots.INCLUDE and any(leases.is_locked(record.lease, tx.now) for _, record in kept):
        raise Refused(Reason.SHARE_SNAPSHOT_LEASED)
