"""Listing the blobs of a container: flat, or one level of a hierarchy by a delimiter.

A page is one snapshot of the store. The next page begins at a name and not at a position, so a blob that is neither
created nor deleted between two pages is listed exactly once. A folder is skipped by a seek, however many blobs it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from kyanite.engine.api import STEP_ROWS, Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.blobs import container, listed_rows
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.listed_rows import (
    BASE_BLOB,
    NO_PARTS,
    ONLY_VERSIONS,
    STAGING,
    ListedParts,
    ListedRow,
    NameRange,
)
from kyanite.model.blobs.records import BlobRecord, decode_blob, decode_deleted
from kyanite.model.blobs.rows import NAME_AT
from kyanite.model.page import Decoded, collected
from kyanite.rules.soft_delete import Deletion
from kyanite.values import Instant

ROWS_MAX = 20_000
"""A page with more than base blobs ends after reading this many rows: some of them may not be listed."""


_MERGED_PER_STEP = 200
"""Rows of a merged listing cost more than those of a plain one."""

_FOLDERS_PER_STEP = STEP_ROWS // 2
"""Folders cost the embedded engine about twice as much as blobs. A page of 200 folders is one step, which on a remote
engine is one round trip."""

_FOLDER = b"/"
"""In place of the letter of a row."""


class BlobItem(msgspec.Struct, frozen=True, gc=False):
    name: str
    record: BlobRecord | None
    """None for a folder, which is a name up to the delimiter, and for an uncommitted blob."""
    snapshot: Instant | None = None
    is_uncommitted: bool = False
    """Whether there are staged blocks under this name and no blob."""
    deletion: Deletion | None = None
    """Of something that is deleted and can be restored."""
    has_versions_only: bool = False
    """Whether this is the newest version of a name that has no base blob, listed in the place of that."""


class BlobPageStart(NamedTuple):
    """Where a page begins: at a name, and among the rows of that name (``ListedRow.order``)."""

    name: str
    order: int = 0


BEGINNING = BlobPageStart("")


class BlobPage(msgspec.Struct, frozen=True):
    items: Decoded[BlobItem]
    """If nothing but base blobs and folders was wanted, its rows are keys and values, which ``item_of`` decodes."""
    next_start: BlobPageStart | None
    """Where the next page begins, or None when this was the last."""
    at: Instant


class BlobListing(msgspec.Struct, frozen=True):
    """What to list: names that begin with ``prefix``, from ``first`` on and before ``before`` (empty: no bound)."""

    prefix: str = ""
    delimiter: str = ""
    first: BlobPageStart = BEGINNING
    before: str = ""
    limit: int = 5000
    parts: ListedParts = NO_PARTS


def list_blobs(engine: Engine, key: ContainerKey, request: BlobListing) -> Awaitable[BlobPage]:
    def body(snap: Snapshot) -> Steps[BlobPage]:
        container_id = container.load(snap, key).id
        if request.parts != NO_PARTS:
            return (yield from _merged(snap, container_id, request))
        if request.delimiter:
            return (yield from _by_delimiter(snap, container_id, request))
        return (yield from _flat(snap, container_id, request))

    return engine.read_in_steps(body)


def _names(request: BlobListing, first: bytes) -> NameRange:
    """The names of the listing from ``first`` on."""
    prefix, end = request.prefix.encode(), request.before.encode()
    if prefix:
        end = min(end, keys.after(prefix)) if end else keys.after(prefix)
    return NameRange(max(prefix, first), end)


def _flat(snap: Snapshot, container_id: int, request: BlobListing) -> Steps[BlobPage]:
    names = _names(request, request.first.name.encode())
    scan = listed_rows.scan_blobs(snap, container_id, names, limit=request.limit + 1)
    found = yield from collected(scan)
    next_start = BlobPageStart(found.pop()[0][NAME_AT:].decode()) if len(found) > request.limit else None
    return BlobPage(Decoded(found, _base_items), next_start, snap.now)


def item_of(row: tuple[bytes, bytes]) -> BlobItem:
    """A base blob, or a folder: its row is what the key of a blob of that name would be, as key and as value."""
    key, value = row
    return BlobItem(key[NAME_AT:].decode(), None if value == key else decode_blob(value))


def _base_items(found: Sequence[tuple[bytes, bytes]]) -> list[BlobItem]:
    return list(map(item_of, found))


def _by_delimiter(snap: Snapshot, container_id: int, request: BlobListing) -> Steps[BlobPage]:
    """Folders and the blobs beside them. Of a folder one row is read."""
    names = _names(request, request.first.name.encode())
    start, end = listed_rows.bounds(keys.blobs(container_id), names)
    inside, delimiter = NAME_AT + len(request.prefix.encode()), request.delimiter.encode()
    rows = snap.scan_groups(start, end, inside=inside, delimiter=delimiter, limit=request.limit + 1)
    listed: list[tuple[bytes, bytes]] = []
    while part := list(islice(rows, _FOLDERS_PER_STEP)):
        for row in part:
            cut = row[0].find(delimiter, inside)
            listed.append(row if cut < 0 else _folder(row[0][: cut + len(delimiter)]))
        if len(listed) > request.limit:
            listed.pop()
            next_start = BlobPageStart(part[-1][0][NAME_AT:].decode())
            return BlobPage(Decoded(listed, _base_items), next_start, snap.now)
        if len(part) < _FOLDERS_PER_STEP:
            break
        yield
    return BlobPage(Decoded(listed, _base_items), None, snap.now)


def _folder(key: bytes) -> tuple[bytes, bytes]:
    return key, key


def _merged(snap: Snapshot, container_id: int, request: BlobListing) -> Steps[BlobPage]:
    """Base blobs with other parts, in one order. Each counts as one item of the page."""
    delimiter, inside = request.delimiter.encode(), len(request.prefix.encode())
    first, order = request.first.name.encode(), request.first.order
    listed: list[ListedRow] = []
    rows_read = 0
    while True:
        names = _names(request, first)
        for row in listed_rows.scan_listed(
            snap,
            container_id,
            names,
            request.parts,
            order=order if names.start == first else 0,
        ):
            rows_read += 1
            if rows_read % _MERGED_PER_STEP == 0:
                yield
            if rows_read == ROWS_MAX or (row.value is not None and len(listed) == request.limit):
                next_start = BlobPageStart(row.name.decode(), row.order)
                return BlobPage(Decoded(listed, _items), next_start, snap.now)
            if row.value is None:
                continue
            cut = row.name.find(delimiter, inside) if delimiter else -1
            if cut >= 0:
                folder = row.name[: cut + len(delimiter)]
                listed.append(ListedRow(folder, 0, 0, _FOLDER, b""))
                first, order = keys.after(folder), 0
                break
            listed.append(row)
        else:
            return BlobPage(Decoded(listed, _items), None, snap.now)


def _items(listed: Sequence[ListedRow]) -> list[BlobItem]:
    return list(map(_item, listed))


def _item(row: ListedRow) -> BlobItem:
    name, letter, value = row.name.decode(), row.letter, row.value
    assert value is not None
    if letter == _FOLDER:
        return BlobItem(name, None)
    if letter == STAGING:
        return BlobItem(name, None, is_uncommitted=True)
    record = decode_deleted(value).blob if letter == keys.DELETED_BLOBS else decode_blob(value)
    if row.order == BASE_BLOB or listed_rows.is_version(row.order):
        return BlobItem(name, record, deletion=row.deletion, has_versions_only=letter == ONLY_VERSIONS)
    return BlobItem(name, record, Instant(listed_rows.instant_of(row.order)), deletion=row.deletion)
