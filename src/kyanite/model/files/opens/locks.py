"""Taking and releasing byte-range locks by LOCK requests. The locks of a handle are part of its row (``handles.py``).

The functions here work inside a transaction that needs no sync.
"""

from kyanite.engine.api import Transaction
from kyanite.model.files.opens import caching, handles
from kyanite.model.files.opens.waits import Wait
from kyanite.rules.byte_locks import LockRequest, UnlockRequest
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused


def lock(tx: Transaction, share_id: int, file_id: int, handle_id: int, request: LockRequest) -> Wait | None:
    """Take all the locks, or none. A request that may wait does so, for however long other locks are in its way."""
    try:
        handles.lock(tx, share_id, file_id, handle_id, request.locks)
    except Refused as refused:
        if refused.reason is Reason.LOCK_NOT_GRANTED and request.may_wait:
            return Wait(handles.changed_topic(share_id, file_id))
        raise
    _break_grants(tx, share_id, file_id, handle_id)
    return None


def _break_grants(tx: Transaction, share_id: int, file_id: int, handle_id: int) -> None:
    """What is locked must be read from the server: take from other clients what they cache of it."""
    present = handles.load(tx, share_id, file_id)
    if present is not None and present[0].grants:
        own = next(each.caching_key for each in present[1] if each.id == handle_id)
        caching.break_grants(tx, share_id, present, Event.LOCK, own)


def unlock(tx: Transaction, share_id: int, file_id: int, handle_id: int, request: UnlockRequest) -> bool:
    """Unlock the ranges, up to the first that the handle has not locked; whether that were all. Those that wait for
    them are notified."""
    unlocked = handles.unlock(tx, share_id, file_id, handle_id, request.ranges)
    if unlocked:
        tx.notify(handles.changed_topic(share_id, file_id))
    return unlocked == len(request.ranges)
