"""The tree of a share: finding what a path names, now or at a snapshot, and changing it without harm to snapshots.

Rows say when they were written. Whoever changes or removes a row that a snapshot still shows sets it aside first: see
``docs/decisions/0030-files.md``. So there are three ways to change the tree, and all writers go through them:
``loosen`` before an entry is written anew, ``remove`` where one goes, ``save`` for the new row.
"""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine import keys
from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import content, share
from kyanite.model.file_entry import Entry, decode_entry
from kyanite.model.records import encode
from kyanite.model.share import ShareKey, ShareRecord
from kyanite.rules.file_names import fold
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant

ROOT_ID = 0
_SHARED_NTH = 7
"""The number, among the contents that a transaction makes, of what is shared with a row set aside."""


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


class Place(NamedTuple):
    """Where an entry is or would be."""

    tree: Tree
    directory_id: int
    name: str
    parent: Entry | None = None
    """The directory that holds it, where the way led through its row: the root's is not read on the way."""

    @property
    def key(self) -> bytes:
        return keys.entry(self.tree.share.id, self.directory_id, fold(self.name))


def open_tree(snap: Snapshot, key: ShareKey) -> Tree:
    return Tree(share.load_any(snap, key), key.snapshot)


def place_of(snap: Snapshot, tree: Tree, names: tuple[str, ...]) -> Place:
    """Where a path leads, whether there is something or not; refused when its parent is not there."""
    if not names:
        return Place(tree, ROOT_ID, "")
    directory_id, entry = ROOT_ID, None
    for name in names[:-1]:
        entry = find(snap, Place(tree, directory_id, name))
        if entry is None or not entry.is_directory:
            raise Refused(Reason.PARENT_NOT_FOUND)
        directory_id = entry.id
    return Place(tree, directory_id, names[-1], entry)


def parent_of(snap: Snapshot, place: Place) -> Entry:
    parent = place.parent or find(snap, Place(place.tree, ROOT_ID, ""))
    assert parent is not None, "A share has no root directory."
    return parent


def find(snap: Snapshot, place: Place) -> Entry | None:
    """What is at the place; None when there is nothing."""
    if place.tree.at is not None:
        return _find_at(snap, place, place.tree.at)
    stored = snap.get(place.key)
    return None if stored is None else decode_entry(stored)


def load(snap: Snapshot, path: FilePath, kind: int | None) -> tuple[Place, Entry]:
    """What the path names, which must be of this kind if one is given."""
    place = place_of(snap, open_tree(snap, path.share), path.names)
    entry = find(snap, place)
    if entry is None:
        raise Refused(Reason.PATH_NOT_FOUND)
    if kind is not None and entry.kind != kind:
        raise Refused(Reason.PATH_TYPE_MISMATCH)
    return place, entry


def load_to_see(snap: Snapshot, path: FilePath, kind: int) -> tuple[Place, Entry]:
    """The same for reading properties, which is how clients ask whether there is a file, or a directory, of this
    name: one of the other kind does not count. The Azure CLI asks so for a directory before it uploads a file.
    """
    place, entry = load(snap, path, None)
    if entry.kind != kind:
        raise Refused(Reason.PATH_NOT_FOUND)
    return place, entry


def _find_at(snap: Snapshot, place: Place, at: Instant) -> Entry | None:
    """The first row set aside at or after the snapshot, or else the live one; if it had been written by then."""
    tree, directory_id, name, _ = place
    base = keys.aside_entries_of(tree.share.id, directory_id, fold(name))
    stored = next(
        (value for _, value in snap.scan(base + keys.number(at), keys.after(base), limit=1)), None
    ) or snap.get(place.key)
    entry = None if stored is None else decode_entry(stored)
    return entry if entry is not None and entry.written_at <= at else None


def is_shown(place: Place, entry: Entry) -> bool:
    """Whether a snapshot shows the entry as it is now."""
    return entry.written_at <= place.tree.share.latest_snapshot


def loosen(tx: Transaction, place: Place, entry: Entry) -> Entry:
    """The entry, free to be changed: if a snapshot shows it, it is set aside and the content shared."""
    if not is_shown(place, entry):
        return entry
    shared = content.share(tx, entry.content, nth=_SHARED_NTH)
    _set_aside(tx, place, entry)
    return replace(entry, content=shared)


def give_up(tx: Transaction, place: Place, entry: Entry) -> None:
    """The entry's content is wanted no more, except by a snapshot that shows it. The live row is the caller's."""
    if is_shown(place, entry):
        _set_aside(tx, place, entry)
    else:
        content.drop(tx, entry.content)


def remove(tx: Transaction, place: Place, entry: Entry) -> None:
    give_up(tx, place, entry)
    tx.delete(place.key)


def save(tx: Transaction, place: Place, entry: Entry) -> Entry:
    """Store the entry, as written now."""
    if entry.written_at != tx.now:
        entry = replace(entry, written_at=tx.now)
    tx.put(place.key, encode(entry))
    return entry


def _set_aside(tx: Transaction, place: Place, entry: Entry) -> None:
    tree, directory_id, name, _ = place
    key = keys.aside_entry(tree.share.id, directory_id, fold(name), tree.share.latest_snapshot)
    tx.put(key, encode(entry))
