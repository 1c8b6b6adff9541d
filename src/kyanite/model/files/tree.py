"""The tree of a share: finding what a path names, now or at a snapshot, and changing it without harm to snapshots.

Every row says when it was written. Before a transaction changes or removes a row that a snapshot contains, it keeps a
copy of it for the snapshot (``docs/decisions/0030-files.md``). So every writer changes the tree in one of three ways:
``preserve_for_snapshots`` and ``save`` to change an entry, ``remove`` to delete one.

A file with several names has a row of its own, under its own id and no name, and each of its names is a row that only
says which file it is. ``look_up`` follows them, and the location that it returns is the one of the file's row.

``open_path`` reads the rows of a path together, by a guess (``guesses.py``), and ``find`` walks it.
"""

from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.files import guesses, share, usage
from kyanite.model.files.entry import DIRECTORY, NAME, Entry, decode_entry, name_entry
from kyanite.model.files.guesses import NO_ROWS, Rows
from kyanite.model.files.opens import watches
from kyanite.model.files.share import NFS, ShareKey, ShareRecord
from kyanite.model.records import encode
from kyanite.rules.file_names import fold
from kyanite.rules.refusals import NameFacts, Reason, Refused
from kyanite.values import Instant

ROOT_ID = guesses.ROOT_ID


class FilePath(msgspec.Struct, frozen=True, gc=False):
    share: ShareKey
    names: tuple[str, ...]
    """From the root on; empty for the root itself."""


class Tree(NamedTuple):
    """A share as it is, or as it was at a snapshot."""

    share: ShareRecord
    at: Instant | None

    @property
    def id(self) -> int:
        return self.share.id

    def fold(self, name: str) -> str:
        """The form in which names are compared. NFS names are case-sensitive, SMB names are not."""
        return name if self.share.settings.protocol == NFS else fold(name)


class OpenPath(Protocol):
    """What the row of an open file or directory says of its path."""

    @property
    def above(self) -> tuple[int, ...]:
        """The ids of the directories above it, the root first."""

    @property
    def path(self) -> str: ...


class Location(NamedTuple):
    """Where an entry is or would be."""

    tree: Tree
    directory_id: int
    name: str
    above: tuple[Entry, ...] = ()
    """The directories on the path to it, as far as they were read: the root never is."""
    file_id: int = 0
    """Of a file with several names: its id, which is then the key of its row."""
    opened: OpenPath | None = None
    """Of a file or directory that was found by its handle: its path, which was not read."""

    @property
    def row(self) -> tuple[int, str]:
        """The directory and the folded name in the key of the row."""
        return (self.file_id, "") if self.file_id else (self.directory_id, self.tree.fold(self.name))

    @property
    def key(self) -> bytes:
        return keys.entry(self.tree.share.id, *self.row)

    @property
    def of_name(self) -> "Location":
        """The location of the name, which differs only for a file with several."""
        return self._replace(file_id=0)

    @property
    def path(self) -> watches.Path:
        if self.opened is not None:
            return watches.Path(self.opened.above, tuple(self.opened.path.split("/")))
        above = (ROOT_ID, *(each.id for each in self.above))
        assert above[-1] == self.directory_id, "The path to this location was not read."
        return watches.Path(above, (*(each.name for each in self.above), self.name))


class Found(NamedTuple):
    """A file or directory that exists, and where it is: what every operation on one works on."""

    location: Location
    entry: Entry


def open_tree(snap: Snapshot, key: ShareKey) -> Tree:
    return Tree(share.load_any(snap, key), key.snapshot)


def open_path(snap: Snapshot, path: FilePath, *, with_root: bool = False) -> tuple[Tree, Rows]:
    """The share of a path, and the rows that the path leads through, as far as they could be guessed and read together
    with the share's. They are for ``find``, before the body writes anything."""
    key = path.share
    if key.snapshot is not None:
        record, rows = guesses.open_snapshot(snap, key.key, path.names, key.snapshot)
        return Tree(record, key.snapshot), rows
    record, rows = guesses.open_share(snap, key.key, path.names, with_root)
    return Tree(record, None), rows


