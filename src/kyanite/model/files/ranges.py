"""Which ranges of a file have data, and which have changed since an earlier snapshot of its share."""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec

from kyanite.engine.api import Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.content import ranges
from kyanite.model.files import history, tree
from kyanite.model.files.entry import FILE, Entry
from kyanite.model.files.file import BLOCK, load_for_read
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath, Location
from kyanite.rules.refusals import Reason, Refused, TotalLength
from kyanite.values import Instant, LeaseId


class FileRanges(msgspec.Struct, frozen=True, gc=False):
    entry: Entry
    page: ranges.RangePage


def list_ranges(
    engine: Engine,
    path: FilePath,
    lease_id: LeaseId | None,
    *,
    first: int,
    last: int | None,
    marker: int = 0,
    limit: int,
    since: Instant | None = None,
    through_renames: bool = False,
) -> Awaitable[FileRanges]:
    """The ranges with data, or those that have changed since an earlier snapshot of the share, in blocks.

    A range that begins behind the end is refused. A marker there is not: the file may have become shorter meanwhile.
    """
    start = max(first, marker)

    def body(snap: Snapshot) -> Steps[FileRanges]:
        location, entry = load_for_read(snap, path, lease_id, start=start, length=0)
        if first and first >= entry.length:
            raise Refused(Reason.INVALID_RANGE, TotalLength(entry.length))
        end = entry.length if last is None else min(last + 1, entry.length)
        if since is None:
            page = yield from ranges.data_ranges(snap, entry.content, start, end, limit=limit, block=BLOCK)
            return FileRanges(entry, page)
        if not through_renames:
            _check_same(snap, path, entry, since)
        rows = yield from _versions(snap, path, location, entry, since)
        contents = [row.content for row in rows]
        page = yield from ranges.changed_ranges(snap, contents, start, end, limit=limit, block=BLOCK)
        return FileRanges(entry, page)

    return engine.read_in_steps(body)


def _check_same(snap: Snapshot, path: FilePath, entry: Entry, since: Instant) -> None:
    """Refuse to compare with a snapshot that has another file of this name, or none."""
    key = ShareKey(path.share.account, path.share.name, since)
    try:
        old = tree.load(snap, FilePath(key, path.names), FILE).entry
    except Refused:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NOT_FOUND) from None
    if old.id != entry.id:
        raise Refused(Reason.FILE_GENERATION_MISMATCH)


def _versions(
    snap: Snapshot, path: FilePath, location: Location, entry: Entry, since: Instant
) -> Steps[list[Entry]]:
    """The file as it was at the snapshot, at later ones, and now."""
    if path.share.snapshot is not None and since > path.share.snapshot:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NEWER)
    if snap.get(keys.share_snapshot(location.tree.id, since)) is None:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NOT_FOUND)
    rows = yield from history.versions(snap, location, entry, since)
    if rows[0].written_at > since:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NOT_FOUND)
    return rows
