"""The rows of a blob: the base blob, and the head of its staging area. ``history.py`` has those of its history.

No other modules build the keys of these rows, encode or decode them, or drop the content of a record that is replaced
or deleted. The transactions of the package decide what happens; they load, save, replace and delete here. What becomes
of the former state of a blob follows from the settings of its account (``rules/versions.py``), which are read in the
same transaction.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec.structs import replace as changed

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys, settings
from kyanite.model.blobs import container, history, last_access, protected_snapshots, tag_index
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.records import (
    BlobRecord,
    ContainerRecord,
    DeletedBlob,
    Staging,
    decode_blob,
    decode_deleted,
    decode_staging,
    remembered_blob,
)
from kyanite.model.content import content
from kyanite.model.records import Value, encode
from kyanite.rules import immutability, soft_delete, tiers, versions
from kyanite.rules.immutability import BlobProtection, Change, ContainerProtection
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.rules.versions import NO_HISTORY, Base, Former, History
from kyanite.values import Instant

NAME_AT: Final = len(keys.blobs(0))
"""Where in a key of a base blob, a snapshot, a version or a staging area the name begins."""


class BlobKey(Value, frozen=True):
    container: ContainerKey
    name: str
    snapshot: Instant | None = None
    """The snapshot of the blob."""
    version: Instant | None = None
    """The version of the blob, current or previous. Without this and a snapshot it is the base blob."""
    tracks_access: bool = False
    """Of a blob that is written: whether its account keeps the time of the last access."""


# One blob, snapshot or version


def load(snap: Snapshot, blob: BlobKey) -> tuple[bytes, BlobRecord]:
    """The key and the record of what is active, or a refusal that it or its container does not exist."""
    return load_with_container(snap, blob)[1:]


def load_with_container(snap: Snapshot, blob: BlobKey) -> tuple[ContainerRecord, bytes, BlobRecord]:
    """The same, after the record of the container."""
    found = container.load(snap, blob.container)
    key = keys.blob(found.id, blob.name)
    if blob.snapshot is None and blob.version is None:
        stored = snap.get(key)
        if stored is None:
            raise Refused(Reason.BLOB_NOT_FOUND)
        return found, key, remembered_blob(stored)
    current, row = _find(snap, key, blob)
    if current is not None:
        return found, key, current
    if row is None or row.deletion is not None:
        raise Refused(Reason.BLOB_NOT_FOUND)
    return found, row.key, row.record


def _find(snap: Snapshot, key: bytes, blob: BlobKey) -> history.FoundVersion:
    if blob.version is not None:
        return history.find_version(snap, key, blob.version)
    assert blob.snapshot is not None
    return history.FoundVersion(None, history.find_snapshot(snap, key, blob.snapshot))


def load_deleted(snap: Snapshot, blob: BlobKey) -> tuple[ContainerRecord, bytes, BlobRecord] | None:
    """The same for a deleted snapshot or version; None when it is active; refused when it is neither."""
    found = container.load(snap, blob.container)
    key = keys.blob(found.id, blob.name)
    current, row = _find(snap, key, blob)
    if current is not None or (row is not None and row.is_active()):
        return None
    if row is None or not row.is_restorable(snap.now):
        raise Refused(Reason.BLOB_NOT_FOUND)
    return found, row.key, row.record


def save(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    """Write a record that was loaded from this key and then changed. Its old content must not be used again."""
    if key[:1] == keys.DELETED_BLOBS:
        history.save_deleted(tx, key, record)
    else:
        tx.put(key, encode(record))


def save_protection(
    tx: Transaction, key: bytes, record: BlobRecord, protection: BlobProtection | None
) -> None:
    """Change nothing but the immutability policy and the legal hold of a record that was loaded from this key."""
    protected_snapshots.replace(tx, key, record.protection, protection)
    save(tx, key, changed(record, protection=protection))


def save_tags(tx: Transaction, blob: BlobKey, key: bytes, record: BlobRecord, before: Tags) -> None:
    """The same with other tags than before. Those of a snapshot or of a previous version are not in the index."""
    if key[:1] == b"n":
        tag_index.update(tx, blob.container, keys.id_of(key), blob.name, before, record.tags)
    save(tx, key, record)


# What an account keeps


@lru_cache(maxsize=256)
def _settings_key(account: str) -> bytes:
    return keys.service_properties(account, "blob")


@lru_cache(maxsize=64)
def _history_in(stored: bytes) -> History:
    found = settings.decode_settings(stored)
    deleted = found.delete_retention
    return History(
        bool(found.versioning),
        None if deleted is None else deleted.retention.days,
        deleted is not None and deleted.allow_permanent_delete,
    )


def load_history(snap: Snapshot, account: str) -> History:
    """What the account keeps of its blobs."""
    stored = snap.get(_settings_key(account))
    return NO_HISTORY if stored is None else _history_in(stored)


# All that is stored under one name


class StoredName(Value, frozen=True):
    """The base blob and the staging area of one name, as a transaction found them."""

    container_id: int
    name: str
    key: bytes
    record: BlobRecord | None
    staging_key: bytes
    staging_head: bytes | None
    """The stored head, also of an expired staging area."""
    container: ContainerKey
    tracks_access: bool = False
    protection: ContainerProtection | None = None
    """That of the container."""
    history: History | None = None
    """What the account keeps; None while it has no settings, and so no blob of it has ever been kept."""
    deleted: DeletedBlob | None = None
    """The deleted base blob, also one that is gone."""
    must_purge: bool = False
    """Whether what is deleted of the name has another type than the new blob, which ends it."""

    def staging(self, now: Instant) -> Staging | None:
        """The staging area, unless there is none or it has expired."""
        if self.staging_head is None:
            return None
        staging = decode_staging(self.staging_head)
        return staging if staging.is_alive(now) else None

    @property
    def base(self) -> Base:
        if self.record is None:
            return Base.ABSENT
        return Base.UNVERSIONED if self.record.version_at is None else Base.CURRENT

    @property
    def former(self) -> Former:
        """What becomes of the base blob when it is replaced."""
        if self.history is None:
            return Former.NOTHING if self.record is None else Former.LOST
        is_archived = self.record is not None and self.record.tier == tiers.ARCHIVE
        return versions.replaced(self.base, self.history, is_archived=is_archived)

    def restorable(self, now: Instant) -> BlobRecord | None:
        """The deleted base blob, unless it is gone."""
        deleted = self.deleted
        return None if deleted is None or deleted.deletion.is_gone(now) else deleted.blob


def load_name(snap: Snapshot, blob: BlobKey) -> StoredName:
    """What is stored under the name of a base blob; refused when its container does not exist."""
    in_container = container.load(snap, blob.container)
    container_id = in_container.id
    key, staging_key = keys.blob(container_id, blob.name), keys.staging(container_id, blob.name)
    stored, head, found = snap.get_many((key, staging_key, _settings_key(blob.container.account)))
    record = None if stored is None else decode_blob(stored)
    if found is None:
        return StoredName(
            container_id,
            blob.name,
            key,
            record,
            staging_key,
            head,
            blob.container,
            blob.tracks_access,
            in_container.protection,
        )
    deleted = None if record is not None else snap.get(keys.deleted_base_of(key))
    return StoredName(
        container_id,
        blob.name,
        key,
        record,
        staging_key,
        head,
        blob.container,
        blob.tracks_access,
        in_container.protection,
        _history_in(found),
        None if deleted is None else decode_deleted(deleted),
    )


def load_base(snap: Snapshot, blob: BlobKey) -> tuple[StoredName, BlobRecord]:
    """The same for a base blob that must exist."""
    stored = load_name(snap, blob)
    if stored.record is None:
        raise Refused(Reason.BLOB_NOT_FOUND)
    return stored, stored.record


def reload(snap: Snapshot, name: StoredName) -> StoredName:
    """What is stored now under the same keys: the base blob and the staging area."""
    stored, head = snap.get_many((name.key, name.staging_key))
    record = None if stored is None else decode_blob(stored)
    return StoredName(
        name.container_id,
        name.name,
        name.key,
        record,
        name.staging_key,
        head,
        name.container,
        name.tracks_access,
        name.protection,
        name.history,
    )


def check_type(snap: Snapshot, name: StoredName, kind: int) -> StoredName:
    """Refuse a new blob of this kind beside versions of another."""
    old = name.record
    if old is not None and old.kind == kind:
        return name
    newest = history.newest_version(snap, name.key)
    deleted = name.restorable(snap.now) or history.first_deleted_version(snap, name.key)
    must_purge = versions.check_type(
        kind,
        former=None if old is None else old.kind,
        becomes=name.former,
        versions=None if newest is None else newest.kind,
        deleted_versions=None if deleted is None else deleted.kind,
    )
    return changed(name, must_purge=True) if must_purge else name


def replace(tx: Transaction, old: StoredName, record: BlobRecord, *, drops_content: bool = True) -> None:
    """Write a new blob in place of what is stored under the name, and abandon the staging area.

    ``drops_content`` is false when the content of the new blob was made of the old one, or of what the old one shared.
    """
    if old.history is not None:
        _keep_former(tx, old, drops_content=drops_content)
    elif drops_content and old.record is not None:
        content.drop(tx, old.record.content)
    if old.staging_head is not None:
        abandon_staging(tx, old.staging_key, old.staging_head)
    if record.tags or (old.record is not None and old.record.tags):
        _index(tx, old, record.tags)
    if old.tracks_access:
        last_access.record_write(tx, old.key, record)
    tx.put(old.key, encode(record))


def _keep_former(tx: Transaction, old: StoredName, *, drops_content: bool) -> None:
    former, record = old.former, old.record
    if record is not None:
        if former is Former.VERSION:
            history.keep_version(tx, old.key, record)
        elif former is Former.DELETED_SNAPSHOT:
            _keep_as_snapshot(tx, old, record, _deletion(tx, old))
        elif drops_content:
            content.drop(tx, record.content)
    elif old.must_purge:
        history.purge_deleted(tx, old.key)
        if old.deleted is not None:
            history.retire(tx, keys.deleted_base_of(old.key), old.deleted.blob)
    else:
        keep_deleted_base(tx, old)


def keep_deleted_base(tx: Transaction, name: StoredName) -> None:
    """Let the deleted base blob, if there is one, be a deleted snapshot: another blob is made under its name."""
    if name.deleted is None:
        return
    key = keys.deleted_base_of(name.key)
    if name.deleted.deletion.is_gone(tx.now):
        history.retire(tx, key, name.deleted.blob)
    else:
        history.remove(tx, key)
        _keep_as_snapshot(tx, name, name.deleted.blob, name.deleted.deletion)


def _keep_as_snapshot(
    tx: Transaction, name: StoredName, record: BlobRecord, deletion: soft_delete.Deletion
) -> None:
    kept = changed(record, lease=NO_LEASE, version_at=None)
    history.keep_deleted(tx, keys.deleted_snapshot_of(name.key, tx.now), kept, deletion)


def _deletion(tx: Transaction, name: StoredName) -> soft_delete.Deletion:
    assert name.history is not None
    assert name.history.retention_days is not None
    return soft_delete.deleted_now(tx.now, name.history.retention_days)


def revise(tx: Transaction, old: StoredName, record: BlobRecord) -> BlobRecord:
    """Write a base blob with the content of the former one, which becomes a version if the account keeps versions.

    Returns what was written: a new version has a version id.
    """
    assert old.record is not None
    kept = old.history or NO_HISTORY
    if versions.revised(old.base, kept) is Former.VERSION:
        former = changed(old.record, content=content.share(tx, old.record.content))
        history.keep_version(tx, old.key, former)
        record = changed(record, created_at=tx.now, version_at=tx.now if kept.versioning else None)
        if old.protection is not None and record.protection is None:
            record = changed(record, protection=immutability.of_new_blob(old.protection, None, tx.now))
        if old.tracks_access:
            last_access.record_write(tx, old.key, record)
    tx.put(old.key, encode(record))
    return record


def delete(tx: Transaction, old: StoredName) -> bool:
    """Delete the base blob and abandon the staging area. Snapshots stay. Returns whether nothing of it is kept."""
    if old.staging_head is not None:
        abandon_staging(tx, old.staging_key, old.staging_head)
    record = old.record
    if record is None:
        return True
    if record.tags:
        _index(tx, old, NO_TAGS)
    former = versions.deleted(old.base, old.history or NO_HISTORY)
    tx.delete(old.key)
    if former is Former.VERSION:
        history.keep_version(tx, old.key, record)
    elif former is Former.DELETED_BLOB:
        deleted = changed(record, lease=NO_LEASE)
        history.keep_deleted(tx, keys.deleted_base_of(old.key), deleted, _deletion(tx, old))
    else:
        content.drop(tx, record.content)
    return former not in versions.KEPT


def undelete(tx: Transaction, name: StoredName) -> None:
    """Restore the deleted base blob, and all deleted snapshots and versions. Refused when the name has nothing."""
    restored = name.restorable(tx.now)
    if name.record is None and restored is None and not history.exists(tx, name.key):
        raise Refused(Reason.BLOB_NOT_FOUND)
    if restored is not None:
        history.restore_row(tx, keys.deleted_base_of(name.key), restored)
        if restored.tags:
            _index(tx, name, restored.tags)
    if name.history is not None:
        history.undelete(tx, name.key)


def _index(tx: Transaction, old: StoredName, tags: Tags) -> None:
    """Have the index of tags follow: the base blob of the name has these now, or is gone and has none."""
    before = NO_TAGS if old.record is None else old.record.tags
    tag_index.update(tx, old.container, old.container_id, old.name, before, tags)


# Snapshots


def add_snapshot(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    """Store a snapshot of the base blob with this key. The instant of the transaction names it."""
    snapshot = keys.snapshot_of(key, tx.now)
    if record.protection is not None:
        protected_snapshots.replace(tx, snapshot, None, record.protection)
    tx.put(snapshot, encode(record))


def has_snapshots(snap: Snapshot, name: StoredName) -> bool:
    """Whether the base blob cannot be deleted without its snapshots. While soft delete is off, deleted ones count."""
    if name.history is None and not history.has_snapshot_rows(snap, name.key):
        return False
    if history.has_active_snapshots(snap, name.key):
        return True
    is_kept = name.history is None or name.history.retention_days is not None
    return not is_kept and history.has_restorable_snapshots(snap, name.key)


def delete_snapshots(tx: Transaction, name: StoredName) -> bool:
    """Delete all snapshots that the base blob has now. Returns whether they are gone for good.

    Refused when one of them is immutable.
    """
    if name.protection is not None:
        _check_snapshots(tx, name, name.protection)
    days = (name.history or NO_HISTORY).retention_days
    history.delete_snapshots(tx, name.key, days)
    return days is None


def _check_snapshots(tx: Transaction, name: StoredName, protection: ContainerProtection) -> None:
    """A policy of the container keeps the newest snapshot longest: none was created or modified later."""
    if protection.is_version_level:
        protected_snapshots.check_deleted(tx, name.container_id, name.name)
    elif (newest := history.newest_snapshot(tx, name.key)) is not None:
        immutability.check(Change.DELETE, protection, None, newest.times, tx.now)


def retire(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    """Delete a snapshot or version for good, and drop its content."""
    history.retire(tx, key, record)


def delete_row(tx: Transaction, key: bytes, record: BlobRecord, kept: History) -> bool:
    """Delete an active snapshot or previous version. Returns whether it is gone for good."""
    if kept.retention_days is None:
        history.retire(tx, key, record)
        return True
    history.soft_delete_row(tx, key, record, soft_delete.deleted_now(tx.now, kept.retention_days))
    return False


def snapshots_from(snap: Snapshot, blob: BlobKey, first: Instant, *, limit: int) -> Sequence[BlobRecord]:
    """The snapshot taken at ``first`` and those after it, up to ``blob.snapshot``; empty when there is none at it."""
    key = keys.blob(container.load(snap, blob.container).id, blob.name)
    found = history.find_snapshot(snap, key, first)
    if found is None or not found.is_active():
        return ()
    return [found.record, *history.snapshots_between(snap, key, first, blob.snapshot, limit=limit - 1)]


# Staging areas


def save_staging(tx: Transaction, name: StoredName, staging: Staging) -> None:
    """Write the head of a staging area, and abandon an expired one that was there before it."""
    head = name.staging_head
    if head is not None and decode_staging(head).id != staging.id:
        abandon_staging(tx, name.staging_key, head)
    tx.put(name.staging_key, encode(staging))


def abandon_staging(tx: Transaction, key: bytes, head: bytes) -> None:
    """Delete the head of a staging area. Maintenance purges the blocks."""
    tx.delete(key)
    tx.put(keys.abandoned_staging(decode_staging(head).id), b"")


def is_empty(snap: Snapshot, container_id: int) -> bool:
    """Whether a container has no blob, no snapshot, no version and nothing deleted. Staged blocks do not count."""
    prefixes = (
        keys.blobs(container_id),
        keys.snapshots_in(container_id),
        keys.versions_in(container_id),
        keys.deleted_in(container_id),
    )
    return all(next(snap.scan(prefix, keys.after(prefix), limit=1), None) is None for prefix in prefixes)


# Purges: no name leads to these rows any more, or they have expired


def purge_container(tx: Transaction, container_id: int, *, limit: int) -> bool:
    """Delete some rows of a deleted container. False when there were none."""
    left = limit
    prefix = keys.blobs(container_id)
    for key, value in list(tx.scan(prefix, keys.after(prefix), limit=left)):
        if left <= 0:
            break
        record = decode_blob(value)
        if record.tags:  # It counts twice, for its rows in the index.
            tag_index.purge(tx, container_id, key[NAME_AT:].decode(), record.tags)
            left -= 1
        content.drop(tx, record.content)
        tx.delete(key)
        left -= 1
    left = max(left, 0)
    left -= history.purge_container(tx, container_id, limit=left)
    prefix = keys.stagings(container_id)
    for key, head in list(tx.scan(prefix, keys.after(prefix), limit=left)):
        abandon_staging(tx, key, head)
        left -= 1
    if left == limit:
        tag_index.purge_container(tx, container_id)
    return left < limit


def expired_stagings(snap: Snapshot, start: bytes, *, limit: int) -> tuple[list[bytes], bytes]:
    """Keys of expired staging areas in one page of all, and where the next page begins; b"" after the last."""
    found = list(snap.scan(start or keys.STAGINGS, keys.after(keys.STAGINGS), limit=limit))
    expired = [key for key, head in found if not decode_staging(head).is_alive(snap.now)]
    return expired, found[-1][0] + b"\0" if len(found) == limit else b""


def abandon_expired(tx: Transaction, found: list[bytes]) -> None:
    """Abandon those of these staging areas that are still there and still expired."""
    for key, head in zip(found, tx.get_many(found), strict=True):
        if head is not None and not decode_staging(head).is_alive(tx.now):
            abandon_staging(tx, key, head)
