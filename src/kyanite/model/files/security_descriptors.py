"""Security descriptors of a share, keyed by a hash of their text. They stay as long as the share."""

import hashlib
from collections.abc import Awaitable
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import share
from kyanite.model.files.share import ShareKey
from kyanite.rules import sddl
from kyanite.rules.refusals import Reason, Refused

KEY_BYTES = 16


class PermissionRequest(NamedTuple):
    """A descriptor in a request: its text, or the key of one that is stored already."""

    text: str = ""
    key: bytes = b""


class Granted(NamedTuple):
    """The keys that an entry stores: its own descriptor and, of a directory, what its children inherit."""

    own: bytes
    for_files: bytes = b""
    for_directories: bytes = b""


def create(engine: Engine, key: ShareKey, text: str) -> Awaitable[bytes]:
    def body(tx: Transaction) -> bytes:
        return store(tx, share.load(tx, key).id, text)

    return engine.run(body)


def get(engine: Engine, key: ShareKey, permission_key: bytes) -> Awaitable[str]:
    def body(snap: Snapshot) -> str:
        return load(snap, share.load(snap, key).id, permission_key)

    return engine.read(body)


def store(tx: Transaction, share_id: int, text: str) -> bytes:
    """Store the descriptor, unless it is stored already; its key."""
    permission_key = hashlib.sha256(text.encode()).digest()[:KEY_BYTES]
    row = keys.permission(share_id, permission_key)
    if tx.get(row) is None:
        tx.put(row, text.encode())
    return permission_key


def load(snap: Snapshot, share_id: int, permission_key: bytes) -> str:
    stored = snap.get(keys.permission(share_id, permission_key))
    if stored is None:
        raise Refused(Reason.PERMISSION_NOT_FOUND)
    return stored.decode()


def grant(tx: Transaction, share_id: int, request: PermissionRequest, *, to_directory: bool) -> Granted:
    """The descriptor of an entry, as a request sets it. A directory also gets those that its children will inherit."""
    text = request.text or load(tx, share_id, request.key)
    own = store(tx, share_id, text) if request.text else request.key
    if not to_directory:
        return Granted(own)
    return Granted(
        own,
        store(tx, share_id, sddl.inherited(text, by_directory=False)),
        store(tx, share_id, sddl.inherited(text, by_directory=True)),
    )
