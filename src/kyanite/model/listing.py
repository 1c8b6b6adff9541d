"""Listing the blobs of a container: flat, or one level of a hierarchy by a delimiter.

A page is one snapshot. It goes on at a name and not at a position, so it is stable while others write: what is neither
created nor deleted between two pages appears exactly once. A folder is skipped by seeking past it, whatever it holds.
"""

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import NamedTuple

from kyanite.engine import keys
from kyanite.engine.api import Engine, Snapshot
from kyanite.model.container import ContainerKey, load
from kyanite.model.records import BlobRecord, decode_blob
from kyanite.values import Instant

_LAST = (1 << 63) - 1
"""Stands for the blob itself where its snapshots stand for their instants: a blob comes after its snapshots."""


class Item(NamedTuple):
    name: str
    record: BlobRecord | None
    """None for a folder: the common beginning of names up to the delimiter."""
    snapshot: Instant | None = None


class Place(NamedTuple):
    """Where a page begins: at a name, and among the snapshots of that name."""

    name: str
    snapshot: Instant | None = None


BEGINNING = Place("")


@dataclass(frozen=True, slots=True)
class BlobPage:
    items: list[Item]
    next_place: Place | None
    """Where the next page begins, or None when this was the last."""
    at: Instant


@dataclass(frozen=True, slots=True)
class Listing:
    """What to list: names that begin with ``prefix``, from ``first`` on and before ``before`` (empty: no bound)."""

    prefix: str = ""
    delimiter: str = ""
    first: Place = BEGINNING
    before: str = ""
    limit: int = 5000
    snapshots: bool = False


def list_blobs(engine: Engine, key: ContainerKey, ask: Listing) -> Awaitable[BlobPage]:
    def body(snap: Snapshot) -> BlobPage:
        container_id = load(snap, key).id
        if ask.delimiter:
            return _by_delimiter(snap, keys.blobs(container_id), ask)
        if ask.snapshots:
            return _with_snapshots(snap, container_id, ask)
        return _flat(snap, keys.blobs(container_id), ask)

    return engine.read(body)


def _bounds(base: bytes, ask: Listing) -> tuple[bytes, bytes]:
    within = base + ask.prefix.encode()
    end = keys.after(within)
    if ask.before:
        end = min(end, base + ask.before.encode())
    return max(within, base + ask.first.name.encode()), end


def _flat(snap: Snapshot, base: bytes, ask: Listing) -> BlobPage:
    start, end = _bounds(base, ask)
    skip = len(base)
    rows = [(key[skip:].decode(), value) for key, value in snap.scan(start, end, limit=ask.limit + 1)]
    next_place = Place(rows.pop()[0]) if len(rows) > ask.limit else None
    return BlobPage([Item(name, decode_blob(value)) for name, value in rows], next_place, snap.now)


def _with_snapshots(snap: Snapshot, container_id: int, ask: Listing) -> BlobPage:
    """Each blob after its snapshots, the oldest first; what a page counts are blobs and snapshots alike."""
    first = (ask.first.name, ask.first.snapshot or 0)
    items: list[Item] = []
    for name, instant, value in merge(_blobs(snap, container_id, ask), _snapshots(snap, container_id, ask)):
        if (name, instant) < first:
            continue
        snapshot = None if instant == _LAST else Instant(instant)
        if len(items) == ask.limit:
            return BlobPage(items, Place(name, Instant(instant)), snap.now)
        items.append(Item(name, decode_blob(value), snapshot))
    return BlobPage(items, None, snap.now)


def _blobs(snap: Snapshot, container_id: int, ask: Listing) -> Iterator[tuple[str, int, bytes]]:
    base = keys.blobs(container_id)
    for key, value in snap.scan(*_bounds(base, ask), limit=ask.limit + 1):
        yield key[len(base) :].decode(), _LAST, value


def _snapshots(snap: Snapshot, container_id: int, ask: Listing) -> Iterator[tuple[str, int, bytes]]:
    base = keys.blob_versions(container_id)
    for key, value in snap.scan(*_bounds(base, ask)):
        name = key[len(base) : -9].decode()
        yield name, int.from_bytes(key[-8:], "big"), value


def _by_delimiter(snap: Snapshot, base: bytes, ask: Listing) -> BlobPage:
    start, end = _bounds(base, ask)
    skip = len(base)
    items: list[Item] = []
    while start < end:
        for key, value in snap.scan(start, end, limit=ask.limit + 1 - len(items)):
            name = key[skip:].decode()
            if len(items) == ask.limit:
                return BlobPage(items, Place(name), snap.now)
            cut = name.find(ask.delimiter, len(ask.prefix))
            if cut >= 0:
                folder = name[: cut + len(ask.delimiter)]
                items.append(Item(folder, None))
                start = keys.after(base + folder.encode())
                break
            items.append(Item(name, decode_blob(value)))
        else:
            break
    return BlobPage(items, None, snap.now)
