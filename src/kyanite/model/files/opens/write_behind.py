"""WRITEs that are answered before they are committed, when the server is told to promise durability at FLUSH only.

A process that answers early first marks the handle. As long as the mark is there, whoever else reads, changes, locks or
opens the file waits (``caching.check_written``), and the process is told that somebody does: it then answers no more
early, and removes the mark when everything that it has answered is committed. Then the others have some time in which
no handle can be marked again. The mark goes with the handle, too.
"""

from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.files.opens import open_files
from kyanite.model.records import encode
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND

_OTHERS_TICKS = TICKS_PER_SECOND // 10


def begin(tx: Transaction, share_id: int, file_id: int, handle_id: int) -> bool:
    """Mark the handle. False when another one is marked, since one at a time is, or when it is the turn of others."""
    opened = open_files.load_open_file(tx, share_id, file_id)
    if opened is None or open_files.find_handle(tx, share_id, file_id, handle_id) is None:
        raise Refused(Reason.HANDLE_CLOSED)
    if opened.unwritten:
        return opened.unwritten == handle_id
    if tx.now < opened.flushed_at + _OTHERS_TICKS:
        return False
    tx.put(keys.handles(share_id, file_id), encode(replace(opened, unwritten=handle_id)))
    return True


def end(tx: Transaction, share_id: int, file_id: int, handle_id: int) -> None:
    """Remove the mark, if it is still there."""
    opened = open_files.load_open_file(tx, share_id, file_id)
    if opened is not None and opened.unwritten == handle_id:
        flushed_at = tx.now if opened.is_flush_wanted else opened.flushed_at
        left = replace(opened, unwritten=0, is_flush_wanted=False, flushed_at=flushed_at)
        tx.put(keys.handles(share_id, file_id), encode(left))
        tx.notify(open_files.changed_topic(share_id, file_id))
