"""Listing the blobs of a container: flat, or one level of a hierarchy by a delimiter.

A page is one snapshot. It goes on at a name and not at a position, so it is stable while others write: what is neither
created nor deleted between two pages appears exactly once. A folder is skipped by seeking past it, whatever it holds.
"""

from collections.abc import Awaitable
from dataclasses import dataclass

from kyanite.engine import keys
from kyanite.engine.api import Engine, Snapshot
from kyanite.model.container import ContainerKey, load
from kyanite.model.records import BlobRecord, decode_blob
from kyanite.values import Instant


@dataclass(frozen=True, slots=True)
class BlobPage:
    items: list[tuple[str, BlobRecord | None]]
    """Names in order; a name without a record is a folder: the common beginning up to the delimiter."""
    next_name: str | None
    """The first name that did not fit, or None when this was the last page."""
    at: Instant


@dataclass(frozen=True, slots=True)
class Listing:
    """What to list: names that begin with ``prefix``, from ``first`` on and before ``before`` (empty: no bound)."""

    prefix: str = ""
    delimiter: str = ""
    first: str = ""
    before: str = ""
    limit: int = 5000


def list_blobs(engine: Engine, key: ContainerKey, ask: Listing) -> Awaitable[BlobPage]:
    def body(snap: Snapshot) -> BlobPage:
        base = keys.blobs(load(snap, key).id)
        return _by_delimiter(snap, base, ask) if ask.delimiter else _flat(snap, base, ask)

    return engine.read(body)


def _bounds(base: bytes, ask: Listing) -> tuple[bytes, bytes]:
    within = base + ask.prefix.encode()
    end = keys.after(within)
    if ask.before:
        end = min(end, base + ask.before.encode())
    return max(within, base + ask.first.encode()), end


def _flat(snap: Snapshot, base: bytes, ask: Listing) -> BlobPage:
    start, end = _bounds(base, ask)
    skip = len(base)
    rows = [(key[skip:].decode(), value) for key, value in snap.scan(start, end, limit=ask.limit + 1)]
    next_name = rows.pop()[0] if len(rows) > ask.limit else None
    return BlobPage([(name, decode_blob(value)) for name, value in rows], next_name, snap.now)


def _by_delimiter(snap: Snapshot, base: bytes, ask: Listing) -> BlobPage:
    start, end = _bounds(base, ask)
    skip = len(base)
    items: list[tuple[str, BlobRecord | None]] = []
    while start < end:
        for key, value in snap.scan(start, end, limit=ask.limit + 1 - len(items)):
            name = key[skip:].decode()
            if len(items) == ask.limit:
                return BlobPage(items, name, snap.now)
            cut = name.find(ask.delimiter, len(ask.prefix))
            if cut >= 0:
                folder = name[: cut + len(ask.delimiter)]
                items.append((folder, None))
                start = keys.after(base + folder.encode())
                break
            items.append((name, decode_blob(value)))
        else:
            break
    return BlobPage(items, None, snap.now)
