"""The rows of a listing, from several ranges of keys, in one order: by name, and those of one name by their instants.

Rows of names that have pending changes of their history (``history.py``) are read a name at a time, because the changes
decide their states. All others are as they are stored.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain
from typing import NamedTuple

from kyanite.engine.api import Snapshot
from kyanite.model import keys
from kyanite.model.blobs import history
from kyanite.model.blobs.records import decode_deleted, decode_staging
from kyanite.model.blobs.rows import NAME_AT
from kyanite.model.records import encode
from kyanite.rules import soft_delete
from kyanite.rules.soft_delete import Change, Deletion

_INSTANT_BYTES = 8

BASE_BLOB = (1 << 63) - 1
STAGING_AREA = BASE_BLOB + 1
"""Where a base blob and a staging area are among the rows of their name: after snapshots and versions."""

_BEHIND_NAME = b"\1"
"""A name followed by this comes after all rows of the name, and before all other names: none has control characters."""

STAGING = b"i"
ONLY_VERSIONS = b"P"


class NameRange(NamedTuple):
    """Names in UTF-8 from ``start`` up to ``end``, which is not included; without an end if that is empty."""

    start: bytes
    end: bytes


class ListedParts(NamedTuple):
    """What is listed beside base blobs."""

    snapshots: bool = False
    versions: bool = False
    deleted: bool = False
    """Deleted base blobs; and with ``snapshots`` or ``versions`` deleted ones of those."""
    only_versions: bool = False
    """One item for a name that has versions and no base blob."""
    uncommitted: bool = False


NO_PARTS = ListedParts()


class ListedRow(NamedTuple):
    """A row of a listing. Rows sort by name; those of one name sort by ``order``."""

    name: bytes
    order: int
    """Twice the instant of a snapshot, that and one of a version; BASE_BLOB or STAGING_AREA."""
    rank: int
    """Of rows that take the same place, such as a base blob and its deleted predecessor: the lowest is listed."""
    letter: bytes
    """The letter of its key; ONLY_VERSIONS for the newest version of a name that has no base blob."""
    value: bytes | None
    """The stored value; None for a row that was read and is not to be listed."""
    deletion: Deletion | None = None


_Rows = Iterator[ListedRow]


def instant_of(order: int) -> int:
    return order >> 1


def is_version(order: int) -> bool:
    return bool(order & 1)


def scan_blobs(
    snap: Snapshot, container_id: int, names: NameRange, *, limit: int
) -> Iterator[tuple[bytes, bytes]]:
    """Keys, in which the name begins at ``NAME_AT``, and encoded records of base blobs."""
    return snap.scan(*bounds(keys.blobs(container_id), names), limit=limit)


def scan_listed(
    snap: Snapshot, container_id: int, names: NameRange, parts: ListedParts, *, order: int
) -> _Rows:
    """Base blobs and these other parts, lazily. ``order`` is where the first name begins."""
    first = (names.start, order)
    listed_base = committed = b""
    for row in _all_rows(snap, container_id, names, parts, order):
        is_hidden = row.value is None
        if row.order == BASE_BLOB:
            is_hidden = is_hidden or row.name == listed_base
            listed_base = listed_base if is_hidden else row.name
            committed = row.name if row.letter == b"n" else committed
        elif row.letter == STAGING and row.value is not None:
            is_hidden = row.name == committed or not decode_staging(row.value).is_alive(snap.now)
        if (row.name, row.order) >= first:
            yield row._replace(value=None) if is_hidden else row


def _all_rows(snap: Snapshot, container_id: int, names: NameRange, parts: ListedParts, order: int) -> _Rows:
    if not (parts.snapshots or parts.versions or parts.only_versions):
        yield from _unchanged(snap, container_id, names, parts, order)
        return
    for key, value in snap.scan(*bounds(keys.history_changes_in(container_id), names)):
        name = key[NAME_AT:]
        if name > names.start:
            yield from _unchanged(snap, container_id, NameRange(names.start, name), parts, order)
            order = 0
        blob_key = keys.blobs(container_id) + name
        yield from _of_name(snap, blob_key, parts, history.changes_in(value), order)
        names, order = NameRange(name + _BEHIND_NAME, names.end), 0
    yield from _unchanged(snap, container_id, names, parts, order)


# Names without pending changes


def _unchanged(snap: Snapshot, container_id: int, names: NameRange, parts: ListedParts, order: int) -> _Rows:
    scans = [_plain(snap, keys.blobs(container_id), names, BASE_BLOB, b"n")]
    if parts.snapshots:
        scans.append(_timed(snap, keys.snapshots_in(container_id), names, order, b"v"))
    if parts.versions:
        scans.append(_timed(snap, keys.versions_in(container_id), names, order, b"E"))
    if parts.deleted:
        prefix = keys.deleted_in(container_id, keys.DELETED_BASE)
        scans.append(_deleted(snap, _plain(snap, prefix, names, BASE_BLOB, b"X")))
        if parts.snapshots:
            prefix = keys.deleted_in(container_id, keys.DELETED_SNAPSHOT)
            scans.append(_deleted(snap, _timed(snap, prefix, names, order, b"X")))
        if parts.versions:
            prefix = keys.deleted_in(container_id, keys.DELETED_VERSION)
            scans.append(_deleted(snap, _timed(snap, prefix, names, order, b"X", is_version=True)))
    if parts.only_versions:
        scans.append(_newest_versions(snap, container_id, names))
    if parts.uncommitted:
        scans.append(_plain(snap, keys.stagings(container_id), names, STAGING_AREA, STAGING))
    return merge(*scans)


def _plain(snap: Snapshot, prefix: bytes, names: NameRange, order: int, letter: bytes) -> _Rows:
    """Rows of one to a name."""
    name_at, rank = len(prefix), 0 if letter == b"n" else 1
    for key, value in snap.scan(*bounds(prefix, names)):
        yield ListedRow(key[name_at:], order, rank, letter, value)


def _timed(
    snap: Snapshot, prefix: bytes, names: NameRange, order: int, letter: bytes, *, is_version: bool = False
) -> _Rows:
    """Rows of several to a name, by their instants."""
    start, end = bounds(prefix, names)
    if order > 0:
        start += b"\0" + keys.number(order >> 1)
    name_at, odd = len(prefix), int(is_version or letter == b"E")
    for key, value in snap.scan(start, end):
        instant = int.from_bytes(key[-_INSTANT_BYTES:], "big")
        yield ListedRow(key[name_at : -_INSTANT_BYTES - 1], 2 * instant + odd, 0, letter, value)


def _deleted(snap: Snapshot, rows: _Rows) -> _Rows:
    """Deleted blobs with their deletions; those that are gone are not listed."""
    for row in rows:
        assert row.value is not None
        deletion = decode_deleted(row.value).deletion
        is_gone = deletion.is_gone(snap.now)
        yield row._replace(value=None) if is_gone else row._replace(deletion=deletion)


def _newest_versions(snap: Snapshot, container_id: int, names: NameRange) -> _Rows:
    """One row for each name that has previous versions: the newest. The others are skipped by a seek."""
    prefix = keys.versions_in(container_id)
    start, end = bounds(prefix, names)
    while (found := next(snap.scan(start, end, limit=1), None)) is not None:
        of_name = found[0][:-_INSTANT_BYTES]
        start = keys.after(of_name)
        _, value = next(snap.scan(of_name, start, reverse=True, limit=1))
        yield ListedRow(of_name[len(prefix) : -1], BASE_BLOB, 2, ONLY_VERSIONS, value)


# A name with pending changes


def _of_name(
    snap: Snapshot, blob_key: bytes, parts: ListedParts, changes: Sequence[Change], order: int
) -> _Rows:
    name = blob_key[NAME_AT:]
    scans: list[_Rows] = []
    is_restored = soft_delete.restores(changes)
    if parts.snapshots:
        scans.append(_snapshots_of(snap, blob_key, parts, changes, order))
        if parts.deleted or is_restored:
            prefix = keys.deleted_snapshots_of(blob_key)
            scans.append(_by_changes(snap, prefix, name, parts, changes, order))
    if parts.versions:
        scans.append(_rows_between(snap, name, keys.versions_of(blob_key), order, 1))
        if parts.deleted or is_restored:
            prefix = keys.deleted_versions_of(blob_key)
            scans.append(_by_changes(snap, prefix, name, parts, changes, order, odd=1))
    return chain(merge(*scans), _last_of_name(snap, blob_key, parts))


def _snapshots_of(
    snap: Snapshot, blob_key: bytes, parts: ListedParts, changes: Sequence[Change], order: int
) -> _Rows:
    """Ranges of snapshots that are not listed are skipped by a seek."""
    prefix, name = keys.snapshots_of(blob_key), blob_key[NAME_AT:]
    for each in soft_delete.snapshot_ranges(changes):
        is_listed = each.deletion is None or (parts.deleted and not each.deletion.is_gone(snap.now))
        first = max(each.first, order >> 1)
        if is_listed and first <= each.last:
            for key, value in snap.scan(prefix + keys.number(first), prefix + keys.number(each.last + 1)):
                yield ListedRow(name, 2 * history.instant_in(key), 0, b"v", value, each.deletion)


def _rows_between(snap: Snapshot, name: bytes, prefix: bytes, order: int, odd: int) -> _Rows:
    letter = prefix[:1]
    for key, value in snap.scan(prefix + keys.number(order >> 1), keys.after(prefix)):
        yield ListedRow(name, 2 * history.instant_in(key) + odd, 0, letter, value)


def _by_changes(
    snap: Snapshot,
    prefix: bytes,
    name: bytes,
    parts: ListedParts,
    changes: Sequence[Change],
    order: int,
    *,
    odd: int = 0,
) -> _Rows:
    """Rows of deleted snapshots or versions. Those that a change restores are active."""
    for row in _rows_between(snap, name, prefix, order, odd):
        assert row.value is not None
        state = history.state_of(prefix + keys.number(row.order >> 1), row.value, changes)
        is_listed = state.is_active() or (parts.deleted and state.is_restorable(snap.now))
        yield row._replace(value=row.value if is_listed else None, deletion=state.deletion)


def _last_of_name(snap: Snapshot, blob_key: bytes, parts: ListedParts) -> _Rows:
    """The base blob, or what is listed in its place; and the staging area."""
    name = blob_key[NAME_AT:]
    base, deleted, head = snap.get_many(
        (blob_key, keys.deleted_base_of(blob_key), keys.STAGINGS + blob_key[1:])
    )
    if base is not None:
        yield ListedRow(name, BASE_BLOB, 0, b"n", base)
    if deleted is not None and parts.deleted:
        yield from _deleted(snap, iter((ListedRow(name, BASE_BLOB, 1, b"X", deleted),)))
    if parts.only_versions and (newest := history.newest_version(snap, blob_key)) is not None:
        yield ListedRow(name, BASE_BLOB, 2, ONLY_VERSIONS, encode(newest))
    if head is not None and parts.uncommitted:
        yield ListedRow(name, STAGING_AREA, 1, STAGING, head)


def bounds(prefix: bytes, names: NameRange) -> tuple[bytes, bytes]:
    """The keys of these names."""
    return prefix + names.start, prefix + names.end if names.end else keys.after(prefix)
