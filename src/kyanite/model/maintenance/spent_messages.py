"""Purging messages that no client can get any more.

There are two kinds. Messages of a *discarded* set, whose queue was cleared or deleted, have a mark for the set.
*Expired* messages have none: a walk through all messages finds them.
"""

from itertools import groupby

from kyanite.engine.api import Snapshot, Transaction
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.queues.message import Row, delete_rows
from kyanite.model.queues.records import decode_message
from kyanite.rules import visibility

ROWS_PER_STEP = 500
WALK_EVERY_SECONDS = 600.0


def purge(tx: Transaction, mark: bytes) -> None:
    message_set_id = keys.id_of(mark)
    base = keys.messages(message_set_id)
    rows = list(tx.scan(base, keys.after(base), limit=ROWS_PER_STEP))
    for key, value in rows:
        tx.delete(key)
        content.drop(tx, decode_message(value).long_text)
    if len(rows) < ROWS_PER_STEP:
        counts = keys.message_counts(message_set_id)
        for key, _ in list(tx.scan(counts, keys.after(counts))):
            tx.delete(key)
        tx.delete(mark)


def find_expired(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    rows = list(snap.scan(start or keys.MESSAGES, keys.after(keys.MESSAGES), limit=ROWS_PER_STEP))
    gone = [key for key, value in rows if visibility.is_expired(decode_message(value).state, snap.now)]
    return gone, rows[-1][0] + b"\0" if len(rows) == ROWS_PER_STEP else b""


def remove_expired(tx: Transaction, found: list[bytes]) -> None:
    """An expired message stays expired, but another process may have removed it since."""
    for base, group in groupby(found, key=lambda key: key[:_MESSAGE_SET_END]):
        keys_of_one = list(group)
        rows: list[Row] = [
            (key, decode_message(value))
            for key, value in zip(keys_of_one, tx.get_many(keys_of_one), strict=True)
            if value is not None
        ]
        delete_rows(tx, int.from_bytes(base[len(keys.MESSAGES) :], "big"), rows, _NO_PROCESS)


_MESSAGE_SET_END = len(keys.messages(0))
_NO_PROCESS = bytes(OWNER_BYTES)
"""Background work counts in one row, whichever process does it."""
