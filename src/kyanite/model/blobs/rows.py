"""The rows of a blob: the base blob, its snapshots, and the head of its staging area.

No other module builds the keys of these rows, encodes or decodes them, or drops the content of a record that is
replaced or deleted. The transactions of the package decide what happens; they load, save, replace and retire here.

Deleting a blob with its snapshots is one small transaction. Up to ``SNAPSHOTS_INLINE_MAX`` snapshots are deleted by the
transaction itself. If there are more, it writes a mark: the snapshots of this name up to that instant are deleted. From
then on every function here treats them as absent, and maintenance purges them a bounded number at a time. A snapshot
that is taken later has a later instant and is not affected.
"""

from collections.abc import Iterator
from heapq import merge
from typing import NamedTuple

from msgspec import structs

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import container, last_access, protected_snapshots, tag_index
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.records import BlobRecord, ContainerRecord, Staging, decode_blob, decode_staging
from kyanite.model.content import content
from kyanite.model.records import Value, encode
from kyanite.rules import immutability
from kyanite.rules.immutability import BlobProtection, Change, ContainerProtection
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.values import Instant

SNAPSHOTS_INLINE_MAX = 64

NAME_AT = len(keys.blobs(0))
"""Where in a key of a base blob, a snapshot or a staging area the name begins."""
_INSTANT_BYTES = 8


class BlobKey(Value, frozen=True):
    container: ContainerKey
    name: str
    snapshot: Instant | None = None
    """The snapshot of the blob; None for the base blob."""
    tracks_access: bool = False
    """Of a blob that is written: whether its account keeps the time of the last access."""


# One blob or snapshot


def load(snap: Snapshot, blob: BlobKey) -> tuple[bytes, BlobRecord]:
    """The key and the record of a blob or snapshot, or a refusal that it or its container does not exist."""
    return load_with_container(snap, blob)[1:]


def load_with_container(snap: Snapshot, blob: BlobKey) -> tuple[ContainerRecord, bytes, BlobRecord]:
    """The same, after the record of the container."""
    found = container.load(snap, blob.container)
    container_id = found.id
    if blob.snapshot is None:
        key = keys.blob(container_id, blob.name)
        stored = snap.get(key)
    else:
        key = keys.version(container_id, blob.name, blob.snapshot)
        stored, mark = snap.get_many((key, keys.deleted_snapshots(container_id, blob.name)))
        if mark is not None and blob.snapshot <= _decode_instant(mark):
            stored = None
    if stored is None:
        raise Refused(Reason.BLOB_NOT_FOUND)
    return found, key, decode_blob(stored)


