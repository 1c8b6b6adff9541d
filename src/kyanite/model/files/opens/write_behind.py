"""WRITEs that are answered before they are committed, when the server is told to promise durability at FLUSH only.

A process that answers early first marks the handle. As long as the mark is there, whoever else reads, changes, locks or
opens the file waits (``caching.check_written``), and the process is told that somebody does: it then answers no more
early, and removes the mark when everything that it has answered is committed. The mark goes with the handle, too.
"""

from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.files.opens import handles
from kyanite.model.records import encode
from kyanite.rules.refusals import Reason, Refused


def begin(tx: Transaction, share_id: int, file_id: int, handle_id: int) -> bool:
    """Mark the handle. False when another one is marked: one at a time is."""
    opened = handles.load_open_file(tx, share_id, file_id)
    if opened is None or handles.find_handle(tx, share_id, file_id, handle_id) is None:
        raise Refused(Reason.HANDLE_CLOSED)
    if opened.unwritten:
        return opened.unwritten == handle_id
    tx.put(keys.handles(share_id, file_id), encode(replace(opened, unwritten=handle_id)))
    return True


def end(tx: Transaction, share_id: int, file_id: int, handle_id: int) -> None:
    """Remove the mark, if it is still there."""
    opened = handles.load_open_file(tx, share_id, file_id)
    if opened is not None and opened.unwritten == handle_id:
        left = replace(opened, unwritten=0, is_flush_wanted=False)
        tx.put(keys.handles(share_id, file_id), encode(left))
        tx.notify(handles.changed_topic(share_id, file_id))
