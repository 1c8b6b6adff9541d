"""List Handles and Force Close Handles: what REST clients can read of open handles, and close.

Handles are listed file by file, in the order in which the files were first opened: those of the file or directory
itself and, if requested, those of everything below it. Both follow the ``O`` rows of ``handles.py``, so they read only
what they return, however much else is open.
"""

from collections.abc import Awaitable
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.opens import handles
from kyanite.model.files.opens.records import Handle, OpenFile, decode_handle, decode_open_file
from kyanite.model.files.tree import FilePath, Found
from kyanite.rules.refusals import Reason, Refused

_CLOSED_AT_ONCE = 1000
"""By one request, which tells its client to repeat it when there are more."""
_CLOSED_PER_TRANSACTION = 200
_ROWS_PER_TRANSACTION = 1000
_ROWS_PER_HANDLE = 4
_FILES_PER_TRANSACTION = 600


class HandlePosition(NamedTuple):
    """A handle in the list: by the first handle of its file, and its own id."""

    first_handle_id: int = 0
    handle_id: int = 0


class HandleItem(NamedTuple):
    file: OpenFile
    handle: Handle


class HandlePage(msgspec.Struct, frozen=True, gc=False):
    items: list[HandleItem]
    next_start: HandlePosition | None
    """Where the next page begins, or None when this was the last."""


class Closing(msgspec.Struct, frozen=True, gc=False):
    closed: int
    has_more: bool


def list_handles(
    engine: Engine, path: FilePath, *, recursive: bool, start: HandlePosition, limit: int
) -> Awaitable[HandlePage]:
    def body(snap: Snapshot) -> HandlePage:
        items = _items(snap, _find(snap, path, recursive), start, limit + 1, recursive=recursive)
        if len(items) <= limit:
            return HandlePage(items, None)
        file, handle = items.pop()
        return HandlePage(items, HandlePosition(file.first_handle_id, handle.id))

    return engine.read(body)


async def close_handles(engine: Engine, path: FilePath, *, recursive: bool, handle_id: int | None) -> Closing:
    """Close one handle, or all of them. Their locks end with them."""
    if handle_id is not None:
        return Closing(await _close_one(engine, path, handle_id, recursive=recursive), has_more=False)
    closed, has_more = 0, True
    while has_more and closed < _CLOSED_AT_ONCE:
        done = await engine.run(partial(_close_some, path=path, recursive=recursive), durable=False)
        closed, has_more = closed + done.closed, done.has_more
    return Closing(closed, has_more)


def _close_some(tx: Transaction, path: FilePath, *, recursive: bool) -> Closing:
    found = _find(tx, path, recursive)
    items = _items(tx, found, HandlePosition(), _CLOSED_PER_TRANSACTION + 1, recursive=recursive)
    opened: OpenFile | None = None
    closed = rows = 0
    for file, handle in items[:_CLOSED_PER_TRANSACTION]:
        opened = opened if opened is not None and opened.file_id == file.file_id else file
        rows += _ROWS_PER_HANDLE + (len(opened.above) if opened.handle_count == 1 else 0)
        if closed and rows > _ROWS_PER_TRANSACTION:
            break
        opened = handles.force_close(tx, found.location.tree.id, opened, handle)
        closed += 1
    return Closing(closed, len(items) > closed)


async def _close_one(engine: Engine, path: FilePath, handle_id: int, *, recursive: bool) -> int:
    """Close the handle of this id, if the file or anything below it has it; some files at a time."""
    first: int | None = 0
    while first is not None:
        step = partial(_close_among, path=path, handle_id=handle_id, first=first, recursive=recursive)
        is_closed, first = await engine.run(step, durable=False)
        if is_closed:
            return 1
    return 0


def _close_among(
    tx: Transaction, path: FilePath, *, handle_id: int, first: int, recursive: bool
) -> tuple[bool, int | None]:
    """Whether one of the next open files had the handle; if not, where the next ones begin, or None at the end."""
    found = _find(tx, path, recursive)
    share_id = found.location.tree.id
    files = _open_files(tx, found, first, _FILES_PER_TRANSACTION, recursive=recursive)
    rows = tx.get_many([keys.handle(share_id, each.file_id, handle_id) for each in files])
    for opened, stored in zip(files, rows, strict=True):
        if stored is not None:
            handles.force_close(tx, share_id, opened, decode_handle(stored))
            return True, None
    return False, files[-1].first_handle_id + 1 if len(files) == _FILES_PER_TRANSACTION else None


def _find(snap: Snapshot, path: FilePath, recursive: bool) -> Found:
    found = tree.load(snap, path, None)
    if recursive and not found.entry.is_directory:
        raise Refused(Reason.NOT_RECURSIVE)
    return found


def _items(
    snap: Snapshot, found: Found, start: HandlePosition, limit: int, *, recursive: bool
) -> list[HandleItem]:
    """So many handles, from the start on."""
    share_id = found.location.tree.id
    items: list[HandleItem] = []
    # One more than needed, because the file at which the list begins may have no handles left.
    for opened in _open_files(snap, found, start.first_handle_id, limit + 1, recursive=recursive):
        first_id = start.handle_id if opened.first_handle_id == start.first_handle_id else 0
        end = keys.after(keys.handles(share_id, opened.file_id))
        begin = keys.handle(share_id, opened.file_id, first_id)
        for _, value in snap.scan(begin, end, limit=limit - len(items)):
            items.append(HandleItem(opened, decode_handle(value)))
        if len(items) >= limit:
            break
    return items


def _open_files(
    snap: Snapshot, found: Found, first_handle_id: int, limit: int, *, recursive: bool
) -> list[OpenFile]:
    """So many open files in the order of opening: the file or directory itself, and those below it."""
    share_id, own_id = found.location.tree.id, found.entry.id
    file_ids = [own_id]
    if recursive:
        begin = keys.open_entry(share_id, own_id, first_handle_id, 0)
        end = keys.after(keys.open_entries(share_id, own_id))
        file_ids += [keys.parts_of_open_entry(key)[1] for key, _ in snap.scan(begin, end, limit=limit)]
    rows = snap.get_many([keys.handles(share_id, file_id) for file_id in file_ids])
    files = [decode_open_file(stored) for stored in rows if stored is not None]
    files = [each for each in files if each.first_handle_id >= first_handle_id]
    return sorted(files, key=lambda each: each.first_handle_id)[:limit]
