"""What clients are doing to the files of an account now: leases, open handles, and files that are about to be deleted.

Handles are rows of their own, so they are found at once. Leases have no index: they are found by walking the trees of
the shares, at most ``ROWS_MAX`` entries for a page; the next page goes on from there.
"""

from collections.abc import Awaitable, Iterator
from typing import NamedTuple

from kyanite.engine.api import STEP_ROWS, Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.files.entry import NAME, Entry, decode_entry
from kyanite.model.files.opens.records import Handle, OpenFile, decode_handle, decode_open_file
from kyanite.model.files.share import decode_share
from kyanite.model.files.tree import ROOT_ID
from kyanite.rules import leases
from kyanite.rules.lease_records import Lease
from kyanite.rules.oplocks import Caching
from kyanite.values import Instant

ROWS_MAX = 20_000
HANDLES_MAX = 1_000
"""How many rows of handles are read."""
_FIRST = b"\x01"
"""Before every name; also behind a name, and before all longer ones."""


class FilePosition(NamedTuple):
    """Where a page begins: behind this entry, by the folded names of its path; at the first if there is none."""

    share: str = ""
    path: str = ""


class LeasedFile(NamedTuple):
    share: str
    path: str
    """Empty when the share itself is leased."""
    lease: Lease
    state: leases.State


class FileLeases(NamedTuple):
    leased: list[LeasedFile]
    next_start: FilePosition | None
    at: Instant


class OpenHandle(NamedTuple):
    share: str
    opened: OpenFile
    handle: Handle
    caching: Caching
    """What its client may cache."""
    has_lease: bool
    """Whether it may do so by a lease, which several handles can share; otherwise by an oplock."""
    is_breaking: bool


class OpenHandles(NamedTuple):
    handles: list[OpenHandle]
    pending_deletes: list[tuple[str, OpenFile]]
    """Share, and what is deleted when its last handle is closed."""
    has_more: bool
    at: Instant


# Leases


def find_leases(
    engine: Engine, account: str, start: FilePosition, rows_max: int = ROWS_MAX
) -> Awaitable[FileLeases]:
    def body(snap: Snapshot) -> Steps[FileLeases]:
        found = FileLeases([], None, snap.now)
        base = keys.shares(account)
        rows = 0
        for key, value in snap.scan(keys.share(account, start.share), keys.after(base)):
            share, record = key[len(base) :].decode(), decode_share(value)
            if rows >= rows_max:
                return found._replace(next_start=FilePosition(share))
            behind = start.path if share == start.share else ""
            if not behind:
                _note(found, share, "", record.lease)
            rows += 1
            for folded, path, entry in _walk(snap, record.id, behind):
                _note(found, share, path, entry.lease)
                rows += 1
                if rows >= rows_max:
                    return found._replace(next_start=FilePosition(share, folded))
                if not rows % STEP_ROWS:
                    yield
            yield
        return found

    return engine.read_in_steps(body)


def _note(found: FileLeases, share: str, path: str, lease: Lease) -> None:
    state = leases.state_of(lease, found.at)
    if state in leases.LOCKED:
        found.leased.append(LeasedFile(share, path, lease, state))


class _Level(NamedTuple):
    """A directory on the way: what is still to be read of it, and its path, folded and as clients write it."""

    rows: Iterator[tuple[bytes, bytes]]
    name_at: int
    folded: str
    path: str


def _walk(snap: Snapshot, share_id: int, behind: str) -> Iterator[tuple[str, str, Entry]]:
    """Every entry of a share below a path's place in the order: a directory, then what is in it."""
    levels = _levels_behind(snap, share_id, behind)
    while levels:
        level = levels[-1]
        row = next(level.rows, None)
        if row is None:
            levels.pop()
            continue
        entry = decode_entry(row[1])
        folded = f"{level.folded}{row[0][level.name_at :].decode()}"
        path = f"{level.path}{entry.name}"
        if entry.kind == NAME:
            entry = _followed(snap, share_id, entry)
        yield folded, path, entry
        if entry.is_directory:
            levels.append(_level(snap, share_id, entry.id, f"{folded}/", f"{path}/"))


def _levels_behind(snap: Snapshot, share_id: int, behind: str) -> list[_Level]:
    """The directories that are still to be read when everything up to this path was."""
    levels, directory_id, folded, path = [], ROOT_ID, "", ""
    for name in behind.split("/") if behind else ():
        levels.append(_level(snap, share_id, directory_id, folded, path, behind=name))
        stored = snap.get(keys.entry(share_id, directory_id, name))
        if stored is None or not (entry := decode_entry(stored)).is_directory:
            return levels  # It was deleted, or is a file, since the last page.
        directory_id, folded, path = entry.id, f"{folded}{name}/", f"{path}{entry.name}/"
    levels.append(_level(snap, share_id, directory_id, folded, path))
    return levels


def _level(
    snap: Snapshot, share_id: int, directory_id: int, folded: str, path: str, *, behind: str = ""
) -> _Level:
    base = keys.entries(share_id, directory_id)
    rows = iter(snap.scan(base + behind.encode() + _FIRST, keys.after(base)))
    return _Level(rows, len(base), folded, path)


def _followed(snap: Snapshot, share_id: int, name: Entry) -> Entry:
    """The file that is known by several names."""
    stored = snap.get(keys.entry(share_id, name.id, ""))
    return name if stored is None else decode_entry(stored)


# Handles


def find_handles(engine: Engine, account: str, rows_max: int = HANDLES_MAX) -> Awaitable[OpenHandles]:
    def body(snap: Snapshot) -> Steps[OpenHandles]:
        found = OpenHandles([], [], False, snap.now)
        base = keys.shares(account)
        left = rows_max
        for key, value in snap.scan(base, keys.after(base)):
            share, share_id = key[len(base) :].decode(), decode_share(value).id
            start = keys.handles_of_share(share_id)
            opened: OpenFile | None = None
            for row, stored in snap.scan(start, keys.after(start), limit=left):
                left -= 1
                if len(row) == len(keys.handles(share_id, 0)):
                    opened = decode_open_file(stored)
                    if opened.is_delete_pending:
                        found.pending_deletes.append((share, opened))
                elif opened is not None:
                    found.handles.append(_with_caching(share, opened, decode_handle(stored)))
            if left <= 0:
                return found._replace(has_more=True)
            yield
        return found

    return engine.read_in_steps(body)


def _with_caching(share: str, opened: OpenFile, handle: Handle) -> OpenHandle:
    grant = next((each for each in opened.grants if each.key == handle.caching_key), None)
    if grant is None:
        return OpenHandle(share, opened, handle, Caching.NONE, False, False)
    is_breaking = grant.requested is not None
    return OpenHandle(share, opened, handle, Caching(grant.state), grant.version > 0, is_breaking)
