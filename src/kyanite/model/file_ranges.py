"""Where a file holds data, and what has changed in it since an earlier snapshot of its share."""

from collections.abc import Awaitable

import msgspec

from kyanite.engine.api import Engine, Snapshot
from kyanite.model import content, file_tree, ranges, share
from kyanite.model.content import Content
from kyanite.model.file import load_for_read
from kyanite.model.file_entry import FILE, Entry
from kyanite.model.file_tree import FilePath, Place
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, LeaseId


class FileRanges(msgspec.Struct, frozen=True, gc=False):
    entry: Entry
    page: ranges.Page


def list_ranges(
    engine: Engine,
    path: FilePath,
    lease_id: LeaseId | None,
    *,
    first: int,
    last: int | None,
    limit: int,
    since: Instant | None = None,
) -> Awaitable[FileRanges]:
    """Where a file holds data, or what has changed in it since an earlier snapshot of the share."""

    def body(snap: Snapshot) -> FileRanges:
        place, entry = load_for_read(snap, path, lease_id, start=first, length=0)
        end = entry.length if last is None else min(last + 1, entry.length)
        if since is None:
            return FileRanges(entry, ranges.data_ranges(snap, entry.content, first, end, limit=limit))
        old = _as_it_was(snap, path, place, entry, since)
        return FileRanges(entry, ranges.changed_ranges(snap, old, entry.content, first, end, limit=limit))

    return engine.read(body)


def _as_it_was(snap: Snapshot, path: FilePath, place: Place, entry: Entry, since: Instant) -> Content:
    """The content of the same file at an earlier snapshot; none, when it was not there."""
    key = share.ShareKey(path.share.account, path.share.name, since)
    try:
        tree = file_tree.open_tree(snap, key)
    except Refused:
        raise Refused(Reason.PREVIOUS_SNAPSHOT_NOT_FOUND) from None
    try:
        _, old = file_tree.load(snap, FilePath(key, path.names), FILE)
    except Refused:
        return content.NO_CONTENT
    assert tree.id == place.tree.id
    return old.content if old.id == entry.id else content.NO_CONTENT
