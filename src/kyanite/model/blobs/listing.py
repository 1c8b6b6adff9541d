"""Listing the blobs of a container: flat, or one level of a hierarchy by a delimiter.

A page is one snapshot. It goes on at a name and not at a position, so it is stable while others write: what is neither
created nor deleted between two pages appears exactly once. A folder is skipped by seeking past it, whatever it holds.
"""

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot
from kyanite.model import keys
from kyanite.model.blobs.container import ContainerKey, load
from kyanite.model.records import BlobRecord, decode_blob
from kyanite.values import Instant

_LAST = (1 << 63) - 1
"""Stands for the blob itself where its snapshots stand for their instants: a blob comes after its snapshots."""

_STAGED = _LAST + 1
"""Stands for staged blocks, which come after the blob."""


class BlobItem(NamedTuple):
    name: str
    record: BlobRecord | None
    """None for a folder, the common beginning of names up to the delimiter, and for what is only staged."""
    snapshot: Instant | None = None
    is_staged: bool = False
    """Whether there are blocks under this name and no blob yet."""


class BlobPageStart(NamedTuple):
    """Where a page begins: at a name, and among what is listed under that name."""

    name: str
    snapshot: Instant | None = None
    """The first snapshot to list; an instant beyond all for the blob itself."""


BEGINNING = BlobPageStart("")


@dataclass(frozen=True, slots=True)
class BlobPage:
    items: list[BlobItem]
    next_start: BlobPageStart | None
    """Where the next page begins, or None when this was the last."""
    at: Instant


@dataclass(frozen=True, slots=True)
class BlobListing:
    """What to list: names that begin with ``prefix``, from ``first`` on and before ``before`` (empty: no bound)."""

    prefix: str = ""
    delimiter: str = ""
    first: BlobPageStart = BEGINNING
    before: str = ""
    limit: int = 5000
    snapshots: bool = False
    uncommitted: bool = False


def list_blobs(engine: Engine, key: ContainerKey, request: BlobListing) -> Awaitable[BlobPage]:
    def body(snap: Snapshot) -> BlobPage:
        container_id = load(snap, key).id
        if request.snapshots or request.uncommitted:
            return _merged(snap, container_id, request)
        if request.delimiter:
            return _by_delimiter(snap, keys.blobs(container_id), request)
        return _flat(snap, keys.blobs(container_id), request)

    return engine.read(body)


def _bounds(base: bytes, request: BlobListing, first: bytes) -> tuple[bytes, bytes]:
    within = base + request.prefix.encode()
    end = keys.after(within)
    if request.before:
        end = min(end, base + request.before.encode())
    return max(within, base + first), end


def _flat(snap: Snapshot, base: bytes, request: BlobListing) -> BlobPage:
    start, end = _bounds(base, request, request.first.name.encode())
    skip = len(base)
    rows = [(key[skip:].decode(), value) for key, value in snap.scan(start, end, limit=request.limit + 1)]
    next_start = BlobPageStart(rows.pop()[0]) if len(rows) > request.limit else None
    return BlobPage([BlobItem(name, decode_blob(value)) for name, value in rows], next_start, snap.now)


def _by_delimiter(snap: Snapshot, base: bytes, request: BlobListing) -> BlobPage:
    """Folders and the blobs beside them. After a folder only one row is asked for: the next may be a folder too."""
    start, end = _bounds(base, request, request.first.name.encode())
    skip, inside, delimiter = len(base), len(base) + len(request.prefix.encode()), request.delimiter.encode()
    items: list[BlobItem] = []
    wanted = 1
    while start < end:
        rows = list(snap.scan(start, end, limit=wanted))
        for key, value in rows:
            if len(items) == request.limit:
                return BlobPage(items, BlobPageStart(key[skip:].decode()), snap.now)
            cut = key.find(delimiter, inside)
            if cut >= 0:
                folder = key[: cut + len(delimiter)]
                items.append(BlobItem(folder[skip:].decode(), None))
                start, wanted = keys.after(folder), 1
                break
            items.append(BlobItem(key[skip:].decode(), decode_blob(value)))
        else:
            if len(rows) < wanted:
                break
            start, wanted = rows[-1][0] + b"\0", min(wanted * 8, 1000)
    return BlobPage(items, None, snap.now)


class _Row(NamedTuple):
    """A row of any of the streams. Rows sort by name, then the snapshots of it by age, then the blob itself."""

    name: bytes
    instant: int
    value: bytes


def _merged(snap: Snapshot, container_id: int, request: BlobListing) -> BlobPage:
    """Blobs with whatever else was asked for, in one order; what a page counts are all of them alike."""
    at = (request.first.name.encode(), request.first.snapshot or 0)
    prefix, delimiter = request.prefix.encode(), request.delimiter.encode()
    items: list[BlobItem] = []
    while True:
        for row in merge(*_streams(snap, container_id, request, at[0])):
            if row[:2] < at:
                continue
            if len(items) == request.limit:
                return BlobPage(items, BlobPageStart(row.name.decode(), Instant(row.instant)), snap.now)
            cut = row.name.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                folder = row.name[: cut + len(delimiter)]
                items.append(BlobItem(folder.decode(), None))
                at = (keys.after(folder), 0)
                break
            if item := _item(row, items):
                items.append(item)
        else:
            return BlobPage(items, None, snap.now)


def _item(row: _Row, items: list[BlobItem]) -> BlobItem | None:
    """The row as an item; None for blocks that are staged beside a blob, which has come just before."""
    name = row.name.decode()
    if row.instant != _STAGED:
        snapshot = None if row.instant == _LAST else Instant(row.instant)
        return BlobItem(name, decode_blob(row.value), snapshot)
    is_beside = bool(items) and items[-1].name == name and items[-1].snapshot is None
    return None if is_beside else BlobItem(name, None, is_staged=True)


def _streams(
    snap: Snapshot, container_id: int, request: BlobListing, first: bytes
) -> Iterator[Iterator[_Row]]:
    yield _blobs(snap, keys.blobs(container_id), request, first, _LAST)
    if request.snapshots:
        yield _snapshots(snap, keys.blob_versions(container_id), request, first)
    if request.uncommitted:
        yield _blobs(snap, keys.stagings(container_id), request, first, _STAGED)


def _blobs(snap: Snapshot, base: bytes, request: BlobListing, first: bytes, instant: int) -> Iterator[_Row]:
    for key, value in snap.scan(*_bounds(base, request, first)):
        yield _Row(key[len(base) :], instant, value)


def _snapshots(snap: Snapshot, base: bytes, request: BlobListing, first: bytes) -> Iterator[_Row]:
    for key, value in snap.scan(*_bounds(base, request, first)):
        yield _Row(key[len(base) : -9], int.from_bytes(key[-8:], "big"), value)
