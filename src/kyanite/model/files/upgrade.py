"""The upgrade of open handles from the first format, in which every handle had its own path and delete mark.

No process has handles open while a store is upgraded, but a list of handles must be the same afterwards. A handle
whose path no longer leads to its file, as after a rename in that format, is closed.
"""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.files.entry import Entry, decode_entry
from kyanite.model.files.opens import handles, open_files
from kyanite.model.files.opens.records import Handle, OpenFile
from kyanite.model.files.tree import ROOT_ID
from kyanite.rules.byte_locks import Lock
from kyanite.rules.file_names import fold
from kyanite.values import Instant

HANDLES_PER_STEP = 100
"""Each reads and writes a row for every directory above its file, of which there are at most 250."""

_ID_BYTES = 8


class _FirstHandle(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A handle in the first format."""

    id: int
    owner: bytes
    access: int
    share: int
    path: str
    file_id: int
    parent_id: int
    session_id: int
    client_ip: str
    opened_at: Instant
    is_delete_pending: bool = False
    locks: tuple[Lock, ...] = ()


_decode: Callable[[bytes], _FirstHandle] = msgspec.msgpack.Decoder(_FirstHandle).decode


def upgrade_handles(tx: Transaction, cursor: bytes) -> bytes | None:
    """Rewrite some handles, from the cursor on (at first empty); the next cursor, or None after the last handle."""
    rows = list(tx.scan(cursor or keys.HANDLES, keys.after(keys.HANDLES), limit=HANDLES_PER_STEP))
    for key, value in rows:
        share_id = int.from_bytes(key[1 : 1 + _ID_BYTES], "big")
        old = _decode(value)
        opened = open_files.load_open_file(tx, share_id, old.file_id) or _open_file(tx, share_id, old)
        if opened is None:
            _close(tx, key, share_id, old)
            continue
        if not opened.handle_count:
            handles.save_above(tx, share_id, opened)
        opened = replace(
            opened,
            handle_count=opened.handle_count + 1,
            is_delete_pending=opened.is_delete_pending or old.is_delete_pending,
        )
        locks = tuple(lock._replace(handle=old.id) for lock in old.locks)
        handle = Handle(
            old.id,
            old.owner,
            old.access,
            old.share,
            old.session_id,
            old.client_ip,
            old.opened_at,
            locks=locks,
        )
        handles.save(tx, share_id, opened, handle)
    return rows[-1][0] + b"\0" if len(rows) == HANDLES_PER_STEP else None


def _open_file(tx: Transaction, share_id: int, old: _FirstHandle) -> OpenFile | None:
    """The file that the handle's path leads to; None if it is another, or none."""
    names = old.path.split("/") if old.path else []
    above: list[int] = []
    entry: Entry | None = None
    for name in names:
        above.append(ROOT_ID if entry is None else entry.id)
        stored = tx.get(keys.entry(share_id, above[-1], fold(name)))
        if stored is None:
            return None
        entry = decode_entry(stored)
    if (ROOT_ID if entry is None else entry.id) != old.file_id:
        return None
    folded_name = fold(names[-1]) if names else ""
    return OpenFile(old.file_id, old.id, tuple(above), folded_name, old.path, handle_count=0)


def _close(tx: Transaction, key: bytes, share_id: int, old: _FirstHandle) -> None:
    tx.delete(key)
    if old.is_delete_pending:
        tx.delete(keys.pending_delete(share_id, old.parent_id, fold(old.path.rpartition("/")[2])))
