"""The SMB sessions of all processes, so that a client that connects again can end the session that it has lost.

    Y  session id             the session: the process that serves it, and its account
    Z  owner, 0, session id   the same by process
    Z  owner, 1, session id   while another process wants it to be ended

Only the process that serves a session can end it: it knows what the session has open and what waits. So another one
marks it, notifies that process, and waits until the session is gone. These rows end with the process, so their
transactions are run with ``durable=False``.
"""

from collections.abc import Callable

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files.opens.waits import Wait
from kyanite.model.records import encode

_TO_BE_ENDED = b"smb sessions to be ended "
_ENDED = b"smb session ended "


class SessionRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored: fields are only ever added at the end."""

    owner: bytes
    account: str
    dialect: int
    signing_algorithm: int
    cipher: int
    sealed_key: bytes
    """The signing key, which only the processes of this server can read."""


decode_session: Callable[[bytes], SessionRecord] = msgspec.msgpack.Decoder(SessionRecord).decode


def topic_of(owner: bytes) -> bytes:
    """Notified when a process has sessions to end."""
    return _TO_BE_ENDED + owner


def load(snap: Snapshot, session_id: int) -> SessionRecord | None:
    stored = snap.get(keys.smb_session(session_id))
    return None if stored is None else decode_session(stored)


def add(tx: Transaction, session_id: int, record: SessionRecord, is_alive: Callable[[bytes], bool]) -> bool:
    """False if another session has this id."""
    present = load(tx, session_id)
    if present is not None:
        if is_alive(present.owner):
            return False
        remove(tx, session_id)
    tx.put(keys.smb_session(session_id), encode(record))
    tx.put(keys.smb_session_of_owner(record.owner, session_id), b"")
    return True


def remove(tx: Transaction, session_id: int) -> None:
    record = load(tx, session_id)
    if record is None:
        return
    mark = keys.smb_session_to_be_ended(record.owner, session_id)
    if tx.get(mark) is not None:
        tx.delete(mark)
        tx.notify(_ended(session_id))
    tx.delete(keys.smb_session_of_owner(record.owner, session_id))
    tx.delete(keys.smb_session(session_id))


def end(tx: Transaction, session_id: int, account: str, is_alive: Callable[[bytes], bool]) -> Wait | None:
    """Let the process that serves this session end it, and wait for that; None if there is no such session.

    A session of another account is none of the caller's business.
    """
    record = load(tx, session_id)
    if record is None or record.account != account:
        return None
    if not is_alive(record.owner):
        remove(tx, session_id)
        return None
    tx.put(keys.smb_session_to_be_ended(record.owner, session_id), b"")
    tx.notify(topic_of(record.owner))
    return Wait(_ended(session_id))


def to_be_ended(snap: Snapshot, owner: bytes, limit: int = 1000) -> list[int]:
    """The sessions of a process that another process wants to be ended."""
    base = keys.smb_sessions_to_be_ended(owner)
    return [keys.id_of_smb_session(key) for key, _ in snap.scan(base, keys.after(base), limit=limit)]


def remove_some(tx: Transaction, owner: bytes, limit: int) -> bool:
    """Remove some sessions of a dead process; False when it has none left."""
    base = keys.smb_sessions_of_owner(owner)
    rows = list(tx.scan(base, keys.after(base), limit=limit))
    for key, _ in rows:
        remove(tx, keys.id_of_smb_session(key))
        tx.delete(key)
    return bool(rows)


def _ended(session_id: int) -> bytes:
    return _ENDED + str(session_id).encode()
