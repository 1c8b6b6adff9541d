"""What an open handle shows of its file: the file as it is, where it is, and whether it is to be deleted."""

from typing import NamedTuple

from kyanite.engine.api import Snapshot
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.opens import caching
from kyanite.model.files.opens.records import decode_open_file
from kyanite.model.files.tree import FilePath, Found, Location, Tree
from kyanite.rules.refusals import Reason, Refused


class Description(NamedTuple):
    found: Found
    names: tuple[str, ...]
    """The path from the root on; empty for the root itself."""
    is_delete_pending: bool = False


def describe(snap: Snapshot, share_tree: Tree, file_id: int, handle_id: int) -> Description:
    """The file of a handle; refused when the handle was closed, by its client or from outside."""
    share_id = share_tree.id
    stored, handle = snap.get_many(
        [keys.handles(share_id, file_id), keys.handle(share_id, file_id, handle_id)]
    )
    if stored is None or handle is None:
        raise Refused(Reason.HANDLE_CLOSED)
    opened = decode_open_file(stored)
    if opened.unwritten:
        caching.check_written(opened, share_id, handle_id)
    location, entry = tree.look_up(snap, Location(share_tree, opened.directory_id, opened.folded_name))
    assert entry is not None, "A file is open and not where its handles say."
    names = tuple(opened.path.split("/")) if opened.path else ()
    return Description(Found(location._replace(name=entry.name), entry), names, opened.is_delete_pending)


def describe_at_snapshot(snap: Snapshot, path: FilePath) -> Description:
    """A file of a share snapshot, which has no handle."""
    return Description(tree.load(snap, path, None), path.names)
