"""Closing handles as their clients do: with the last one goes a file that is marked for deletion."""

from collections.abc import Sequence
from typing import NamedTuple

from kyanite.engine.api import Transaction
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import handles, open_files
from kyanite.model.files.tree import Tree

CLOSED_PER_TRANSACTION = 8
"""Closing the last handle of a file may delete a row for each directory above it."""


class Closed(NamedTuple):
    entry: Entry | None
    """The file as the handle left it, if it was wanted."""


def close(
    tx: Transaction,
    share_tree: Tree,
    file_id: int,
    handle_id: int,
    *,
    wants_entry: bool = False,
    may_delete: bool = True,
) -> Closed | None:
    """Close a handle. None when that deletes the file and this transaction may not, because it is not durable."""
    if not may_delete and handles.deletes_at_close(tx, share_tree.id, file_id, handle_id):
        return None
    entry = open_files.find(tx, share_tree, file_id).entry if wants_entry else None
    handles.close_handle(tx, share_tree, file_id, handle_id)
    return Closed(entry)


def close_all(
    tx: Transaction, share_tree: Tree, opens: Sequence[tuple[int, int]], *, may_delete: bool
) -> bool:
    """Close handles, given by file and handle, that a client has left. False when that would delete a file and this
    transaction may not; then none is closed. A handle that was closed by force does not matter."""
    if not may_delete and any(_deletes(tx, share_tree.id, *each) for each in opens):
        return False
    for file_id, handle_id in opens:
        if open_files.find_handle(tx, share_tree.id, file_id, handle_id) is not None:
            handles.close_handle(tx, share_tree, file_id, handle_id)
    return True


def _deletes(tx: Transaction, share_id: int, file_id: int, handle_id: int) -> bool:
    """Whether the handle may have the file deleted, also if the last of several handles in one transaction does."""
    opened = open_files.load_open_file(tx, share_id, file_id)
    if opened is None:
        return False
    if opened.is_delete_pending:
        return True
    stored = open_files.find_handle(tx, share_id, file_id, handle_id)
    return stored is not None and stored.deletes_on_close
