"""Upgrade to format 3: backslashes in the names of blobs become slashes.

Azure takes a backslash in the path of a request for a slash. Earlier versions stored it, and no request could name such
a blob any more. Everything that is stored under the name moves: the base blob, its staging area, its snapshots, and the
mark of deleted snapshots. Where the name with slashes exists already, or where no blob can have it, underscores take
the place of backslashes, with a number behind them if need be, and the log says so.
"""

import logging
from collections.abc import Callable
from itertools import count

import msgspec

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.rules import names
from kyanite.rules.refusals import Refused

ROWS_AT_A_TIME = 500

_BASE_BLOBS, _SNAPSHOTS, _STAGINGS, _MARKS = b"n", b"v", b"i", b"p"
_ORDER = (_BASE_BLOBS, _STAGINGS, _SNAPSHOTS, _MARKS)
_ID_BYTES = 8
_INSTANT_BYTES = 8
_ROOT = "$root"

_log = logging.getLogger("kyanite.upgrade")


class _Cursor(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Where the step continues."""

    key: bytes
    """The next row to look at."""
    moving: bytes = b""
    """The id of a container and a name, if there are more snapshots of this name to move."""
    to: bytes = b""
    """Where to."""
    moved: int = 0
    """How many of them have been moved."""


class _Container(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The first field of a container record."""

    id: int


_encode: Callable[[object], bytes] = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], _Cursor] = msgspec.msgpack.Decoder(_Cursor).decode
_decode_container: Callable[[bytes], _Container] = msgspec.msgpack.Decoder(_Container).decode


def upgrade_blob_names(tx: Transaction, cursor: bytes) -> bytes | None:
    """Look at the next rows, from the cursor on (first an empty one). Returns the next cursor, or None at the end."""
    at = _decode(cursor) if cursor else _Cursor(_ORDER[0])
    if at.moving:
        moved = _move_snapshots(tx, at.moving, at.to, ROWS_AT_A_TIME)
        if moved == ROWS_AT_A_TIME:
            return _encode(_Cursor(at.key, at.moving, at.to, at.moved + moved))
        return _encode(_Cursor(at.key))
    prefix = at.key[:1]
    found = [key for key, _ in tx.scan(at.key, keys.after(prefix), limit=ROWS_AT_A_TIME)]
    left = ROWS_AT_A_TIME
    for key in found:
        old = _location_in(key)
        if (
            b"\\" not in old[_ID_BYTES:] or tx.get(key) is None
        ):  # It may have moved with another row of its name.
            continue
        new = _free_location(tx, old)
        left -= _move(tx, old, new, left)
        if left <= 0:
            return _encode(_Cursor(key + b"\0", old, new))
    if len(found) == ROWS_AT_A_TIME:
        return _encode(_Cursor(found[-1] + b"\0"))
    following = _ORDER.index(prefix) + 1
    return _encode(_Cursor(_ORDER[following])) if following < len(_ORDER) else None


def _location_in(key: bytes) -> bytes:
    """The id of the container and the name, which all rows of a name have in common."""
    return key[1 : -_INSTANT_BYTES - 1] if key[:1] == _SNAPSHOTS else key[1:]


def _move(tx: Transaction, old: bytes, new: bytes, limit: int) -> int:
    """Move the rows of a name, but of the snapshots only so many. Returns how many rows there were at the least."""
    for prefix in (_BASE_BLOBS, _STAGINGS, _MARKS):
        value = tx.get(prefix + old)
        if value is not None:
            tx.delete(prefix + old)
            tx.put(prefix + new, value)
    return 1 + _move_snapshots(tx, old, new, limit)


def _move_snapshots(tx: Transaction, old: bytes, new: bytes, limit: int) -> int:
    start = _SNAPSHOTS + old + b"\0"
    rows = list(tx.scan(start, keys.after(start), limit=limit))
    for key, value in rows:
        tx.delete(key)
        tx.put(_SNAPSHOTS + new + key[len(_SNAPSHOTS + old) :], value)
    return len(rows)


def _free_location(tx: Transaction, old: bytes) -> bytes:
    container_id, name = old[:_ID_BYTES], old[_ID_BYTES:].decode()
    container = _ROOT if container_id in _root_ids(tx) else ""
    slashed = name.replace("\\", "/")
    if _is_legal(slashed, container) and _is_free(tx, container_id + slashed.encode()):
        return container_id + slashed.encode()
    plain = name.replace("\\", "_")
    for number in count():
        suffix = f"-{number}" if number else ""
        chosen = plain + suffix
        if not _is_legal(chosen, container):
            chosen = plain[: -len(suffix)] + suffix
        if _is_free(tx, container_id + chosen.encode()):
            break
    _log.warning("a blob is renamed", extra={"blob": name, "renamed_to": chosen, "instead_of": slashed})
    return container_id + chosen.encode()


def _is_legal(name: str, container: str) -> bool:
    try:
        names.check_blob(name, container)
    except Refused:
        return False
    return True


def _is_free(tx: Transaction, location: bytes) -> bool:
    if any(
        row is not None
        for row in tx.get_many([prefix + location for prefix in (_BASE_BLOBS, _STAGINGS, _MARKS)])
    ):
        return False
    start = _SNAPSHOTS + location + b"\0"
    return next(tx.scan(start, keys.after(start), limit=1), None) is None


def _root_ids(tx: Transaction) -> set[bytes]:
    """The root containers of all accounts: the names of blobs in them have no slashes."""
    found: set[bytes] = set()
    position = b"c"
    while True:
        row = next(tx.scan(position, keys.after(b"c"), limit=1), None)
        if row is None:
            return found
        account = row[0][1:].partition(b"\0")[0]
        stored = tx.get(keys.container(account.decode(), _ROOT))
        if stored is not None:
            found.add(keys.number(_decode_container(stored).id))
        position = keys.after(keys.containers(account.decode()))