def find(
    snap: Snapshot, path: FilePath, opened: tuple[Tree, Rows] | None = None
) -> tuple[Location, Entry | None]:
    """The entry that a path names, and the location of its row; refused when its parent is missing."""
    tree, rows = open_path(snap, path) if opened is None else opened
    return look_up(snap, location_of(snap, tree, path.names, rows), rows)


def location_of(
    snap: Snapshot,
    tree: Tree,
    names: tuple[str, ...],
    rows: Rows | None = None,
    *,
    outside: Location | None = None,
) -> Location:
    """Where a path leads, whether or not an entry is there; refused when its parent is missing.

    ``outside`` is the location of an entry that is to be moved to this path, which must not lead through it.
    """
    if len(names) < 2:
        return Location(tree, ROOT_ID, names[0] if names else "")
    if rows is None:
        rows = guesses.read_path(snap, tree.share, names, tree.at)
    directory_id, above = ROOT_ID, []
    for name in names[:-1]:
        location = Location(tree, directory_id, name)
        entry = _row_at(snap, location, rows)
        if entry is None or not entry.is_directory:
            raise Refused(Reason.PARENT_NOT_FOUND, facts=NameFacts(name, "directory"))
        if outside is not None and outside.of_name.row == location.row:
            raise Refused(Reason.SHARING_VIOLATION)
        directory_id = entry.id
        guess_key = location.key if tree.at is None else _guess_key(location, tree.at)
        guesses.known.directories.remember(guess_key, directory_id)
        above.append(entry)
    return Location(tree, directory_id, names[-1], tuple(above))


def parent_of(snap: Snapshot, location: Location) -> Entry:
    if location.above:
        return location.above[-1]
    assert location.directory_id == ROOT_ID, "The path to this location was not read."
    parent = _row_at(snap, Location(location.tree, ROOT_ID, ""))
    assert parent is not None, "A share has no root directory."
    return parent


def look_up(snap: Snapshot, location: Location, rows: Rows = NO_ROWS) -> tuple[Location, Entry | None]:
    """The entry at the location, and the location of its row; None when there is no entry. ``rows`` were read just
    before."""
    entry = _row_at(snap, location, rows)
    if entry is None or entry.kind != NAME:
        return location, entry
    return location._replace(file_id=entry.id), follow(snap, location.tree, entry)


def follow(snap: Snapshot, tree: Tree, name: Entry) -> Entry:
    """The file that one of several names stands for, under this name."""
    entry = _row_at(snap, Location(tree, ROOT_ID, "", file_id=name.id))
    assert entry is not None, "A name leads nowhere."
    return replace(entry, name=name.name)


def _row_at(snap: Snapshot, location: Location, rows: Rows = NO_ROWS) -> Entry | None:
    if location.tree.at is not None:
        return _row_at_snapshot(snap, location, location.tree.at, rows)
    key = location.key
    stored = rows[key] if key in rows else snap.get(key)
    return None if stored is None else decode_entry(stored)


def load(snap: Snapshot, path: FilePath, kind: int | None) -> Found:
    """What the path names, which must be of this kind if one is given."""
    location, entry = find(snap, path)
    if entry is None:
        raise Refused(Reason.PATH_NOT_FOUND, facts=NameFacts(location.name, "file or directory"))
    if kind is not None and entry.kind != kind:
        raise Refused(Reason.PATH_TYPE_MISMATCH)
    return Found(location, entry)


def load_for_properties(snap: Snapshot, path: FilePath, kind: int) -> Found:
    """The same for reading properties. Clients read them to find out whether a file, or a directory, of this name
    exists, so an entry of the other kind does not count: the Azure CLI looks for a directory before it uploads a file.
    A symbolic link has the properties of a file.
    """
    found = load(snap, path, None)
    if found.entry.is_directory != (kind == DIRECTORY):
        raise Refused(Reason.PATH_NOT_FOUND)
    return found


def check_empty(snap: Snapshot, share_id: int, directory_id: int) -> None:
    if not is_empty(snap, share_id, directory_id):
        raise Refused(Reason.DIRECTORY_NOT_EMPTY)


