"""Opening a file as it was at a snapshot of its share. It is not written, so it needs no handle."""

from typing import NamedTuple

import msgspec

from kyanite.engine.api import Snapshot
from kyanite.model.files import share_snapshots, tree
from kyanite.model.files.entry import Entry
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath
from kyanite.rules import access_masks, create_options
from kyanite.rules.create_options import Action, CreateTerms
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant


class SnapshotOpen(NamedTuple):
    path: FilePath
    """In the snapshot."""
    entry: Entry
    granted: int


def open_in_snapshot(
    snap: Snapshot, key: ShareKey, share_id: int, second: Instant, names: tuple[str, ...], terms: CreateTerms
) -> SnapshotOpen:
    """Open what a path named at the latest snapshot of this second."""
    at = share_snapshots.latest_within(snap, share_id, second)
    if at is None:
        raise Refused(Reason.SHARE_SNAPSHOT_NOT_FOUND)
    granted = _granted(terms)
    path = FilePath(msgspec.structs.replace(key, snapshot=at), names)
    _, entry = tree.find(snap, path)
    if entry is None:
        create_options.check_missing(terms.disposition)
        raise Refused(Reason.SNAPSHOT_IS_READ_ONLY)
    if create_options.on_existing(terms, is_directory=entry.is_directory) is not Action.OPENED:
        raise Refused(Reason.SNAPSHOT_IS_READ_ONLY)
    return SnapshotOpen(path, entry, granted)


def _granted(terms: CreateTerms) -> int:
    """What is granted of a file that cannot be changed."""
    desired = terms.desired_access
    if desired & access_masks.MAXIMUM_ALLOWED:
        desired = desired & ~access_masks.MAXIMUM_ALLOWED | access_masks.READS
    granted = access_masks.granted(desired)
    if granted & ~access_masks.READS:
        raise Refused(Reason.SNAPSHOT_IS_READ_ONLY)
    return granted
