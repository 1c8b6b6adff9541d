"""How much an account stores, counted a page of rows at a time.

Nothing keeps these figures, so they are found by reading. Each page is one snapshot; over several pages the figures are
those of several moments.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from kyanite.engine.api import STEP_ROWS, Snapshot
from kyanite.model import keys
from kyanite.model.blobs.records import Staging, decode_blob, decode_container, decode_deleted
from kyanite.model.files.entry import DIRECTORY, NAME, decode_entry
from kyanite.model.files.share import decode_share
from kyanite.model.queues.records import decode_queue
from kyanite.model.tables.table import decode_table
from kyanite.rules import leases
from kyanite.rules.lease_records import Lease
from kyanite.values import Instant

Counts = Counter[str]
_Fold = Callable[[Counts, bytes, bytes, Instant], None]
"""Adds what a row says, given its key and value, and the time."""


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """Where the next page begins. The caller gives it back as it is."""

    kind: int = 0
    """Which of the kinds of what has a name: containers, queues, …"""
    parent: bytes = b""
    """The key of the one that was found last."""
    id: int = 0
    """What the rows in it are keyed by."""
    part: int | None = None
    """Which rows of it are next; None if the next parent is to be found."""
    after: bytes = b""
    """The last of these rows that was counted."""


class _Part(NamedTuple):
    prefix: Callable[[int], bytes]
    fold: _Fold


class _Kind(NamedTuple):
    prefix: Callable[[str], bytes]
    """What the keys of the parents of an account begin with."""
    fold: Callable[[Counts, bytes, Instant], int]
    """Adds the parent itself, and returns the id of what is in it."""
    parts: tuple[_Part, ...]


def count_page(snap: Snapshot, account: str, cursor: Cursor) -> tuple[Counts, Cursor | None]:
    """The figures of some rows, and where to go on; None at the end."""
    counts: Counts = Counter()
    rows_left = STEP_ROWS
    while rows_left > 0:
        if cursor.kind == len(_KINDS):
            return counts, None
        if cursor.part is None:
            cursor = _next_parent(snap, account, cursor, counts)
            rows_left -= 1
            continue
        last, count = _count_part(snap, cursor, counts, rows_left)
        # Short scans cost something, too.
        rows_left -= max(count, 1)
        cursor = _go_on(cursor, after=last) if rows_left <= 0 and last else _next_part(cursor)
    return counts, cursor


def _next_parent(snap: Snapshot, account: str, cursor: Cursor, counts: Counts) -> Cursor:
    kind = _KINDS[cursor.kind]
    base = kind.prefix(account)
    start = cursor.parent + b"\0" if cursor.parent else base
    for key, value in snap.scan(start, keys.after(base), limit=1):
        return Cursor(kind=cursor.kind, parent=key, id=kind.fold(counts, value, snap.now), part=0)
    return Cursor(kind=cursor.kind + 1)


def _count_part(snap: Snapshot, cursor: Cursor, counts: Counts, limit: int) -> tuple[bytes, int]:
    """Returns the last key that was counted, and how many were."""
    assert cursor.part is not None
    part = _KINDS[cursor.kind].parts[cursor.part]
    base = part.prefix(cursor.id)
    start = cursor.after + b"\0" if cursor.after else base
    last, count = b"", 0
    for key, value in snap.scan(start, keys.after(base), limit=limit):
        part.fold(counts, key, value, snap.now)
        last, count = key, count + 1
    return last, count


def _go_on(cursor: Cursor, *, after: bytes) -> Cursor:
    return msgspec.structs.replace(cursor, after=after)


def _next_part(cursor: Cursor) -> Cursor:
    assert cursor.part is not None
    is_last = cursor.part + 1 == len(_KINDS[cursor.kind].parts)
    return msgspec.structs.replace(cursor, part=None if is_last else cursor.part + 1, after=b"")


# What rows say


def _count_lease(counts: Counts, name: str, lease: Lease, now: Instant) -> None:
    if leases.is_locked(lease, now):
        counts[name] += 1


def _container(counts: Counts, value: bytes, now: Instant) -> int:
    record = decode_container(value)
    counts["containers"] += 1
    _count_lease(counts, "containers_leased", record.lease, now)
    return record.id


def _blob(counts: Counts, _key: bytes, value: bytes, now: Instant) -> None:
    record = decode_blob(value)
    counts["blobs"] += 1
    counts["blob_bytes"] += record.length
    _count_lease(counts, "blobs_leased", record.lease, now)


def _snapshot(counts: Counts, _key: bytes, value: bytes, _now: Instant) -> None:
    counts["snapshots"] += 1
    counts["snapshot_bytes"] += decode_blob(value).length


def _version(counts: Counts, _key: bytes, value: bytes, _now: Instant) -> None:
    counts["versions"] += 1
    counts["version_bytes"] += decode_blob(value).length


def _deleted(counts: Counts, _key: bytes, value: bytes, _now: Instant) -> None:
    counts["deleted_blobs"] += 1
    counts["deleted_blob_bytes"] += decode_deleted(value).blob.length


_decode_staging = msgspec.msgpack.Decoder(Staging).decode


def _staging(counts: Counts, _key: bytes, value: bytes, now: Instant) -> None:
    staging = _decode_staging(value)
    if staging.is_alive(now):
        counts["uncommitted_blocks"] += staging.count


def _queue(counts: Counts, value: bytes, _now: Instant) -> int:
    counts["queues"] += 1
    return decode_queue(value).message_set_id


def _messages(counts: Counts, _key: bytes, value: bytes, _now: Instant) -> None:
    counts["messages"] += int.from_bytes(value, "big", signed=True)


def _table(counts: Counts, value: bytes, _now: Instant) -> int:
    counts["tables"] += 1
    return decode_table(value).id


def _entity(counts: Counts, _key: bytes, _value: bytes, _now: Instant) -> None:
    counts["entities"] += 1


def _share(counts: Counts, value: bytes, now: Instant) -> int:
    record = decode_share(value)
    counts["shares"] += 1
    _count_lease(counts, "shares_leased", record.lease, now)
    return record.id


def _entry(counts: Counts, key: bytes, value: bytes, now: Instant) -> None:
    entry = decode_entry(value)
    if entry.kind == DIRECTORY:
        counts["directories"] += 1 if entry.name else 0  # The root is the share.
    elif entry.kind != NAME:
        counts["files"] += 1
        counts["file_bytes"] += entry.length
        _count_lease(counts, "files_leased", entry.lease, now)


def _share_snapshot(counts: Counts, _key: bytes, _value: bytes, _now: Instant) -> None:
    counts["share_snapshots"] += 1


def _handle(counts: Counts, key: bytes, _value: bytes, _now: Instant) -> None:
    """A file has a row of its own, and one for each of its handles."""
    counts["open_handles" if keys.is_handle(key) else "open_files"] += 1


def _pending_delete(counts: Counts, _key: bytes, _value: bytes, _now: Instant) -> None:
    counts["pending_deletes"] += 1


_KINDS = (
    _Kind(
        keys.containers,
        _container,
        (
            _Part(keys.blobs, _blob),
            _Part(keys.snapshots_in, _snapshot),
            _Part(keys.versions_in, _version),
            _Part(keys.deleted_in, _deleted),
            _Part(keys.stagings, _staging),
        ),
    ),
    _Kind(keys.queues, _queue, (_Part(keys.message_counts, _messages),)),
    _Kind(keys.tables, _table, (_Part(keys.entities, _entity),)),
    _Kind(
        keys.shares,
        _share,
        (
            _Part(keys.entries_of_share, _entry),
            _Part(keys.share_snapshots, _share_snapshot),
            _Part(keys.handles_of_share, _handle),
            _Part(keys.pending_deletes_of_share, _pending_delete),
        ),
    ),
)

NAMES = (
    "containers", "containers_leased", "blobs", "blob_bytes", "blobs_leased", "snapshots", "snapshot_bytes",
    "versions", "version_bytes", "deleted_blobs", "deleted_blob_bytes", "uncommitted_blocks", "queues", "messages",
    "tables", "entities", "shares", "shares_leased", "directories", "files", "file_bytes", "files_leased",
    "share_snapshots", "open_files", "open_handles", "pending_deletes",
)  # fmt: skip
"""Of all figures, in the order in which people read them."""