def is_empty(snap: Snapshot, share_id: int, directory_id: int) -> bool:
    base = keys.entries(share_id, directory_id)
    return next(snap.scan(base, keys.after(base), limit=1), None) is None


def _row_at_snapshot(snap: Snapshot, location: Location, at: Instant, rows: Rows) -> Entry | None:
    """The first row preserved at or after the snapshot, or else the live one; if it had been written by then.

    No other row of the location had been written by then and was preserved later, so one of ``rows`` that was needs no
    search.
    """
    guess_key = _guess_key(location, at)
    guessed = rows.get(guesses.known.preserved.get(guess_key) or location.key)
    if guessed is not None and (entry := decode_entry(guessed)).written_at <= at:
        return entry
    base = keys.preserved_entries_of(location.tree.share.id, *location.row)
    preserved = next(snap.scan(base + keys.number(at), keys.after(base), limit=1), None)
    stored = snap.get(location.key) if preserved is None else preserved[1]
    found = None if stored is None else decode_entry(stored)
    if found is None or found.written_at > at:
        return None
    if preserved is not None:
        guesses.known.preserved.remember(guess_key, preserved[0])
    return found


def _guess_key(location: Location, at: Instant) -> bytes:
    """What is remembered of a location at a snapshot is found by this key."""
    return keys.preserved_entry(location.tree.share.id, *location.row, at)


def is_in_snapshot(location: Location, entry: Entry) -> bool:
    """Whether a snapshot contains the entry as it is now."""
    return entry.written_at <= location.tree.share.latest_snapshot


def preserve_for_snapshots(tx: Transaction, location: Location, entry: Entry) -> Entry:
    """The entry, free to be changed: if a snapshot contains it, a copy of its row is kept and the content shared."""
    if not is_in_snapshot(location, entry):
        return entry
    shared = content.share(tx, entry.content)
    _preserve(tx, location, entry)
    return replace(entry, content=shared)


def discard(tx: Transaction, location: Location, entry: Entry) -> None:
    """Drop the entry's content, unless a snapshot contains it. The caller deletes or replaces the live row."""
    if is_in_snapshot(location, entry):
        _preserve(tx, location, entry)
    else:
        content.drop(tx, entry.content)


def remove(tx: Transaction, location: Location, entry: Entry) -> None:
    """Delete the entry; of a file with several names, this name, and the file with the last."""
    if location.file_id:
        remove_name(tx, location)
        if entry.links > 1:
            entry = preserve_for_snapshots(tx, location, entry)
            save(tx, location, replace(entry, links=entry.links - 1, changed_at=tx.now))
            return
    if location.tree.share.is_watched:
        watches.removed(tx, location.tree.id, location.path, entry)
    usage.change(tx, location.tree.share, entry.id, -entry.length)
    discard(tx, location, entry)
    tx.delete(location.key)


def save(tx: Transaction, location: Location, entry: Entry) -> Entry:
    """Store the entry, as written now, and report what changes to the clients that watch the share."""
    if location.tree.share.is_watched and entry.id != ROOT_ID:
        watches.saved(tx, location.tree.id, location.path, _row_at(tx, location), entry)
    return store(tx, location, entry)


def store(tx: Transaction, location: Location, entry: Entry) -> Entry:
    """The same without a report."""
    if entry.written_at != tx.now:
        entry = replace(entry, written_at=tx.now)
    tx.put(location.key, encode(entry))
    return entry


def save_name(tx: Transaction, location: Location) -> None:
    """Make the location's name one of several of its file."""
    tx.put(location.of_name.key, encode(name_entry(location.name, location.file_id, tx.now)))


def remove_name(tx: Transaction, location: Location) -> None:
    """Remove one of several names of a file, except from a snapshot that contains it."""
    name = _row_at(tx, location.of_name)
    assert name is not None, "A name is removed that does not exist."
    discard(tx, location.of_name, name)
    tx.delete(location.of_name.key)


def _preserve(tx: Transaction, location: Location, entry: Entry) -> None:
    share = location.tree.share
    tx.put(keys.preserved_entry(share.id, *location.row, share.latest_snapshot), encode(entry))
