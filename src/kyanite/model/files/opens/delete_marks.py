"""Deleting what is open: the file is marked, cannot be opened any more, and goes with its last handle."""

from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.opens import open_files, watches
from kyanite.model.files.opens.records import OpenFile
from kyanite.model.files.tree import ROOT_ID, Found, Tree
from kyanite.model.records import encode
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.refusals import Reason, Refused


def mark(tx: Transaction, found: Found) -> None:
    """Let a file or an empty directory be deleted with its last handle. Until then it cannot be opened again."""
    location, entry = found
    share_id = location.tree.id
    opened = open_files.load_open_file(tx, share_id, entry.id)
    if opened is None:
        raise Refused(Reason.HANDLE_CLOSED)
    if entry.id == ROOT_ID:
        raise Refused(Reason.ACCESS_DENIED)
    if is_read_only(entry.attributes):
        raise Refused(Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)
    if entry.is_directory:
        tree.check_empty(tx, share_id, entry.id)
    tx.put(keys.handles(share_id, entry.id), encode(marked(tx, location.tree, opened)))


def marked(tx: Transaction, share_tree: Tree, opened: OpenFile) -> OpenFile:
    tx.put(keys.pending_delete(share_tree.id, opened.directory_id, opened.folded_name), b"")
    if share_tree.share.is_watched:
        watches.marked_for_deletion(tx, share_tree.id, opened.file_id)
    return replace(opened, is_delete_pending=True)


def clear(tx: Transaction, share_id: int, file_id: int) -> None:
    """Take the mark back, through whichever handle."""
    opened = open_files.load_open_file(tx, share_id, file_id)
    if opened is not None and opened.is_delete_pending:
        tx.put(keys.handles(share_id, file_id), encode(replace(opened, is_delete_pending=False)))
        tx.delete(keys.pending_delete(share_id, opened.directory_id, opened.folded_name))
