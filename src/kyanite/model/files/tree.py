"""The tree of a share: finding what a path names, now or at a snapshot, and changing it without harm to snapshots.

Rows say when they were written. Whoever changes or removes a row that a snapshot still shows sets it aside first: see
``docs/decisions/0030-files.md``. So there are three ways to change the tree, and all writers go through them:
``preserve_for_snapshots`` before an entry is written anew, ``remove`` where one goes, ``save`` for the new row.

A file with several names has its row apart, under its own id and no name, and each of its names is a row that only says
which file it is. ``look_up`` follows them, and the place that it gives back is where the file is.
"""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.files import share, usage
from kyanite.model.files.entry import DIRECTORY, NAME, Entry, decode_entry, name_entry
from kyanite.model.files.share import ShareKey, ShareRecord
from kyanite.model.records import encode
from kyanite.rules.file_names import fold
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant

ROOT_ID = 0


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
        """The form in which names are compared: NFS tells capitals from small letters, SMB does not."""
        return name if self.share.speaks_nfs else fold(name)


class Location(NamedTuple):
    """Where an entry is or would be."""

    tree: Tree
    directory_id: int
    name: str
    parent: Entry | None = None
    """The directory that holds it, where the way led through its row: the root's is not read on the way."""

    file_id: int = 0
    """Of a file with several names: its id, under which its row is then."""

    @property
    def row(self) -> tuple[int, str]:
        """The directory and the folded name that the row is keyed by."""
        return (self.file_id, "") if self.file_id else (self.directory_id, self.tree.fold(self.name))

    @property
    def key(self) -> bytes:
        return keys.entry(self.tree.share.id, *self.row)

    @property
    def of_name(self) -> "Location":
        """Where the name is, which is the place itself unless the file has several."""
        return self._replace(file_id=0)


def open_tree(snap: Snapshot, key: ShareKey) -> Tree:
    return Tree(share.load_any(snap, key), key.snapshot)


def location_of(snap: Snapshot, tree: Tree, names: tuple[str, ...]) -> Location:
    """Where a path leads, whether there is something or not; refused when its parent is not there."""
    if not names:
        return Location(tree, ROOT_ID, "")
    directory_id, entry = ROOT_ID, None
    for name in names[:-1]:
        entry = _row_at(snap, Location(tree, directory_id, name))
        if entry is None or not entry.is_directory:
            raise Refused(Reason.PARENT_NOT_FOUND)
        directory_id = entry.id
    return Location(tree, directory_id, names[-1], entry)


def parent_of(snap: Snapshot, location: Location) -> Entry:
    parent = location.parent or _row_at(snap, Location(location.tree, ROOT_ID, ""))
    assert parent is not None, "A share has no root directory."
    return parent


def look_up(snap: Snapshot, location: Location) -> tuple[Location, Entry | None]:
    """What is at the place, and where its row is; None when there is nothing."""
    entry = _row_at(snap, location)
    if entry is None or entry.kind != NAME:
        return location, entry
    return location._replace(file_id=entry.id), follow(snap, location.tree, entry)


def follow(snap: Snapshot, tree: Tree, name: Entry) -> Entry:
    """The file that one of several names stands for, under this name."""
    entry = _row_at(snap, Location(tree, ROOT_ID, "", file_id=name.id))
    assert entry is not None, "A name leads nowhere."
    return replace(entry, name=name.name)


def _row_at(snap: Snapshot, location: Location) -> Entry | None:
    if location.tree.at is not None:
        return _row_at_snapshot(snap, location, location.tree.at)
    stored = snap.get(location.key)
    return None if stored is None else decode_entry(stored)


def load(snap: Snapshot, path: FilePath, kind: int | None) -> tuple[Location, Entry]:
    """What the path names, which must be of this kind if one is given."""
    location = location_of(snap, open_tree(snap, path.share), path.names)
    location, entry = look_up(snap, location)
    if entry is None:
        raise Refused(Reason.PATH_NOT_FOUND)
    if kind is not None and entry.kind != kind:
        raise Refused(Reason.PATH_TYPE_MISMATCH)
    return location, entry


def load_to_see(snap: Snapshot, path: FilePath, kind: int) -> tuple[Location, Entry]:
    """The same for reading properties, which is how clients ask whether there is a file, or a directory, of this
    name: one of the other kind does not count. The Azure CLI asks so for a directory before it uploads a file. A
    symbolic link tells its properties as a file does.
    """
    location, entry = load(snap, path, None)
    if entry.is_directory != (kind == DIRECTORY):
        raise Refused(Reason.PATH_NOT_FOUND)
    return location, entry


def _row_at_snapshot(snap: Snapshot, location: Location, at: Instant) -> Entry | None:
    """The first row set aside at or after the snapshot, or else the live one; if it had been written by then."""
    base = keys.preserved_entries_of(location.tree.share.id, *location.row)
    stored = next(
        (value for _, value in snap.scan(base + keys.number(at), keys.after(base), limit=1)), None
    ) or snap.get(location.key)
    entry = None if stored is None else decode_entry(stored)
    return entry if entry is not None and entry.written_at <= at else None


def is_shown(location: Location, entry: Entry) -> bool:
    """Whether a snapshot shows the entry as it is now."""
    return entry.written_at <= location.tree.share.latest_snapshot


def preserve_for_snapshots(tx: Transaction, location: Location, entry: Entry) -> Entry:
    """The entry, free to be changed: if a snapshot shows it, it is set aside and the content shared."""
    if not is_shown(location, entry):
        return entry
    shared = content.share(tx, entry.content)
    _preserve(tx, location, entry)
    return replace(entry, content=shared)


def give_up(tx: Transaction, location: Location, entry: Entry) -> None:
    """The entry's content is wanted no more, except by a snapshot that shows it. The live row is the caller's."""
    if is_shown(location, entry):
        _preserve(tx, location, entry)
    else:
        content.drop(tx, entry.content)


def remove(tx: Transaction, location: Location, entry: Entry) -> None:
    """The entry goes; of a file with several names, this name, and the file with the last."""
    if location.file_id:
        remove_name(tx, location)
        if entry.links > 1:
            entry = preserve_for_snapshots(tx, location, entry)
            save(tx, location, replace(entry, links=entry.links - 1, changed_at=tx.now))
            return
    usage.change(tx, location.tree.share, entry.id, -entry.length)
    give_up(tx, location, entry)
    tx.delete(location.key)


def save(tx: Transaction, location: Location, entry: Entry) -> Entry:
    """Store the entry, as written now."""
    if entry.written_at != tx.now:
        entry = replace(entry, written_at=tx.now)
    tx.put(location.key, encode(entry))
    return entry


def save_name(tx: Transaction, location: Location) -> None:
    """Let the place's name stand for the file, one of several."""
    tx.put(location.of_name.key, encode(name_entry(location.name, location.file_id, tx.now)))


def remove_name(tx: Transaction, location: Location) -> None:
    """Let the name stand for the file no more, except in a snapshot that shows it."""
    name = _row_at(tx, location.of_name)
    assert name is not None, "A name is removed that is not there."
    give_up(tx, location.of_name, name)
    tx.delete(location.of_name.key)


def _preserve(tx: Transaction, location: Location, entry: Entry) -> None:
    share = location.tree.share
    tx.put(keys.preserved_entry(share.id, *location.row, share.latest_snapshot), encode(entry))
