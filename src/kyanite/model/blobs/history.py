"""The rows of a blob's history: snapshots, previous versions, what is deleted and can be restored, pending changes.

A snapshot and a previous version are rows by their instants. One that is deleted by itself moves to the rows of deleted
blobs, so that active rows are never hidden behind deleted ones. It keeps its instant, and an index has the instant at
which it is gone.

What concerns the whole history of a name costs the same however long that is. Up to ``INLINE_MAX`` rows are changed by
the transaction itself. If there are more, it adds an entry to the list of changes of the name
(``rules/soft_delete.py``). From then on every function here sees the rows as changed, and maintenance changes them, a
bounded number at a time, in the order of the list. Only then does it drop the entry.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kyanite.engine.api import EngineBusy, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import protected_snapshots
from kyanite.model.blobs.records import (
    BlobRecord,
    DeletedBlob,
    decode_blob,
    decode_changes,
    decode_deleted,
)
from kyanite.model.content import content
from kyanite.model.records import encode
from kyanite.rules import soft_delete
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.soft_delete import MAX_CHANGES, Change, Deletion, Effect
from kyanite.values import Instant

INLINE_MAX = 64
"""So many rows of a history are changed by one transaction of a client."""

_SEARCHED_MAX = 200
"""To find one row in a certain state. Rows in other states are in the way only until maintenance has come to them."""

_INSTANT_BYTES = 8
_MARK_BYTES = 8
"""Of the list that older versions wrote: the instant up to which all snapshots are gone."""

NO_CHANGES: tuple[Change, ...] = ()


class FoundRow(NamedTuple):
    """A row of the history, and its state."""

    key: bytes
    record: BlobRecord
    deletion: Deletion | None
    """None when it is active."""

    def is_active(self) -> bool:
        return self.deletion is None

    def is_restorable(self, now: Instant) -> bool:
        return self.deletion is not None and not self.deletion.is_gone(now)


# Pending changes


def changes_in(value: bytes | None) -> Sequence[Change]:
    """The changes of a name, oldest first."""
    if value is None:
        return NO_CHANGES
    if len(value) == _MARK_BYTES:
        return (Change(Effect.PURGE_SNAPSHOTS, Instant(int.from_bytes(value, "big"))),)
    return decode_changes(value)


def load_changes(snap: Snapshot, blob_key: bytes) -> Sequence[Change]:
    return changes_in(snap.get(keys.history_changes_of(blob_key)))


def add_change(tx: Transaction, blob_key: bytes, changes: Sequence[Change], change: Change) -> None:
    if changes and changes[-1].effect == change.effect == Effect.PURGE_SNAPSHOTS:
        changes = changes[:-1]  # The later one purges the same and more.
    if len(changes) >= MAX_CHANGES:
        raise EngineBusy("earlier changes of the history of this blob are still being applied")
    tx.put(keys.history_changes_of(blob_key), encode([*changes, change]))


# The state of one row


def state_of(key: bytes, value: bytes, changes: Sequence[Change]) -> FoundRow:
    """A snapshot, a previous version or a deleted one of either, by its key."""
    if key[:1] != keys.DELETED_BLOBS:
        is_snapshot = key[:1] == b"v"
        deletion = None
        if changes and is_snapshot:
            deletion = soft_delete.deletion_of(None, instant_in(key), changes, is_snapshot=True)
        return FoundRow(key, decode_blob(value), deletion)
    deleted = decode_deleted(value)
    is_snapshot = key[9:10] == keys.DELETED_SNAPSHOT
    own = deleted.deletion
    return FoundRow(key, deleted.blob, soft_delete.deletion_of(own, own.at, changes, is_snapshot=is_snapshot))


def instant_in(key: bytes) -> Instant:
    """The instant of a snapshot or a version, in its key."""
    return Instant(int.from_bytes(key[-_INSTANT_BYTES:], "big"))


def find_snapshot(snap: Snapshot, blob_key: bytes, instant: Instant) -> FoundRow | None:
    """A snapshot, active or deleted."""
    key, deleted_key = keys.snapshot_of(blob_key, instant), keys.deleted_snapshot_of(blob_key, instant)
    stored, deleted, changes = snap.get_many((key, deleted_key, keys.history_changes_of(blob_key)))
    return _found(key, stored, deleted_key, deleted, changes)


def _found(
    key: bytes, stored: bytes | None, deleted_key: bytes, deleted: bytes | None, changes: bytes | None
) -> FoundRow | None:
    if stored is not None:
        return state_of(key, stored, changes_in(changes))
    if deleted is not None:
        return state_of(deleted_key, deleted, changes_in(changes))
    return None


class FoundVersion(NamedTuple):
    current: BlobRecord | None
    """The base blob, if that is the version."""
    previous: FoundRow | None


def find_version(snap: Snapshot, blob_key: bytes, version_at: Instant) -> FoundVersion:
    """A version, current or previous, active or deleted."""
    key, deleted_key = keys.version_of(blob_key, version_at), keys.deleted_version_of(blob_key, version_at)
    base, stored, deleted, changes = snap.get_many(
        (blob_key, key, deleted_key, keys.history_changes_of(blob_key))
    )
    current = None if base is None else decode_blob(base)
    if current is not None and current.version_at == version_at:
        return FoundVersion(current, None)
    return FoundVersion(None, _found(key, stored, deleted_key, deleted, changes))


# Writing one row


def keep_version(tx: Transaction, blob_key: bytes, record: BlobRecord) -> None:
    """Store a blob as a previous version. One that has no version id gets the time of its creation for it."""
    version_at = record.created_at if record.version_at is None else record.version_at
    kept = replace(record, version_at=version_at, is_previous=True, lease=NO_LEASE)
    tx.put(keys.version_of(blob_key, version_at), encode(kept))


def keep_deleted(tx: Transaction, deleted_key: bytes, record: BlobRecord, deletion: Deletion) -> None:
    """Store what was deleted. Nothing may be stored under the key."""
    tx.put(deleted_key, encode(DeletedBlob(deletion, record)))
    tx.put(keys.gone_blob(deletion.gone_at, deleted_key), b"")


def save_deleted(tx: Transaction, deleted_key: bytes, record: BlobRecord) -> None:
    """Change the record of a row that is restored by a pending change."""
    stored = tx.get(deleted_key)
    assert stored is not None
    tx.put(deleted_key, encode(DeletedBlob(decode_deleted(stored).deletion, record)))


def remove(tx: Transaction, key: bytes) -> None:
    """Delete a row. Its content goes to the caller."""
    if key[:1] == keys.DELETED_BLOBS:
        stored = tx.get(key)
        assert stored is not None
        tx.delete(keys.gone_blob(decode_deleted(stored).deletion.gone_at, key))
    tx.delete(key)


def retire(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    """Delete a row and drop its content."""
    if record.protection is not None:
        protected_snapshots.replace(tx, key, record.protection, None)
    content.drop(tx, record.content)
    remove(tx, key)


def soft_delete_row(tx: Transaction, key: bytes, record: BlobRecord, deletion: Deletion) -> None:
    """Let an active snapshot or version be deleted."""
    if record.protection is not None:
        protected_snapshots.replace(tx, key, record.protection, None)
    remove(tx, key)
    keep_deleted(tx, key if key[:1] == keys.DELETED_BLOBS else keys.deleted_from(key), record, deletion)


def restore_row(tx: Transaction, deleted_key: bytes, record: BlobRecord) -> None:
    remove(tx, deleted_key)
    key = keys.restored_from(deleted_key)
    if record.protection is not None:
        protected_snapshots.replace(tx, key, None, record.protection)
    tx.put(key, encode(record))


# The whole history of a name


def has_snapshot_rows(snap: Snapshot, blob_key: bytes) -> bool:
    """Whether there are rows of snapshots, in whatever state, that were not deleted by themselves."""
    return _any_between(snap, keys.snapshots_of(blob_key), Instant(0), soft_delete.FOREVER)


def has_active_snapshots(snap: Snapshot, blob_key: bytes) -> bool:
    prefix = keys.snapshots_of(blob_key)
    changes = load_changes(snap, blob_key)
    for each in soft_delete.snapshot_ranges(changes):
        if each.deletion is None and _any_between(snap, prefix, each.first, each.last):
            return True
    if not soft_delete.restores(changes):
        return False
    restored = _rows_of(snap, keys.deleted_snapshots_of(blob_key), changes)
    return _any(restored, FoundRow.is_active)


def newest_snapshot(snap: Snapshot, blob_key: bytes) -> BlobRecord | None:
    """The newest of the snapshots that are active."""
    changes = load_changes(snap, blob_key)
    found: FoundRow | None = None
    for each in reversed(list(soft_delete.snapshot_ranges(changes))):
        start, end = keys.snapshot_of(blob_key, each.first), keys.snapshot_of(blob_key, each.last + 1)
        if each.deletion is None and found is None:
            for key, value in snap.scan(start, end, reverse=True, limit=1):
                found = state_of(key, value, changes)
    if soft_delete.restores(changes):
        prefix = keys.deleted_snapshots_of(blob_key)
        rows = snap.scan(prefix, keys.after(prefix), reverse=True, limit=_SEARCHED_MAX + 1)
        for row in _few(state_of(key, value, changes) for key, value in rows):
            if row.is_active():
                is_newer = found is None or instant_in(row.key) > instant_in(found.key)
                return row.record if is_newer or found is None else found.record
    return None if found is None else found.record


def has_restorable_snapshots(snap: Snapshot, blob_key: bytes) -> bool:
    """Whether there are deleted snapshots that are not gone yet."""
    changes, now = load_changes(snap, blob_key), snap.now
    for each in soft_delete.snapshot_ranges(changes):
        is_restorable = each.deletion is not None and not each.deletion.is_gone(now)
        if is_restorable and _any_between(snap, keys.snapshots_of(blob_key), each.first, each.last):
            return True
    deleted = _rows_of(snap, keys.deleted_snapshots_of(blob_key), changes)
    return _any(deleted, lambda row: row.is_restorable(now))


def snapshots_between(
    snap: Snapshot, blob_key: bytes, after: Instant, until: Instant | None, *, limit: int
) -> list[BlobRecord]:
    """The first active snapshots that were taken after an instant, up to another. Restored ones may be missing."""
    found: list[BlobRecord] = []
    last = soft_delete.FOREVER if until is None else until
    for each in soft_delete.snapshot_ranges(load_changes(snap, blob_key)):
        start, end = max(each.first, after + 1), min(each.last, last)
        if each.deletion is None and start <= end and len(found) < limit:
            rows = snap.scan(
                keys.snapshot_of(blob_key, start),
                keys.snapshot_of(blob_key, end + 1),
                limit=limit - len(found),
            )
            found += [decode_blob(value) for _, value in rows]
    return found


def first_deleted_version(snap: Snapshot, blob_key: bytes) -> BlobRecord | None:
    """One of the previous versions that are deleted or restored by a pending change, and not gone; None if none is."""
    changes, now = load_changes(snap, blob_key), snap.now
    for row in _few(_rows_of(snap, keys.deleted_versions_of(blob_key), changes)):
        if row.is_active() or row.is_restorable(now):
            return row.record
    return None


def newest_version(snap: Snapshot, blob_key: bytes) -> BlobRecord | None:
    """The newest of the previous versions that are active."""
    prefix = keys.versions_of(blob_key)
    newest = next(snap.scan(prefix, keys.after(prefix), reverse=True, limit=1), None)
    found = None if newest is None else decode_blob(newest[1])
    changes = load_changes(snap, blob_key)
    if not soft_delete.restores(changes):
        return found
    prefix = keys.deleted_versions_of(blob_key)
    later = snap.scan(prefix, keys.after(prefix), reverse=True, limit=_SEARCHED_MAX + 1)
    for row in _few(state_of(key, value, changes) for key, value in later):
        if row.is_active():
            assert row.record.version_at is not None
            is_newer = found is None or found.version_at is None or row.record.version_at > found.version_at
            return row.record if is_newer else found
    return found


def exists(snap: Snapshot, blob_key: bytes) -> bool:
    """Whether the name has any snapshot or version, active or restorable."""
    return (
        _any_between(snap, keys.versions_of(blob_key), Instant(0), soft_delete.FOREVER)
        or first_deleted_version(snap, blob_key) is not None
        or has_active_snapshots(snap, blob_key)
        or has_restorable_snapshots(snap, blob_key)
    )


def delete_snapshots(tx: Transaction, blob_key: bytes, retention_days: int | None) -> None:
    """Delete all active snapshots. While soft delete is off, those are gone, and the deleted ones too."""
    changes = load_changes(tx, blob_key)
    prefixes = [keys.snapshots_of(blob_key)]
    if retention_days is None:
        prefixes.append(keys.deleted_snapshots_of(blob_key))
        change, deletion = Change(Effect.PURGE_SNAPSHOTS, tx.now), None
    else:
        deletion = soft_delete.deleted_now(tx.now, retention_days)
        change = Change(Effect.DELETE_SNAPSHOTS, tx.now, deletion.gone_at)
    some = _some_rows(tx, prefixes)
    if changes or len(some) > INLINE_MAX:
        add_change(tx, blob_key, changes, change)
        return
    for row in some:
        if deletion is None:
            retire(tx, row.key, row.record)
        else:
            soft_delete_row(tx, row.key, row.record, deletion)


def undelete(tx: Transaction, blob_key: bytes) -> None:
    """Restore all deleted snapshots and versions that are not gone."""
    changes = load_changes(tx, blob_key)
    some = _deleted_rows(tx, blob_key)
    if not changes and not some:
        return
    if changes or len(some) > INLINE_MAX:
        add_change(tx, blob_key, changes, Change(Effect.UNDELETE, tx.now))
        return
    for row in some:
        if row.is_restorable(tx.now):
            restore_row(tx, row.key, row.record)


def purge_deleted(tx: Transaction, blob_key: bytes) -> None:
    """Let all deleted snapshots and versions be gone."""
    changes = load_changes(tx, blob_key)
    some = _deleted_rows(tx, blob_key)
    if changes or len(some) > INLINE_MAX:
        add_change(tx, blob_key, changes, Change(Effect.PURGE_DELETED, tx.now))
        return
    for row in some:
        retire(tx, row.key, row.record)


def _deleted_rows(tx: Transaction, blob_key: bytes) -> list[FoundRow]:
    """The rows of deleted snapshots and versions, one more than can be changed at once."""
    return _some_rows(tx, [keys.deleted_snapshots_of(blob_key), keys.deleted_versions_of(blob_key)])


def _some_rows(tx: Transaction, prefixes: Sequence[bytes]) -> list[FoundRow]:
    found: list[FoundRow] = []
    for prefix in prefixes:
        for key, value in list(tx.scan(prefix, keys.after(prefix), limit=INLINE_MAX + 1 - len(found))):
            found.append(state_of(key, value, NO_CHANGES))
    return found


def _any_between(snap: Snapshot, prefix: bytes, first: Instant, last: Instant) -> bool:
    start, end = prefix + keys.number(first), prefix + keys.number(last + 1)
    return next(snap.scan(start, end, limit=1), None) is not None


def _rows_of(snap: Snapshot, prefix: bytes, changes: Sequence[Change]) -> Iterator[FoundRow]:
    for key, value in snap.scan(prefix, keys.after(prefix), limit=_SEARCHED_MAX + 1):
        yield state_of(key, value, changes)


def _any(rows: Iterator[FoundRow], is_wanted: Callable[[FoundRow], bool]) -> bool:
    return any(is_wanted(row) for row in _few(rows))


def _few(rows: Iterator[FoundRow]) -> Iterator[FoundRow]:
    """These rows, if they are few. Otherwise the request has to wait until maintenance has removed those in the way."""
    for count, row in enumerate(rows):
        if count >= _SEARCHED_MAX:
            raise EngineBusy("the history of this blob is being cleaned up")
        yield row


# Maintenance


def apply_changes(tx: Transaction, list_key: bytes, *, limit: int) -> None:
    """Change some of the rows that the oldest change of a list concerns. After the last of them the change is done."""
    changes = changes_in(tx.get(list_key))
    if changes:
        position = _apply_first(tx, b"n" + list_key[1:], changes, limit)
        left = [] if position is None else [changes[0]._replace(position=position)]
        changes = [*left, *changes[1:]]
    if changes:
        tx.put(list_key, encode(changes))
    else:
        tx.delete(list_key)


def _apply_first(tx: Transaction, blob_key: bytes, changes: Sequence[Change], limit: int) -> bytes | None:
    """Returns the key from which on rows are left to be changed, or None."""
    first = changes[0]
    for start, end in _ranges_of(blob_key, first):
        start = max(start, first.position)
        if start >= end:
            continue
        some = list(tx.scan(start, end, limit=limit))
        for key, value in some:
            _apply_to(tx, key, value, changes)
        if len(some) == limit:
            return some[-1][0] + b"\0"
        limit -= len(some)
    return None


def _ranges_of(blob_key: bytes, change: Change) -> list[tuple[bytes, bytes]]:
    """The ranges of the rows that a change concerns, in the order of their keys."""
    ranges: list[tuple[bytes, bytes]] = []
    if change.effect != Effect.DELETE_SNAPSHOTS:
        prefix = keys.deleted_snapshots_of(blob_key)
        ranges.append((prefix, keys.after(prefix)))
    if change.effect in (Effect.UNDELETE, Effect.PURGE_DELETED):
        prefix = keys.deleted_versions_of(blob_key)
        ranges.append((prefix, keys.after(prefix)))
    else:
        ranges.append((keys.snapshots_of(blob_key), keys.snapshot_of(blob_key, change.at + 1)))
    return ranges


def _apply_to(tx: Transaction, key: bytes, value: bytes, changes: Sequence[Change]) -> None:
    final, next_state = state_of(key, value, changes), state_of(key, value, changes[:1])
    is_deleted = key[:1] == keys.DELETED_BLOBS
    if final.deletion is not None and final.deletion.is_gone(tx.now):
        retire(tx, key, final.record)
    elif next_state.deletion is None and is_deleted:
        restore_row(tx, key, final.record)
    elif next_state.deletion is not None and not is_deleted:
        soft_delete_row(tx, key, final.record, next_state.deletion)


def find_gone(snap: Snapshot, start: bytes, *, limit: int) -> tuple[list[bytes], bytes]:
    """Rows of the index of deleted blobs that are gone, and where the next page begins; b"" after the last."""
    end = keys.GONE_BLOBS + keys.number(snap.now + 1)
    found = [key for key, _ in snap.scan(start or keys.GONE_BLOBS, end, limit=limit)]
    return found, found[-1] + b"\0" if len(found) == limit else b""


def remove_gone(tx: Transaction, found: list[bytes]) -> None:
    """Delete those of these that are still there, unless a change that is not applied yet has restored them."""
    deleted_keys = [keys.parts_of_gone_blob(key)[1] for key in found]
    for index_key, key, value in zip(found, deleted_keys, tx.get_many(deleted_keys), strict=True):
        if value is None or keys.gone_blob(decode_deleted(value).deletion.gone_at, key) != index_key:
            tx.delete(index_key)
            continue
        row = state_of(key, value, load_changes(tx, blob_key_in(key)))
        if row.deletion is not None and row.deletion.is_gone(tx.now):
            retire(tx, key, row.record)


def blob_key_in(deleted_key: bytes) -> bytes:
    """The key of the base blob, in that of a deleted blob."""
    name = deleted_key[10:]
    if deleted_key[9:10] != keys.DELETED_BASE:
        name = name[: -_INSTANT_BYTES - 1]
    return b"n" + deleted_key[1:9] + name


def purge_container(tx: Transaction, container_id: int, *, limit: int) -> int:
    """Delete some of all rows of a deleted container's history. Returns how many there were."""
    left = limit
    for prefix in (
        keys.snapshots_in(container_id),
        keys.versions_in(container_id),
        keys.deleted_in(container_id),
    ):
        for key, value in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            retire(tx, key, state_of(key, value, NO_CHANGES).record)
            left -= 1
    prefix = keys.history_changes_in(container_id)
    for key, _ in list(tx.scan(prefix, keys.after(prefix), limit=left)):
        tx.delete(key)
        left -= 1
    return limit - left
