"""Listing a directory, now or at a snapshot, in the order of the folded names.

A page is one snapshot of the engine and begins at a name, so it costs the same wherever in the directory it begins,
and an entry that is neither made nor removed between two pages appears exactly once. At a snapshot of the share, live
and preserved rows are merged; a page that has read very many rows without being full ends early.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from itertools import islice

import msgspec

from kyanite.engine.api import Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.files import tree as file_tree
from kyanite.model.files.entry import DIRECTORY, NAME, Entry, decode_entry
from kyanite.model.files.tree import FilePath, Tree
from kyanite.values import Instant

_ROWS_MAX = 20_000
_ROWS_PER_STEP = 250
_ROWS_AT_ONCE = 500
_INSTANT_BYTES = 8
_FIRST = "\x01"
"""Before every name, and behind the empty one that the root has."""


class DirectoryListing(msgspec.Struct, frozen=True, gc=False):
    prefix: str = ""
    first: str = ""
    """The folded name at which the page begins."""
    limit: int = 5000


class DirectoryPage(msgspec.Struct, frozen=True, gc=False):
    directory: Entry
    entries: list[Entry]
    next_name: str | None
    """The folded name at which the next page begins, or None when this was the last."""


def list_directory(engine: Engine, path: FilePath, request: DirectoryListing) -> Awaitable[DirectoryPage]:
    def body(snap: Snapshot) -> Steps[DirectoryPage]:
        location, directory = file_tree.load(snap, path, DIRECTORY)
        tree = location.tree
        if tree.at is None:
            return (yield from _live(snap, tree, directory, request))
        return DirectoryPage(
            directory, *(yield from _at_snapshot(snap, tree, directory.id, request, tree.at))
        )

    return engine.read_in_steps(body)


def _bounds(base: bytes, tree: Tree, request: DirectoryListing) -> tuple[bytes, bytes]:
    within = base + tree.fold(request.prefix).encode()
    return max(within, base + (request.first or _FIRST).encode()), keys.after(within)


def _live(snap: Snapshot, tree: Tree, directory: Entry, request: DirectoryListing) -> Steps[DirectoryPage]:
    base = keys.entries(tree.id, directory.id)
    scan = snap.scan(*_bounds(base, tree, request), limit=request.limit + 1)
    pending = _pending_names(snap, tree, directory, request)
    marked: bytes | None = b""
    entries: list[Entry] = []
    left = request.limit
    while rows := list(islice(scan, min(left, _ROWS_PER_STEP))):
        left -= len(rows)
        is_last = len(rows) < _ROWS_PER_STEP
        last, omitted = rows[-1][0][len(base) :], set()
        while marked is not None and marked <= last:
            omitted.add(marked)
            marked = next(pending, None)
        if omitted:
            rows = [row for row in rows if row[0][len(base) :] not in omitted]
        entries += _followed(snap, tree, [decode_entry(value) for _, value in rows])
        if is_last:
            break
        yield
    following = next(scan, None)
    next_name = None if following is None else following[0][len(base) :].decode()
    return DirectoryPage(directory, entries, next_name)


def _pending_names(
    snap: Snapshot, tree: Tree, directory: Entry, request: DirectoryListing
) -> Iterator[bytes]:
    """The folded names of entries that are marked for deletion, which are omitted, in their order."""
    base = keys.pending_deletes(tree.id, directory.id)
    for key, _ in snap.scan(*_bounds(base, tree, request)):
        yield key[len(base) :]


def _followed(snap: Snapshot, tree: Tree, rows: Sequence[Entry]) -> list[Entry]:
    """The files that these rows stand for, where they are names of one."""
    return [file_tree.follow(snap, tree, row) if row.kind == NAME else row for row in rows]


def entries_at(
    snap: Snapshot, tree: Tree, directory_id: int, request: DirectoryListing, at: Instant
) -> tuple[list[Entry], str | None]:
    """What was in the directory at a snapshot, and the folded name at which the next page begins, if there is one.

    In one step, hence a short page.
    """
    steps = _at_snapshot(snap, tree, directory_id, request, at, rows_max=_ROWS_AT_ONCE)
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: tuple[list[Entry], str | None] = ended.value
            return result


def _at_snapshot(
    snap: Snapshot,
    tree: Tree,
    directory_id: int,
    request: DirectoryListing,
    at: Instant,
    rows_max: int | None = None,
) -> Steps[tuple[list[Entry], str | None]]:
    found: list[Entry] = []
    last = b""
    most = rows_max or _ROWS_MAX
    for rows_read, (name, entry) in enumerate(_candidates(snap, tree, directory_id, request, at)):
        if name != last and (len(found) == request.limit or rows_read >= most):
            return found, name.decode()
        last = name
        if entry is not None and entry.written_at <= at:
            found += _followed(snap, tree, [entry])
        if rows_read % _ROWS_PER_STEP == _ROWS_PER_STEP - 1:
            yield
    return found, None


Candidate = tuple[bytes, Entry | None]
"""A name, and the row of it that says what was there at the snapshot, if anything; None for any other row of it."""


def _candidates(
    snap: Snapshot, tree: Tree, directory_id: int, request: DirectoryListing, at: Instant
) -> Iterator[Candidate]:
    """One for every row that is read, in the order of the names."""
    preserved = _preserved(snap, tree, directory_id, request, at)
    ahead = next(preserved, None)
    base = keys.entries(tree.id, directory_id)
    for key, value in snap.scan(*_bounds(base, tree, request)):
        name, is_preserved = key[len(base) :], False
        while ahead is not None and ahead[0] <= name:
            is_preserved = is_preserved or (ahead[0] == name and ahead[1] is not None)
            yield ahead
            ahead = next(preserved, None)
        yield name, None if is_preserved else decode_entry(value)
    while ahead is not None:
        yield ahead
        ahead = next(preserved, None)


def _preserved(
    snap: Snapshot, tree: Tree, directory_id: int, request: DirectoryListing, at: Instant
) -> Iterator[Candidate]:
    """Of each name, the first row preserved at or after the snapshot counts."""
    base = keys.preserved_entries(tree.id, directory_id)
    last = b""
    for key, value in snap.scan(*_bounds(base, tree, request)):
        name = key[len(base) : -_INSTANT_BYTES - 1]
        if name != last and int.from_bytes(key[-_INSTANT_BYTES:], "big") >= at:
            last = name
            yield name, decode_entry(value)
        else:
            yield name, None