def save(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    """Write a record that was loaded from this key and then changed. Its old content must not be used again."""
    tx.put(key, encode(record))


def save_protection(
    tx: Transaction, key: bytes, record: BlobRecord, protection: BlobProtection | None
) -> None:
    """Change nothing but the immutability policy and the legal hold of a record that was loaded from this key."""
    protected_snapshots.replace(tx, key, record.protection, protection)
    save(tx, key, structs.replace(record, protection=protection))


def save_tags(tx: Transaction, blob: BlobKey, key: bytes, record: BlobRecord, before: Tags) -> None:
    """The same with other tags than before. Of a snapshot they are not in the index."""
    if blob.snapshot is None:
        tag_index.update(tx, blob.container, keys.id_of(key), blob.name, before, record.tags)
    tx.put(key, encode(record))


def retire(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    """Delete a blob or snapshot and drop its content."""
    if record.protection is not None:
        protected_snapshots.replace(tx, key, record.protection, None)
    content.drop(tx, record.content)
    tx.delete(key)


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

    def staging(self, now: Instant) -> Staging | None:
        """The staging area, unless there is none or it has expired."""
        if self.staging_head is None:
            return None
        staging = decode_staging(self.staging_head)
        return staging if staging.is_alive(now) else None


def load_name(snap: Snapshot, blob: BlobKey) -> StoredName:
    """What is stored under the name of a base blob; refused when its container does not exist."""
    found = container.load(snap, blob.container)
    container_id = found.id
    key, staging_key = keys.blob(container_id, blob.name), keys.staging(container_id, blob.name)
    stored, head = snap.get_many((key, staging_key))
    record = None if stored is None else decode_blob(stored)
    return StoredName(
        container_id,
        blob.name,
        key,
        record,
        staging_key,
        head,
        blob.container,
        blob.tracks_access,
        found.protection,
    )


def reload(snap: Snapshot, name: StoredName) -> StoredName:
    """What is stored now under the same keys."""
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
    )


def replace(tx: Transaction, old: StoredName, record: BlobRecord, *, drops_content: bool = True) -> None:
    """Write a new blob in place of what is stored under the name, and abandon the staging area.

    ``drops_content`` is false when the content of the new blob was made of the old one.
    """
    if drops_content and old.record is not None:
        content.drop(tx, old.record.content)
    if old.staging_head is not None:
        abandon_staging(tx, old.staging_key, old.staging_head)
    if record.tags or (old.record is not None and old.record.tags):
        _index(tx, old, record.tags)
    if old.tracks_access:
        last_access.record_write(tx, old.key, record)
    tx.put(old.key, encode(record))


def delete(tx: Transaction, old: StoredName) -> None:
    """Delete the base blob and abandon the staging area. Snapshots stay."""
    if old.staging_head is not None:
        abandon_staging(tx, old.staging_key, old.staging_head)
    if old.record is not None:
        if old.record.tags:
            _index(tx, old, NO_TAGS)
        retire(tx, old.key, old.record)


def _index(tx: Transaction, old: StoredName, tags: Tags) -> None:
    """Have the index of tags follow: the base blob of the name has these now, or is gone and has none."""
    before = NO_TAGS if old.record is None else old.record.tags
    tag_index.update(tx, old.container, old.container_id, old.name, before, tags)


# Snapshots


def add_snapshot(tx: Transaction, key: bytes, record: BlobRecord) -> None:
    """Store a snapshot of the base blob with this key. The instant of the transaction names it."""
    snapshot = keys.version_of(key, tx.now)
    if record.protection is not None:
        protected_snapshots.replace(tx, snapshot, None, record.protection)
    tx.put(snapshot, encode(record))


def has_snapshots(snap: Snapshot, name: StoredName) -> bool:
    prefix = keys.versions_of(name.container_id, name.name)
    if next(snap.scan(prefix, keys.after(prefix), limit=1), None) is None:
        return False
    mark = snap.get(keys.deleted_snapshots(name.container_id, name.name))
    if mark is None:
        return True
    start = prefix + keys.number(_decode_instant(mark) + 1)
    return next(snap.scan(start, keys.after(prefix), limit=1), None) is not None


def delete_snapshots(tx: Transaction, name: StoredName) -> None:
    """Delete all snapshots that the base blob has now: here if they are few, by a mark if they are many.

    Refused when one of them is immutable.
    """
    prefix = keys.versions_of(name.container_id, name.name)
    if name.protection is not None:
        _check_snapshots(tx, prefix, name, name.protection)
    some = list(tx.scan(prefix, keys.after(prefix), limit=SNAPSHOTS_INLINE_MAX + 1))
    if len(some) > SNAPSHOTS_INLINE_MAX:
        tx.put(keys.deleted_snapshots(name.container_id, name.name), keys.number(tx.now))
        return
    for key, value in some:
        retire(tx, key, decode_blob(value))


def _check_snapshots(
    tx: Transaction, prefix: bytes, name: StoredName, protection: ContainerProtection
) -> None:
    """A policy of the container keeps the newest snapshot longest: none was created or modified later."""
    if protection.is_version_level:
        protected_snapshots.check_deleted(tx, name.container_id, name.name)
        return
    for _, value in tx.scan(prefix, keys.after(prefix), reverse=True, limit=1):
        immutability.check(Change.DELETE, protection, None, decode_blob(value).times, tx.now)


def snapshots_from(snap: Snapshot, blob: BlobKey, first: Instant, *, limit: int) -> list[BlobRecord]:
    """The snapshot taken at ``first`` and those after it, up to ``blob.snapshot``; empty when there is none at it."""
    container_id = container.load(snap, blob.container).id
    mark = snap.get(keys.deleted_snapshots(container_id, blob.name))
    if mark is not None and first <= _decode_instant(mark):
        return []
    start = keys.version(container_id, blob.name, first)
    end = keys.after(keys.versions_of(container_id, blob.name))
    if blob.snapshot is not None:
        end = keys.version(container_id, blob.name, blob.snapshot) + b"\0"
    found = list(snap.scan(start, end, limit=limit))
    return [decode_blob(value) for _, value in found] if found and found[0][0] == start else []


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


# Listings


class NameRange(NamedTuple):
    """Names in UTF-8 from ``start`` up to ``end``, which is not included; without an end if that is empty."""

    start: bytes
    end: bytes


class ListedRow(NamedTuple):
    """A row of a listing. Rows sort by name; those of one name sort by ``order``."""

    name: bytes
    order: int
    """The instant of a snapshot, BASE_BLOB or STAGING_AREA."""
    value: bytes | None
    """The stored value; None for a row that was read and is not to be listed."""


BASE_BLOB = (1 << 63) - 1
STAGING_AREA = BASE_BLOB + 1
_MARK = -1
"""The order of a mark that snapshots of the name are deleted: it comes before them."""


def scan_blobs(
    snap: Snapshot, container_id: int, names: NameRange, *, limit: int
) -> Iterator[tuple[bytes, bytes]]:
    """Keys, in which the name begins at ``NAME_AT``, and encoded records of base blobs."""
    return snap.scan(*_bounds(keys.blobs(container_id), names), limit=limit)


def scan_listed(
    snap: Snapshot, container_id: int, names: NameRange, *, order: int, snapshots: bool, uncommitted: bool
) -> Iterator[ListedRow]:
    """Base blobs, and if wanted snapshots and staging areas, lazily. ``order`` is where the first name begins.

    Deleted snapshots are skipped by a seek. A staging area is not listed beside a base blob or when it has expired.
    """
    start, committed = (names.start, order), b""
    while True:
        scans = [_scan(snap, keys.blobs(container_id), names, BASE_BLOB)]
        if snapshots:
            scans.append(_scan(snap, keys.deleted_snapshots_in(container_id), names, _MARK))
            scans.append(_scan_snapshots(snap, container_id, names, start[1]))
        if uncommitted:
            scans.append(_scan(snap, keys.stagings(container_id), names, STAGING_AREA))
        for name, each, value in merge(*scans):
            if each == _MARK:
                after_deleted = (name, _decode_instant(value) + 1)
                if after_deleted > start:
                    start, names = after_deleted, NameRange(name, names.end)
                    yield ListedRow(*start, None)
                    break
                continue
            if each == BASE_BLOB:
                committed = name
            if (name, each) < start:
                continue
            is_hidden = each == STAGING_AREA and (
                name == committed or not decode_staging(value).is_alive(snap.now)
            )
            yield ListedRow(name, each, None if is_hidden else value)
        else:
            return


_Scan = Iterator[tuple[bytes, int, bytes]]


def _scan(snap: Snapshot, prefix: bytes, names: NameRange, order: int) -> _Scan:
    for key, value in snap.scan(*_bounds(prefix, names)):
        yield key[NAME_AT:], order, value


def _scan_snapshots(snap: Snapshot, container_id: int, names: NameRange, order: int) -> _Scan:
    start, end = _bounds(keys.blob_versions(container_id), names)
    if order > 0:
        start += b"\0" + order.to_bytes(_INSTANT_BYTES, "big")
    for key, value in snap.scan(start, end):
        instant = int.from_bytes(key[-_INSTANT_BYTES:], "big")
        yield key[NAME_AT : -_INSTANT_BYTES - 1], instant, value


def _bounds(prefix: bytes, names: NameRange) -> tuple[bytes, bytes]:
    return prefix + names.start, prefix + names.end if names.end else keys.after(prefix)


def is_empty(snap: Snapshot, container_id: int) -> bool:
    """Whether a container has no blob and no snapshot. Staged blocks do not count."""
    prefixes = (keys.blobs(container_id), keys.blob_versions(container_id))
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
        retire(tx, key, record)
        left -= 1
    left = max(left, 0)
    prefix = keys.blob_versions(container_id)
    for key, value in list(tx.scan(prefix, keys.after(prefix), limit=left)):
        retire(tx, key, decode_blob(value))
        left -= 1
    prefix = keys.stagings(container_id)
    for key, head in list(tx.scan(prefix, keys.after(prefix), limit=left)):
        abandon_staging(tx, key, head)
        left -= 1
    if left == limit:
        tag_index.purge_container(tx, container_id)
    return left < limit


def purge_snapshots(tx: Transaction, mark: bytes, *, limit: int) -> None:
    """Delete some of the snapshots that a mark covers, and the mark after the last of them."""
    until = tx.get(mark)
    if until is None:
        return
    start, end = keys.versions_deleted_by(mark, _decode_instant(until))
    some = list(tx.scan(start, end, limit=limit))
    for key, value in some:
        retire(tx, key, decode_blob(value))
    if len(some) < limit:
        tx.delete(mark)


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


def _decode_instant(value: bytes) -> int:
    return int.from_bytes(value, "big")
