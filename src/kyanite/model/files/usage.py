"""How many bytes the files of a share have, and the quota that limits them.

The count is divided over several rows by the ids of files, so that writers of different files seldom write the same
row. The lengths of files count, holes included; snapshots do not.
"""

from collections.abc import Awaitable
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import share
from kyanite.model.files.share import ShareKey, ShareRecord
from kyanite.rules import leases
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import LeaseId

SHARDS = 16


class QuotaFacts(NamedTuple):
    used_bytes: int
    added_bytes: int
    quota_gib: int


_SPREAD = 0x9E3779B97F4A7C15
"""Ids are multiples of a power of two, mostly; the top bits of this product are not."""
_GIB = 1 << 30


def get_stats(engine: Engine, key: ShareKey, lease_id: LeaseId | None) -> Awaitable[tuple[ShareRecord, int]]:
    """A share and how many bytes its files have."""

    def body(snap: Snapshot) -> tuple[ShareRecord, int]:
        record = share.load(snap, key)
        leases.check_read(record.lease, lease_id, snap.now)
        return record, used_bytes(snap, record.id)

    return engine.read(body)


def used_bytes(snap: Snapshot, share_id: int) -> int:
    return sum(_shards(snap, share_id).values())


def room(snap: Snapshot, record: ShareRecord) -> int:
    """How many bytes are left of the quota; less than none if it was lowered."""
    return record.settings.quota_gib * _GIB - used_bytes(snap, record.id)


def change(tx: Transaction, record: ShareRecord, file_id: int, difference: int) -> None:
    """Count a file that becomes longer or shorter. Refused when the share would exceed its quota."""
    if not difference:
        return
    key = keys.usage(record.id, _shard_of(file_id))
    if difference > 0:
        shards = _shards(tx, record.id)
        _check_sum(record, sum(shards.values()), difference)
        used = shards.get(key, 0) + difference
    else:
        stored = tx.get(key)
        used = (0 if stored is None else int.from_bytes(stored, "big", signed=True)) + difference
    tx.put(key, used.to_bytes(8, "big", signed=True))


def check_room(snap: Snapshot, record: ShareRecord, more: int) -> None:
    """Refuse what would make the files of the share so much longer than its quota allows."""
    _check_sum(record, used_bytes(snap, record.id), more)


def _check_sum(record: ShareRecord, used: int, more: int) -> None:
    if used + more > record.settings.quota_gib * _GIB:
        raise Refused(
            Reason.SHARE_SIZE_LIMIT_REACHED, facts=QuotaFacts(used, more, record.settings.quota_gib)
        )


def _shards(snap: Snapshot, share_id: int) -> dict[bytes, int]:
    """The counts by the keys of their rows."""
    base = keys.usages(share_id)
    rows = snap.scan(base, keys.after(base), limit=SHARDS)
    return {key: int.from_bytes(stored, "big", signed=True) for key, stored in rows}


def _shard_of(file_id: int) -> int:
    return (file_id * _SPREAD >> 60) % SHARDS
