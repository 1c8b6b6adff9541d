"""Watched shares: what changes in them, for the clients that watch their directories.

    W  share            the feed of a share: how many handles watch directories of it, and the number of the next change
    W  share, position  a change; the feed has so many positions, and the oldest changes are overwritten

A watch belongs to a handle and ends with it. While there is one, the record of the share says so, which every writer
reads anyway; so a change of a share that no client watches costs nothing. A writer of a watched share appends its
changes in the transaction in which it makes them, and the processes that serve the watches read the feed from where
they were.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files.entry import Entry
from kyanite.model.files.share import ShareKey, ShareRecord, decode_share
from kyanite.model.records import encode
from kyanite.rules.change_filters import RENAMED_FILE, Action, of_modification, of_name
from kyanite.values import Instant

POSITIONS = 1024
"""A process that falls so many changes behind has lost some, and its clients list their directories again."""

_TOPIC = b"changes of share "


class Path(NamedTuple):
    """Where an entry is."""

    above: tuple[int, ...]
    """The ids of the directories above it, the root first."""
    names: tuple[str, ...]
    """The names below the root, its own last."""


class Feed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored: fields are only ever added at the end."""

    watch_count: int
    next_number: int
    """Begins at an instant, so a feed that begins again has other numbers."""
    account: str
    share_name: str


class Change(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored: fields are only ever added at the end."""

    number: int
    action: int
    filter: int
    above: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    marked_directory: int | None = None
    """No change of an entry: this directory was marked for deletion."""
    closed_handle: int | None = None
    """No change of an entry: this handle was closed by another than its client."""
    is_reported_by: int = 0
    """A watch whose filter has one of these kinds gets a report of the same change that says more."""


class Changes(NamedTuple):
    items: list[Change]
    next_number: int
    has_gap: bool = False
    """Whether changes before these were overwritten."""
    ended_at: Instant | None = None
    """When every watch of the share had ended."""


decode_feed: Callable[[bytes], Feed] = msgspec.msgpack.Decoder(Feed).decode
decode_change: Callable[[bytes], Change] = msgspec.msgpack.Decoder(Change).decode


def topic(share_id: int) -> bytes:
    """Notified when a watched share has changed."""
    return _TOPIC + str(share_id).encode()


def load_feed(snap: Snapshot, share_id: int) -> Feed | None:
    stored = snap.get(keys.change_feed(share_id))
    return None if stored is None else decode_feed(stored)


def next_number(snap: Snapshot, share_id: int) -> int:
    feed = load_feed(snap, share_id)
    assert feed is not None, "A share is watched and has no feed."
    return feed.next_number


def begin(tx: Transaction, key: ShareKey, share: ShareRecord) -> None:
    """Count one more watch."""
    feed = load_feed(tx, share.id) or Feed(0, tx.now, key.account, key.name)
    tx.put(keys.change_feed(share.id), encode(replace(feed, watch_count=feed.watch_count + 1)))
    if not share.is_watched:
        tx.put(key.key, encode(replace(share, is_watched=True)))


def end(tx: Transaction, share_id: int) -> None:
    """Count one watch less. With the last one the feed ends."""
    feed = load_feed(tx, share_id)
    if feed is None:  # Its share was deleted and purged.
        return
    if feed.watch_count > 1:
        tx.put(keys.change_feed(share_id), encode(replace(feed, watch_count=feed.watch_count - 1)))
        return
    tx.notify(topic(share_id))
    base = keys.change_feed(share_id)
    for key, _ in list(tx.scan(base, keys.after(base), limit=POSITIONS + 1)):
        tx.delete(key)
    share_key = keys.share(feed.account, feed.share_name)
    stored = tx.get(share_key)
    share = None if stored is None else decode_share(stored)
    if share is not None and share.id == share_id:
        tx.put(share_key, encode(replace(share, is_watched=False)))


def read(snap: Snapshot, share_id: int, number: int) -> Changes:
    """The changes from this number on."""
    feed = load_feed(snap, share_id)
    if feed is None:
        return Changes([], number, ended_at=snap.now)
    first = max(number, feed.next_number - POSITIONS)
    rows = snap.get_many([_position(share_id, each) for each in range(first, feed.next_number)])
    items = [decode_change(row) for row in rows if row is not None]
    items = [each for each in items if each.number >= first]
    return Changes(items, feed.next_number, has_gap=len(items) < feed.next_number - number)


# --- What writers of a watched share report


def saved(tx: Transaction, share_id: int, path: Path, old: Entry | None, new: Entry) -> None:
    if old is None:
        _append(tx, share_id, [Change(0, Action.ADDED, of_name(is_directory=new.is_directory), *path)])
    elif kinds := of_modification(old, new):
        _append(tx, share_id, [Change(0, Action.MODIFIED, kinds, *path)])


def removed(tx: Transaction, share_id: int, path: Path, entry: Entry) -> None:
    _append(tx, share_id, [Change(0, Action.REMOVED, of_name(is_directory=entry.is_directory), *path)])


def renamed(tx: Transaction, share_id: int, source: Path, target: Path, entry: Entry) -> None:
    """A rename within a directory has both names; a move out of it is a removal there."""
    kind = of_name(is_directory=entry.is_directory)
    if source.above == target.above:
        actions = Action.RENAMED_OLD_NAME, Action.RENAMED_NEW_NAME
    else:
        actions = Action.REMOVED, Action.ADDED
    changes = [Change(0, actions[0], kind, *source), Change(0, actions[1], kind, *target)]
    if not entry.is_directory:
        changes.append(Change(0, Action.MODIFIED, RENAMED_FILE, *target, is_reported_by=kind))
    _append(tx, share_id, changes)


def marked_for_deletion(tx: Transaction, share_id: int, directory_id: int) -> None:
    """Those who watch the directory itself are told."""
    _append(tx, share_id, [Change(0, 0, 0, marked_directory=directory_id)])


def closed(tx: Transaction, share_id: int, handle_id: int) -> None:
    """The client whose handle was closed by another is told."""
    _append(tx, share_id, [Change(0, 0, 0, closed_handle=handle_id)])


def _append(tx: Transaction, share_id: int, changes: list[Change]) -> None:
    feed = load_feed(tx, share_id)
    if feed is None:
        return
    number = feed.next_number
    for change in changes:
        tx.put(_position(share_id, number), encode(replace(change, number=number)))
        number += 1
    tx.put(keys.change_feed(share_id), encode(replace(feed, next_number=number)))
    tx.notify(topic(share_id))


def _position(share_id: int, number: int) -> bytes:
    return keys.change(share_id, number % POSITIONS)
