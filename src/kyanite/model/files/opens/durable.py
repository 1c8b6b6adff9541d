"""Durable handles: a client that has lost its connection may take them up again (MS-SMB2 §3.3.5.9.6 to §3.3.5.9.12).

A client may ask for one when it opens a file, and gets it if it may cache the handle. When the connection is lost, the
handle stays, with its share mode, its locks and what its client may cache; but no process serves it. Instead of one its
owner is its own id, so that it is found by that, from whichever process. What takes the caching of the handle from its
client closes it, since nobody can be asked (``caching.py``). So it stands in the way of others only as long as they
share the file. Maintenance closes what was not taken up in time.
"""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.opens import grants, handles, open_files
from kyanite.model.files.opens.caching import NOTHING_GRANTED, CachingRequest, Granted
from kyanite.model.files.opens.opening import Opened
from kyanite.model.files.opens.records import DISCONNECTED, Handle, OpenFile
from kyanite.model.files.tree import Tree
from kyanite.model.records import encode
from kyanite.rules.create_options import Action
from kyanite.rules.oplocks import Caching
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import later

WALK_EVERY_SECONDS = 5.0
_ROWS_PER_STEP = 200
_NO_GUID = bytes(16)
"""Of an open of version 1."""


class Reconnection(msgspec.Struct, frozen=True, gc=False):
    """What a client takes up again, and who it is now."""

    handle_id: int
    create_guid: bytes | None
    """None in version 1, which names the handle alone."""
    names: tuple[str, ...]
    caching: CachingRequest
    owner: bytes
    session_id: int
    client_ip: str
    client_name: str


class _Kept(NamedTuple):
    """A handle that no process serves."""

    opened: OpenFile
    handle: Handle


def disconnect(tx: Transaction, share_id: int, file_id: int, handle_id: int) -> bool:
    """Keep a handle whose client has lost its connection. False when it is not to be kept."""
    handle = open_files.find_handle(tx, share_id, file_id, handle_id)
    opened = open_files.load_open_file(tx, share_id, file_id)
    if handle is None or opened is None or not _is_kept(opened, handle):
        return False
    owner = DISCONNECTED + keys.number(handle_id)
    _save(tx, share_id, file_id, handle, replace(handle, owner=owner, disconnected_at=tx.now))
    return True


def _is_kept(opened: OpenFile, handle: Handle) -> bool:
    """What is to be deleted when it is closed is closed now, and so is what another client waits for."""
    if not handle.durable_seconds or handle.deletes_on_close or opened.is_delete_pending:
        return False
    grant = grants.find(opened.grants, handle.caching_key)
    return grant is not None and grant.requested is None and bool(Caching(grant.state) & Caching.HANDLE)


def reconnect(tx: Transaction, share_tree: Tree, request: Reconnection) -> Opened:
    """Let a client have its handle again."""
    share_id = share_tree.id
    opened, old = _load(tx, share_id, request)
    found = open_files.find(tx, share_tree, opened.file_id)
    if old.lease_key and tree.location_of(tx, share_tree, request.names).row != found.location.of_name.row:
        raise Refused(Reason.INVALID_PARAMETER)
    new = replace(
        old,
        owner=request.owner,
        session_id=request.session_id,
        client_ip=request.client_ip,
        client_name=request.client_name,
        disconnected_at=None,
        reconnected_at=tx.now,
    )
    _save(tx, share_id, opened.file_id, old, new)
    return Opened(found.entry, new, Action.OPENED, _granted(tx, opened, new))


def _granted(snap: Snapshot, opened: OpenFile, handle: Handle) -> Granted:
    grant = grants.find(opened.grants, handle.caching_key)
    if grant is None:
        return NOTHING_GRANTED
    rule = grants.rule_of(grant, snap.now)
    return Granted(rule.state, rule.epoch, rule.is_breaking, grant.version)


def repeat(snap: Snapshot, share_tree: Tree, client_guid: bytes, create_guid: bytes) -> Opened | None:
    """What a CREATE has made that a client repeats, because it does not know whether it was carried out."""
    named = open_files.find_by_guid(snap, client_guid, create_guid)
    if named is None or named.share_id != share_tree.id:
        return None
    opened, handle = _load_at(snap, *named)
    entry = open_files.find(snap, share_tree, named.file_id).entry
    return Opened(entry, handle, Action(handle.action), _granted(snap, opened, handle))


def _load(snap: Snapshot, share_id: int, request: Reconnection) -> _Kept:
    """The handle, if it is this client's. Who has chosen a wrong id is not told what is there."""
    base = keys.handles_of_owner(DISCONNECTED + keys.number(request.handle_id))
    for key, _ in snap.scan(base, keys.after(base), limit=1):
        parts = keys.parts_of_handle_of_owner(key)
        kept = _load_at(snap, *parts)
        if parts[0] != share_id or request.create_guid not in (None, kept.handle.create_guid or _NO_GUID):
            break
        lease = kept.handle.caching_key if kept.handle.lease_key else b""
        if lease == request.caching.lease:
            return kept
    raise Refused(Reason.PATH_NOT_FOUND)


def _load_at(snap: Snapshot, share_id: int, file_id: int, handle_id: int) -> _Kept:
    opened = open_files.load_open_file(snap, share_id, file_id)
    assert opened is not None, "A handle has no open file."
    return _Kept(opened, open_files.load_handle(snap, share_id, file_id, handle_id))


def _save(tx: Transaction, share_id: int, file_id: int, old: Handle, new: Handle) -> None:
    tx.delete(keys.handle_of_owner(old.owner, share_id, file_id, old.id))
    tx.put(keys.handle(share_id, file_id, new.id), encode(new))
    tx.put(keys.handle_of_owner(new.owner, share_id, file_id, new.id), b"")


# --- Maintenance


def find_expired(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    """The handles that were not taken up in time among the next ones, and where to continue; empty at the end."""
    base = keys.handles_of_owner(DISCONNECTED)
    rows = list(snap.scan(start or base, keys.after(base), limit=_ROWS_PER_STEP))
    found = [key for key, _ in rows if _is_expired(snap, key)]
    return found, rows[-1][0] + b"\0" if len(rows) == _ROWS_PER_STEP else b""


def _is_expired(snap: Snapshot, key: bytes) -> bool:
    handle = open_files.find_handle(snap, *keys.parts_of_handle_of_owner(key))
    if handle is None or handle.disconnected_at is None:
        return False
    return later(handle.disconnected_at, handle.durable_seconds) <= snap.now


def remove_expired(tx: Transaction, found: list[bytes]) -> None:
    for key in found:
        if _is_expired(tx, key) and tx.get(key) is not None:
            parts = keys.parts_of_handle_of_owner(key)
            handles.force_close(tx, parts[0], *_load_at(tx, *parts))
