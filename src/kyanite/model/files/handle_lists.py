"""List Handles and Force Close Handles: what REST clients can read of open handles, and close.

Handles are listed file by file: those of the file or directory itself, then, if requested, those of everything below
it. Both follow the ``O`` rows of ``handles.py``, so they read only what they return, however much else is open.
"""

from collections.abc import Awaitable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import handles, tree
from kyanite.model.files.handles import Handle, OpenFile
from kyanite.model.files.tree import FilePath, Found
from kyanite.rules.refusals import Reason, Refused

_CLOSED_AT_ONCE = 1000
"""By one request, which tells its client to repeat it when there are more."""
_CLOSED_PER_TRANSACTION = 200
_FILES_PER_TRANSACTION = 1000


class HandlePosition(NamedTuple):
    file_id: int = 0
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
    engine: Engine, path: FilePath, *, recursive: bool, start: HandlePosition | None, limit: int
) -> Awaitable[HandlePage]:
    def body(snap: Snapshot) -> HandlePage:
        items = _items(snap, _find(snap, path, recursive), start, limit + 1, recursive=recursive)
        if len(items) <= limit:
            return HandlePage(items, None)
        file, handle = items.pop()
        return HandlePage(items, HandlePosition(file.file_id, handle.id))

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
    items = _items(tx, found, None, _CLOSED_PER_TRANSACTION + 1, recursive=recursive)
    opened: OpenFile | None = None
    for file, handle in items[:_CLOSED_PER_TRANSACTION]:
        opened = opened if opened is not None and opened.file_id == file.file_id else file
        opened = handles.force_close(tx, found.location.tree.id, opened, handle)
    return Closing(min(len(items), _CLOSED_PER_TRANSACTION), len(items) > _CLOSED_PER_TRANSACTION)


async def _close_one(engine: Engine, path: FilePath, handle_id: int, *, recursive: bool) -> int:
    """Close the handle of this id, if the file has it or, some files at a time, anything below it."""
    after: int | None = -1
    while after is not None:
        step = partial(_close_among, path=path, handle_id=handle_id, after=after, recursive=recursive)
        is_closed, after = await engine.run(step, durable=False)
        if is_closed:
            return 1
    return 0


def _close_among(
    tx: Transaction, path: FilePath, *, handle_id: int, after: int, recursive: bool
) -> tuple[bool, int | None]:
    """Whether one of the next open files had the handle; if not, the last of these files, or None at the end."""
    location, entry = _find(tx, path, recursive)
    share_id = location.tree.id
    below = list(_files_below(tx, share_id, entry.id, after + 1, _FILES_PER_TRANSACTION)) if recursive else []
    file_ids = [entry.id, *below]
    rows = tx.get_many([keys.handle(share_id, file_id, handle_id) for file_id in file_ids])
    for file_id, stored in zip(file_ids, rows, strict=True):
        if stored is not None:
            opened = handles.load_open_file(tx, share_id, file_id)
            assert opened is not None, "A handle has no open file."
            handles.force_close(tx, share_id, opened, handles.decode_handle(stored))
            return True, None
    return False, below[-1] if len(below) == _FILES_PER_TRANSACTION else None


def _find(snap: Snapshot, path: FilePath, recursive: bool) -> Found:
    found = tree.load(snap, path, None)
    if recursive and not found.entry.is_directory:
        raise Refused(Reason.NOT_RECURSIVE)
    return found


def _items(
    snap: Snapshot, found: Found, start: HandlePosition | None, limit: int, *, recursive: bool
) -> list[HandleItem]:
    """So many handles, from the start on."""
    share_id, own_id = found.location.tree.id, found.entry.id
    items: list[HandleItem] = []
    first_handle_id, first_file_id = (0, 0) if start is None else (start.handle_id, start.file_id)
    if start is None or start.file_id == own_id:
        items += _handles_of(snap, share_id, own_id, first_handle_id, limit)
        first_file_id = 0
    if not recursive or len(items) >= limit:
        return items
    for file_id in _files_below(snap, share_id, own_id, first_file_id, limit):
        begin = first_handle_id if file_id == first_file_id else 0
        items += _handles_of(snap, share_id, file_id, begin, limit - len(items))
        if len(items) >= limit:
            break
    return items


def _handles_of(
    snap: Snapshot, share_id: int, file_id: int, first_id: int, limit: int
) -> Iterator[HandleItem]:
    opened = handles.load_open_file(snap, share_id, file_id)
    if opened is None:
        return
    end = keys.after(keys.handles(share_id, file_id))
    for _, value in snap.scan(keys.handle(share_id, file_id, first_id), end, limit=limit):
        yield HandleItem(opened, handles.decode_handle(value))


def _files_below(snap: Snapshot, share_id: int, directory_id: int, first: int, limit: int) -> Iterator[int]:
    end = keys.after(keys.open_entries(share_id, directory_id))
    for key, _ in snap.scan(keys.open_entry(share_id, directory_id, first), end, limit=limit):
        yield int.from_bytes(key[-8:], "big")
